"""R-PLAN-6: the graph as text and Mermaid."""

from __future__ import annotations

import re

import pytest

from idumb.domain.contract import Contract
from idumb.views import graph as graphs
from tests.support.growth import assert_linear
from tests.support.seed import one_on_a_push
from tests.unit.views import examples


def test_mermaid_labels_cannot_escape_their_quotes_or_the_fence() -> None:
    drawn = graphs.mermaid(examples.slugs(title=examples.NASTY + '"] %%{init: {}}%% ```'))
    line = next(line for line in drawn.splitlines() if "T1-02" in line)
    assert re.fullmatch(r'    n1\["T1-02: [^"<>`%{}]*"\]', line), line


def _large(needs: str, count: int) -> Contract:
    """Return a phase of that many tasks: alone, in a chain, or in layers of 25 that need the whole layer before."""

    def needed(n: int) -> list[str]:
        if needs == "none" or not n:
            return []
        first = {"chain": n - 1, "layers": (n // 25 - 1) * 25}[needs]
        return [f"T1-{m:04d}" for m in range(max(first, 0), n if needs == "chain" else n // 25 * 25)]

    return examples.phase(*(examples.task(f"T1-{n:04d}", *needed(n)) for n in range(count)))


@pytest.mark.parametrize("needs", one_on_a_push(["none", "chain", "layers"], "a large phase"))
def test_each_edge_of_a_large_phase_is_drawn_once_and_in_linear_time(needs: str) -> None:
    contract = _large(needs, 200)
    drawn = graphs.mermaid(contract)
    assert drawn.count(" --> ") == sum(map(len, contract.dependencies.values()))
    assert_linear(graphs.mermaid, lambda count: _large(needs, count))
