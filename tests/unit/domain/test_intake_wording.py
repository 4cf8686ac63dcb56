"""Checks of the words of a plan: placeholders, vague and conditional text, sizes of tasks."""

from __future__ import annotations

from msgspec.structs import replace

from idumb.domain.finding import ERROR
from idumb.domain.plans.plan import (
    STRICT,
    Criterion,
    FileClaim,
    Invariant,
    NonGoal,
    Plan,
    RollbackClass,
    Setup,
    Span,
    TestIntent,
)
from tests.support.cases import every
from tests.support.growth import assert_linear
from tests.support.intake import CHECKED, codes, findings_of, plan, step, steps, task

AMBIGUOUS_TEXTS = [
    ("It is TBD", "text.placeholder"),
    ("TODO: write this", "text.placeholder"),
    ("Which port???", "text.placeholder"),
    ("The format is to be determined", "text.placeholder"),
    ("It knows cats, dogs etc", "text.vague"),
    ("It uses a queue or similar", "text.vague"),
    ("An appropriate error is shown", "text.vague"),
    ("It works somehow", "text.vague"),
    ("Caches are cleared as needed", "text.conditional"),
    ("Add colours if time permits", "text.conditional"),
]


CLEAR_TEXTS = [
    "It reads /etc/hosts and ~/etc",
    '"TODO" is a column of the board',
    "```js\n// `a`, `b`, etc\n```",
    "The TODO list shows open items",
    "Remove TODO comments from the parser",
    "A selector-appropriate header is sent",
    "An empty title raises an error if it is required",
    "Why? is a heading",
    "The order is to be decided by the customer in the shop",
]


def test_a_long_text_is_searched_in_linear_time() -> None:
    for repeated in ("`", "`a", "``a`b", "'", "'a "):
        assert_linear(lambda text: codes(plan(task(description=text))), lambda n, of=repeated: of * n)  # type: ignore[misc]


def test_ambiguous_words_are_found_in_titles_criteria_and_intents() -> None:
    """R-LOCK-7."""
    for text, code in AMBIGUOUS_TEXTS:
        criterion = (Criterion("AC-1", text, "check", "make test", span=Span(0, 1, 14)),)
        places = (
            (plan(task(title=text)), 9),
            (plan(task(acceptance=criterion)), 14),
            (steps(step(intent=text, command="true")), 20),
            (plan(success_criteria=criterion), 14),
        )
        for one, line in places:
            assert [(f.code, f.severity, f.line) for f in findings_of(one)] == [(code, "warning", line)], text
            assert {f.severity for f in findings_of(one, mode=STRICT) if f.code == code} == {ERROR}, text


def test_words_that_only_look_ambiguous_are_accepted() -> None:
    """R-LOCK-7."""
    assert not [
        text
        for text in CLEAR_TEXTS
        if codes(plan(task(title=text, acceptance=(Criterion("AC-1", text, "check", "make test"),)))) != set()
    ]


def test_a_description_may_describe_a_program_that_decides_but_not_be_ambiguous() -> None:
    """R-LOCK-7."""
    assert codes(plan(task(description="Rebuild the index if necessary, with an appropriate lock."))) == set()
    assert codes(plan(task(description="Clear caches as needed."))) == {"text.conditional"}
    assert codes(plan(task(description="Clear caches, indexes etc."))) == {"text.vague"}
    assert codes(plan(task(description="Clear caches.\n\nTBD"))) == {"text.placeholder"}


def _with(text: str) -> dict[str, Plan]:
    """Return a plan for each place of prose, with this text there."""
    return {
        "goal": plan(goal=text),
        "title": plan(title=text),
        "requirements": plan(task(requirements=("REQ-1",)), requirements={"REQ-1": text}),
        "non-goals": plan(non_goals=(NonGoal("NG-1", text),)),
        "invariants": plan(invariants=(Invariant("INV-1", text, "make test"),)),
        "assumptions": plan(assumptions=(text,)),
        "setup": plan(setup=(Setup("mail", text),)),
        "description": plan(task(description=text)),
        "notes": plan(task(notes=text)),
        "tests": plan(task(tests=(TestIntent("make test", "fails", "passes", text),))),
        "reason": plan(task(rollback=RollbackClass("irreversible", (), text))),
    }


@every(
    "word, code",
    [
        ("Colours are TBD", "text.placeholder"),
        ("FIXME later", "text.placeholder"),
        ("It keeps cats, dogs etc.", "text.vague"),
        ("It clears caches as needed", "text.conditional"),
    ],
)
def test_no_text_of_a_strict_plan_may_be_ambiguous(word: str, code: str) -> None:
    """R-LOCK-7."""
    for place, one in _with(word).items():
        assert [f.severity for f in findings_of(one, mode=STRICT) if f.code == code] == [ERROR], place
        assert {f.severity for f in findings_of(one) if f.code == code} == {"warning"}, place
    for place, one in _with(f"The marker `{word}` goes").items():
        assert [f.code for f in findings_of(one, mode=STRICT) if f.code.startswith("text.")] == [], place


def test_a_conditional_instruction_is_found_and_a_condition_of_the_program_is_not() -> None:
    """R-LOCK-7."""
    cases: list[tuple[str, bool]] = [
        ("if the tool is missing, skip this", True),
        ("optionally add a banner", True),
        ("add a banner (optional)", True),
        ("write one file or two, depending on the size", True),
        ("if a title is empty raise ValueError", False),
        ("append a counter when the slug is taken", False),
        ("make the middle name optional in the schema", False),
    ]
    assert not [
        (intent, doubtful)
        for intent, doubtful in cases
        if codes(steps(step(intent=intent, command="true"))) != ({"text.conditional"} if doubtful else set())
    ]


@every("text", ["works", "It works.", "Done", "as expected", "OK", "…", "Works as expected!"])
def test_a_criterion_for_a_person_says_what_to_look_at(text: str) -> None:
    """R-LOCK-7."""
    empty = (*CHECKED, Criterion("AC-2", text, "human", span=Span(0, 1, 15)))
    assert [(f.code, f.line) for f in findings_of(plan(task(acceptance=empty)))] == [("criterion.empty", 15)]
    criteria = (*CHECKED, Criterion("AC-2", text, "human", instructions=("Open the page",)))
    assert codes(plan(task(acceptance=criteria))) == set()
    by_command = (Criterion("AC-1", text, "check", "make test"),)
    assert codes(plan(task(acceptance=by_command))) == set()


@every("seconds, files, criteria, field", [
    (7200, 8, 7, None), (7201, 1, 1, "estimate"), (None, 9, 1, "files"), (None, 1, 8, "acceptance"),
])  # fmt: skip
def test_a_task_that_does_too_much_is_reported(seconds: int | None, files: int, criteria: int, field: str) -> None:
    """R-PLAN-10."""
    claims = tuple(FileClaim("create", f"{number}.txt") for number in range(files))
    acceptance = tuple(Criterion(f"AC-{number}", f"It is {number}", "check", "make test") for number in range(criteria))
    large = task(estimate=seconds, files=claims, acceptance=acceptance)
    assert [(f.code, f.field) for f in findings_of(plan(large))] == ([("task.large", field)] if field else [])
    assert codes(plan(replace(large, kind="human-verify"))) == set()
