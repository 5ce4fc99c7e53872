"""The catalogue of problems: each code with its severity, its meaning, its impact and the actions, from the TOML files
of this package. A family of findings is a file.

In a text, {NAME} stands for a phrase of phrases.toml, {field} for a value of the problem, and these words for what
the problem is about (advice.py): TOPIC, PARTITION, DIR (the partition's directory), SEGMENT (the file), POSITION,
OFFSET, --to-offset NEXT-OFFSET (moves a group past the batch), PRODUCER-ID, GROUP and CONNECTOR. An action begins with
its condition, if it has one, in brackets: facts of facts.toml joined with "and", each with "not" before it or without.
It ends with the trials on a real broker's disk in which it was done, [tried: NAME, NAME] of docs/*-trials.json, or with
[untried: REASON]; those of a phrase are those of each action that refers to it. [nothing]: it asks for nothing now.
"Stop the broker and" at its beginning is left out if the broker is not running. Keys before the first problem of a
file hold for all that have no own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple

from kdump.answer import TEXT, Doc, Shown, answer, columns

FAMILIES: dict[str, tuple[str, ...]] = {
    "bytes": (),
    "records": (),
    "log": ("offsets", "epochs", "timestamps", "producers", "transactions"),
    "files": ("indexes", "snapshots", "checkpoints"),
    "remote": (),
}
"""The families of findings that `verify --only` accepts, each with the families inside it."""
OTHERS: tuple[str, ...] = ("startup", "doctor", "retention", "space")
"""The files of other problems: what stops a startup and what it does to data, what only several questions together
show, and what retention and the disk's space lack."""
PLANS = "plans"
"""The file of the sentences of plans, which have no code in what is shown."""
LOSES, STOPS, CLIENTS, DEGRADED, OLD = ORDER = ("loses", "stops", "clients", "degraded", "old")
"""What a problem does, the most urgent first: it loses data at the next startup or within an hour of it, stops the
startup, stops clients now, has degraded something, or is old."""
USUAL = {"error": CLIENTS, "warning": DEGRADED, "info": OLD}
"""What problems of a severity do where the catalogue does not state it."""
PAST_IT = "--to-offset NEXT-OFFSET"
"""The option that moves a consumer group past the batch: of a batch at the end of a log, it is another one."""
_PHRASE = re.compile(r"\{([A-Z][A-Z_]*)\}")
_TABLE = re.compile(r"^\[([\w-]+)\]$|\A", re.M)
_KEY = re.compile(r"^(\w+) = ", re.M)
_CONDITION = re.compile(r"\[([\w ]+)\] ")
_MARK = re.compile(r" \[(?:(nothing)|(un)?tried: ([^]]*))\]")


def families(name: str) -> tuple[str, ...]:
    """Return the family with that name and those inside it. Raises KeyError for an unknown name."""
    if name in FAMILIES:
        return (name, *FAMILIES[name])
    if any(name in inner for inner in FAMILIES.values()):
        return (name,)
    raise KeyError(name)


def family_names() -> list[str]:
    """Return the names that --only accepts."""
    return [name for family, inner in FAMILIES.items() for name in (family, *inner)]


class Action(NamedTuple):
    """Something to do, and the facts on which it depends: all of `when` must hold, each as (fact, its value). `trials`:
    those in which it was done, names in docs/*-trials.json; `untried`: why there is none; `nothing`: whether nothing is
    to be done now."""

    do: str
    when: tuple[tuple[str, bool], ...] = ()
    trials: tuple[str, ...] = ()
    untried: str = ""
    nothing: bool = False

    def after(self, conditions: list[str]) -> str:
        """Return what to do, after conditions in words."""
        conditions = [*filter(None, conditions)]
        return f"If {' and '.join(conditions)}, {lowered(self.do)}" if conditions else self.do

    @property
    def conditional(self) -> str:
        """What to do, after all conditions."""
        return self.after([fact_clauses(fact)[wanted] for fact, wanted in self.when])


