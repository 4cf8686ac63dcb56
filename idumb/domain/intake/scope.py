"""Checks of what a plan writes: inside the workspace, its scope and its declared files, and nothing protected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.domain.contract import Contract
from idumb.domain.finding import Finding
from idumb.domain.intake.rule import Case
from idumb.domain.plans.plan import Plan, Step, Task
from idumb.domain.proof import ledger

# Paths that clearly stay inside: no empty part, and no part that starts with a dot or a tilde.
_PLAIN = lazy_pattern.compile(r"[\w@+-][\w.@+-]*(?:/[\w@+-][\w.@+-]*)*", re.ASCII)
_PATCHED = lazy_pattern.compile(r"^(?:\+\+\+ b/|--- a/|rename (?:from|to) |copy to )(.+?)[\t\r]*$", re.MULTILINE)
_NAMED = ("path", "from", "to")


def written_paths(case: Case) -> Iterator[Finding]:
    """Check every path that a task or a step would write against workspace, scope and protected paths."""
    for plan in case.contract.plans:
        rules = _rules(case, plan)
        doubtful = _doubtful(plan, rules, case.links)
        for task in plan.tasks:
            # the declared files of a step plan are derived from its steps, which are checked below
            for path in () if task.notation == "step" else ledger.written_paths(task.files):
                if doubtful(path):
                    yield from _path_findings(case, plan, task, "files", path, rules)
            for step in task.steps:
                for path in (*step_paths(step), *step.scope):
                    if doubtful(path):
                        yield from _path_findings(case, plan, task, "steps", path, rules, step.line)


def non_goals(case: Case) -> Iterator[Finding]:
    """Find declared paths that a non-goal of the plan excludes."""
    for plan, task in case.pairs:
        goals = [goal for goal in plan.non_goals if goal.paths]
        for path in ledger.written_paths(task.files) if goals else ():
            goal = next((goal for goal in goals if paths.is_covered(path, goal.paths)), None)
            if goal is not None:
                message = f"{task.id} declares {path}, which the non-goal {goal.id} excludes: {goal.text}"
                fix = f"Remove {path} from Files, or from `paths` of {goal.id}."
                yield case.at("path.non-goal", plan, task, path, message, fix)


def _rules(case: Case, plan: Plan) -> tuple[str, ...]:
    return (*plan.scope.protected, *case.settings.protected)


def step_paths(step: Step) -> tuple[str, ...]:
    """Return the paths that a step names; what a `run` step writes is unknown before it runs."""
    if step.tool == "run":
        return ()
    if step.tool == "apply_patch":
        return tuple(dict.fromkeys(_PATCHED.findall(str(step.arguments.get("patch", "")))))
    return tuple(value for name in _NAMED if isinstance(value := step.arguments.get(name), str))


def _doubtful(plan: Plan, rules: Sequence[str], links: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a function that says whether a path needs the full check. Most paths do not."""
    all_rules = [rule.lower() for rule in (*paths.ALWAYS_PROTECTED, *paths.PROTECTED_UNLESS_DECLARED, *rules)]
    firsts = {rule.partition("/")[0] for rule in all_rules}
    wide = [rule for rule in all_rules if paths.has_wildcard(rule.partition("/")[0])]
    root = _root(plan) or not all(rule.isascii() for rule in all_rules)

    def doubtful(path: str) -> bool:
        if root or _PLAIN.fullmatch(path) is None:
            return True
        if links and _resolved(path, links) != path:
            return True
        folded = path.lower()
        return folded.partition("/")[0] in firsts or (bool(wide) and paths.matches_any(folded, wide))

    return doubtful


def other_repositories(case: Case) -> Iterator[Finding]:
    """Find paths in submodules and nested repositories, which no snapshot contains."""
    for plan, task in case.pairs if case.repositories else ():
        claimed = () if task.notation == "step" else ledger.written_paths(task.files)
        stepped = ((path, step.line) for step in task.steps for path in (*step_paths(step), *step.scope))
        for path, line in (*((path, 0) for path in claimed), *stepped):
            inner = paths.repository_of(path, case.repositories)
            inner = inner or paths.repository_of(_resolved(path, case.links), case.repositories)
            if inner is not None:
                message = f"{task.id} would write {path}, but {inner} is a submodule or a nested repository."
                fix = f"Remove the path from the task. To change it, use a plan inside {inner}."
                field, accepted = "steps" if line else "files", f"a path outside {inner}"
                code = "path.other-repository"
                yield case.at(code, plan, task, path, message, fix, field=field, accepted=accepted, line=line)


def places(contract: Contract) -> frozenset[str]:
    """Return the part of each written path before its first wildcard, including file names.

    Only inside the workspace.
    """
    written = (path for task in contract.tasks.values() for path in ledger.written_paths(task.files))
    steps = (step for task in contract.tasks.values() for step in task.steps)
    stepped = (path for step in steps for path in (*step_paths(step), *step.scope))
    prefixes = {_fixed(path).removesuffix("/*") for path in (*written, *stepped)}
    return frozenset(place for place in prefixes if place and paths.problem(place) is None)


