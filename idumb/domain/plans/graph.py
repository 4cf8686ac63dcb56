"""The task graph: one deterministic order, waves, and cycles.

Ties are broken by the order of the nodes in the input, so the same plan always gives the same order.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


def topological_order(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Sort with Kahn's algorithm over positions. Dependencies that are not keys of the mapping are ignored.

    Nodes of a cycle, and those that need them, are omitted.
    """
    ids = list(dependencies)
    position = {node: i for i, node in enumerate(ids)}
    waiting_for = [0] * len(ids)
    successors: list[list[int]] = [[] for _ in ids]
    for i, node in enumerate(ids):
        for dependency in dependencies[node]:
            j = position.get(dependency)
            if j is not None:
                waiting_for[i] += 1
                successors[j].append(i)
    ready = [i for i, count in enumerate(waiting_for) if not count]
    push, pop = heapq.heappush, heapq.heappop
    order: list[str] = []
    while ready:
        i = pop(ready)
        order.append(ids[i])
        for k in successors[i]:
            waiting_for[k] -= 1
            if not waiting_for[k]:
                push(ready, k)
    return tuple(order)


def cycles(dependencies: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return cycles `A -> B -> A` that have no node in common, so that no other is left; each node needs the next.

    A node that needs itself is no cycle.
    """
    rest = {node: [d for d in needed if d in dependencies and d != node] for node, needed in dependencies.items()}
    found: list[tuple[str, ...]] = []
    for _ in range(_MOST_ROUNDS):
        rest = _without(rest, topological_order(rest))
        new = tuple(_rings({node: needed[0] for node, needed in rest.items()}))
        found += new
        rest = _without(rest, {node for cycle in new for node in cycle})
    return tuple(found)


_MOST_ROUNDS = 50  # only a hostile plan needs more than a few


def _without(dependencies: Mapping[str, Sequence[str]], gone: Collection[str]) -> dict[str, list[str]]:
    """Return the mapping without some nodes, also as dependencies."""
    omitted = frozenset(gone)
    rest = {node: needed for node, needed in dependencies.items() if node not in omitted}
    return {node: [d for d in needed if d in rest] for node, needed in rest.items()}


def _rings(following: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield every cycle, if one node follows each node."""
    done: set[str] = set()
    for start in following:
        node, walked = start, dict[str, None]()
        while node not in walked and node not in done:
            walked[node] = None
            node = following[node]
        if node in walked:
            ring = list(walked)
            yield (*ring[ring.index(node) :], node)
        done.update(walked)


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
    reached: set[str] = set()
    stack = list(roots)
    while stack:
        for node in successors.get(stack.pop(), ()):
            if node not in reached:
                reached.add(node)
                stack.append(node)
    return tuple(node for node in dependencies if node in reached)


def needed_by(dependencies: Mapping[str, Sequence[str]], node: str) -> tuple[str, ...]:
    """Return every node that one needs, directly or not, in the mapping's order, without itself."""
    reached, stack = {node}, [node]
    while stack:
        new = [needed for needed in dependencies.get(stack.pop(), ()) if needed not in reached]
        reached.update(new)
        stack += new
    return tuple(other for other in dependencies if other in reached and other != node)