@columns(usual=Shown("SEVERITY", cell=lambda code: code.severity + " *" * bool(code.unless), after="family"))
@answer("code")
@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A problem as the catalogue declares it. `severity` is the usual one, `unless` states when another one applies;
    `consequence` is a sentence in which {offset} stands for the first offset affected; `source` names the Kafka classes
    that contain the rule."""

    code: Annotated[str, Doc("code of the problem"), Shown("CODE")]
    family: Annotated[str, Doc("its family, as selected with --only"), Shown("FAMILY")]
    severity: Annotated[str, Doc("usual severity: error, warning or info; see unless")]
    unless: Annotated[str, Doc("when another severity applies; empty if never")] = ""
    meaning: Annotated[str, Doc("condition under which it is reported"), Shown("MEANING", least=20, cuts=TEXT)] = ""
    consequence: Annotated[str, Doc("impact on brokers and consumers")] = ""
    fix: Annotated[str, Doc("action to take")] = ""
    source: Annotated[str, Doc("Kafka's classes that contain the rule", name="kafka")] = ""
    actions: tuple[Action, ...] = ()
    impacts: Mapping[str, str] = field(default_factory=dict)
    """The impact in special cases, by the name of the case."""
    never: tuple[str, ...] = ()
    """What not to do, as the actions in a file."""
    object_actions: tuple[Action, ...] = ()
    """The actions if it is about an object in remote storage."""
    title: str = ""
    """What is wrong, with fields; a finding states it in its message."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The title in special cases, by the name of the case."""
    covers: tuple[str, ...] = ()
    """Problems that have the same cause if they are about the same bytes or offsets, or in the same file, directory or
    partition if one of the two is about all of it; these are not reported again. *: all findings. As in actions, a
    condition may come first."""
    covers_here: tuple[str, ...] = ()
    """Findings that have the same cause in the same segment, from the same offset on."""
    urgency: str = ""
    """What it does, as in ORDER; "" for the usual one of its severity."""
    next: str = ""
    """The command that shows more of a finding; {directory} is its log directory."""
    always_checked: bool = False
    """Whether it is reported whatever families are selected. Then a number that kdump reports would be wrong without
    the finding."""
    moves_groups: bool = False
    """Whether an action moves a consumer group past the batch, for which the offset after it has to be known."""
    needs_log_dir: bool = False
    """Whether a finding also follows from files of the log directory: its checkpoints, the cluster's metadata or a
    coordinator's log (check/log_dir_context.py)."""


KEYS = {
    "severity": "severity",
    "unless": "unless",
    "meaning": "meaning",
    "impact": "consequence",
    "impacts": "impacts",
    "kafka": "source",
    "title": "title",
    "titles": "titles",
    "urgency": "urgency",
    "next": "next",
    "alwaysChecked": "always_checked",
    "needsLogDirectory": "needs_log_dir",
}
"""The keys of a problem in the files that are attributes of its declaration."""


@cache
def findings() -> dict[str, Declaration]:
    """Return the declarations of all findings, by code, in the order of the families."""
    return {code: declaration(code) for code, file in _files().items() if file not in (*OTHERS, PLANS)}


@cache
def all_problems() -> dict[str, Declaration]:
    """Return the declarations of all problems, by code."""
    return {code: declaration(code) for code in _files()}


@cache
def declaration(code: str) -> Declaration:
    """Return the declaration of a problem. Raises KeyError for an unknown code."""
    file = _files()[code]
    fields = {**_parsed(file, ""), **_parsed(file, code)[code]}
    actions = tuple(map(action, _filled_list(fields.get("actions", ()))))
    covers, here = (tuple(fields.get(key, ())) for key in ("covers", "coversHere"))
    never = tuple(_filled_list(fields.get("never", ())))
    values = {KEYS[key]: filled(value) for key, value in fields.items() if key in KEYS}
    fix = ". ".join(one.conditional for one in actions)
    of_object = tuple(map(action, _filled_list(fields.get("objectActions", ()))))
    values |= {"never": never, "covers": covers, "covers_here": here, "object_actions": of_object}
    values["moves_groups"] = PAST_IT in fix
    return Declaration(code=code, family=file, fix=fix, actions=actions, **values)


