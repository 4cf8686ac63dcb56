"""R-PLAN-5: a number of thousands of digits anywhere is bad input or text, and never a crash of idumb."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from idumb.app.contract import loading
from idumb.domain import whole_numbers
from idumb.domain.intake import registry, rule
from idumb.domain.permissions import NO_POLICY
from idumb.domain.settings import Settings
from idumb.markdown import configuration, phases
from idumb.markdown.plans import plan_parser
from tests.format import golden, test_phases, test_step_plans
from tests.support.cases import every
from tests.support.seed import commit_seed
from tests.unit.domain import test_step_plan
from tests.unit.test_configuration import FULL

DIGITS = "9" * 5000


def mutants(text: str) -> Iterator[str]:
    """The digits in place of every word, and with a sign and after the word where it has a digit."""
    for word in re.finditer(r"[A-Za-z0-9_.-]+", text):
        begin, end = word.span()
        for changed in (DIGITS, *(("-" + DIGITS, word[0] + DIGITS) if re.search(r"\d", word[0]) else ())):
            yield text[:begin] + changed + text[end:]
    for digits in re.finditer(r"\d+", text):
        yield text[: digits.start()] + DIGITS + text[digits.end() :]


def judged(path: str, text: str) -> None:
    data = text.encode()
    parsed = plan_parser.parse(data, path) if path.endswith(".md") else plan_parser.parse_steps(data, path)
    loaded = loading.assemble("1", "folder", [(path, parsed)], Settings())
    if loaded.contract is None:
        registry.findings_of_drafts(loaded.drafts, Settings(), NO_POLICY, "strict")
    else:
        registry.findings(rule.Case(loaded.contract, Settings(), NO_POLICY, "strict"))


RUN = {"tool": "run", "intent": "look", "timeout": 30, "arguments": {"command": "true", "timeout": 5, "expect_exit": 0}}
PATCH = {"tool": "apply_patch", "intent": "patch", "arguments": {"patch": test_step_plan.GIT}}
READERS: dict[str, tuple[Sequence[str], Callable[[str], object]]] = {
    "plans": (
        [golden.data(name).decode("utf-8", "replace") for name in golden.NAMES if len(golden.data(name)) < 1000],
        lambda text: judged("01-PLAN.md", text),
    ),
    "YAML steps": ([(test_step_plans.FOLDER / "whole.yaml").read_text()], lambda text: judged("steps.yaml", text)),
    "JSON steps": ([test_step_plans.as_json(RUN, PATCH)], lambda text: judged("steps.json", text)),
    "configuration": ([FULL], lambda text: configuration.read(text.encode())),
    "policy": (["allow: [run1]\ndeny: [2]\n"], lambda text: configuration.read_policy(text.encode())),
    "roadmap": ([test_phases.roadmap("every-form")], phases.roadmap_phases),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("most", [50, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_large_number_anywhere_in_a_file_never_raises(name: str, most: int) -> None:
    """Each commit tries some of the places."""
    texts, read = READERS[name]
    changed = [one for text in texts for one in mutants(text)]
    for one in random.Random(commit_seed()).sample(changed, min(most, len(changed))):
        read(one)


PLAN = """---
type: plan
phase: "1"
plan: "01"
version: 1.0
title: T
goal: G
limits: {files: 3}
---

## Tasks

### T1-01: First

- **Acceptance:**
  - [ ] AC-1: There — human
- **Limits:** files 2
- **Timeout:** 1h

```yaml steps
- {tool: run, intent: look, timeout: 5, arguments: {command: "true", expect_exit: 0}}
```

### T1-02: Second

- **Acceptance:**
  - [ ] There — human

```json steps
[{"tool": "run", "intent": "look", "timeout": 30, "arguments": {"command": "true"}}]
```
"""


@every(
    "old, code",
    [
        ('phase: "1"', "plan.bad-value"),
        ('plan: "01"', "plan.bad-value"),
        ("version: 1.0", "plan.bad-value"),
        ("limits: {files: 3", "limits.malformed"),
        ("### T1-01", "task.bad-id"),
        ("AC-1", "criterion.bad-id"),
        ("**Limits:** files 2", "limits.malformed"),
        ("**Timeout:** 1", "field.bad-value"),
        ("timeout: 5", "step.bad-value"),
        ("expect_exit: 0", "step.bad-value"),
        ('"timeout": 30', "json.unreadable"),
    ],
)
def test_a_large_number_used_as_a_count_or_id_is_an_error_with_its_line(old: str, code: str) -> None:
    assert plan_parser.parse(PLAN.encode(), "p").findings == ()
    line = PLAN[: PLAN.index(old)].count("\n") + 1
    new = re.sub(r"\d+(?=\D*$)", DIGITS, old)
    findings = plan_parser.parse(PLAN.replace(old, new, 1).encode(), "p").findings
    assert (code, line) in [(f.code, f.line) for f in findings], findings
    assert all("set_int_max" not in f.message and len(f.found) < 200 for f in findings)


def test_numbers_of_any_length_are_sorted_numerically() -> None:
    numbers = ["10", DIGITS, "9", "0009", "1" + DIGITS, "0"]
    assert sorted(numbers, key=whole_numbers.sort_key) == ["0", "9", "0009", "10", DIGITS, "1" + DIGITS]
    assert whole_numbers.sort_key("0009") == whole_numbers.sort_key("9")
    assert (whole_numbers.parse("0" * 5000 + "7"), whole_numbers.parse(DIGITS)) == (7, None)
    assert whole_numbers.next_free(["3", DIGITS, "12"]) == 13
