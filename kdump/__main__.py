"""Entry point of `kdump` and of `python -m kdump`. Imports nothing by itself, so that an interrupt at any import is an
interrupt of the run."""


def main() -> None:
    """Run the command line."""
    try:
        from kdump.cli import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # signals.INTERRUPTED, whose import may be what was interrupted


if __name__ == "__main__":  # worker processes of verify --jobs import this module, too
    main()
