"""R-PLAN-2, R-PLAN-5: text that looks like a task is read as one or an error; prose stays prose."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from idumb.markdown.plans import plan_parser
from tests.support.cases import every
from tests.support.seed import commit_seed

HEAD = """---
type: plan
phase: "1"
plan: "01"
title: T
goal: G
requirements: {REQ-1: One}
---

# Phase 1: T

Text.

"""
VALID = """### T1-02: Valid

- **Acceptance:**
  - [ ] There — check: `true`
"""
HEADINGS = """## Tasks

### T1-01: First

The first.

- **Requirements:** REQ-1
- **Depends on:** none
- **Files:** create `a.txt`
- **Acceptance:**
  - [ ] There — check: `true`
- **Verify:** `true`

### T1-02: Second

- **Depends on:** T1-01
- **Files:**
  - modify `a.txt`
- **Acceptance:**
  - [ ] Still there — check: `true`

```yaml steps
- tool: run
  intent: look
  arguments: {command: "true"}
```

### T1-03: Third

- **Acceptance:**
  - [ ] Still there — human

### Group

#### T1-04: Fourth

- **Kind:** decision
- **Options:**
  - a: one
  - b: two

## Notes

Text.
"""
CHECKLIST = """## Tasks

- [ ] T1-01 First
  - **Files:** create `a.txt`
  - **Acceptance:**
    - [ ] There — check: `true`
- [ ] T1-02 Second
  - **Depends on:** T1-01
  - **Acceptance:**
    - [ ] There — check: `true`

- [ ] T1-03: Third
  Text of it.

  - **Acceptance:**
    - [ ] There — human
"""
FENCES = """## Tasks

```yaml task
id: T1-01
title: First
files: {create: [a.txt]}
acceptance: ["There — check: `true`"]
```

~~~yaml task
- id: T1-02
  title: Second
  depends_on: [T1-01]
  acceptance: ["There — human"]
- id: T1-03
  title: Third
  acceptance:
    - {text: There, human: true}
~~~
"""
LIST = """## Tasks

- id: T1-01
  title: First
  files: {create: [a.txt]}
  acceptance: ["There — check: `true`"]
- id: T1-02
  title: Second
  depends_on: [T1-01]
  acceptance: ["There — human"]
<!-- a comment -->
- id: T1-03
  title: Third
  acceptance:
    - There — human
