"""Checks against the state at the start of a run: existing files, links, protected paths, and programs of checks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from idumb.domain import paths
from idumb.domain.contract import Contract
from idumb.domain.intake.rule import Case, Hit, Hits, StartState
from idumb.domain.intake.scope import step_paths
from idumb.domain.plans import commands as shell_commands
from idumb.domain.plans import empty_checks
from idumb.domain.plans.plan import Criterion, FileClaim, Plan, Task
from idumb.domain.proof import ledger
from idumb.lazy_dataclass import dataclass

_NEEDS = frozenset({"modify", "delete", "move"})
PLACEHOLDER = re.compile(r"\s*(?:TBD|TODO|FIXME|XXX|COMMAND|\?\?\?|\.\.\.|…|<[^<>|]+>)(?![\w/.-])")
"""How a command begins that is still to be written."""


class _Files:
    """Which paths exist, as the earlier tasks would leave them."""

    def __init__(self, present: StartState) -> None:
        self._present = present
        self._created: set[str] = set()
        self._gone: set[str] = set()
        self._wide: list[str] = []

    def usable(self, path: str) -> bool:
        """Whether there is a file to change; ignored files exist but are not part of the base."""
        return self._after(path, self._present.base | self._present.on_disk)

    def taken(self, path: str) -> bool:
        """Whether a new file would replace an existing one."""
        return path in self._created or (path in self._present.base and path not in self._gone)

    def _after(self, path: str, before: frozenset[str]) -> bool:
        if path in self._created or paths.matches_any(path, self._wide):
            return True
        return path in before and path not in self._gone

    def apply(self, claim: FileClaim) -> None:
        created = claim.target if claim.verb == "move" else claim.path if claim.verb in ("create", "change") else None
        if claim.verb in ("delete", "move"):
            self._created.discard(claim.path)
            self._gone.add(claim.path)
        if created is not None:
            self._gone.discard(created)
            if paths.has_wildcard(created):
                self._wide.append(created)
            else:
                self._created.add(created)


@dataclass(frozen=True, slots=True)
class UnmetClaim:
    """A claim that cannot hold when its task starts: `path` already exists (`exists`), or it does not."""

    task: str
    claim: FileClaim
    path: str
    exists: bool


def unmet_claims(contract: Contract, present: StartState) -> Iterator[UnmetClaim]:
    """Yield claims that change missing files or create existing ones, at the time their task starts."""
    files, by_hand = _Files(present), False
    for id in contract.order:
        task = contract.tasks[id]
        by_hand = by_hand or (task.kind == "human-action" and not task.files)  # a person can create any file
        claims = task.files or ()
        if id not in present.done and task.notation != "step" and not task.is_history:
            for claim in claims:
                yield from _unmet(id, claim, files, by_hand=by_hand)
        for claim in claims:
            files.apply(claim)


def _unmet(task: str, claim: FileClaim, files: _Files, *, by_hand: bool) -> Iterator[UnmetClaim]:
    if claim.verb in _NEEDS and not paths.has_wildcard(claim.path) and not by_hand and not files.usable(claim.path):
        yield UnmetClaim(task, claim, claim.path, exists=False)
    created = claim.path if claim.verb == "create" else claim.target
    if created is not None and not paths.has_wildcard(created) and files.taken(created):
        yield UnmetClaim(task, claim, created, exists=True)


def files(case: Case) -> Hits:
    """Report what `unmet_claims` finds, except in steps of workflows that never run."""
    if case.present is None:
        return
    plan_of, never = case.contract.plan_by_task(), _never_run(case.contract)
    for unmet in unmet_claims(case.contract, case.present):
        if unmet.task not in never:
            claim, task = unmet.claim, case.contract.tasks[unmet.task]
            verb = "move a file to" if unmet.exists and claim.target is not None else claim.verb
            code = "path.exists" if unmet.exists else "path.missing"
            yield plan_of[unmet.task], task, Hit(f"{claim.verb} {unmet.path}", {"would": f"{verb} {unmet.path}"}, code)


def _never_run(contract: Contract) -> frozenset[str]:
    """Return the steps of workflows that the inputs of this run omit."""
    plans = [plan for plan in contract.plans if plan.workflow is not None]
    if not plans:
        return frozenset()
    from idumb.domain.plans import workflow  # only workflows need it

    omitted: set[str] = set()
    for plan in plans:
        flows = {task.id: task.flow for task in plan.tasks if task.flow is not None}
        omitted |= set(workflow.omitted_by_inputs(flows, plan.workflow.values if plan.workflow is not None else {}))
    return frozenset(omitted)


def links(case: Case) -> Hits:
    """Find written paths that are links or behind one: a step replaces the link, and git does not follow it."""
    present = case.present
    for plan, task in case.pairs if present is not None and present.links else ():
        if present is None or task.id in present.done:
            continue
        for path, line in dict(_written(task)).items():
            target, folder = present.links.get(path), path.rpartition("/")[0]
            if target is None or case.links.get(folder, "").startswith("/"):
                continue  # a link out of the workspace is an error of its own
            leads = f"is a link to {target or 'the root'}; the task would replace the link or write through it"
            if folder in case.links:
                leads = f"is behind a link, at {target}; git does not follow it"
            leaves, field = target.startswith("/"), "steps" if line else "files"
            fix = "Use a path inside the workspace." if leaves else f"Use {target} itself."
            words = {"what": f"would write {path}, which {leads}"}
            code = "path.leaves-workspace" if leaves else "path.through-link"
            yield plan, task, Hit(path, words, code, field, line, fix=fix)


def _written(task: Task) -> Iterator[tuple[str, int]]:
    """Yield every literal path that the task or a step writes, with the step's line or 0."""
    for step in task.steps:
        yield from ((path, step.line) for path in step_paths(step) if paths.problem(path) is None)
    claimed = () if task.notation == "step" else ledger.written_paths(task.files)
    yield from ((path, 0) for path in claimed if not paths.has_wildcard(path) and paths.problem(path) is None)