def folders(contract: Contract) -> frozenset[str]:
    """Return the folder of every written path that can be in the workspace."""
    written = (path for task in contract.tasks.values() for path in ledger.written_paths(task.files))
    stepped = (path for task in contract.tasks.values() for step in task.steps for path in step_paths(step))
    parents = {_fixed(path).rpartition("/")[0] for path in (*written, *stepped)}
    return frozenset(folder for folder in parents if folder and paths.problem(folder) is None)


def _fixed(path: str) -> str:
    """Return a path up to its first name with a wildcard, and `*` for the rest."""
    if not paths.has_wildcard(path):
        return path
    names = path.rstrip("/").split("/")
    plain = next((n for n, name in enumerate(names) if paths.has_wildcard(name)), len(names))
    return "/".join((*names[:plain], "*"))


def fixed_folder(glob: str) -> str:
    """Return the folder that contains every match of a glob; "" for the root."""
    return _fixed(glob).removesuffix("/*").removesuffix("*")


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


def _path_findings(
    case: Case, plan: Plan, task: Task, field: str, path: str, rules: Sequence[str], line: int = 0
) -> Iterator[Finding]:
    why, root = paths.problem(path), _root(plan)
    if why is not None:
        message = f"{task.id}: the path {path!r} {why}."
        fix = "Write it relative to the workspace root."
        yield case.at("path.outside-workspace", plan, task, path, message, fix, field=field, line=line)
        return
    real = _resolved(path, case.links)
    if real.startswith("/"):
        message = f"{task.id} would write {path}, but a link leads out of the workspace, to {real}."
        fix = "Use a path without a link above it, or remove the link."
        yield case.at("path.outside-workspace", plan, task, path, message, fix, field=field, line=line)
        return
    if root and path != root and not path.startswith(root + "/"):
        message = f"{task.id} would write {path}, which is outside the plan's scope ({root})."
        fix = "Remove the path from the task, or widen `scope.root`."
        code, accepted = "path.outside-scope", f"a path below {root}"
        yield case.at(code, plan, task, path, message, fix, field=field, accepted=accepted, line=line)
        return
    rule = paths.protecting_rule(path, rules, _literal(task)) or paths.protecting_rule(real, rules, _literal(task))
    if rule is not None:
        message = f"{task.id} would write {path}, which is protected by {rule}."
        fix = "Remove the path from the task. idumb never writes it."
        yield case.at("path.protected", plan, task, path, message, fix, field=field, line=line)


def _literal(task: Task) -> set[str]:
    """Return the paths that the task declares without wildcards."""
    declared = {claim.path for claim in task.files or () if not paths.has_wildcard(claim.path)}
    return declared | {claim.target for claim in task.files or () if claim.target}


def roots(case: Case) -> Iterator[Finding]:
    """Find `scope.root` values that cannot be a folder of this repository."""
    for plan in case.contract.plans:
        root = plan.scope.root
        why = None if root is None or not _root(plan) else _root_problem(root)
        if why is not None:
            message = f"scope.root {root!r} {why}, so it cannot be a folder of this repository."
            fix = "Write the folder relative to the root of the repository, or omit `root`."
            yield case.at("plan.bad-scope", plan, None, str(root), message, fix)


def _root_problem(root: str) -> str | None:
    return paths.problem(root.removeprefix("./").rstrip("/"))


def empty_folders(case: Case) -> Iterator[Finding]:
    """Find steps that make a new folder in which no task creates a file: git keeps no empty folder."""
    if case.present is None:
        return
    written = [path for _, task in case.pairs for path in ledger.written_paths(task.files)]
    for plan, task in case.pairs:
        if any(step.tool == "run" for step in task.steps):  # a command may create one
            continue
        for step in task.steps:
            folder = _made_folder(step)
            if not folder or folder in case.present.folders or any(_may_fill(path, folder) for path in written):
                continue
            message = f"{task.id}: a step makes {folder}/, in which no task creates a file, so no commit has it."
            fix = f"Write a file in it, for example {folder}/.gitkeep, or make it when the program starts."
            yield case.at("step.empty-folder", plan, task, f"{folder}/", message, fix, line=step.line)


def _made_folder(step: Step) -> str:
    return str(step.arguments.get("path", "")).rstrip("/") if step.tool == "make_directory" else ""


def _may_fill(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") or (paths.has_wildcard(path) and paths.matches(f"{folder}/file", path))


def made_folders(contract: Contract) -> frozenset[str]:
    """Return the folders that steps make."""
    folders = (_made_folder(step) for task in contract.tasks.values() for step in task.steps)
    return frozenset(folder for folder in folders if folder and paths.problem(folder) is None)


def undeclared(case: Case) -> Iterator[Finding]:
    """Find steps that write undeclared paths, which would stop the run."""
    for plan, task in case.pairs:
        if not task.steps:
            continue
        covered = paths.cover(ledger.written_paths(task.files))
        for step in task.steps:
            if step.tool == "make_directory":
                continue  # git does not track empty folders
            for path in step_paths(step):
                if not covered(path) and not any(_path_findings(case, plan, task, "steps", path, _rules(case, plan))):
                    message = f"{task.id}: a step writes {path}, which the task does not declare."
                    fix = f"Add {path} to Files, with create, modify, delete or move."
                    yield case.at("step.undeclared-path", plan, task, path, message, fix, line=step.line)
