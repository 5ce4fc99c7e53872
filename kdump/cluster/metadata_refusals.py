"""Which records of a metadata log a release refuses: those that the replay has found, and the levels of features, types
and versions of records that the release does not know.

Source: FeatureControlManager.replay, ActivationRecordsGenerator, FeaturesDelta.replay,
FeaturesImage.metadataVersionOrThrow, MetadataRecordSerde, and read of the messages; what each release knows is in
kdump.format.known_releases."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator

from kdump.cluster.release_evidence import LAST, LEVEL, OF_DISTRIBUTIONS, first_release
from kdump.format.errors import DecodeError
from kdump.format.kafka_release import KRAFT, KafkaRelease
from kdump.format.known_releases import KnownRelease, at_most, metadata_levels
from kdump.format.metadata_record import decode_metadata_record, newer_record, read_frame
from kdump.format.schema import by_api_key
from kdump.state.metadata_image import QuorumImage
from kdump.state.metadata_problem import Kind, MetadataProblem
from kdump.state.metadata_refusal import Refusal, Rule
from kdump.state.metadata_replay import NESTED

FEATURE_LEVEL = "FeatureLevelRecord"
WRAPPED = (4, 0)
"""First release whose FeaturesDelta throws an exception of its own for a level of metadata.version that it does not
know, and whose MetadataLoader needs a level of it."""
NAMED_LEVEL = (3, 8)
"""First release that calls it a feature level."""
WITH_TRANSACTIONS = (3, 6)
"""First release with metadata transactions (KIP-868)."""
TRANSACTION_LEVEL = 13
"""metadata.version 3.6-IV1, the first with transactions."""
OLDEST_LEVEL = 1
"""The level of a log without one up to 3.9: MINIMUM_KRAFT_VERSION."""
BEFORE_KRAFT = -1
"""The level of all versions before 3.0 in MetadataVersion."""


def refusals(metadata: QuorumImage, release: KafkaRelease) -> list[Refusal]:
    """Return the records that a node of this release cannot apply when it replays the log, in order. A record that it
    cannot read comes first: since 3.8, a node reads all before it applies any."""
    if release.mode not in (None, KRAFT) or release.is_newer:
        return []
    nearest = at_most(release.line)
    refused = [each for each in metadata.refusals if each.holds(nearest.line)]
    unknown = (*_levels(metadata, nearest), *_frames(metadata, nearest), *_without_level(metadata, nearest))
    refused += (each._replace(until=nearest.line) for each in unknown)
    return sorted(refused, key=lambda each: (not each.reader, -1 if each.offset is None else each.offset))


def may_be_applied(problem: MetadataProblem, metadata: QuorumImage, release: KafkaRelease) -> bool:
    """Return whether a node of this release may apply what the replay left out because of this problem: it exceeds
    kdump's limits, a newer release has written it, or only other releases refuse it."""
    is_refused = problem.refusal is None or problem.refusal in refusals(metadata, release)
    return problem.kind in (Kind.NEWER, Kind.TOO_LARGE) or (problem.kind == Kind.REFUSED and not is_refused)


def first_hidden(metadata: QuorumImage, release: KafkaRelease) -> MetadataProblem | None:
    """Return the first problem because of which the state lacks what a node of this release may apply."""
    return next((each for each in metadata.problems if may_be_applied(each, metadata, release)), None)


def problem_texts(metadata: QuorumImage, release: KafkaRelease) -> list[str]:
    """Return the problems of a replay; those with a record that nodes of this release refuse state the exception and
    the byte."""
    problems = [each.text for each in metadata.problems]
    for refusal in refusals(metadata, release):
        place = next((number for number, each in enumerate(metadata.problems) if each.is_of(refusal)), None)
        if place is not None:
            where = f" (byte {refusal.position} of {os.path.basename(refusal.file)})" if refusal.file else ""
            problems[place] += f"; a node cannot apply it: {refusal.exception}{where}"
        elif refusal.record:
            problems.append(f"{refused_text(refusal, metadata)}: a node cannot apply it: {refusal.exception}")
    return problems


def refused_text(refusal: Refusal, metadata: QuorumImage) -> str:
    """Return which record a node cannot apply."""
    if not refusal.record:
        return f"the metadata up to offset {metadata.end_offset} has no {LEVEL}"
    where = f", byte {refusal.position} of {os.path.basename(refusal.file)}" if refusal.file else ""
    if refusal.offset is None:
        return f"{refusal.record}, record {refusal.number} in the metadata snapshot{where}"
    return f"{refusal.record} at offset {refusal.offset} of the metadata log{where}"


def _placed(metadata: QuorumImage, record: str, key: Hashable, offset: int | None) -> Refusal:
    file, position, number = metadata.places.get(key, ("", 0, None))
    return Refusal(record, offset, file, position, number=number)


