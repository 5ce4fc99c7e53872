"""Entry point of `kdump` and of `python -m kdump`. Imports nothing by itself, so that an interrupt at any import is an
interrupt of the run."""

INTERRUPTED = 130
"""Exit status after an interrupt, as in a shell: 128 plus the number of SIGINT."""


def main() -> None:
    """Run the command line."""
    try:
        from kdump.cli import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":  # worker processes of verify --jobs import this module, too
    main()
