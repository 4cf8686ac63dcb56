"""R-PLAN-5: a number of thousands of digits anywhere is bad input or text, and never a crash of idumb."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from idumb.app.contract import loading
from idumb.domain import whole_numbers
from idumb.domain.intake import registry
from idumb.domain.permissions import NO_POLICY
from idumb.domain.settings import Settings
from idumb.markdown import configuration, phases
from idumb.markdown.plans import plan_parser
from tests.support.cases import every
from tests.support.seed import one_on_a_push

DIGITS = "9" * 5000
HEAD = """---
type: plan
phase: "1"
plan: "01"
version: 1.0
title: T
goal: G
mode: strict
depends_on: none
requirements: {REQ-1: One}
scope: {root: src, protected: [a1]}
non_goals: [{id: N1, text: no}]
invariants: [{id: I1, text: so, check: "true"}]
success_criteria: [{text: It is, check: "true"}]
limits: {files: 3, lines: 40}
setup: [{service: s, why: w, env: E1}]
---

## Tasks

"""
HEADING = """### T1-01: First

Text.

- **Requirements:** REQ-1
- **Depends on:** none
- **Files:** create `a1.txt`, move `b` to `c`
- **Acceptance:**
  - [ ] AC-1: There — check: `test 1 = 1`
  - [ ] AC-2: Too — human
- **Verify:** `true`
- **Tests:** `pytest` — fails before, passes after: it works
- **Limits:** files 2, lines 10, paths `a*`
- **Estimate:** 30m
- **Timeout:** 1h
- **On timeout:** fail
- **Priority:** high
- **Rollback:** reversible
- **x-note:** 1

```yaml steps
- tool: run
  intent: look
  timeout: 30
  arguments: {command: "true", timeout: 5, expect_exit: 0}
- tool: edit_file
  intent: edit
  arguments: {path: a1.txt, find: "1", replace: "2", count: 1}
```

### T1-02: Second

- **Requirements:** REQ-1
- **Acceptance:**
  - [ ] There — human

```json steps
[{"tool": "run", "intent": "look", "timeout": 30, "arguments": {"command": "true", "expect_exit": 0}}]
```
"""
YAML_TASK = """```yaml task
id: T1-01
title: First
depends_on: []
files: {create: [a1.txt]}
limits: {files: 2, lines: 10}
timeout: 90s
acceptance:
  - {text: There, human: true}
```

- [ ] T1-02 Second
  - **Depends on:** T1-01
  - **Acceptance:**
    - [ ] There — human
"""
STEPS = """scope: {root: src}
steps:
- tool: run
  intent: look
  timeout: 30
  continue_on_error: false
  arguments: {command: "true", timeout: 5, expect_exit: 0}
- tool: apply_patch
  intent: patch
  arguments:
    patch: |
      --- a/x.py
      +++ b/x.py
      @@ -1,2 +1,2 @@
      -a
      +b
       c
"""
JSON_STEPS = json.dumps(
    {
        "scope": {"root": "src"},
        "steps": [
            {
                "tool": "run",
                "intent": "look",
                "timeout": 30,
                "arguments": {"command": "true", "timeout": 5, "expect_exit": 0},
            },
            {"tool": "write_file", "intent": "write", "arguments": {"path": "a1.txt", "content": "1", "mode": "644"}},
        ],
    },
    indent=1,
)
CONFIGURATION = """builder: coder
commands: {test: make test1}
run: {check_timeout: 10m, max_parallel: 2, idle_timeout: 90}
ask: {timeout: 30m}
levels: {1: 10m}
roles: {planner: {binding: coder, level: 1, timeout: 5m, ceiling: {attempts: 3, cost: 2.50}}}
bindings:
  coder: {adapter: command, command: [agent, "1"], timeout: 1h, limits: {files: 3}, options: {wait: 5, seed: 1}}
"""
POLICY = "tools: [run]\ncommands: {allow: [make1], deny: []}\ntimeout: 5m\n"
ROADMAP = """# Roadmap 1

- [ ] **Phase 1: Ground** - base
- [ ] Phase 06.1: Urgent

### Phase 2: Walls

| 3. Roof | open |
|---|---|
| 4 | Garden |
"""


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
        registry.findings(registry.case(loaded.contract, Settings(), NO_POLICY, "strict"))


READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "headings": (HEAD + HEADING, lambda text: judged("01-PLAN.md", text)),
    "other notations": (HEAD + YAML_TASK, lambda text: judged("01-PLAN.md", text)),
    "YAML steps": (STEPS, lambda text: judged("steps.yaml", text)),
    "JSON steps": (JSON_STEPS, lambda text: judged("steps.json", text)),
    "configuration": (CONFIGURATION, lambda text: configuration.read(text.encode())),
    "policy": (POLICY, lambda text: configuration.read_policy(text.encode())),
    "roadmap": (ROADMAP, phases.roadmap_phases),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("first", one_on_a_push(range(4), "large numbers"))
def test_a_large_number_anywhere_in_a_file_never_raises(name: str, first: int) -> None:
    """Each commit tries a quarter of the places."""
    text, read = READERS[name]
    read(text)
    changed = list(mutants(text))
    assert len(changed) > 10
    for one in changed[first::4]:
        read(one)


@every("body", [HEADING, YAML_TASK])
def test_the_plan_in_which_numbers_are_changed_is_valid(body: str) -> None:
    assert plan_parser.parse((HEAD + body).encode(), "p").plan is not None


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
        ("**Timeout:** 1", "field.bad-duration"),
        ("timeout: 5", "step.bad-value"),
        ("expect_exit: 0", "step.bad-value"),
        ('"timeout": 30', "json.unreadable"),
    ],
)
def test_a_large_number_used_as_a_count_or_id_is_an_error_with_its_line(old: str, code: str) -> None:
    new = re.sub(r"\d+(?=\D*$)", DIGITS, old)
    text = HEAD + HEADING
    line = text[: text.index(old)].count("\n") + 1
    findings = plan_parser.parse(text.replace(old, new, 1).encode(), "p").findings
    assert (code, line) in [(f.code, f.line) for f in findings], findings
    assert all("set_int_max" not in f.message and len(f.found) < 200 for f in findings)


def test_numbers_of_any_length_are_sorted_numerically() -> None:
    numbers = ["10", DIGITS, "9", "0009", "1" + DIGITS, "0"]
    assert sorted(numbers, key=whole_numbers.sort_key) == ["0", "9", "0009", "10", DIGITS, "1" + DIGITS]
    assert whole_numbers.sort_key("0009") == whole_numbers.sort_key("9")
    assert (whole_numbers.parse("0" * 5000 + "7"), whole_numbers.parse(DIGITS)) == (7, None)
    assert whole_numbers.next_free(["3", DIGITS, "12"]) == 13
