"""Write the plan of `idumb quick`. All texts are JSON strings, which are valid YAML, so none of them becomes syntax."""

from __future__ import annotations

import json

from idumb.domain.plans import quick_plan
from idumb.domain.plans.quick_plan import QuickRequest

_PLAN = """\
---
type: plan
phase: "{phase}"
plan: "01"
title: {title}
goal: {title}
---

## Tasks

```yaml task
{task}
```
"""


def text(phase: str, wanted: QuickRequest) -> str:
    """Return the text of the plan. It depends on the request alone, so that you can approve it before it is written."""
    given: dict[str, object] = {"id": f"T{phase}-01", "title": wanted.title}
    if " ".join(wanted.words.split()) != wanted.title:
        given["description"] = wanted.words.strip()
    given["files"] = _files(quick_plan.ANYWHERE if wanted.files is None else wanted.files)
    given["acceptance"] = _acceptance(wanted)
    if wanted.builder is not None:
        given["builder"] = wanted.builder
    lines = (f"{name}: {_json(value)}" for name, value in given.items())
    return _PLAN.format(phase=phase, title=_json(wanted.title), task="\n".join(lines))


def _acceptance(wanted: QuickRequest) -> list[dict[str, object]]:
    done = f"It is done: {wanted.title}"
    checked: list[dict[str, object]] = [{"text": done, "check": wanted.check}] if wanted.check else []
    if wanted.files is None:
        return [*checked, {"text": f"What changed is what should change: {wanted.title}", "human": True}]
    words = "Something changed, and only in the declared files; nothing proves more"
    return checked or [{"text": words, "changed": True}]


def _files(files: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    by_verb: dict[str, list[str]] = {}
    for verb, path in files:
        by_verb.setdefault(verb, []).append(path)
    return by_verb


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