def written(contract: Contract) -> frozenset[str]:
    """Return every literal path that a task or a step of the contract writes."""
    return frozenset(path for task in contract.tasks.values() for path, _ in _written(task))


def claimed(contract: Contract) -> frozenset[str]:
    """Return every literal path that a task declares, with any verb."""
    declared = (path for t in contract.tasks.values() for c in t.files or () for path in (c.path, c.target))
    return frozenset(p for p in declared if p is not None and not paths.has_wildcard(p) and paths.problem(p) is None)


def searched(contract: Contract) -> frozenset[str]:
    """Return the files in which checks of the contract want to find nothing."""
    return frozenset(path for command in check_commands(contract) for path in empty_checks.must_lack(command))


def programs_of_checks(case: Case) -> Hits:
    """Find checks that start a program which neither exists nor is created by a task."""
    present = case.present
    by_hand = any(task.kind == "human-action" and not task.files for _, task in case.pairs)
    if present is None or not present.no_programs or by_hand:  # a person may install it
        return
    makes = paths.cover([p for t in case.contract.tasks.values() for p in ledger.written_paths(t.files)])
    prepared = case.settings.checkout.prepare
    reported: set[tuple[str | None, str, str, int]] = set()
    for plan, task, number, command, line, field in proving(case.contract):
        if (task is not None and task.id in present.done) or PLACEHOLDER.match(command):
            continue
        for program in programs(command):
            key = (task.id if task else plan.path, program, field, line)
            if program not in present.no_programs or makes(posixpath.normpath(program)) or key in reported:
                continue
            reported.add(key)
            words = {"program": program, "problem": "cannot be started" if "/" in program else "is not on PATH"}
            first = _runs_at_once(command, program) and ("/" not in program or number == 0)
            yield plan, task, Hit(command, words, field=field, line=line, certain=first and not prepared)


