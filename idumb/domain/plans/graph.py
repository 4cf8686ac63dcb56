"""The task graph: one deterministic order, waves, and cycles.

Ties are broken by the order of the nodes in the input, so the same plan always gives the same order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice


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


def cycles(dependencies: Mapping[str, Sequence[str]], most: int) -> tuple[tuple[str, ...], ...]:
    """Return at most `most` elementary cycles: `A -> B -> C -> A`, each node depends on the next (Johnson)."""
    position = {node: at for at, node in enumerate(dependencies)}
    all_cycles: list[tuple[str, ...]] = []
    components = _components(dependencies, set(position))
    pending = deque(sorted(components, key=lambda group: min(position[node] for node in group)))
    while pending and len(all_cycles) < most:
        component = pending.popleft()
        start = min(component, key=position.__getitem__)
        edges = {node: [d for d in dict.fromkeys(dependencies[node]) if d in component] for node in component}
        all_cycles += islice(_through(start, edges), most - len(all_cycles))
        pending.extend(_components(edges, component - {start}))
    return tuple(all_cycles)


def _through(start: str, edges: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield the elementary cycles that contain `start`."""
    path, blocked, closed = [start], {start}, set[str]()
    waiting: dict[str, set[str]] = {}
    stack = [(start, iter(edges[start]))]
    while stack:
        node, following = stack[-1]
        for other in following:
            if other == start:
                yield (*path, start)
                closed.update(path)
            elif other not in blocked:
                path.append(other)
                stack.append((other, iter(edges[other])))
                closed.discard(other)
                blocked.add(other)
                break
        else:
            if node in closed:
                _unblock(node, blocked, waiting)
            else:
                for other in edges[node]:
                    waiting.setdefault(other, set()).add(node)
            stack.pop()
            path.pop()


def _unblock(node: str, blocked: set[str], waiting: dict[str, set[str]]) -> None:
    stack = [node]
    while stack:
        current = stack.pop()
        if current in blocked:
            blocked.discard(current)
            stack.extend(waiting.pop(current, ()))


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
