"""The task graph: one deterministic order, waves, and cycles.

Ties are broken by the order of the nodes in the input, so the same plan always gives the same order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence


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


def knots(dependencies: Mapping[str, Sequence[str]]) -> tuple[tuple[tuple[str, ...], set[str]], ...]:
    """Return each group of nodes that all need one another, in order, with its shortest cycle through its first node.

    In a cycle `A -> B -> A`, each node depends on the next.
    """
    position = {node: at for at, node in enumerate(dependencies)}
    found = [(min(group, key=position.__getitem__), group) for group in _components(dependencies, set(position))]
    found.sort(key=lambda row: position[row[0]])
    return tuple((_shortest(first, group, dependencies), group) for first, group in found)


def _shortest(first: str, group: set[str], dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the shortest way from a node back to itself within its group."""
    reached_from: dict[str, str] = {}
    pending = deque([first])
    while first not in reached_from:
        node = pending.popleft()
        for other in dependencies[node]:
            if other in group and other != node and other not in reached_from:
                reached_from[other] = node
                pending.append(other)
    cycle = [first]
    while len(cycle) == 1 or cycle[-1] != first:
        cycle.append(reached_from[cycle[-1]])
    return tuple(reversed(cycle))


def _components(dependencies: Mapping[str, Sequence[str]], among: set[str]) -> list[set[str]]:
    """Return the strongly connected components of two nodes or more (Kosaraju)."""
    edges = {node: [d for d in dependencies[node] if d in among] for node in dependencies if node in among}
    back: dict[str, list[str]] = {}
    for node, needed in edges.items():
        for dependency in needed:
            back.setdefault(dependency, []).append(node)
    unassigned = set(edges)
    components: list[set[str]] = []
    for root in reversed(_postorder(edges)):
        group, stack = set(), [root] if root in unassigned else []
        while stack:
            node = stack.pop()
            if node in unassigned:
                unassigned.discard(node)
                group.add(node)
                stack.extend(back.get(node, ()))
        if len(group) > 1:
            components.append(group)
    return components


def _postorder(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """Return every node after those that it leads to, ignoring back edges."""
    visited: set[str] = set()
    order: list[str] = []
    for root in edges:
        stack = [] if root in visited else [(root, iter(edges[root]))]
        visited.add(root)
        while stack:
            node, following = stack[-1]
            other = next((successor for successor in following if successor not in visited), None)
            if other is None:
                order.append(node)
                stack.pop()
            else:
                visited.add(other)
                stack.append((other, iter(edges[other])))
    return order


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
