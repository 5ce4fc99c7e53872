"""Entry point of `python -m kdump`."""

from kdump.cli import main

if __name__ == "__main__":  # worker processes of verify --jobs import this module, too
    main()
