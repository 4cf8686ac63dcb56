"""Checks of what a plan writes: inside the workspace, its scope and its declared files, and nothing protected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from idumb.domain import paths
from idumb.domain.contract import Contract
from idumb.domain.intake.rule import Case, Hit
from idumb.domain.plans import step_effects
from idumb.domain.plans.plan import Plan, Step, Task
from idumb.domain.proof import ledger

_NAMED = ("path", "from", "to")


def written_paths(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Check every path that a task or a step would write against workspace, scope and protected paths."""
    misplaced = _judge_of(case, plan, task)
    # The declared files of a step plan are derived from its steps.
    claimed = () if task.notation == "step" else ledger.written_paths(task.files)
    yield from (hit for path in claimed if (hit := misplaced(path, "files")))
    for step in task.steps:
        found = (misplaced(path, "steps") for path in (*step_paths(step), *step.scope))
        yield from (hit._replace(line=step.line) for hit in found if hit)


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
    claimed = () if task.notation == "step" else ledger.written_paths(task.files)
    stepped = ((path, step.line) for step in task.steps for path in (*step_paths(step), *step.scope))
    for path, line in (*((path, 0) for path in claimed), *stepped):
        inner = paths.repository_of(path, case.repositories)
        inner = inner or paths.repository_of(_resolved(path, case.links), case.repositories)
        if inner is not None:
            field, accepted = "steps" if line else "files", f"a path outside {inner}"
            yield Hit(path, {"inner": inner}, field=field, line=line, accepted=accepted)


def places(contract: Contract) -> frozenset[str]:
    """Return the part of each written path before its first wildcard, including file names.

    Only inside the workspace.
    """
    prefixes = {_fixed(path).removesuffix("/*") for path in _paths(contract)}
    return frozenset(place for place in prefixes if place and paths.problem(place) is None)


def folders(contract: Contract) -> frozenset[str]:
    """Return the folder of every written path that can be in the workspace."""
    parents = {_fixed(path).rpartition("/")[0] for path in _paths(contract)}
    return frozenset(folder for folder in parents if folder and paths.problem(folder) is None)


def _paths(contract: Contract) -> Iterator[str]:
    """Yield what the tasks and steps of a contract may write."""
    for task in contract.tasks.values():
        yield from ledger.written_paths(task.files)
        for step in task.steps:
            yield from (*step_paths(step), *step.scope)


def _fixed(path: str) -> str:
    """Return a path up to its first name with a wildcard, and `*` for the rest."""
    if not paths.has_wildcard(path):
        return path
    names = path.rstrip("/").split("/")
    plain = next((n for n, name in enumerate(names) if paths.has_wildcard(name)), len(names))
    return "/".join((*names[:plain], "*"))


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
    root, rules, literal = _root(plan), (*plan.scope.protected, *case.settings.protected), _literal(task)

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


def _literal(task: Task) -> set[str]:
    """Return the paths that the task declares without wildcards."""
    declared = {claim.path for claim in task.files or () if not paths.has_wildcard(claim.path)}
    return declared | {claim.target for claim in task.files or () if claim.target}


def bad_root(_: Case, plan: Plan) -> Iterator[Hit]:
    """Find a `scope.root` that cannot be a folder of this repository."""
    root = plan.scope.root
    why = paths.problem(root.removeprefix("./").rstrip("/")) if root is not None and _root(plan) else None
    if why is not None:
        yield Hit(str(root), {"why": f"{root!r} {why}"})


def undeclared(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find steps that write undeclared paths, which would stop the run."""
    if not task.steps:
        return
    covered, misplaced = paths.cover(ledger.written_paths(task.files)), _judge_of(case, plan, task)
    for step in task.steps:
        for path in step_paths(step) if step.tool != "make_directory" else ():  # git does not track empty folders
            if not covered(path) and misplaced(path, "steps") is None:
                yield Hit(path, line=step.line)
