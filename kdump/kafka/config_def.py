"""Parses a config as Kafka's ConfigDef does. Source: ConfigDef.parseType, Range, ValidString and ValidList;
ThrottledReplicaListValidator; LogConfig."""

from __future__ import annotations

import re
from decimal import Decimal
from math import inf

from kdump.format.kafka_release import KafkaRelease
from kdump.format.known_releases import at_most

INTEGERS = {"SHORT": 15, "INT": 31, "LONG": 63}
"""Bits without the sign."""
INTEGER = re.compile(r"[+-]?[0-9]+")
DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
"""java.lang.Double also takes numbers in base 16 with an exponent, whose value is not looked at."""
HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+")
RANGE = re.compile(r"\[((?P<low>[-.0-9]+),)?\.\.\.(,(?P<high>[-.0-9]+))?\]( or (?P<other>-?[0-9]+))?")
REPLICAS = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
REPLICA = re.compile(r"[0-9]+:[0-9]+")


def config_exception(name: str, value: str, release: KafkaRelease) -> str:
    """Return the exception with which a broker of this release reads a topic's config; empty if it is valid."""
    problem = config_problem(name, value, at_most(release.line).topic_rules.get(name, ""))
    return problem and f"ConfigException: {problem}"


def config_problem(name: str, stated: str, rule: str) -> str:
    """Return the message of the ConfigException for a config; empty if it is valid. `rule`: its type and limits, in
    ConfigDef's own form."""
    kind, _, limits = rule.partition(" ")
    value = stated.strip(" \t\n\r\f\v\0")
    shown, why = stated, ""
    if kind == "BOOLEAN":
        why = "" if value.lower() in ("true", "false") else "Expected value to be either true or false"
    elif kind in INTEGERS:
        bits = INTEGERS[kind]
        if not INTEGER.fullmatch(value) or not -(1 << bits) <= int(value) < 1 << bits:
            why = f"Not a number of type {kind}"
        else:
            shown, why = str(int(value)), _outside(int(value), limits)
    elif kind == "DOUBLE":
        if not DOUBLE.fullmatch(value):
            why = "" if HEXADECIMAL.match(value) else f"Not a number of type {kind}"
        else:
            number = float(value.rstrip("fFdD")) if value[-1:] in "fFdD" else float(value)
            shown, why = _double_text(number), _outside(number, limits)
    elif kind == "STRING" and limits:
        shown, why = value, _unlisted(value, limits)
    elif kind == "LIST" and limits:
        parts = [part.strip() for part in value.split(",")] if value else []
        if limits == REPLICAS:
            is_valid = parts in ([], ["*"]) or all(map(REPLICA.fullmatch, parts))
            shown, form = f"[{', '.join(parts)}]", f"a list of replicas in the following format: {REPLICAS}"
            why = "" if is_valid else f"{name} must be the literal '*' or {form}"
        else:
            shown, why = next(((part, each) for part in parts if (each := _unlisted(part, limits))), ("", ""))
    return f"Invalid value {shown} for configuration {name}: {why}" if why else ""


def _double_text(number: float) -> str:
    """Return a number as java.lang.Double writes it."""
    if not 1e7 <= abs(number) < inf:
        return str(number).replace("nan", "NaN").replace("inf", "Infinity")
    mantissa, exponent = f"{Decimal(repr(number)).normalize():E}".split("E+")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{exponent}"


def _outside(number: float, limits: str) -> str:
    bounds = RANGE.fullmatch(limits)
    if bounds is None or (bounds["other"] is not None and number == int(bounds["other"])):
        return ""
    low, high = bounds["low"], bounds["high"]
    if bounds["other"] is not None and not float(low) <= number <= float(high):
        return f"Value must be between {low} and {high} or equal to {bounds['other']}"
    if low is not None and number < float(low):
        return f"Value must be at least {low}"
    return f"Value must be no more than {high}" if high is not None and number > float(high) else ""


def _unlisted(value: str, limits: str) -> str:
    valid = limits.strip("[]")
    return "" if value in valid.split(", ") else f"String must be one of: {valid}"
