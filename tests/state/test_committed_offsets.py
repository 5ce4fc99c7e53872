"""The committed offsets of groups in arrays, compared with a dictionary."""

from __future__ import annotations

import random

from kdump.state.committed_offsets import CommittedOffsets, OffsetAndMetadata, PartitionName


def test_like_a_dictionary() -> None:
    dice, made = random.Random(7), CommittedOffsets()
    known: dict[str, dict[PartitionName, OffsetAndMetadata]] = {}
    places = [
        (f"g{n % 5}", (f"t{n % 7}", dice.choice((n % 3, -n, n << 20, -(1 << 31), (1 << 31) - 1)))) for n in range(90)
    ]
    for _ in range(3000):
        group, at = dice.choice(places)
        if dice.random() < 0.4:
            assert made.pop(group, at) == known.get(group, {}).pop(at, None)
            if not known.get(group, True):
                del known[group]
        else:
            commit = OffsetAndMetadata(
                dice.choice((-1, 5, (1 << 63) - 1)),
                dice.choice((None, 0, (1 << 31) - 1)),
                dice.choice(("", "", "text")),
                dice.choice((-1, 1 << 40)),
                dice.choice((None, None, 1 << 40)),
                dice.choice((None, "id-1", "id-2")),
                dice.randrange(1 << 40),
            )
            made.put(group, at, commit)
            known.setdefault(group, {})[at] = commit
        assert made.find(group, at) == known.get(group, {}).get(at)
        assert (group in made, len(made)) == (group in known, len(known))
    assert dict(made) == known
    assert made.find("none", ("t", 0)) is None
