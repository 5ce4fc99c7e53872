"""What to do with the rescued metadata, in order. kdump runs none of these commands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kdump.cluster.disks import Disks
from kdump.cluster.metadata_refusals import refusals, refused_text
from kdump.format.kafka_release import KafkaRelease
from kdump.io import file_system
from kdump.io.mounted_paths import origin
from kdump.log.internal_topics import METADATA_LOG
from kdump.problems.problem import title_of
from kdump.questions.rescue.answer import CONTROLLER_STEP, Rescue, RescueStep
from kdump.questions.rescue.copies import MetadataHistories
from kdump.state.metadata_image import QuorumImage
from kdump.text import shell_word, shell_words

STOP, CHECK, BROKER, START, LOOK = "stop", "check", "broker", "start", "look"
ASIDE = ".before-rescue"


def step_text(case: str, **values: object) -> str:
    return title_of("rescue-step", case, **values)


def _step(kind: str, case: str, command: str | None = None, **values: object) -> RescueStep:
    return RescueStep(kind, step_text(case, **values), command)


def steps(made: Rescue, disks: Disks, copies: Iterable[RescueStep]) -> Iterator[RescueStep]:
    """Yield the steps. `copies`: what is to be done with copies of the metadata log that no controller uses."""
    yield _step(STOP, "")
    if made.summary.out is None:
        yield _step(CHECK, "again")
        return
    for host, path in (origin(place.path) for place in disks.directories):
        if host is not None:
            yield _step(STOP, "copy", out=made.summary.out, host=host, path=path)
    for place in made.directories:
        if place.command is not None:
            yield _step(BROKER, "directory", place.command, node=place.nodeId, path=place.path, reason=place.reason)
    reference = origin(next((one.found for one in made.controllers if one.found), disks.directories[0].path))[1]
    yield _step(CHECK, "owner", f"chown -R --reference={shell_word(reference)} {shell_word(made.summary.out)}")
    for controller in made.controllers:
        new, node = controller.directory or "", controller.nodeId
        if controller.found is None:
            yield _step(CONTROLLER_STEP, "new", f"cp -a {shell_word(new)}/. LOG_DIR/", node=node)
            continue
        disk = origin(controller.found)[1]
        new_log = f"cp -a {shell_word(os.path.join(new, METADATA_LOG))} {shell_word(disk)}/"
        if not file_system.isdir(os.path.join(controller.found, METADATA_LOG)):
            yield _step(CONTROLLER_STEP, "newLog", new_log, node=node)
            continue
        yield _step(CONTROLLER_STEP, "replace", f"{_aside(controller.found)} && {new_log}", node=node)
    yield from copies
    # The log directory of a controller would have two metadata logs before its command.
    elsewhere = [one for one in made.controllers if one.found is None or file_system.tree_at(one.found) is not None]
    places = {one.found for one in elsewhere}
    checked = [one.directory or "" for one in elsewhere]
    checked += [place.path for place in disks.directories if place.path not in places]
    paths = shell_words(checked)
    but = f" {step_text('unused')}" if made.summary.notUsed else ""
    yield _step(CHECK, "check", f"kdump restart-plan {paths}", but=but)
    voters = ", ".join(f"{one.nodeId}@{one.endpoint or 'its address'}" for one in made.controllers)
    yield _step(START, "voters", voters=voters)
    yield _step(START, "controllers", _quorum(made))
    start = made.firstStart
    if start is not None and start.decides and len(start.order) > 1:
        first, then = start.order[0], ", then ".join(map(str, start.order[1:]))
        yield _step(START, "order", first=first, then=then, loss=made.summary.worstAtStart)
    else:
        yield _step(START, "brokers", but=but)
    for unknown in made.unknowns:
        yield _step(LOOK, "unknown", unknown.command, what=unknown.what, why=unknown.reason)
    if not made.unknowns:
        yield _step(LOOK, "compare")


def steps_of_copies(made: Rescue, histories: MetadataHistories, release: KafkaRelease) -> Iterator[RescueStep]:
    """Yield what is to be done with the copies that are not on a controller's disk."""
    stay: list[int | None] = []
    for place in histories.places:
        node = histories.node_id(place)
        if any(controller.found == place.path for controller in made.controllers):
            continue
        why = _must_go(histories.images[place.path], release)
        if why:
            yield aside_step(place.path, node, why)
        else:
            stay.append(node)
    if stay:
        nodes = ", ".join(map(str, sorted(stay, key=lambda node: -1 if node is None else node)))
        copies = f"the copy of node {nodes}" if len(stay) == 1 else f"the copies of nodes {nodes}"
        yield _step(BROKER, "stays", copies=copies)


def aside_step(path: str, node: int | None, why: str) -> RescueStep:
    """Return that a node's own metadata log must go."""
    return _step(BROKER, "aside", _aside(path), node=node, why=why)


def _quorum(made: Rescue) -> str:
    address = next((controller.endpoint for controller in made.controllers if controller.endpoint), "HOST:PORT")
    return f"kafka-metadata-quorum.sh --bootstrap-controller {address} describe --status"


def _aside(directory: str) -> str:
    """Return the command that moves a metadata log next to the log directory: in it, a broker takes every directory for
    a partition."""
    path = origin(directory)[1].rstrip("/")
    if os.path.basename(path) in (".", ".."):
        path = os.path.abspath(path)
    return f"mv {shell_word(os.path.join(path, METADATA_LOG))} {shell_word(path + METADATA_LOG + ASIDE)}"


def _must_go(image: QuorumImage | None, release: KafkaRelease) -> str:
    """Return why a node does not start with its own copy; empty if it does."""
    if image is None:
        return ""
    refusal = next((other for other in refusals(image, release) if other.stops_broker(release.line)), None)
    if refusal is not None:
        return step_text("unreadable", record=refused_text(refusal, image))
    return step_text("damaged", gap=image.gap) if image.gap is not None else ""
