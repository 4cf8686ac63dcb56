"""The task graph: one deterministic order, waves, and cycles named in full.

Ties are broken by the order in which the nodes were given, so the same plan always gives the same order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """`ids` is complete only when `cycle` is empty; `cycle` starts and ends with the same id."""

    ids: tuple[str, ...]
    cycle: tuple[str, ...] = ()


def topological_order(dependencies: Mapping[str, Sequence[str]]) -> Order:
    """Kahn's algorithm over positions. Dependencies that are no key of the mapping are ignored."""
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
    if len(order) == len(ids):
        return Order(tuple(order))
    return Order(tuple(order), find_cycle(dependencies, set(ids) - set(order)))


def find_cycle(dependencies: Mapping[str, Sequence[str]], among: Iterable[str]) -> tuple[str, ...]:
    """One cycle inside `among`, `A -> B -> C -> A`, each node depending on the next; empty when there is none."""
    candidates = set(among)
    done: set[str] = set()
    for start in (node for node in dependencies if node in candidates):
        seen: dict[str, int] = {}
        trail: list[str] = []
        pending = [(start, iter(dependencies[start]))] if start not in done else []
        if pending:
            seen[start] = 0
            trail.append(start)
        while pending:
            node, edges = pending[-1]
            following = next((d for d in edges if d in candidates and d not in done), None)
            if following is None:
                pending.pop()
                trail.pop()
                del seen[node]
                done.add(node)
            elif following in seen:
                return (*trail[seen[following] :], following)
            else:
                seen[following] = len(trail)
                trail.append(following)
                pending.append((following, iter(dependencies[following])))
    return ()


def waves(dependencies: Mapping[str, Sequence[str]], order: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Tasks by depth: wave 1 depends on nothing, each later wave only on earlier ones."""
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
    """Every node that needs one of `roots`, directly or not, in the mapping's order; the roots excluded."""
    successors: dict[str, list[str]] = {}
    for node, needed in dependencies.items():
        for dependency in needed:
            successors.setdefault(dependency, []).append(node)
    found: set[str] = set()
    stack = list(roots)
    while stack:
        for node in successors.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return tuple(node for node in dependencies if node in found)
