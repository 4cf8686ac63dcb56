"""Render the files of planning: research, a first plan to fill in, a plan of new tasks, and a plan that closes gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

from idumb.domain import wording
from idumb.domain.contract import Contract
from idumb.domain.plans.new_task import Placed, plan_text
from idumb.domain.proof.verification import Gap
from idumb.views import markup, phrases

_TITLE = 60


def gap_plan(
    contract: Contract, gaps: Sequence[Gap], *, identity: str, first: int, builder: str | None, reach: Sequence[str]
) -> str:
    """Return the plan. `first` is the number of its first task; `reach` are globs of files that tasks may change."""
    phase = contract.plans[0].phase
    head = {
        "phase": phase,
        "plan": identity,
        "title": f"Gaps of phase {phase}",
        "goal": f"Close what the verification of phase {phase} left open",
        "mode": contract.mode,
    }
    tasks = [_task(f"T{phase}-{number:02d}", gap, builder, reach) for number, gap in enumerate(gaps, first)]
    return plan_text(head, tasks)


def _task(identity: str, gap: Gap, builder: str | None, reach: Sequence[str]) -> dict[str, object]:
    text = wording.one_line(gap.text)
    about = wording.one_line(f"{gap.subject}, {text}: {gap.why}. Find the cause and fix it.")
    title = wording.one_line(f"Close {gap.subject}: {phrases.clip(text, _TITLE)}")
    return {
        "id": identity,
        "title": title,
        "description": about,
        **({} if builder else {"kind": "human-action"}),
        **({"files": {"create": list(reach), "modify": list(reach)}} if reach else {}),
        "acceptance": [{"text": text, **({"check": gap.check} if gap.check else {"human": True})}],
    }


def research(fields: Mapping[str, str | None], body: str) -> str:
    """Return a research file: frontmatter, and the body with invisible characters escaped."""
    return "\n".join([*markup.frontmatter(fields), "", markup.visible(wording.as_markdown(body)).strip("\n"), ""])


def first_plan(template: str, words: Mapping[str, str]) -> str:
    """Fill the template: `$name_yaml` is a YAML scalar, `$name_prose` Markdown prose, `$roadmap` a fenced block."""
    fields = {"phase": words["phase"], "roadmap": "\n".join(markup.block(words["roadmap"], "text"))}
    for name, text in words.items():
        fields[f"{name}_yaml"] = markup.yaml_scalar(wording.one_line(text))
        fields[f"{name}_prose"] = markup.prose(text)
    return Template(template).safe_substitute(fields)


def new_plan(template: str, words: Mapping[str, str], tasks: Sequence[Placed]) -> str:
    """Fill the template of a plan. Its part from the first `### ` to the next `## ` is repeated for each task.

    `words` has phase, title, goal, requirement and builder. Each is a YAML scalar as `$name_yaml` and prose as `$name`.
    """
    head, form, tail = _parts(template)
    fields = {name: markup.prose(text) for name, text in words.items()}
    fields |= {f"{name}_yaml": markup.yaml_scalar(wording.one_line(text)) for name, text in words.items()}
    fields["criteria"] = "\n".join(
        f"- [ ] {markup.prose(each.task.title)} — check: {markup.code(each.task.check.strip())}" for each in tasks
    )
    filled = "\n\n".join(_new_task(form, each, ("REQ-1",)) for each in tasks)
    return f"{Template(head).safe_substitute(fields)}{filled}\n{Template(tail).safe_substitute(fields)}"


def new_tasks(template: str, tasks: Sequence[Placed], requirements: Sequence[str], builder: str | None) -> str:
    """Return tasks in the form that the template of a plan has for them, with a builder if it is not the plan's."""
    form = _parts(template)[1] + (f"\n- **Builder:** {builder}" if builder else "")
    return "\n\n".join(_new_task(form, each, requirements) for each in tasks)


def _parts(template: str) -> tuple[str, str, str]:
    """Return the text before, of and after the form of a task; the form is empty if the template has none."""
    lines = template.splitlines(keepends=True)
    begin = next((n for n, line in enumerate(lines) if line.startswith("### ")), len(lines))
    end = next((n for n in range(begin + 1, len(lines)) if lines[n].startswith(("## ", "# "))), len(lines))
    form = "".join(lines[begin:end])
    after = "".join(lines[end:])
    return "".join(lines[:begin]), form.rstrip("\n"), f"\n{after}" if after else ""


def _new_task(form: str, each: Placed, requirements: Sequence[str]) -> str:
    fields = {
        "id": each.id,
        "task": markup.prose(each.task.title),
        "requirements": ", ".join(requirements) or "none",
        "depends": ", ".join(each.depends_on) or "none",
        "files": ", ".join(claim.written for claim in each.claims) or "none",
        "check": markup.code(each.task.check.strip()),
    }
    return Template(form).safe_substitute(fields)
