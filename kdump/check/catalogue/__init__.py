"""The catalogue of findings: every code, what it means, what a broker or a consumer does about it, and what to do.

`kdump verify --list` prints it, docs/findings.md is made from it.
"""

from kdump.check.catalogue.bytes import BYTES
from kdump.check.catalogue.code import ERROR, FAMILIES, INFO, SEVERITIES, WARNING, Code
from kdump.check.catalogue.files import FILES
from kdump.check.catalogue.log import LOG
from kdump.check.catalogue.records import RECORDS

__all__ = ["CATALOGUE", "ERROR", "FAMILIES", "INFO", "SEVERITIES", "WARNING", "Code", "families"]

CATALOGUE = {code.code: code for code in (*BYTES, *RECORDS, *LOG, *FILES)}


def families(name: str) -> tuple[str, ...]:
    """The family with that name and those inside it. Raises KeyError for one that is none."""
    if name in FAMILIES:
        return (name, *FAMILIES[name])
    if any(name in inner for inner in FAMILIES.values()):
        return (name,)
    raise KeyError(name)
