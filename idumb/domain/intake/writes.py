"""Checks of what a plan writes: inside the workspace, its scope and its declared files, and nothing protected.

Some compare the plan with the state at the start of a run: existing files, and links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from idumb.domain import paths
from idumb.domain.contract import Contract
from idumb.domain.intake.rule import Case, Hit, Hits, StartState
from idumb.domain.plans import step_effects
from idumb.domain.plans.plan import FileClaim, Plan, Step, Task
from idumb.domain.proof import ledger

_NAMED = ("path", "from", "to")
_NEEDS = frozenset({"modify", "delete", "move"})


def misplaced_paths(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Check every path that a task or a step would write against workspace, scope and protected paths."""
    misplaced = _judge_of(case, plan, task)
    found = ((misplaced(path, "steps" if line else "files"), line) for path, line in _may_write(task))
    yield from (hit._replace(line=line) for hit, line in found if hit is not None)


def _may_write(task: Task) -> Iterator[tuple[str, int]]:
    """Yield every path and glob that the task or a step may write, with the step's line or 0."""
    # The declared files of a step plan are derived from its steps.
    yield from ((path, 0) for path in (() if task.notation == "step" else ledger.written_paths(task.files)))
    yield from ((path, step.line) for step in task.steps for path in (*step_paths(step), *step.scope))


