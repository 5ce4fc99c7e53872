"""kdump reads Kafka's files directly from a broker's disk, with no broker running."""

from typing import Any

from kdump.engine import check_choice, choose
from kdump.version import __version__ as __version__

choose()


def __getattr__(name: str) -> Any:
    """Return what `import kdump` offers, whose module is imported on first access. See docs/api.md."""
    from importlib import import_module

    from kdump.index import API

    if name not in API and name != "API":
        raise AttributeError(f"module 'kdump' has no attribute {name!r}")
    check_choice()
    value = globals()[name] = API if name == "API" else getattr(import_module(API[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("API")})
