"""The version of kdump: for the package, `kdump --version`, and what kdump writes."""

__version__ = "0.1.0"
