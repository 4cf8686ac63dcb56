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


def text(phase: str, request: QuickRequest) -> str:
    """Return the text of the plan. It depends on the request alone, so that you can approve it before it is written."""
    given: dict[str, object] = {"id": f"T{phase}-01", "title": request.title}
    if " ".join(request.words.split()) != request.title:
        given["description"] = request.words.strip()
    given["files"] = _files(quick_plan.ANYWHERE if request.files is None else request.files)
    given["acceptance"] = _acceptance(request)
    if request.builder is not None:
        given["builder"] = request.builder
    lines = (f"{name}: {_json(value)}" for name, value in given.items())
    return _PLAN.format(phase=phase, title=_json(request.title), task="\n".join(lines))


def _acceptance(request: QuickRequest) -> list[dict[str, object]]:
    done = f"It is done: {request.title}"
    checked: list[dict[str, object]] = [{"text": done, "check": request.check}] if request.check else []
    if request.files is None:
        return [*checked, {"text": f"What changed is what should change: {request.title}", "human": True}]
    words = "Something changed, and only in the declared files; nothing proves more"
    return checked or [{"text": words, "changed": True}]


def _files(files: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    by_verb: dict[str, list[str]] = {}
    for verb, path in files:
        by_verb.setdefault(verb, []).append(path)
    return by_verb


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
