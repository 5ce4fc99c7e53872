"""What to do with the rescued metadata, in order. kdump runs none of these commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator

from kdump.cluster.disks import Disks
from kdump.cluster.metadata_refusals import refusals, refused_text
from kdump.format.kafka_release import KafkaRelease
from kdump.io import file_system
from kdump.io.mounted_paths import origin
from kdump.log.internal_topics import METADATA_LOG
from kdump.questions.rescue.answer import CONTROLLER_STEP, Rescue, RescueStep
from kdump.questions.rescue.copies import MetadataHistories
from kdump.state.metadata_image import MetadataImage

STOP, CHECK, BROKER, START, LOOK = "stop", "check", "broker", "start", "look"
ASIDE = ".before-rescue"


def steps(made: Rescue, disks: Disks, copies: Iterable[RescueStep]) -> Iterator[RescueStep]:
    """Yield the steps. `copies`: what is to be done with copies of the metadata log that no controller uses."""
    yield RescueStep(STOP, "stop every node of the cluster, and start none before its step below")
    if made.summary.out is None:
        yield RescueStep(CHECK, "run this command again without --dry-run, with --out DIR")
        return
    for host, path in (origin(place.path) for place in disks.directories):
        if host is not None:
            text = f"copy {made.summary.out} to {host}: what is named {path} below is there, and not in the bundle"
            yield RescueStep(STOP, text)
    for place in made.directories:
        if place.command is not None:
            yield RescueStep(BROKER, f"node {place.nodeId}: {place.path}: {place.reason}", place.command)
    reference = origin(next((one.found for one in made.controllers if one.found), disks.directories[0].path))[1]
    yield RescueStep(
        CHECK,
        "give the new files to the user that runs Kafka",
        f"chown -R --reference={shlex.quote(reference)} {shlex.quote(made.summary.out)}",
    )
    for controller in made.controllers:
        new = controller.directory or ""
        if controller.found is None:
            text = f"controller {controller.nodeId}: put this in the place of its metadata.log.dir, or the first of "
            text += "log.dirs"
            yield RescueStep(CONTROLLER_STEP, text, f"cp -a {shlex.quote(new)}/. LOG_DIR/")
            continue
        disk = origin(controller.found)[1]
        new_log = f"cp -a {shlex.quote(os.path.join(new, METADATA_LOG))} {shlex.quote(disk)}/"
        if not file_system.isdir(os.path.join(controller.found, METADATA_LOG)):
            text = f"controller {controller.nodeId}: put this into its metadata.log.dir, or the first of its log.dirs"
            yield RescueStep(CONTROLLER_STEP, text, new_log)
            continue
        text = f"controller {controller.nodeId}: move its own copy out of log.dirs, and put this in its place"
        yield RescueStep(CONTROLLER_STEP, text, f"{_aside(controller.found)} && {new_log}")
    yield from copies
    # The log directory of a controller would have two metadata logs before its command.
    elsewhere = [one for one in made.controllers if one.found is None or file_system.tree_at(one.found) is not None]
    places = {one.found for one in elsewhere}
    checked = [one.directory or "" for one in elsewhere]
    checked += [place.path for place in disks.directories if place.path not in places]
    paths = " ".join(map(shlex.quote, checked))
    but = " but those that are not used, or not in this state" if made.summary.notUsed else ""
    text = f"check what each node does when it starts: it must start, and no partition may become stray{but}"
    yield RescueStep(CHECK, text, f"kdump restart-plan {paths}")
    yield RescueStep(
        START,
        "check that controller.quorum.voters or controller.quorum.bootstrap.servers of every node names these "
        "controllers: " + ", ".join(f"{one.nodeId}@{one.endpoint or 'its address'}" for one in made.controllers),
    )
    yield RescueStep(START, "start the controllers, and look for a leader", _quorum(made))
    start = made.firstStart
    if start is not None and start.decides and len(start.order) > 1:
        first, then = start.order[0], ", then ".join(map(str, start.order[1:]))
        text = f"start broker {first} first, and when it leads its partitions, {then}: in another order replicas lose "
        text += f"records ({made.summary.worstAtStart})"
    else:
        text = f"start the brokers, one first: its log must not say that a partition is stray{but} (kdump explain)"
    yield RescueStep(START, text)
    for unknown in made.unknowns:
        yield RescueStep(LOOK, f"set again, from your records: {unknown.what}; {unknown.reason}", unknown.command)
    if not made.unknowns:
        text = "set again what the ledger lists as leftOut or dependent, and compare topics, ACLs and users with your "
        yield RescueStep(LOOK, text + "records")


def steps_of_copies(made: Rescue, histories: MetadataHistories, release: KafkaRelease) -> Iterator[RescueStep]:
    """Yield what is to be done with the copies that are not on a controller's disk."""
    stay = []
    for place in histories.places:
        node = histories.node_id(place)
        if any(controller.found == place.path for controller in made.controllers):
            continue
        why = _must_go(histories.images[place.path], release)
        if why:
            yield aside_step(place.path, node, why)
        else:
            stay.append(str(node))
    if stay:
        whose = f"the copy of node {stay[0]}" if len(stay) == 1 else f"the copies of nodes {', '.join(stay)}"
        yield RescueStep(BROKER, f"{whose} can stay: with its lower epoch, a node fetches the new snapshot")


def aside_step(path: str, node: int | None, why: str) -> RescueStep:
    """Return that a node's own metadata log must go."""
    return RescueStep(BROKER, f"node {node}: move its own copy out of log.dirs: {why}", _aside(path))


def _quorum(made: Rescue) -> str:
    address = next((controller.endpoint for controller in made.controllers if controller.endpoint), "HOST:PORT")
    return f"kafka-metadata-quorum.sh --bootstrap-controller {address} describe --status"


def _aside(directory: str) -> str:
    """Return the command that moves a metadata log next to the log directory: in it, a broker takes every directory for
    a partition."""
    path = origin(directory)[1].rstrip("/")
    if os.path.basename(path) in (".", ".."):
        path = os.path.abspath(path)
    return f"mv {shlex.quote(os.path.join(path, METADATA_LOG))} {shlex.quote(path + METADATA_LOG + ASIDE)}"


def _must_go(image: MetadataImage | None, release: KafkaRelease) -> str:
    """Return why a node does not start with its own copy; empty if it does."""
    if image is None:
        return ""
    refusal = next((other for other in refusals(image, release) if other.stops_broker(release.line)), None)
    if refusal is not None:
        return f"a node cannot read the {refused_text(refusal, image)}"
    return f"it is damaged from offset {image.gap} on" if image.gap is not None else ""
