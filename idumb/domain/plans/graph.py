"""The task graph: one deterministic order, waves, and cycles.

Ties are broken by the order of the nodes in the input, so the same plan always gives the same order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

T = TypeVar("T")


def topological_order(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the nodes after those that they need. Dependencies that are not keys of the mapping are ignored.

    Nodes of a cycle, and those that need them, are omitted.
    """
    nodes = list(dependencies)
    position = {node: place for place, node in enumerate(nodes)}
    sorter = TopologicalSorter({node: [d for d in dependencies[node] if d in position] for node in nodes})
    with suppress(CycleError):  # it still gives the nodes before a cycle
        sorter.prepare()
    order: list[str] = []
    ready: list[int] = []
    while True:
        for node in sorter.get_ready():
            heapq.heappush(ready, position[node])
        if not ready:
            return tuple(order)
        order.append(nodes[heapq.heappop(ready)])
        sorter.done(order[-1])


def cycles(dependencies: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return cycles `A -> B -> A` that have no node in common, so that no other is left; each node needs the next.

    A node that needs itself is no cycle.
    """
    rest = {node: [d for d in needed if d in dependencies and d != node] for node, needed in dependencies.items()}
    found: list[tuple[str, ...]] = []
    while len(found) < _MOST_CYCLES:
        try:
            TopologicalSorter(rest).prepare()
        except CycleError as error:
            found.append(tuple(reversed(error.args[1])))  # it names each node before the one that needs it
            gone = frozenset(found[-1])
            rest = {node: [d for d in needed if d not in gone] for node, needed in rest.items() if node not in gone}
        else:
            break
    return tuple(found)


_MOST_CYCLES = 100  # as many as are listed; only a hostile plan has more


def waves(dependencies: Mapping[str, Sequence[str]], order: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the tasks by depth: wave 1 depends on nothing, each later wave only on earlier ones."""
    depth: dict[str, int] = {}
    groups: list[list[str]] = []
    for node in order:
        level = max((depth[d] + 1 for d in dependencies[node] if d in depth), default=0)
        depth[node] = level
        if level == len(groups):
            groups.append([])
        groups[level].append(node)
    return tuple(tuple(group) for group in groups)


def dependents(dependencies: Mapping[str, Sequence[str]], roots: Iterable[str]) -> tuple[str, ...]:
    """Return every node that depends on one of `roots`, directly or not, in the mapping's order, without the roots."""
    successors: dict[str, list[str]] = {}
    for node, needed in dependencies.items():
        for dependency in needed:
            successors.setdefault(dependency, []).append(node)
    return _reached(dependencies, successors, roots)


def needed_by(dependencies: Mapping[T, Sequence[T]], node: T) -> tuple[T, ...]:
    """Return every node that one needs, directly or not, in the mapping's order, without itself."""
    others = [other for other in dependencies if other != node]
    return _reached(others, dependencies, [node])


def _reached(among: Iterable[T], following: Mapping[T, Sequence[T]], roots: Iterable[T]) -> tuple[T, ...]:
    reached, stack = set[T](), list(roots)
    while stack:
        new = [node for node in following.get(stack.pop(), ()) if node not in reached]
        reached.update(new)
        stack += new
    return tuple(node for node in among if node in reached)
