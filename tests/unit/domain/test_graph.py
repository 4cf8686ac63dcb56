"""Order, waves and cycles of the task graph (R-PLAN-6)."""

from __future__ import annotations

import graphlib
import itertools

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain.plans import graph
from tests.support.growth import assert_linear


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    """Nodes in any order, each depending on some of lower rank: a bit for each."""
    bits = draw(st.lists(st.integers(0, 2**10 - 1), max_size=10))
    needed = {f"N{i}": [f"N{j}" for j in range(i) if row >> j & 1] for i, row in enumerate(bits)}
    return {node: needed[node] for node in draw(st.permutations(list(needed)))}


@given(acyclic())
def test_of_the_nodes_whose_dependencies_are_done_the_first_written_one_is_next(
    dependencies: dict[str, list[str]],
) -> None:
    """R-PLAN-6: ties keep the plan's order."""
    order = graph.topological_order(dependencies)
    done: set[str] = set()
    for node in order:
        assert node == next(n for n in dependencies if n not in done and done.issuperset(dependencies[n]))
        done.add(node)
    assert len(order) == len(dependencies)


@given(st.dictionaries(st.sampled_from("ABCDEFGH"), st.lists(st.sampled_from("ABCDEFGH"), max_size=3)))
def test_a_cycle_is_found_exactly_if_there_is_one_and_named_in_full(dependencies: dict[str, list[str]]) -> None:
    """R-PLAN-6."""
    edges = {n: [d for d in needed if d in dependencies] for n, needed in dependencies.items()}
    order, own = graph.topological_order(edges), any(n in needed for n, needed in edges.items())
    try:
        tuple(graphlib.TopologicalSorter(edges).static_order())
    except graphlib.CycleError:
        assert len(order) < len(edges)
        if own:  # a node that needs itself is no cycle
            return
        cycle = graph.cycles(edges)[0]
        assert cycle[0] == cycle[-1]
        assert len(cycle) == len(set(cycle)) + 1
        assert all(b in edges[a] for a, b in itertools.pairwise(cycle))
    else:
        assert set(order) == set(edges)
        assert graph.cycles(edges) == ()


def test_a_node_that_needs_itself_or_a_missing_one_is_no_cycle() -> None:
    assert graph.cycles({"a": ["a", "missing"], "b": ["a"]}) == ()


def _chain(length: int) -> dict[str, list[str]]:
    return {str(i): [str(i - 1)] if i else [] for i in range(length)}


def _ring(length: int) -> dict[str, list[str]]:
    return {**_chain(length), "0": [str(length - 1)]}


def test_a_chain_that_is_longer_than_python_s_stack_is_ordered_and_closed_it_is_one_cycle() -> None:
    assert graph.topological_order(_chain(5_000))[-1] == "4999"
    assert graph.topological_order(_ring(5_000)) == ()
    assert [len(cycle) for cycle in graph.cycles(_ring(5_000))] == [5_001]


def test_order_and_cycles_take_linear_time() -> None:
    assert_linear(graph.topological_order, _chain)
    assert_linear(graph.cycles, _ring)


def test_a_wave_depends_only_on_earlier_waves() -> None:
    dependencies = {"a": [], "b": ["a"], "c": [], "d": ["b", "c"]}
    order = graph.topological_order(dependencies)
    assert graph.waves(dependencies, order) == (("a", "c"), ("b",), ("d",))


def test_indirect_dependents_are_listed_in_plan_order() -> None:
    dependencies = {"a": [], "c": ["b"], "b": ["a"], "d": []}
    assert graph.dependents(dependencies, ["a"]) == ("c", "b")


def test_what_a_node_needs_indirectly_is_listed_in_plan_order_without_itself() -> None:
    dependencies = {"z": [], "c": ["b"], "b": ["a", "z", "c"], "a": [], "d": ["c"]}
    assert graph.needed_by(dependencies, "c") == ("z", "b", "a")


@given(st.lists(st.integers(0, 31), min_size=2, max_size=5))
def test_cycles_have_no_node_in_common_and_without_them_no_other_is_left(bits: list[int]) -> None:
    """R-PLAN-6."""
    names = "ABCDE"[: len(bits)]
    edges = {n: [m for i, m in enumerate(names) if row >> i & 1 and m != n] for n, row in zip(names, bits, strict=True)}
    nodes = [node for cycle in graph.cycles(edges) for node in cycle[1:]]
    assert len(nodes) == len(set(nodes))
    rest = {node: needed for node, needed in edges.items() if node not in nodes}
    assert len(graph.topological_order(rest)) == len(rest)
