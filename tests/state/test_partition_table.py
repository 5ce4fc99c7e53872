"""The partitions of a topic in arrays, compared with a dictionary."""

from __future__ import annotations

import random

import pytest

from kdump.state.name_numbers import Names
from kdump.state.partition_table import PartitionRegistration, PartitionTable


def some(dice: random.Random) -> PartitionRegistration:
    def brokers(most: int) -> tuple[int, ...]:
        return tuple(dice.choice((0, 1, -1, (1 << 31) - 1, -(1 << 31))) for _ in range(dice.randrange(most + 1)))

    replicas = brokers(4)
    return PartitionRegistration(
        replicas,
        tuple(dice.choice(("a", "b", "c")) for _ in range(dice.choice((0, len(replicas), 5)))),
        dice.choice((-1, 3)),
        dice.choice((0, -1, (1 << 31) - 1)),
        dice.choice((replicas, (), brokers(3))),
        *(dice.choice(((), (), brokers(2))) for _ in range(4)),
        leaderRecoveryState=dice.choice(("RECOVERED", "RECOVERING")),
        partitionEpoch=dice.randrange(9),
    )


@pytest.mark.parametrize("seed", range(5))
def test_like_a_dictionary(seed: int) -> None:
    dice, names = random.Random(seed), Names()
    made, known = PartitionTable(names), dict[int, PartitionRegistration]()
    numbers = (0, 1, 2, 3, 4, 5, 1000, -1, -(1 << 31), (1 << 31) - 1)
    for _ in range(1000):
        number = dice.choice(numbers)
        if dice.random() < 0.3:
            assert made.pop(number, None) == known.pop(number, None)
        else:
            made[number] = known[number] = some(dice)
        assert made.get(number) == known.get(number)
        assert (number in made, len(made), "x" in made) == (number in known, len(known), False)
    assert made == known
    assert [*made] == sorted(known)
    assert len(made._values) < 3 * sum(made._size(at & 0xFFFFFFFF) for at in made._index)
    with pytest.raises(KeyError):
        del made[7]
