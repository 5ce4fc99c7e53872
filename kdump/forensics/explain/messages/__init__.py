"""The messages that `kdump explain` knows: one module for each family, one declaration for each message."""
