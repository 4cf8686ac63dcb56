"""`docs/workflow-format.md`: its example is a valid workflow, and its tables name what the program has."""

from __future__ import annotations

import re

from idumb.domain.plans import workflow
from idumb.markdown.plans import workflow_steps
from tests.meta import source

PAGE = (source.ROOT / "docs/workflow-format.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"````markdown\n(.+?)````", PAGE, flags=re.DOTALL)[0]


def test_the_table_of_keys_lists_every_key_of_every_kind() -> None:
    section = PAGE.partition("## Steps")[2].partition("## Conditions")[0]
    keys: dict[str, set[str]] = {}
    for names, kinds in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|", section, flags=re.MULTILINE):
        listed = set(workflow.KINDS) if kinds.startswith("all") else set(kinds.split(", "))
        listed -= {workflow.CONDITION} if "but condition" in kinds else set()
        for name in re.findall(r"`(\w+)`", names):
            keys.setdefault(name, set()).update(kind.strip() for kind in listed)
    program: dict[str, set[str]] = {}
    for kind, accepted in workflow_steps.KEYS.items():
        for name in accepted:
            program.setdefault(name, set()).add(kind)
    assert keys == program