def non_goals(_: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find declared paths that a non-goal of the plan excludes."""
    goals = [goal for goal in plan.non_goals if goal.paths]
    for path in ledger.written_paths(task.files) if goals else ():
        goal = next((goal for goal in goals if paths.is_covered(path, goal.paths)), None)
        if goal is not None:
            yield Hit(path, {"goal": goal.id, "text": goal.text})


def step_paths(step: Step) -> tuple[str, ...]:
    """Return the paths that a step names; what a `run` step writes is unknown before it runs."""
    if step.tool == "run":
        return ()
    if step.tool == "apply_patch":
        return step_effects.patched(str(step.arguments.get("patch", ""))) or ()
    return tuple(value for name in _NAMED if isinstance(value := step.arguments.get(name), str))


def other_repositories(case: Case, _: Plan, task: Task) -> Iterator[Hit]:
    """Find paths in submodules and nested repositories, which no snapshot contains."""
    if not case.repositories:
        return
    for path, line in _may_write(task):
        inner = paths.repository_of(path, case.repositories)
        inner = inner or paths.repository_of(_resolved(path, case.links), case.repositories)
        if inner is not None:
            field, accepted = "steps" if line else "files", f"a path outside {inner}"
            yield Hit(path, {"inner": inner}, field=field, line=line, accepted=accepted)


def places(contract: Contract) -> frozenset[str]:
    """Return the part of each written path before its first wildcard, and its folder, inside the workspace."""
    fixed = {_fixed(path) for task in contract.tasks.values() for path, _ in _may_write(task)}
    found = {place for path in fixed for place in (path.removesuffix("/*"), path.rpartition("/")[0])}
    return frozenset(place for place in found if place and paths.problem(place) is None)


def _fixed(path: str) -> str:
    """Return a path up to its first name with a wildcard, and `*` for the rest."""
    return f"{paths.before_wildcard(path)}/*".removeprefix("/") if paths.has_wildcard(path) else path


def _resolved(path: str, links: Mapping[str, str]) -> str:
    """Return where a path leads if the links above it are followed."""
    folder, _, name = _fixed(path).rpartition("/")
    target = links.get(folder)
    if target is None:
        return path
    return f"{target}/{name}" if target else name


def _root(plan: Plan) -> str:
    root = plan.scope.root or ""
    return "" if root == "." else root.removeprefix("./").strip("/")


def _judge_of(case: Case, plan: Plan, task: Task) -> Callable[[str, str], Hit | None]:
    """Return what says why a task must not write a path that one of its fields names; the first reason counts."""
    root, rules, literal = _root(plan), (*plan.scope.protected, *case.settings.protected), _literal_paths(task)

    def misplaced(path: str, field: str) -> Hit | None:
        why, real = paths.problem(path), _resolved(path, case.links)
        if why is not None:
            return Hit(path, {"why": f"the path {path!r} {why}"}, "path.outside-workspace", field)
        if real.startswith("/"):
            why = f"it would write {path}, but a link leads out of the workspace, to {real}"
            fix = "Use a path without a link above it, or remove the link."
            return Hit(path, {"why": why}, "path.outside-workspace", field, fix=fix)
        if root and path != root and not path.startswith(f"{root}/"):
            return Hit(path, {"root": root}, "path.outside-scope", field, accepted=f"a path below {root}")
        rule = paths.protecting_rule(path, rules, literal)
        rule = rule or (paths.protecting_rule(real, rules, literal) if real != path else None)
        return None if rule is None else Hit(path, {"rule": rule}, "path.protected", field)

    return misplaced


def _literal_paths(task: Task) -> set[str]:
    """Return the paths that the task declares without wildcards."""
    declared = {claim.path for claim in task.files or () if not paths.has_wildcard(claim.path)}
    return declared | {claim.target for claim in task.files or () if claim.target}


def bad_root(_: Case, plan: Plan) -> Iterator[Hit]:
    """Find a `scope.root` that cannot be a folder of this repository."""
    root = plan.scope.root
    why = paths.problem(root.removeprefix("./").rstrip("/")) if root is not None and _root(plan) else None
    if why is not None:
        yield Hit(str(root), {"why": f"{root!r} {why}"})


def undeclared_paths(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find steps that write undeclared paths, which would stop the run."""
    if not task.steps:
        return
    covered, misplaced = paths.cover(ledger.written_paths(task.files)), _judge_of(case, plan, task)
    for step in task.steps:
        for path in step_paths(step) if step.tool != "make_directory" else ():  # git does not track empty folders
            if not covered(path) and misplaced(path, "steps") is None:
                yield Hit(path, line=step.line)


class _Files:
    """Which paths exist, as the earlier tasks would leave them."""

    def __init__(self, present: StartState) -> None:
        self._present = present
        self._created: set[str] = set()
        self._gone: set[str] = set()
        self._wide: list[str] = []

    def usable(self, path: str) -> bool:
        """Whether there is a file to change; ignored files exist but are not part of the base."""
        if path in self._created or paths.matches_any(path, self._wide):
            return True
        return path not in self._gone and (path in self._present.base or path in self._present.on_disk)

    def taken(self, path: str) -> bool:
        """Whether a new file would replace an existing one."""
        return path in self._created or (path in self._present.base and path not in self._gone)

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


class UnmetClaim(Struct, frozen=True):
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


def unmet_files(case: Case) -> Hits:
    """Report what `unmet_claims` finds, except in steps of workflows that never run."""
    if case.present is None:
        return
    plan_of, never = case.contract.plan_of, _never_run(case.contract)
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


def written_links(case: Case) -> Hits:
    """Find written paths that are links or behind one: a step replaces the link, and git does not follow it."""
    for plan, task in case.pairs if case.links else ():
        if case.present is None or task.id in case.present.done:
            continue
        for path, line in _literal_writes(task).items():
            target, folder = case.links.get(path), path.rpartition("/")[0]
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


def _literal_writes(task: Task) -> dict[str, int]:
    """Return every literal path that the task or a step writes, with the step's line or 0."""
    rows = {path: line for path, line in _may_write(task) if paths.problem(path) is None}
    return {path: line for path, line in rows.items() if line or not paths.has_wildcard(path)}


def literal_writes(contract: Contract) -> frozenset[str]:
    """Return every literal path that a task or a step of the contract writes."""
    return frozenset(path for task in contract.tasks.values() for path in _literal_writes(task))