def _levels(metadata: QuorumImage, release: KnownRelease) -> Iterator[Refusal]:
    """Yield the records that set a feature to a level that the release does not know, even if a later one lowers it."""
    for (name, level), offset in metadata.levels.items():
        rule = _level_rule(name, level, release)
        if rule is not None:
            placed = _placed(metadata, FEATURE_LEVEL, (name, level), offset)
            of_newer = first_release(name, level) > LAST
            yield placed._replace(controller=rule.controller, loader=rule.loader, of_newer=of_newer)


def _level_rule(name: str, level: int, release: KnownRelease) -> Rule | None:
    if name.startswith(OF_DISTRIBUTIONS) or release.takes(name, level):
        return None
    levels = release.features.get(name)
    lowest, highest = (0, 0) if levels is None else levels
    supported = f"{lowest}-{highest}" if highest > lowest else f"{highest}"
    record = f"{FEATURE_LEVEL}(name='{name}', featureLevel={level})"
    controller = f"RuntimeException: Tried to apply {FEATURE_LEVEL} {record}, but this controller only supports"
    controller += f" versions {supported}"
    return Rule(controller, unknown_level(level, release) if name == LEVEL else "")


def unknown_level(level: int, release: KnownRelease) -> str:
    """Return the exception with which MetadataLoader reads a level of metadata.version of which the release does not
    even have an unstable name; empty if it has one."""
    if level in release.levels or level in release.unstable or (level == BEFORE_KRAFT and release.line < WRAPPED):
        return ""
    if release.line >= WRAPPED:
        return "IllegalArgumentException: Unsupported metadata version"
    what = "metadata version" if release.line < NAMED_LEVEL else "feature level"
    return f"IllegalArgumentException: No MetadataVersion with {what} {level}"


def _frames(metadata: QuorumImage, release: KnownRelease) -> Iterator[Refusal]:
    """Yield the first record of each type that the release does not know, and of each version that it does not read."""
    for frame, offset in metadata.frames.items():
        name, rule = _frame_rule(*frame, release)
        if rule is not None:
            of_newer = bool(newer_record(*frame[:2]))
            yield _placed(metadata, name, frame, offset)._replace(reader=rule.reader, of_newer=of_newer)


def _frame_rule(api_key: int, version: int, is_nested: bool, release: KnownRelease) -> tuple[str, Rule | None]:
    """Return the name of a type of records, and why a release cannot read this version of it."""
    names = by_api_key("metadata")
    messages = release.messages["metadata"]
    name = names[api_key].name if api_key in names else f"UNKNOWN({api_key})"
    exception = ""
    if name not in messages or not messages[name].each:
        if not is_nested:
            exception = "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id "
    elif is_nested and version > messages[name].highest:
        exception = "Failed to deserialize record with type "
    return name, Rule(reader=f"MetadataParseException: {exception}{api_key}") if exception else None


def record_rule(value: bytes, release: KnownRelease) -> Rule | None:
    """Return why a release refuses a record with this value whatever the state is: a level, type or version that it
    does not know; None if it does not."""
    try:
        frame = read_frame(value)
    except DecodeError:
        return None  # which the replay refuses itself
    name, rule = _frame_rule(frame.apiKey, frame.version, False, release)
    if rule is not None or not (name == FEATURE_LEVEL or name in NESTED):
        return rule
    values = decode_metadata_record(value).values or {}
    if name == FEATURE_LEVEL and "featureLevel" in values:
        return _level_rule(values["name"], values["featureLevel"], release)
    is_nested = any(values.get(field) for field in NESTED.get(name, ()))
    return _frame_rule(frame.apiKey, frame.version, is_nested, release)[1]


def activation_refusal(metadata: QuorumImage, release: KafkaRelease) -> Refusal | None:
    """Return why a controller halts when it is elected, if it can replay the log: it does not abort a transaction if
    the metadata.version has none (ActivationRecordsGenerator)."""
    nearest, begun = at_most(release.line), metadata.open_transaction
    if release.mode not in (None, KRAFT) or release.is_newer or begun is None or nearest.line < WITH_TRANSACTIONS:
        return None
    level = metadata.features.get(LEVEL, 0 if nearest.line >= WRAPPED else OLDEST_LEVEL)
    if not 0 < level < TRANSACTION_LEVEL or metadata.is_partial:
        return None
    exception = f"RuntimeException: Detected in-progress transaction at offset {begun}, but the {LEVEL} "
    exception += f"{metadata_levels()[level]} does not support transactions. Cannot continue."
    return _placed(metadata, "BeginTransactionRecord", begun, begun)._replace(controller=exception, until=release.line)


def _without_level(metadata: QuorumImage, release: KnownRelease) -> Iterator[Refusal]:
    """Yield that nothing states the level, without which MetadataLoader makes no image; it makes none before an open
    transaction ends."""
    is_whole = metadata.frames and not metadata.is_partial and metadata.open_transaction is None
    if release.line >= WRAPPED and is_whole and LEVEL not in metadata.features:
        exception = "IllegalStateException: Unknown metadata version for FeaturesImage"
        yield Refusal("", metadata.end_offset - 1, "", 0, loader=exception)