"""
PLANS = {
    "headings": HEADINGS,
    "headings alone": HEADINGS.removeprefix("## Tasks\n\n"),
    "checklist": CHECKLIST,
    "fences": FENCES,
    "list": LIST,
}

_HEADING = re.compile(r"(#+) (?:(T1-\d+)(: ))?(.*)")
_ITEM = re.compile(r"(\s*)([-*] )(\[ \] )?((?:id: )?)(T1-\d+)?(.*)")
_FENCE = re.compile(r"(```|~~~)(.*)")
_OTHER_IDS = (
    "t1-01",
    "T2-01",
    "T1-1",
    "T-01",
    "1-01",
    "T1",
    "X1-01",
    "T1-01aa",
    "T1_01",
    "T1–01",
    "Tl-01",
    "T1-O1",
    "Т1-01",
)


def changes(line: str) -> Iterator[str | None]:
    """The line without its heading signs, markers or ids, and with others; None deletes it."""
    if heading := _HEADING.fullmatch(line):
        signs, id, colon, title = heading.groups()
        whole = f"{id}{colon}{title}" if id else title
        yield from (None, whole, f"{signs}{whole}", f"{signs[1:]} {whole}", f"#{line}", f"####{line}", f" {line}")
        yield from (f"    {line}", f"> {line}", f"- {line}", f"1. {line}", f"\\{line}", f"**{whole}**", f"<b>{line}")
        yield from (f"{signs} ", f"{whole}\n--------", f"{whole}\n========")
        if id:
            yield from (f"{signs} {title}", f"{signs} {id}", f"{signs} {id} {title}", f"{signs} {id};{title}")
            yield from (f"{signs} {other}: {title}" for other in (*_OTHER_IDS, "Step 1", "1.", "Task", f"[{id}]"))
    elif item := _ITEM.fullmatch(line):
        indent, marker, box, key, id, rest = item.groups()
        box, text = box or "", f"{key}{id or ''}{rest}"
        yield from (None, f"{indent}{box}{text}", f"{indent}{text}", f"{indent}{marker}{text}", f" {line}")
        yield from (f"{indent}{sign}{box}{text}" for sign in (marker.strip(), "1. ", "* ", "+ ", "• ", "– ", ""))
        yield from (f"{indent}{marker}{other}{text}" for other in ("[] ", "[  ] ", "[ ]", "[-] ", "( ) ", "☐ "))
        yield from (f"    {line}", f"> {line}")
        if id and (box or key):
            yield from (f"{indent}{marker}{box}{key}{other}{rest}" for other in ("", *_OTHER_IDS))
            keys = ("Id: ", "ID: ", "id:", "id : ", '"id": ', "task: ", "name: ") if key else ()
            yield from (f"{indent}{marker}{box}{other}{id}{rest}" for other in keys)
    elif fence := _FENCE.fullmatch(line):
        mark, info = fence.groups()
        yield from (None, mark[1:] + info, mark[0] + line, f" {line}", f"    {line}", f"- {line}", f"> {line}", mark)
        near = ("yaml", "yml", "YAML", "yaml tasks", "yml task", "json", "task", "yaml: task", "yaml  task", "yamltask")
        yield from (mark + other for other in near if info)
    elif line.startswith("id: "):
        yield from (None, "id:", "ID: T1-01", "name: T1-01", "id : T1-01", "id:T1-01", "T1-01")
        yield from (f"id: {other}" for other in _OTHER_IDS)


def changed(text: str, only: str) -> Iterator[tuple[int, str | None, str]]:
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for other in dict.fromkeys(changes(line) if line.startswith(only) else ()):
            if other != line:
                kept = lines[:number] + ([] if other is None else [other]) + lines[number + 1 :]
                yield number + 1, other, "\n".join(kept)


@every("name", PLANS)
def test_no_changed_heading_marker_or_id_loses_a_task_silently(name: str) -> None:
    """Every heading, list marker, box, fence and id, each deleted and changed in every way that people slip.

    A third of the changes for each commit, which successive commits take in turn.
    The plans have no human task whose heading, deleted altogether, would leave fields that the task above lacks: that
    is a legal plan of another meaning.
    """
    whole = plan_parser.parse((HEAD + PLANS[name]).encode(), "p").plan
    assert whole is not None
    tried, lost = 0, []
    every_change = changed(PLANS[name], only="#" if name == "headings alone" else "")
    for line, other, text in itertools.islice(every_change, commit_seed() % 3, None, 3):
        result = plan_parser.parse((HEAD + text).encode(), "p")
        tried += 1
        if result.plan is not None and len(result.plan.tasks) < len(whole.tasks):
            lost.append((line, other))
    assert tried > 30
    assert not lost


def found_in(text: str) -> list[str]:
    return [f"{f.code} {f.line}" for f in plan_parser.parse((HEAD + text).encode(), "p").findings]


FIELDS = "- **Depends on:** none\n- **Files:** create `a.txt`\n- **Verify:** `false`\n"
AT = HEAD.count("\n") + 1


@every(
    "text, finding",
    [
        (f"## Tasks\n\n### Add the thing\n\n{FIELDS}\n{VALID}", f"task.heading-without-id {AT + 2}"),
        (f"## Tasks\n\n### 1. Add the thing\n\nText.\n\n{FIELDS}\n{VALID}", f"task.heading-without-id {AT + 2}"),
        (f"## Tasks\n\n{VALID}\n#### Add the thing\n\n{FIELDS}", f"task.heading-without-id {AT + 7}"),
        (f"## Tasks\n\n{VALID}\n### Add the thing\n\n{FIELDS}", f"task.heading-without-id {AT + 7}"),
        (f"## Tasks\n\n{VALID}\n## Step 2.\n\n- **Files:** create `b.txt`\n", f"task.heading-without-id {AT + 7}"),
        (f"## Tasks\n\n{VALID}\n## Add the thing\n\n{FIELDS}", f"task.heading-without-id {AT + 7}"),
        (f"### Add the thing\n\n{FIELDS}\n{VALID}", f"task.heading-without-id {AT}"),
        (f"## Tasks\n\n```yaml\nid: T1-01\ntitle: A\n```\n\n{VALID}", f"fence.unread {AT + 2}"),
        (f"## Tasks\n\n```yaml\n- title: A\n  id: add\n```\n\n{VALID}", f"fence.unread {AT + 2}"),
        (f"## Tasks\n\n```\n{{id: T1-01, title: A}}\n```\n\n{VALID}", f"fence.unread {AT + 2}"),
        (f'## Tasks\n\n```json\n{{"id": "T1-01"}}\n```\n\n{VALID}', f"fence.unread {AT + 2}"),
        (f"## Tasks\n\n{VALID}\nText.\n\n- more\n\n  ```yaml\n  id: T1-01\n  ```\n", f"fence.unread {AT + 11}"),
        (f"## Tasks\n\n{VALID}\n```yaml\n- tool: run\n  arguments: {{}}\n```\n", f"fence.unread {AT + 7}"),
        (f"## Tasks\n\n{FIELDS}\n{VALID}", f"field.no-task {AT + 2}"),
        (f"## Tasks\n\n**T1-01: Add it**\n\n{FIELDS}\n{VALID}", f"task.unread {AT + 2}"),
        (f'## Tasks\n\n<task type="auto">\n<name>A</name>\n</task>\n\n{VALID}', f"task.foreign-tag {AT + 2}"),
    ],
)
def test_text_that_looks_like_a_task_is_an_error_at_its_own_line(text: str, finding: str) -> None:
    assert found_in(text) == [finding]


TABLE = "| id | Files | Verify |\n|---|---|---|\n| T1-01 | `a` | `false` |\n"


@every(
    "text",
    [
        f"## Tasks\n\nT1-02 is first.\n\n{TABLE}\n### Of all\n\n- a\n- Notes: of a group\n\n{VALID}",
        f"## Tasks\n\n{VALID}\n```yaml example\nid: T1-01\ntitle: A\n```\n\n~~~example\n### T1-01: A\n~~~\n",
        f"## Tasks\n\n{VALID}\n```yaml\njobs:\n  - id: T1-01\n    title: A\n```\n",
        f"## Tasks\n\n{VALID}\n```sh\nid: T1-01\n```\n",
        f"## Old\n\n- Files: the old ones\n- Depends on: nobody\n\n```yaml\nid: T1-01\n```\n\n## Tasks\n\n{VALID}",
        f"## Tasks\n\n{VALID}\n## 2. Notes\n\n- **References:** a page\n\n### More\n\n{FIELDS}",
        f"## Tasks\n\n{VALID}\n#### Details\n\n- **Files:** create `a.txt`\n",
    ],
)
def test_prose_tables_examples_and_other_sections_are_text(text: str) -> None:
    parsed = plan_parser.parse((HEAD + text).encode(), "p")
    assert parsed.plan, parsed.findings
    assert [task.id for task in parsed.plan.tasks] == ["T1-02"]
