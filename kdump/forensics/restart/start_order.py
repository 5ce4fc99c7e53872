"""The order of starting brokers with which least is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple

from kdump.forensics.restart.replica_answer import PartitionReplicas

MOST_PERMUTED = 6
"""Up to this many brokers, every order is tried; of more, those in which one broker comes first."""

Cost = tuple[int, int, int]


class Choice(NamedTuple):
    """The leaders that the controllers may elect, with what each loses, and whether the order of starting decides."""

    costs: tuple[tuple[int, Cost], ...]
    by_order: bool


class StartOrders(NamedTuple):
    """The best order, what it loses (acknowledged, possibly acknowledged, all), and what the worst order loses."""

    best: list[int]
    cost: Cost
    worst: Cost
    losing: int
    """Number of partitions that lose records in the best order."""


def start_orders(brokers: list[int], partitions: Iterable[PartitionReplicas]) -> StartOrders:
    """Return the best order. If the order does not decide who leads a partition, the worst that may lead counts."""
    choices: Counter[Choice] = Counter()
    for each in partitions:
        costs = tuple((outcome.leader, outcome.cost) for outcome in each.expected)
        choices[Choice(costs, each.firstLeads)] += 1
    if len(brokers) <= MOST_PERMUTED:
        orders = list(permutations(brokers))
    else:
        orders = [(first, *(each for each in brokers if each != first)) for first in brokers]
    costs_of = {order: _cost(order, choices) for order in orders}
    best = min(orders, key=costs_of.__getitem__)
    losing = sum(count for choice, count in choices.items() if any(_led(best, choice)))
    return StartOrders(list(best), costs_of[best], max(costs_of.values()), losing)


def _cost(order: tuple[int, ...], choices: Counter[Choice]) -> Cost:
    total = [0, 0, 0]
    for choice, count in choices.items():
        for number, value in enumerate(_led(order, choice)):
            total[number] += value * count
    return total[0], total[1], total[2]


def _led(order: tuple[int, ...], choice: Choice) -> Cost:
    """Return what is lost of a partition."""
    nothing = (0, 0, 0)
    if not choice.by_order:
        return max((cost for _, cost in choice.costs), default=nothing)
    by_broker = dict(choice.costs)
    return next(
        (by_broker[broker] for broker in order if broker in by_broker), max(by_broker.values(), default=nothing)
    )