def proving(contract: Contract) -> Iterator[tuple[Plan, Task | None, int, str, int, str]]:
    """Yield each command that proves something: plan, task, its number among theirs, command, line and field.

    A line of 0 is that of the field.
    """
    for plan in contract.plans:
        rows = [(invariant.check, 0, "invariants") for invariant in plan.invariants]
        rows += [(c.command, c.line, "success_criteria") for c in plan.success_criteria if c.command]
        yield from ((plan, None, number, *row) for number, row in enumerate(rows))
        for task in plan.tasks:
            yield from ((plan, task, number, *row) for number, row in enumerate(checks(task)))


def _runs_at_once(command: str, program: str) -> bool:
    """Return whether nothing before it can make the program, or put it on PATH, as `. .venv/bin/activate` does."""
    later = shell_commands.read(command).commands[1:]
    return not any(program in part.texts for part in later)


def checks(task: Task) -> list[tuple[str, int, str]]:
    """Return the commands that prove a task, each with its line (0 for its field's) and its field."""
    rows = [(c.command, c.line, "acceptance") for c in task.acceptance if c.command]
    rows += [(command, 0, "verify") for command in task.verify]
    rows += [(test.command, 0, "tests") for test in task.tests]
    for field, conditions in (("preconditions", task.preconditions), ("postconditions", task.postconditions)):
        rows += [(c.subject, 0, field) for c in conditions if c.kind == "command"]
    return rows


def programs(command: str) -> tuple[str, ...]:
    """Return the programs that a check starts by name; relative paths only if the command does not change folders."""
    script = shell_commands.read(command)
    moves = any(part.texts[:1] in (["cd"], ["pushd"]) for part in script.commands)
    return tuple(name for name in script.programs if "/" not in name or name.startswith("/") or not moves)


def named_programs(contract: Contract) -> frozenset[str]:
    """Return every program that a check of the contract starts."""
    return frozenset(program for command in check_commands(contract) for program in programs(command))


def check_commands(contract: Contract) -> tuple[str, ...]:
    """Return the command of every check of the contract, each once."""
    return tuple(dict.fromkeys(command for _, _, _, command, _, _ in proving(contract)))


# Sentences of templates/plan.md and templates/phase-plan.md that the author of a plan has to replace.
SENTENCES = frozenset(
    {
        "What this plan delivers",
        "What is true when every task is done",
        "What a user needs, in one sentence",
        "Instructions for the builder. A task changes only the files that it declares.",
        "The result of this task exists",
        "Name the command that shows it",
    }
)
_BLANK = re.compile(r"<[A-Za-z][^<>]*>|\[[A-Z][^\[\]]*\]|\{\{?[A-Za-z][^{}]*\}?\}|\$[A-Za-z]\w*")


def unfilled(case: Case) -> Hits:
    """Find texts that are unchanged from the template."""
    for plan in case.contract.plans:
        texts = [("title", plan.title), ("goal", plan.goal), *(("requirements", t) for t in plan.requirements.values())]
        yield from ((plan, None, hit) for hit in _unfilled(texts, plan.success_criteria, "success_criteria"))
    for plan, task in case.pairs:
        texts = [("title", task.title), ("description", task.description)]
        yield from ((plan, task, hit) for hit in _unfilled(texts, task.acceptance, "acceptance"))


def _unfilled(texts: Iterable[tuple[str, str]], criteria: Iterable[Criterion], field: str) -> Iterator[Hit]:
    yield from (Hit(text, field=name) for name, text in texts if _is_unfilled(text))
    for one in criteria:
        if any(map(_is_unfilled, (one.text, *one.instructions))):
            yield Hit(one.text, field=field, line=one.line)


def _is_unfilled(text: str) -> bool:
    plain = text.strip()
    return plain in SENTENCES or _BLANK.fullmatch(plain) is not None
