"""What the log layer raises: a path or device that cannot be read. Bad bytes are never an exception here."""


class SourceError(Exception):
    """One line: which path, where in it, and why. The command line shows it and exits with 2."""
