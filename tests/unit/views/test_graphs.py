"""R-PLAN-6: the graph as text, Mermaid and SVG."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

import pytest

from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.views.graph import layout as graph_layout
from idumb.views.graph import mermaid, svg
from idumb.views.graph import text as graph_text
from tests.support.growth import assert_linear
from tests.unit.views import examples


def test_text_shows_order_waves_dependencies_and_status() -> None:
    """R-PLAN-6."""
    log = examples.partial_run()
    assert graph_text.render(log.contract, log.statuses) == (
        "Phase 1: 5 tasks in 3 waves, 3 dependencies\n"
        "\n"
        "Wave 1 (needs nothing)\n"
        "  1. completed  T1-01  Slug function\n"
        "  4. completed  T1-04  Documentation\n"
        "\n"
        "Wave 2\n"
        "  2. failed     T1-02  Unique slugs  <- T1-01\n"
        "  5. waiting    T1-05  Choose a name  <- T1-04\n"
        "\n"
        "Wave 3\n"
        "  3. blocked    T1-03  Addresses in the site map  <- T1-02\n"
    )


def test_text_without_a_run_has_no_status_column() -> None:
    assert "  1. T1-01  Slug function\n" in graph_text.render(examples.slugs())


def test_mermaid_shows_every_task_and_edge_and_the_status_as_text() -> None:
    """R-PLAN-6: meaning is never by colour alone."""
    log = examples.partial_run()
    drawn = mermaid.render(log.contract, log.statuses)
    assert drawn.startswith("flowchart TD\n")
    assert '    n1["T1-02: Unique slugs<br/>failed"]:::failed\n' in drawn
    assert re.findall(r"n\d --> n\d", drawn) == ["n0 --> n1", "n1 --> n2", "n3 --> n4"]
    assert "classDef failed" in drawn
    assert "classDef running" not in drawn


def test_mermaid_labels_cannot_escape_their_quotes_or_the_fence() -> None:
    drawn = mermaid.render(examples.slugs(title=examples.NASTY + '"] %%{init: {}}%% ```'))
    line = next(line for line in drawn.splitlines() if "T1-02" in line)
    assert re.fullmatch(r'    n1\["T1-02: [^"<>`%{}]*"\]', line), line


def test_mermaid_can_omit_tasks() -> None:
    drawn = mermaid.render(examples.slugs(), only={"T1-02", "T1-03"})
    assert re.findall(r"n\d --> n\d", drawn) == ["n0 --> n1"]
    assert "T1-01" not in drawn


def _svg(contract: Contract, statuses: Mapping[str, str] | None = None) -> ET.Element:
    return ET.fromstring(svg.render(contract, statuses))


def _texts(root: ET.Element) -> list[str]:
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_svg_shows_every_task_wave_and_status_as_text() -> None:
    """R-PLAN-6."""
    log = examples.partial_run()
    root = _svg(log.contract, log.statuses)
    texts = _texts(root)
    assert {"T1-01", "T1-02", "Unique slugs", "failed", "blocked", "Wave 3: 1 task"} <= set(texts)
    assert "2 completed, 1 failed, 1 blocked, 1 waiting" in texts
    lines = [e for e in root.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "line"]
    assert len(lines) == 3
    assert "prefers-color-scheme: dark" in svg.render(log.contract)


def test_svg_escapes_foreign_text() -> None:
    contract = examples.slugs(title=examples.NASTY)
    assert "<script" not in svg.render(contract)
    assert any("<script>" in text for text in _texts(_svg(contract)))


def test_boxes_of_a_column_never_overlap_and_lines_run_forward() -> None:
    tasks = [
        examples.task(f"T1-{n:02d}", *(f"T1-{m:02d}" for m in range(n) if (n * 7 + m) % 5 == 0)) for n in range(30)
    ]
    contract = examples.phase(*tasks)
    layout = graph_layout.place(graph.waves(contract.dependencies, contract.order), contract.dependencies)
    columns: dict[int, list[float]] = {}
    for column, row in layout.at.values():
        columns.setdefault(column, []).append(row)
    for rows in columns.values():
        assert all(b - a > 0.999 for a, b in itertools.pairwise(sorted(rows)))
    assert all(a[0] < b[0] for line in layout.lines for a, b in itertools.pairwise(line))
    assert len(layout.lines) == sum(map(len, contract.dependencies.values()))


def test_a_long_edge_gets_its_own_lane_in_each_column_it_crosses() -> None:
    contract = examples.phase(
        examples.task("T1-01"), examples.task("T1-02", "T1-01"), examples.task("T1-03", "T1-02", "T1-01")
    )
    layout = graph_layout.place(graph.waves(contract.dependencies, contract.order), contract.dependencies)
    long = next(line for line in layout.lines if len(line) == 3)
    assert abs(long[1][1] - layout.at["T1-02"][1]) >= 1


def _large(needs: str, count: int) -> Contract:
    """Return a phase of that many tasks: alone, in a chain, or in layers of 25 that need the whole layer before."""

    def needed(n: int) -> list[str]:
        if needs == "none" or not n:
            return []
        first = {"chain": n - 1, "layers": (n // 25 - 1) * 25}[needs]
        return [f"T1-{m:04d}" for m in range(max(first, 0), n if needs == "chain" else n // 25 * 25)]

    return examples.phase(*(examples.task(f"T1-{n:04d}", *needed(n)) for n in range(count)))


@pytest.mark.parametrize("needs", ["none", "chain", "layers"])
def test_each_edge_of_a_large_phase_is_drawn_once_and_in_linear_time(needs: str) -> None:
    contract = _large(needs, 200)
    drawn = svg.render(contract)
    assert drawn.count('class="box"') == 200
    assert drawn.count('class="line"') == sum(map(len, contract.dependencies.values()))
    assert_linear(svg.render, lambda count: _large(needs, count))
