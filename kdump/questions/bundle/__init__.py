"""Makes bundles: a log directory without the payloads of its records (docs/bundle.md)."""
