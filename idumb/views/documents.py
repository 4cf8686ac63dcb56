"""The documents that idumb writes for users, as one object. Pure.

Opinions and unproven criteria are shown as such and never count as proof. The templates have the words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import Template
from typing import Any

from msgspec.structs import asdict

from idumb.app.ports import PromptRequest
from idumb.domain import contract as contracts
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.plans import imported
from idumb.domain.plans.new_task import PlacedTask, plan_text
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence as proof
from idumb.domain.proof import ledger as ledgers
from idumb.domain.proof.verification import Gap
from idumb.domain.runs import spending, state_file
from idumb.domain.runs.handoff import Document
from idumb.domain.runs.run import INTERRUPTED, Checkpoint, RunState, TaskState
from idumb.domain.runs.state_file import HistoryReport
from idumb.views import markup, phrases, report_templates, summary
from idumb.views.report_templates import Recorded

Filled = Callable[[str | None, str, Mapping[str, str]], str]
Record = Mapping[str, Any]
"""The payload of `verification.recorded`: status, reason, tree, evidence, weaker, requirements, goals, mismatches,
unproven, opinions, skipped, accepted."""

_BODY_OF_HANDOFF = frozenset({"title", "summary", "deliverables", "acceptance_criteria", "next_steps", "outputs"})
_ABSENT: Record = {"reason": "", "tree": "", "evidence": (), "omitted": {}, "unfinished": {}, "accepted": {}}
_INVARIANT = re.compile(r"(plan \S+ )?invariant ")
_TEST = re.compile(r"T\S+ test \d+")
_STANDING = {
    proof.PASSED: "proven",
    proof.WAITING: "waits for a person",
    proof.OPINION: "opinion only",
    proof.UNPROVEN: "unproven",
}
_TITLE = 60


def gap_plan(
    contract: Contract, gaps: Sequence[Gap], *, id: str, first: int, builder: str | None, reach: Sequence[str]
) -> str:
    """Return the plan. `first` is the number of its first task; `reach` are globs of files that tasks may change."""
    phase = contract.plans[0].phase
    head = {
        "phase": phase,
        "plan": id,
        "title": f"Gaps of phase {phase}",
        "goal": f"Close what the verification of phase {phase} left open",
        "mode": contract.mode,
    }
    tasks = [_task(f"T{phase}-{number:02d}", gap, builder, reach) for number, gap in enumerate(gaps, first)]
    return plan_text(head, tasks)


def _task(id: str, gap: Gap, builder: str | None, reach: Sequence[str]) -> dict[str, object]:
    text = wording.one_line(gap.text)
    about = wording.one_line(f"{gap.subject}, {text}: {gap.why}. Find the cause and fix it.")
    title = wording.one_line(f"Close {gap.subject}: {phrases.clip(text, _TITLE)}")
    return {
        "id": id,
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


def new_plan(template: str, words: Mapping[str, str], tasks: Sequence[PlacedTask]) -> str:
    """Fill the template of a plan. Its part from the first `### ` to the next `## ` is repeated for each task.

    `words` has phase, title, goal, requirement and builder. Each is a YAML scalar as `$name_yaml` and prose as `$name`.
    """
    head, form, tail = _parts(template)
    fields = {name: markup.prose(text) for name, text in words.items()}
    fields |= {f"{name}_yaml": markup.yaml_scalar(wording.one_line(text)) for name, text in words.items()}
    fields["criteria"] = "\n".join(
        f"- [ ] {_title(each)} — check: {markup.code(each.task.check.strip())}" for each in tasks
    )
    filled = "\n\n".join(_new_task(form, each, ("REQ-1",)) for each in tasks)
    return f"{Template(head).safe_substitute(fields)}{filled}\n{Template(tail).safe_substitute(fields)}"


def new_tasks(template: str, tasks: Sequence[PlacedTask], requirements: Sequence[str], builder: str | None) -> str:
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


def _title(each: PlacedTask) -> str:
    """Return a title as a heading and a criterion read it back; only an odd backtick needs Markdown's escapes."""
    line = imported.criterion(markup.one_line(each.task.title))
    return markup.prose(line) if line.count("`") % 2 else line


def _new_task(form: str, each: PlacedTask, requirements: Sequence[str]) -> str:
    fields = {
        "id": each.id,
        "task": _title(each),
        "requirements": ", ".join(requirements) or "none",
        "depends": ", ".join(each.depends_on) or "none",
        "files": ", ".join(claim.written for claim in each.claims) or "none",
        "check": markup.code(each.task.check.strip()),
    }
    return Template(form).safe_substitute(fields)


