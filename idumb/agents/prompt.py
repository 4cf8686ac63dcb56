"""Renders the prompts of agents from Markdown templates.

`$name` is a placeholder for a value of the task; an unknown name stays as written. A section whose values are all empty
is omitted. Placeholders inside values are not replaced.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from idumb.app.ports import PromptRequest
from idumb.domain import paths, wording
from idumb.domain.agent import BUILDER, VALIDATOR
from idumb.domain.plans.plan import CHECK, VERIFY, Condition, Criterion, FileClaim, Interface, Limits, Task
from idumb.system import shipped

_EVIDENCE = '"evidence"'
"""Occurs in a template that describes the evidence of a verdict."""

_EVIDENCE_FORM = """\
Let the verdict say what it rests on:

{"verdict": "PASS", "evidence": [{"criterion": "AC-1", "file": "path", "line": 1}], "findings": []}

`evidence` says what each criterion rests on: a file and a line that exist now, or a command that you ran and what\
 it printed, as {"criterion": "AC-1", "command": "...", "output": "..."}. A PASS without evidence proves nothing, and\
 one that cites a file or a line that does not exist counts as no answer."""

_PLACEHOLDER = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)


def render(request: PromptRequest) -> str:
    """Return the prompt of a role, from the user's template or the shipped one."""
    source = template(request.name or request.role) if request.template is None else request.template
    texts = values(request)
    text = filled(without_frontmatter(source), texts)
    placeholders = {match[1] or match[2] for match in _PLACEHOLDER.finditer(source)}
    for name, title in (_REQUIRED_SECTIONS if request.role == BUILDER else _PURPOSE).items():
        text = text if name in placeholders else _with_section(text, title, texts[name])
    if request.role == VALIDATOR and _EVIDENCE not in source:
        text = _with_section(text, "Evidence", _EVIDENCE_FORM)
    return text


_PURPOSE = {"goal": "The goal of the phase", "requirements": "Requirements that the task serves"}
_REQUIRED_SECTIONS = {
    **_PURPOSE,
    "assumptions": "The plan assumes",
    "decisions": "Decided by people",
    "values": "Values of this step (environment variables), and your answer",
}
"""Sections that a builder's prompt gets even if its template lacks them: templates are bound by approvals.

Every judge gets those of `_PURPOSE`.
"""


def _with_section(prompt: str, title: str, text: str) -> str:
    return f"{prompt.rstrip()}\n\n## {title}\n\n{text}\n" if text else prompt


def of_name(own: str | None, name: str, texts: Mapping[str, str]) -> str:
    """Return the user's template, or the shipped one of this name, with its placeholders replaced."""
    return filled(template(name) if own is None else without_frontmatter(own), texts)


@functools.cache
def template(role: str) -> str:
    """Return the shipped template of a role without its frontmatter."""
    return without_frontmatter(shipped.template(f"prompts/{role}.md"))


def without_frontmatter(text: str) -> str:
    if text.startswith("---\n"):
        _, closed, body = text[4:].partition("\n---\n")
        return body.lstrip("\n") if closed else text
    return text


def filled(text: str, texts: Mapping[str, str]) -> str:
    """Return the template with its placeholders replaced and its empty sections omitted."""

    def value(match: re.Match[str]) -> str:
        return texts.get(match[1] or match[2], match[0])

    return "".join(_PLACEHOLDER.sub(value, part) for part in _SECTION.split(text) if _has_content(part, texts))


def _has_content(section: str, texts: Mapping[str, str]) -> bool:
    # The heading does not count: `## Attempt $attempt` is empty without feedback.
    body = section.partition("\n")[2] if section.startswith("## ") else section
    names = [name for match in _PLACEHOLDER.finditer(body) if (name := match[1] or match[2]) in texts]
    return not names or any(texts[name] for name in names) or not section.startswith("## ")


def values(request: PromptRequest) -> dict[str, str]:
    """Return the text of every placeholder; "" if the task does not state it."""
    task, plan = request.task, request.plan
    return {
        "id": task.id,
        "title": task.title,
        "description": task.description.strip(),
        "goal": plan.goal.strip(),
        "requirements": _bullets(request.requirements),
        "attempt": str(request.attempt),
        "acceptance": _bullets(_criterion(c, task) for c in task.acceptance),
        "verify": _bullets(wording.code(command) for command in task.verify),
        "tests": _bullets(
            f"{wording.code(t.command)} {t.before} before and {t.after} after: {t.intent}" for t in task.tests
        ),
        "files": _bullets(map(_claim, task.files or ())) or "None: this task changes no file.",
        "interfaces": _interfaces(task),
        "postconditions": _bullets(_condition(c) for c in task.postconditions),
        "invariants": _bullets(f"{i.id}: {i.text} — {wording.code(i.check)}" for i in plan.invariants_of(task)),
        "protected": _bullets(map(wording.code, dict.fromkeys((".git", ".idumb", ".planning", *request.protected)))),
        "assumptions": _bullets(plan.assumptions),
        "values": request.values,
        "decisions": _bullets(request.decided),
        "non_goals": _bullets(_non_goal(g.text, (*g.paths, *g.symbols)) for g in plan.non_goals),
        "limits": _limits(task.limits or plan.limits),
        "estimate": _duration(task.estimate_seconds),
        "feedback": request.feedback.strip(),
        "handover": request.handover.strip(),
        "references": "\n\n".join(text for text in (task.references, task.notes) if text),
        "evidence": _bullets(f"{e.subject}: {e.result} ({e.text})" for e in request.evidence),
        "diff": wording.fenced(request.diff, "diff"),
        "commits": _COMMITS,
    }


_COMMITS = "Do not commit, do not switch branches, do not rewrite history: idumb commits what is accepted."


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join("- " + line.replace("\n", "\n  ") for line in lines)


def _criterion(criterion: Criterion, task: Task) -> str:
    text = f"{criterion.id}: {criterion.text}"
    if criterion.proof == CHECK and criterion.command:
        text += f" — {wording.code(criterion.command)}"
    elif criterion.proof == VERIFY and task.verify:
        text += " — proven by the commands under Verify"
    return "\n".join((text, *(f"- {line}" for line in criterion.instructions)))


def _claim(claim: FileClaim) -> str:
    if claim.verb == "move":
        return f"move {wording.code(claim.path)} to {wording.code(claim.target or '')}"
    return f"{claim.verb} {wording.code(claim.path)}{' (any that match)' if paths.has_wildcard(claim.path) else ''}"


def _interfaces(task: Task) -> str:
    symbols = (f"{s.action} {wording.code(s.name)}" for s in task.symbols or ())
    return _bullets((*symbols, *map(_interface, task.interfaces)))


def _interface(interface: Interface) -> str:
    return "\n".join((wording.code(interface.name), *(f"- {k}: {v}" for k, v in interface.properties.items())))


def _condition(condition: Condition) -> str:
    about = {"file-contains": f" {condition.text!r}", "symbol": f" in {wording.code(condition.path or '')}"}
    return f"{condition.kind.replace('-', ' ')} {wording.code(condition.subject)}{about.get(condition.kind, '')}"


def _non_goal(text: str, where: Iterable[str]) -> str:
    places = ", ".join(map(wording.code, where))
    return f"{text} ({places})" if places else text


def _limits(limits: Limits | None) -> str:
    if limits is None:
        return ""
    lines = [f"at most {n} {unit}" for n, unit in ((limits.files, "files"), (limits.lines, "lines")) if n is not None]
    if limits.paths:
        lines.append(f"only below {', '.join(map(wording.code, limits.paths))}")
    return _bullets(lines)


def _duration(seconds: int) -> str:
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
