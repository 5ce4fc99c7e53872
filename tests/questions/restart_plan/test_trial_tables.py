"""Checks that the tables of releases and trials in docs/restart-plan.md and docs/kafka-releases.md equal the declared
differences and the results in docs/, and that no trial differs from the plan without a reason. KDUMP_REWRITE=1 writes
the tables again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kdump.state.releases import DIFFERENCES, RUNNING, Difference
from tests.conftest import ROOT
from tests.generated_table import check_table
from tools.recovery_trials import DATA
from tools.upgrade_trials import PAIRS, STEPS

PLAN, RELEASES = ROOT / "docs" / "restart-plan.md", ROOT / "docs" / "kafka-releases.md"
Result = dict[str, Any]


def results(name: str) -> list[Result]:
    found: list[Result] = json.loads((ROOT / "docs" / f"{name}-trials.json").read_text())
    return found


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], head: str = "") -> str:
    columns = list(columns)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows)]
    return head + "\n".join(lines) + "\n"


def agreement(found: list[Result], what: str) -> str:
    agreeing = sum(not each["differences"] for each in found)
    return f"{len(found)} {what}, of which {agreeing} went as predicted in every point.\n\n"


def agrees(result: Result) -> str:
    return "yes" if not result["differences"] else str(result.get("explained", "NO"))


# --- Startups, with several brokers and controllers, and on full or read-only directories -----------------------------


def outcome(result: Result, ground: dict[str, int]) -> str:
    """Return what a broker did. `ground`: the log end offsets without damage."""
    did, told = result["broker"], []
    if not did["starts"]:
        names = [name for x in result["predicted"]["reasons"] for name in re.findall(r"\w+Exception", x)]
        return "does not start" + (f": {names[0]}" if names else "")
    if did["offline"]:
        return "takes a log directory offline"
    broker = [facts["broker"] for facts in result["partitions"].values() if facts["broker"]]
    cut, strays = sum(len(facts["truncated"]) for facts in broker), sum(facts["stray"] for facts in broker)
    told.append(f"truncates {cut} file{'s' * (cut > 1)}" if cut else "")
    told.append(f"{strays} stray director{'ies' if strays > 1 else 'y'}" if strays else "")
    ends = {key.partition("/")[2]: end for key, end in result["logEnds"].items()}
    other = [
        f"{key} ends at {end} instead of {ground[key]}" for key, end in ends.items() if ground.get(key, end) != end
    ]
    told += other[:2] + (["…"] if len(other) > 2 else [])
    return ", ".join(filter(None, told)) or "starts"


def startups() -> str:
    found = results("restart")
    undamaged = {"clean-1": "clean", "crash-1": "crash"}
    ground = {
        disk: {key.partition("/")[2]: end for key, end in result["logEnds"].items()}
        for disk, name in undamaged.items()
        for result in found
        if result["name"] == name
    }
    did = [(each["name"], outcome(each, ground.get(each["disk"], {}))) for each in found]
    odd = [[each["name"], each["disk"], each["what"], agrees(each)] for each in found if each["differences"]]
    return (
        agreement(found, "starts")
        + summary(did)
        + "\n"
        + table(("recipe", "disk", "damage", "why not as predicted"), odd)
    )


def kind(did: str) -> str:
    """Return what a broker did, without the numbers and names of the case."""
    if "stray" in did or "to be deleted" in did:
        return "starts, and renames directories to -stray or -delete"
    if "truncates" in did:
        return "starts, and truncates files"
    return did if " instead of " not in did else "starts, and a log begins or ends elsewhere"


def summary(did: Iterable[tuple[str, str]]) -> str:
    """Return how often brokers did what, with recipes for which they did."""
    by_kind: dict[str, list[str]] = {}
    for name, words in did:
        by_kind.setdefault(kind(words), []).append(name)
    rows = sorted(by_kind.items(), key=lambda item: (-len(item[1]), item[0]))
    return table(
        ("what the broker did", "starts", "such as"),
        ([words, str(len(names)), ", ".join([*dict.fromkeys(names)][:3])] for words, names in rows),
    )


def replicas(result: Result) -> list[str]:
    told = []
    for name, facts in result["partitions"].items():
        text = f"{name}: " + (f"{facts['leader']} leads" if facts["leader"] else "no leader")
        text += "".join(f", {broker} truncates to {offset}" for broker, offset in facts["truncated"].items())
        told.append(text + f", {facts['lost']} lost")
    return [result["what"], ", ".join(map(str, result["order"])), "; ".join(told)]


def quorum(result: Result) -> list[str]:
    told = []
    for node, facts in result["nodes"].items():
        did = facts["controller"]
        epoch = f" in epoch {did['epoch']}" if did.get("epoch") else ""
        told.append(
            f"{node} {'starts' if did['starts'] else 'does not come up'}: {did.get('state', 'no state')}{epoch}"
        )
    return [result["what"], "; ".join(told)]


def election(result: Result) -> list[str]:
    order = ", then ".join(" and ".join(map(str, group)) for group in result["order"])
    did = f"{result['leader']} leads" if result["leader"] else "nobody leads"
    did += f", {result['lost']} configs lost" if result["lost"] else ""
    did += f", {' and '.join(map(str, result['ended']))} exit" if result["ended"] else ""
    return [result["what"], result["quorum"], order, did]


def full_disk(result: Result) -> list[str]:
    did = result["broker"]
    offline = f", {', '.join(did['offline'])} goes offline" if did["offline"] else ""
    return [result["disk"], result["what"], f"{'starts' if did['starts'] else 'does not start'}{offline}"]


SEVERAL: dict[str, tuple[list[str], Callable[[Result], list[str]]]] = {
    "replica": (["what happened", "start order", "what the brokers did"], replicas),
    "quorum": (["what happened", "first state of each controller"], quorum),
    "election": (["what happened", "quorum", "start order", "what the controllers did"], election),
    "full-disk": (["disk", "log directory", "what the broker did"], full_disk),
}


def several(name: str) -> str:
    columns, row = SEVERAL[name]
    found = results(name)
    rows = ([each["name"], *row(each), agrees(each)] for each in found)
    return table(["case", *columns, "as predicted"], rows, agreement(found, "trials"))


@pytest.mark.parametrize("name", SEVERAL)
def test_every_difference_has_a_reason(name: str) -> None:
    assert results(name)
    assert [each["name"] for each in results(name) if each["differences"] and not each.get("explained")] == []


# --- Recoveries -------------------------------------------------------------------------------------------------------


def size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count >> 10} KiB" if count < 1 << 20 else f"{count >> 20} MiB"


def recovery(result: Result) -> list[str]:
    data = DATA[result["data"]]
    remarks = (
        f"in {result['dirs']} log directories" if result["dirs"] > 1 else "",
        f"each with {result['flushed']} more segments below the recovery point" if result["flushed"] else "",
        f"without .{result['without'][0]}" if result["without"] else "",
    )
    return [
        ", ".join(filter(None, (f"{result['logs'] or data.logs:,}", *remarks))),
        f"{result['segments']:,}",
        f"{result['bytes'] / 2**30:.1f}",
        size(data.batch_size) + (f", {data.codec}" if data.codec != "none" else ""),
        str(result["threads"]),
        str(result["speed"] or "-"),
        f"{result['readSpeed'] / 1e6:.0f}" if result["readSpeedFrom"] == "measured" else "assumed",
        result["release"],
        f"{result['estimated']:.1f} s",
        f"{result['estimatedLeast']:.0f} to {result['estimatedMost']:.0f} s",
        f"{result['actual']:.1f} s",
        f"{result['estimated'] / result['actual']:.2f}",
    ]


def recoveries() -> str:
    columns = "logs|segments|GiB|batches|threads|disk|measured|Kafka|estimated|range|took|estimated / took"
    return table(columns.split("|"), map(recovery, results("recovery")))


# --- Releases ---------------------------------------------------------------------------------------------------------


def releases(title: str, differences: dict[str, Difference]) -> str:
    rows = ([str(each.releases), each.does, each.where, each.ticket] for each in differences.values())
    return table(("releases", title, "class", "KIP or ticket"), rows)


def upgrade(record: Result) -> str:
    if record["controller"]["starts"] and record["broker"]["starts"]:
        refused = any("Could not" in line for line in record.get("features", ()))
        return "starts" + ("; kafka-features refuses" if refused else "")
    text = "\n".join(record["controller"]["log"] + record["broker"]["log"])
    found = re.search(r"(No MetadataVersion with feature level \d+|feature [\w.]+ is not supported)", text)
    halts = "the controller halts" if not record["controller"]["starts"] else "the broker exits"
    return halts + (f": {found[1]}" if found else "")


def upgrades() -> str:
    """Return what real clusters did on the way to a newer release and back."""
    columns, found = [step for step, _, _ in STEPS], results("upgrade")
    rows = []
    for pair in PAIRS:
        here = {each["step"]: upgrade(each) for each in found if each["name"] == pair.name}
        rows.append([f"{pair.old}, {pair.new}", *(here[step] for step in columns)])
    return table(["from, to", *columns], rows)


def test_every_step_of_every_pair_went_as_predicted() -> None:
    steps = [(pair.name, step, pair.version(which)) for pair in PAIRS for step, which, _ in STEPS]
    assert [(each["name"], each["step"], each["startedBy"]) for each in results("upgrade")] == steps
    assert not [each for each in results("upgrade") if each["differences"]]


TABLES = [
    (PLAN, "restart-trials.json", startups),
    *((PLAN, f"{name}-trials.json", lambda name=name: several(name)) for name in SEVERAL),
    (PLAN, "recovery-trials.json", recoveries),
    (PLAN, "releases.py", lambda: releases("what a startup does", DIFFERENCES)),
    (RELEASES, "releases.py", lambda: releases("what a broker does", RUNNING)),
    (RELEASES, "upgrade-trials.json", upgrades),
]


@pytest.mark.parametrize(("page", "source", "made"), TABLES, ids=[f"{page.stem} {name}" for page, name, _ in TABLES])
def test_the_table_is_that_of_its_source(page: Any, source: str, made: Callable[[], str]) -> None:
    check_table(page, source, made())