class MarkdownDocuments:
    """Renders documents. `prompt` and `filled` are functions that render prompts, injected from outside.

    `filled` fills values into a template; None is the shipped template of that name.
    """

    summary = staticmethod(summary.render)
    research = staticmethod(research)
    first_plan = staticmethod(first_plan)
    new_plan = staticmethod(new_plan)
    new_tasks = staticmethod(new_tasks)
    gap_plan = staticmethod(gap_plan)

    def __init__(self, prompt: Callable[[PromptRequest], str], filled: Filled = lambda _, name, __: name) -> None:
        self.prompt = prompt
        self.filled = filled

    @staticmethod
    def checkpoint(
        state: RunState,
        task: Task,
        evidence: Sequence[Recorded] = (),
        ledger: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """Return the document of the task's newest checkpoint in `state`, which must exist.

        `evidence` are the payloads of that attempt's `evidence.recorded` events, `ledger` is `Ledger.as_list()`; None
        means that it is unknown.
        """
        task_state = state.tasks[task.id]
        kept = task_state.checkpoint
        if kept is None:
            raise ValueError(f"{task.id} has no checkpoint")
        verdict = _verdict(task_state, kept, evidence, ledger or ())
        of_agents = task_state.attempt.adapter not in {"", *spending.FREE}
        return report_templates.render(
            "checkpoint.md",
            run=state.id,
            task=task,
            state=task_state,
            kept=kept,
            status=_status(kept.status),
            verdict=verdict,
            validation={None: "skipped", outcome.PASS: "pass"}.get(verdict, "fail"),
            used=phrases.spent(asdict(task_state.progress.spent)) if of_agents else {},
            evidence=evidence,
            ledger=ledger,
            recorded=ledgers.RECORDED,
        )

    @staticmethod
    def progress(state: RunState, where: Mapping[str, str]) -> str:
        """Return `progress.json`, with lists of task ids in execution order; `where` comes from `schedule.statuses`.

        `completed` includes accepted tasks, so that a resume skips them.
        """

        def ids(*statuses: str) -> list[str]:
            return [task for task, status in where.items() if status in statuses]

        current, omitted = ids(outcome.RUNNING), ids(outcome.OMITTED)
        fields = {
            "completed": ids(*outcome.DONE),
            "failed": ids(outcome.FAILED),
            "blocked": ids(outcome.BLOCKED),
            "started_at": state.started_at,
            "git_hash": state.git_hash or "no-git",
            "accepted": ids(outcome.ACCEPTED),
            "skipped": ids(outcome.SKIPPED),
            **({"omitted": omitted} if omitted else {}),
            "waiting": ids(outcome.WAITING),
            "remaining": ids(outcome.READY, outcome.PENDING),
            "carried": [t for t in where if t in state.tasks and state.tasks[t].carried_from],
            "current": current[0] if current else None,
            "phase": state.phase,
            "run": state.id,
            "state": state.state,
            "reason": state.reason,
            "contract_hash": state.contract.hash,
            "updated_at": state.moved_at,
        }
        return markup.json_text(fields)

    @staticmethod
    def verification(contract: Contract, record: Record, *, now: str) -> str:
        """Return `{phase}-VERIFICATION.md`: what is proven by which evidence, and what is not."""
        evidence = record.get("evidence", ())
        tests = [row for row in evidence if _TEST.match(row["subject"])]
        invariants = [row for row in evidence if _INVARIANT.match(row["subject"])]
        again = [row for row in evidence if row["subject"].partition(" ")[0] in contract.tasks and row not in tests]
        others = [*tests, *invariants, *again]
        return report_templates.render(
            "verification.md",
            contract=contract,
            now=now,
            record={**_ABSENT, **record},
            passed=sum(row["result"] == proof.PASSED for row in evidence),
            of_phase=[row for row in evidence if row not in others],
            run_again=again,
            invariants=invariants,
            tests=tests,
            standing=_STANDING,
            tasks=[(contract.tasks[id], contracts.proofs(contract.tasks[id])) for id in contract.order],
            refuted=[
                (opinion["role"], judgement)
                for opinion in record.get("judged_by", ())
                for judgement in opinion["judgements"]
                if not judgement["holds"] and any(c["resolves"] for c in judgement["citations"])
            ],
        )

    @staticmethod
    def unverified(contract: Contract, state: RunState, *, now: str) -> str:
        """Return the document of a phase that is no longer verified; earlier results are in the file's history."""
        reason = state.reason or "tasks were rolled back after the verification"
        return MarkdownDocuments.verification(contract, {"status": "unverified", "reason": reason}, now=now)

    @staticmethod
    def handoff(document: Document) -> str:
        """Return the document of a handoff. It depends on the handoff alone: writing it again changes nothing."""
        values = {"outputs": {}, **document.as_dict()}
        head = {name: value for name, value in values.items() if name not in _BODY_OF_HANDOFF}
        return report_templates.render("handoff.md", fields={"type": "handoff", **head}, **values)

    @staticmethod
    def state(report: HistoryReport) -> str:
        """Return the text of `state.json`. The same log gives the same bytes."""
        return markup.json_text(state_file.file_content(report))


def _status(status: str) -> str:
    """Return one of iDumb's four statuses; everything not completed, skipped or undecided has failed."""
    if status in outcome.DONE:
        return "completed"
    if status in ("failed", "partial", "skipped"):
        return status
    return "partial" if status in {outcome.WAITING, INTERRUPTED} else "failed"


def _verdict(
    task_state: TaskState, kept: Checkpoint, evidence: Sequence[Recorded], ledger: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the verdict: PARTIAL if a failed attempt has some of its proof, None if nothing was judged."""
    if kept.status in outcome.DONE:
        return outcome.PASS
    if kept.status == outcome.SKIPPED or task_state.attempt.outcome not in {None, outcome.FAILED}:
        return None
    broken = any(line["status"] not in {ledgers.DECLARED, *ledgers.HOLDING} for line in ledger)
    passed = any(recorded["result"] == proof.PASSED for recorded in evidence)
    return outcome.PARTIAL if passed and not broken else outcome.FAIL