@cache
def depends_on(code: str, fact: str) -> bool:
    """Return True if an action for a problem has a fact in its condition."""
    return any(fact == name for one in declaration(code).actions for name, _ in one.when)


def covers_an_error(code: str) -> bool:
    """Return True if a problem covers a finding that is an error."""
    covered = (one for one in declaration(code).covers if _files().get(one, PLANS) not in (*OTHERS, PLANS))
    return any(declaration(one).severity == "error" for one in covered)


def lowered(text: str) -> str:
    """Return a sentence as it continues another one."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def shared_impact(case: str) -> str:
    """Return an impact that problems share; empty if there is none of that name."""
    return str(filled(_parsed("impacts", case)[case])) if case in _sections("impacts") else ""


@cache
def fact_clauses(fact: str) -> tuple[str, str]:
    """Return the clauses that state that a fact is false, and true."""
    words = _parsed("facts", fact)[fact]
    return words["false"], words["true"]


@cache
def _files() -> dict[str, str]:
    """Return the file of each code."""
    files = (*(name for name in family_names() if name != "log"), *OTHERS, PLANS)
    return {code: file for file in files for code in _sections(file) if code}


@cache
def _sections(file: str) -> dict[str, str]:
    """Return the tables of a file by name, and what is before the first one as ""; of a file without tables, its keys.
    A run needs few of them, and to parse all would take as long as to start kdump."""
    from importlib import resources  # ls states no problem, and starts without

    text = (resources.files(__package__) / f"{file}.toml").read_text("utf-8")
    starts = [*(_KEY if file in ("phrases", "impacts") else _TABLE).finditer(text)]
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {start[1] or "": text[start.start() : end] for start, end in zip(starts, ends)}


@cache
def _parsed(file: str, name: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    parsed: dict[str, Any] = tomllib.loads(_sections(file).get(name, ""))
    return parsed


def action(text: str) -> Action:
    """Return an action of a file, which begins with its condition, if it has one, and ends with its trials."""
    marks = _MARK.findall(text)
    trials = tuple(name for nothing, is_not, names in marks if not (nothing or is_not) for name in names.split(", "))
    untried = next((reason for _, is_not, reason in marks if is_not), "")
    text = _MARK.sub("", text)
    condition = _CONDITION.match(text)
    when = () if condition is None else conditions(condition[1])
    do = text if condition is None else text[condition.end() :]
    return Action(do, when, trials, untried, any(nothing for nothing, *_ in marks))


@cache
def conditions(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the facts of a condition, each with the value that it must have."""
    facts = text.split(" and ") if text else []
    return tuple((fact.removeprefix("not "), not fact.startswith("not ")) for fact in facts)


def _phrase(name: str) -> str:
    return str(filled(_parsed("phrases", name)[name]))


def filled(value: Any) -> Any:
    """Return a field of a file with its phrases: prose is wrapped in the files."""
    if isinstance(value, dict):
        return {name: filled(text) for name, text in value.items()}
    if not isinstance(value, str):
        return value
    return " ".join(_PHRASE.sub(lambda match: _phrase(match[1]), value).split())


def _filled_list(texts: Any) -> list[str]:
    """Return texts with their phrases, some of which are several texts."""
    each: list[str] = []
    for text in texts:
        name = _PHRASE.fullmatch(text)
        phrase = _parsed("phrases", name[1])[name[1]] if name else text
        each += _filled_list(phrase) if isinstance(phrase, list) else [filled(phrase)]
    return each
