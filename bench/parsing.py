"""Goals 4, 5 and 6: plans as text, plans as findings, plans as an order."""

from __future__ import annotations

import gc
import graphlib
from collections.abc import Iterator

from bench import material, measure
from bench.measure import Effort, Figure
from bench.starting import idumb


def _text(tasks: int) -> str:
    return material.plan(tasks, material.full)


def check_plan(effort: Effort) -> Iterator[Figure]:
    """Goal 4: all checks of `idumb check-plan`, start of the process included."""
    import mistune

    sizes = (100, 1000) if effort.quick else (100, 1000, 10_000)
    seconds = {}
    for tasks in sizes:
        place = material.project(f"{effort.folder}/check{tasks}", 20, tasks, material.written)
        text = _text(tasks)
        bare = mistune.create_markdown(renderer=None)
        cases: dict[str, measure.Case] = {"ours": measure.program((*idumb(), "check-plan", "1"), place.root, place.env)}
        if tasks == sizes[-1]:
            cases["mistune"] = lambda bare=bare, text=text: bare(text)  # type: ignore[misc]
        times = measure.turns(cases, effort.rounds)
        seconds[tasks] = measure.median(times, "ours")
    grown = measure.exponent((sizes[0], seconds[sizes[0]]), (sizes[-1], seconds[sizes[-1]]))
    label = f"check-plan: growth exponent, {sizes[0]} to {sizes[-1]:,} tasks"
    yield Figure(4, label, "itself", grown, 1.15, effort.rounds, "")
    if len(sizes) > 2:
        grown = measure.exponent((sizes[-2], seconds[sizes[-2]]), (sizes[-1], seconds[sizes[-1]]))
        label = f"check-plan: growth exponent, {sizes[-2]:,} to {sizes[-1]:,} tasks"
        yield Figure(4, label, "itself", grown, 1.15, effort.rounds, "")
    value = measure.ratio(times, "ours", "mistune")
    yield Figure(4, f"check-plan, {sizes[-1]:,} tasks with 2 edges", "mistune's bare parse", value, 2.0, effort.rounds)


def parse(effort: Effort) -> Iterator[Figure]:
    """Goal 5: the parser alone, in this process, with spans and all fields."""
    import mistune

    from idumb.markdown.plans import plan_parser

    sizes = (100, 1000) if effort.quick else (1000, 10_000)
    seconds = {}
    for tasks in sizes:
        text = _text(tasks)
        data = text.encode()
        bare = mistune.create_markdown(renderer=None)
        cases: dict[str, measure.Case] = {
            "ours": lambda data=data: plan_parser.parse(data, "01-PLAN.md"),  # type: ignore[misc]
            "mistune": lambda bare=bare, text=text: bare(text),  # type: ignore[misc]
        }
        # The commands that parse and exit switch the collector off as well.
        times = measure.turns(cases, effort.rounds, before=_uncollected)
        gc.enable()
        seconds[tasks] = measure.median(times, "ours")
        value = measure.ratio(times, "ours", "mistune")
        yield Figure(5, f"parse, {tasks:,} tasks", "mistune's bare parse", value, 1.6, effort.rounds)
    grown = measure.exponent((sizes[0], seconds[sizes[0]]), (sizes[1], seconds[sizes[1]]))
    label = f"parse: growth exponent, {sizes[0]:,} to {sizes[1]:,} tasks"
    yield Figure(5, label, "itself", grown, 1.15, effort.rounds, "")


def _uncollected() -> None:
    gc.enable()
    gc.collect()
    gc.disable()


def order(effort: Effort) -> Iterator[Figure]:
    """Goal 6: the order of execution, the same on every machine, against an order that may be any."""
    from idumb.domain.plans import graph

    for count in (10_000,) if effort.quick else (10_000, 100_000):
        edges = {str(n): tuple(str(m) for m in {n - 1, n // 2} if m > 0 and m != n) for n in range(1, count + 1)}
        cases: dict[str, measure.Case] = {
            "ours": lambda edges=edges: graph.topological_order(edges),  # type: ignore[misc]
            "graphlib": lambda edges=edges: tuple(graphlib.TopologicalSorter(edges).static_order()),  # type: ignore[misc]
        }
        times = measure.turns(cases, effort.rounds, before=gc.collect)
        value = measure.ratio(times, "ours", "graphlib")
        yield Figure(6, f"execution order, {count:,} tasks", "graphlib static_order", value, 0.6, effort.rounds)
