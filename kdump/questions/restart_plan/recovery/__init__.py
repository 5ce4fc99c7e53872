"""How long the recovery of a broker's logs takes, in which order, and how far a running one is."""
