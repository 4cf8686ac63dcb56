"""The prompts of builder and validator (R-RUN-4)."""

from __future__ import annotations

from msgspec.structs import replace

from idumb.agents import prompt
from idumb.app.ports import PromptRequest
from idumb.domain.agent import BUILDER, VALIDATOR
from idumb.domain.plans.plan import (
    Condition,
    Criterion,
    FileClaim,
    Interface,
    Invariant,
    Limits,
    NonGoal,
    Plan,
    SymbolClaim,
    Task,
    TestIntent,
)
from idumb.domain.proof.evidence import Evidence

TASK = Task(
    "T1-01",
    "Slugs",
    "Turn $title into a slug, for $5.",
    acceptance=(
        Criterion("AC-1", "it works", "check", "echo `date`"),
        Criterion("AC-2", "it reads well", "human", instructions=("read it aloud",)),
    ),
    verify=("pytest -q",),
    tests=(TestIntent("pytest -k slug", "fails", "passes", "slugs"),),
    files=(FileClaim("create", "src/slug.py"), FileClaim("modify", "docs/**"), FileClaim("move", "a", "b")),
    symbols=(SymbolClaim("add", "slugify"),),
    interfaces=(Interface("slugify", {"inputs": "a title", "errors": "ValueError"}),),
    postconditions=(Condition("symbol", "slugify", path="src/slug.py"), Condition("file-contains", "a", "text")),
    invariants=("INV-1",),
    limits=Limits(3, 100, ("src/**",)),
    estimate=5400,
    references="see the wiki",
)
PLAN = Plan(
    "01-PLAN.md", "0" * 64, "1", "01", "Slugs", "Stable URLs",
    non_goals=(NonGoal("NG-1", "no change to authentication", ("src/auth/**",)),),
    invariants=(Invariant("INV-1", "it imports", "python -c 1"), Invariant("INV-2", "other", "false")),
)  # fmt: skip
REQUEST = PromptRequest(BUILDER, TASK, PLAN, ("migrations/**",), "", 1)


def test_the_builder_s_prompt_has_everything_it_is_judged_by() -> None:
    text = prompt.render(REQUEST)
    for part in (
        "# T1-01: Slugs",
        "Turn $title into a slug, for $5.",
        "AC-1: it works — `` echo `date` ``",
        "AC-2: it reads well\n  - read it aloud",
        "- `pytest -q`",
        "`pytest -k slug` fails before and passes after: slugs",
        "create `src/slug.py`",
        "modify `docs/**` (any that match)",
        "move `a` to `b`",
        "add `slugify`",
        "- `slugify`\n  - inputs: a title\n  - errors: ValueError",
        "symbol `slugify` in `src/slug.py`",
        "file contains `a` 'text'",
        "INV-1: it imports — `python -c 1`",
        "`.planning`",
        "`migrations/**`",
        "no change to authentication (`src/auth/**`)",
        "at most 3 files",
        "at most 100 lines",
        "only below `src/**`",
        "estimate for this task is 1h30m",
        "see the wiki",
    ):
        assert part in text
    assert "INV-2" not in text
    assert "the one before" not in text


def test_a_validator_is_asked_for_evidence_with_any_template() -> None:
    """R-RUN-3: once, and with the same text."""
    form = prompt.render(replace(REQUEST, role=VALIDATOR, template="Judge $id.")).rpartition("\n\n")[2]
    assert form.startswith("`evidence` says what each criterion rests on")
    for template in (None, 'Judge. Show your "evidence" as told.'):
        text = prompt.render(replace(REQUEST, role=VALIDATOR, template=template))
        assert text.count(form) == (template is None)
    assert form not in prompt.render(REQUEST)


def test_feedback_of_the_previous_attempt_is_in_the_prompt() -> None:
    text = prompt.render(replace(REQUEST, feedback="AC-1 failed: exit 2", attempt=2))
    assert "## Attempt 2: what was wrong with the previous one\n\nAC-1 failed: exit 2" in text


def test_empty_sections_are_omitted() -> None:
    text = prompt.render(replace(REQUEST, task=Task("T1-02", "Bare"), plan=replace(
        PLAN, non_goals=(), invariants=())))  # fmt: skip
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## The goal of the phase", "## Files", "## Never touch", "## How to work"]
    assert "None: this task changes no file." in text
    assert "$" not in text


def test_the_validator_sees_criteria_evidence_and_change_but_not_the_feedback() -> None:
    evidence = Evidence("verify 1", "pytest -q", "passed")
    text = prompt.render(PromptRequest(VALIDATOR, TASK, PLAN, (), "what was said", 2, (evidence,), "+```\n+x\n"))
    assert "AC-1: it works" in text
    assert "verify 1: passed (pytest -q)" in text
    assert "````diff\n+```\n+x\n````" in text
    assert '{"verdict": "PASS"' in text
    assert "what was said" not in text


def test_a_template_keeps_unknown_names_and_needs_no_frontmatter() -> None:
    assert prompt.filled("$HOME ${id} $id", {"id": "T1"}) == "$HOME T1 T1"
    assert prompt.without_frontmatter("# Plain\n") == "# Plain\n"
    assert prompt.without_frontmatter("---\ntype: prompt\n---\n\n# Body\n") == "# Body\n"


def test_assumptions_and_decisions_reach_the_builder_with_any_template() -> None:
    """R-RUN-4, R-ASK-3."""
    plan = replace(PLAN, assumptions=("Titles are short", "The site is static"))
    request = replace(REQUEST, plan=plan, decided=("Which colour?: blue (the cold one)",))
    for template in (None, "Do it.\n", "Do it.\n\n## Known\n\n$assumptions\n"):
        text = prompt.render(replace(request, template=template))
        for words in ("- Titles are short\n- The site is static", "- Which colour?: blue (the cold one)"):
            assert text.count(words) == 1
    assert "Titles are short" not in prompt.render(replace(request, role=VALIDATOR))
    assert "assumes" not in prompt.render(REQUEST)
    assert "Decided" not in prompt.render(REQUEST)


def test_builder_and_validator_know_the_goal_and_the_requirements_with_any_template() -> None:
    """R-RUN-4."""
    request = replace(REQUEST, requirements=("R-1: links last", "R-2"))
    for role in (BUILDER, VALIDATOR):
        for template in (None, "Do it.\n", "Do it for $goal.\n\n## Why\n\n$requirements\n"):
            text = prompt.render(replace(request, role=role, template=template))
            assert [text.count(words) for words in ("Stable URLs", "- R-1: links last\n- R-2")] == [1, 1]
