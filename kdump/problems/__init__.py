"""What can be wrong, what follows and what to do: one catalogue, in the TOML files of this package."""
