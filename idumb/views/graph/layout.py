"""Lay out a layered graph: waves are columns, and edges that cross a column get a position in it.

Layered drawing after Sugiyama, Tagawa and Toda (1981): barycentres order each layer, then each node is placed as near
to its predecessors as possible. Everything is linear except the sorting of layers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from idumb.lazy_dataclass import dataclass

MOST_ROWS = 40
_MOST_BENDS = 4000
_SWEEPS = 4

Node = str | tuple[str, str, int]
"""A task, or a bend of an edge: (from, to, layer)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`at` gives column and row of each task, rows as fractions; `columns` is (first, count) of each wave's columns.

    `lines` are the points of each edge, from the needed task to the one that needs it, bends included.
    """

    at: Mapping[str, tuple[int, float]]
    columns: tuple[tuple[int, int], ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    rows: float


def place(waves: Sequence[Sequence[str]], dependencies: Mapping[str, Sequence[str]]) -> Layout:
    """Return the layout of an acyclic graph; `waves` come from `graph.waves`."""
    depth = {task: i for i, wave in enumerate(waves) for task in wave}
    edges = [(d, task) for wave in waves for task in wave for d in dict.fromkeys(dependencies[task]) if d in depth]
    layers: list[list[Node]] = [list(wave) for wave in waves]
    bends = sum(depth[to] - depth[start] - 1 for start, to in edges)
    crowded = bends > _MOST_BENDS or max(map(len, layers), default=0) > MOST_ROWS
    chains = [_chain(start, to, depth, crowded=crowded) for start, to in edges]
    for chain in chains:
        for node in chain:
            if not isinstance(node, str):
                layers[node[2]].append(node)
    before, after = _neighbours(chains)
    _untangle(layers, before, after)
    columns, at = _grid(layers) if crowded else _aligned(layers, before)
    top = min((row for _, row in at.values()), default=0.0)
    places = {node: (column, row - top) for node, (column, row) in at.items()}
    return Layout(
        {node: place for node, place in places.items() if isinstance(node, str)},
        columns,
        tuple(tuple(places[node] for node in chain) for chain in chains),
        max((row for _, row in places.values()), default=0.0) + 1,
    )


def _chain(start: str, to: str, depth: Mapping[str, int], *, crowded: bool) -> list[Node]:
    between = () if crowded else range(depth[start] + 1, depth[to])
    return [start, *((start, to, layer) for layer in between), to]


def _neighbours(chains: Sequence[Sequence[Node]]) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    before: dict[Node, list[Node]] = {}
    after: dict[Node, list[Node]] = {}
    for chain in chains:
        for left, right in itertools.pairwise(chain):
            before.setdefault(right, []).append(left)
            after.setdefault(left, []).append(right)
    return before, after


def _untangle(
    layers: list[list[Node]], before: Mapping[Node, Sequence[Node]], after: Mapping[Node, Sequence[Node]]
) -> None:
    """Order each layer by the position of its neighbours, forwards and backwards in turn; ties keep their order."""
    rank = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    for sweep in range(_SWEEPS):
        neighbours = before if sweep % 2 == 0 else after
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            centres = {node: _mean([rank[n] for n in neighbours.get(node, ())], rank[node]) for node in layer}
            layer.sort(key=centres.__getitem__)
            rank.update({node: float(i) for i, node in enumerate(layer)})


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _aligned(
    layers: Sequence[Sequence[Node]], before: Mapping[Node, Sequence[Node]]
) -> tuple[tuple[tuple[int, int], ...], dict[Node, tuple[int, float]]]:
    """Place each layer in one column, each node as near to its predecessors as the order allows."""
    at: dict[Node, tuple[int, float]] = {}
    for column, layer in enumerate(layers):
        targets = [_mean([at[n][1] for n in before.get(node, ())], float(i)) for i, node in enumerate(layer)]
        rows: list[float] = []
        for row in targets:
            rows.append(max(row, rows[-1] + 1) if rows else row)
        drift = _mean([row - want for row, want in zip(rows, targets, strict=True)], 0.0)
        at.update({node: (column, row - drift) for node, row in zip(layer, rows, strict=True)})
    return tuple((column, 1) for column in range(len(layers))), at


def _grid(layers: Sequence[Sequence[Node]]) -> tuple[tuple[tuple[int, int], ...], dict[Node, tuple[int, float]]]:
    """Fold large waves into several columns, filled from the top."""
    columns: list[tuple[int, int]] = []
    at: dict[Node, tuple[int, float]] = {}
    first = 0
    for layer in layers:
        count = max(1, -(-len(layer) // MOST_ROWS))
        columns.append((first, count))
        at.update({node: (first + i // MOST_ROWS, float(i % MOST_ROWS)) for i, node in enumerate(layer)})
        first += count
    return tuple(columns), at
