"""The catalogue of findings: every code with its meaning, its impact on brokers and consumers, and the action to take.

`kdump verify --list` prints it, and docs/findings.md is generated from it.
"""

from kdump.check.catalogue.bytes import BYTES
from kdump.check.catalogue.code import ERROR, FAMILIES, INFO, SEVERITIES, WARNING, Code
from kdump.check.catalogue.files import FILES
from kdump.check.catalogue.log import LOG
from kdump.check.catalogue.records import RECORDS

__all__ = ["CATALOGUE", "ERROR", "FAMILIES", "INFO", "SEVERITIES", "WARNING", "Code", "families"]

CATALOGUE = {code.code: code for code in (*BYTES, *RECORDS, *LOG, *FILES)}


def families(name: str) -> tuple[str, ...]:
    """Return the family with that name and those inside it. Raises KeyError for an unknown name."""
    if name in FAMILIES:
        return (name, *FAMILIES[name])
    if any(name in inner for inner in FAMILIES.values()):
        return (name,)
    raise KeyError(name)
