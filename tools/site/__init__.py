"""Documentation as a website: `make site`."""
