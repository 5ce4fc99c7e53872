"""FirstLooks is a dict of identities by path, in a tenth of the memory."""

from __future__ import annotations

import pickle
import sys

import pytest

from kdump.io.file_identities import FirstLooks
from kdump.io.source import Identity
from tests.conftest import seeded


def test_it_is_a_dict() -> None:
    dice = seeded(1)
    looks, model = FirstLooks(), dict[str, Identity | None]()
    for _ in range(400):
        stem = f"{dice.choice(['/a', 'b.c', ''])}/{dice.randrange(20):020}"
        path = stem + dice.choice([".log", ".index", ".log.deleted", "", ".x.y", "-1.log", f".{dice.randrange(9)}"])
        numbers = [dice.choice([0, 7, 1 << 40, (1 << 64) - 1, 1 << 64, -1]) for _ in range(4)]
        if path not in looks:
            model[path] = None if dice.random() < 0.1 else Identity(*numbers)
            looks.add(path, model[path])
    assert dict(looks) == model
    assert len(looks) == len(model) > 100
    assert dict(pickle.loads(pickle.dumps(looks))) == model
    for path in model:
        directory, _, name = path.rpartition("/")
        own = [each for each in model if each.rpartition("/")[0] == directory]
        assert sorted(looks.siblings(path)) == sorted(
            each for each in own if each.rpartition("/")[2].partition(".")[0] == name.partition(".")[0]
        )
    with pytest.raises(KeyError):
        looks["/nowhere.log"]
    assert "/nowhere.log" not in looks
    assert not FirstLooks()


def test_what_a_file_costs() -> None:
    looks = FirstLooks()
    for number in range(1000):
        for ending in ("log", "index", "timeindex"):
            looks.add(f"/disk/topic-0/{number:020}.{ending}", Identity(1, number, 1 << 30, 1 << 60))
    held = sum(sys.getsizeof(name) + sys.getsizeof(found) for name, found in looks._looks.items())
    assert (held + sys.getsizeof(looks._looks)) / len(looks) < 120
