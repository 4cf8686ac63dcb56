"""R-PLAN-6: the graph as text and Mermaid."""

from __future__ import annotations

import re

from idumb.views import graph_mermaid, graph_text, standing
from tests.unit.views import examples


def test_text_shows_order_waves_dependencies_and_status() -> None:
    """R-PLAN-6."""
    log = examples.partial_run()
    assert graph_text.render(log.contract, standing.statuses(log.contract, log.state)) == (
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


def test_mermaid_names_every_task_and_edge_and_says_the_status_in_words() -> None:
    """R-PLAN-6: meaning is never by colour alone."""
    log = examples.partial_run()
    drawn = graph_mermaid.render(log.contract, standing.statuses(log.contract, log.state))
    assert drawn.startswith("flowchart TD\n")
    assert '    n1["T1-02: Unique slugs<br/>failed"]:::failed\n' in drawn
    assert re.findall(r"n\d --> n\d", drawn) == ["n0 --> n1", "n1 --> n2", "n3 --> n4"]
    assert "classDef failed" in drawn
    assert "classDef running" not in drawn


def test_mermaid_labels_cannot_leave_their_quotes_or_the_fence() -> None:
    drawn = graph_mermaid.render(examples.slugs(title=examples.NASTY + '"] %%{init: {}}%% ```'))
    line = next(line for line in drawn.splitlines() if "T1-02" in line)
    assert re.fullmatch(r'    n1\["T1-02: [^"<>`%{}]*"\]', line), line


def test_mermaid_can_leave_tasks_out() -> None:
    drawn = graph_mermaid.render(examples.slugs(), only={"T1-02", "T1-03"})
    assert re.findall(r"n\d --> n\d", drawn) == ["n0 --> n1"]
    assert "T1-01" not in drawn
