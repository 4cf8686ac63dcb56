"""Finds what a failed check needs besides the commit, so that the user learns the one line that helps.

The check runs again in its own working tree, with candidates from the user's: ignored paths that were there before the
attempt, uncommitted changes, and a view of what is around it, such as the home. Nothing runs in the user's folders.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from idumb import lazy_pattern
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports.checks import BESIDE, HOME, TMPDIR, Checks
from idumb.app.ports.repository import Trees
from idumb.app.worktree import dependencies, tool_leftovers
from idumb.domain import check_lines, dependency_setup, failures, paths, tool_files, wording
from idumb.domain.errors import Refusal
from idumb.domain.failures import FailureMessage
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import IN_PLACE, USER_HOME

MOST_RUNS = 5
_MOST_CANDIDATES = 64
_LIKELY = ("node_modules", ".venv", "venv", "vendor", ".env", "env", "target", "data", "third_party")
_NEVER = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".git"})
_NOTES = "missing paths"
_SHORT = 30.0
"""Seconds: a check that took longer runs with other paths once only, unless its words name one of them."""
_OWN = "let the check make it, or declare it in the plan and commit it"
_LACKING = lazy_pattern.compile(
    r"not found|cannot (?:find|open)|could not (?:find|open|resolve)|no such file|no module named", re.IGNORECASE
)
PREPARE = "checks.prepare"


class Candidate(NamedTuple):
    """A path of the user's working tree; folders end with `/`. `around` is for one of `Checks.surroundings`."""

    path: str
    ignored: bool = False
    around: bool = False


class _Search(NamedTuple):
    """`tree` is what the checks judged, `present` the user's working tree. `again` continues after a commit.

    `may_be_work`: a path that git ignores may be one that a task made.
    """

    services: Services
    checks: Checks
    phase: str
    tree: str
    present: str
    again: str
    may_be_work: bool = False


def explain(
    context: RunContext, checks: Checks, attempt: Attempt, checked: Sequence[Evidence]
) -> tuple[FailureMessage | None, Sequence[Evidence]]:
    """Return which path a failed check of this attempt needs, and the evidence.

    If no path helps, because the work is wrong too, the evidence says which one the check may need.
    """
    tree, failed = attempt.proven, _first_failed(checked)
    if tree is None or failed is None:
        return None, checked
    phase = context.contract.phase
    search = _Search(context.services, checks, phase, tree, attempt.candidate, f"idumb resume {phase}")
    candidates, made = _candidates(context, attempt, tree, failed)
    around = _around(search, failed)
    named = _named(failed, [c.path for c in candidates if c.ignored])
    tried: set[object] = context.notes.setdefault(_NOTES, set())
    key = (attempt.task.id, failed.command, candidates, around, tree if named or failed.seconds < _SHORT else None)
    if key not in tried:
        needed = _needed(search, failed, candidates, around)
        own = [c.path for c in needed or () if c.path in made and not _is_installed(c.path)]
        if own:
            return None, _with_hint(checked, failed, own, f", and {attempt.task.id} made it", _OWN)
        if needed is not None:
            return _message(search, failed, needed, context.services.trees.ignored()), checked
        tried.add(key)
    if not named or failed.may_need:
        return None, checked
    return None, _with_hint(checked, failed, named, "", _fix(search, [p.rstrip("/") for p in named], verb="add"))


def _named(failed: Evidence, ignored: Iterable[str]) -> list[str]:
    """Return the ignored paths that a check names which says that it cannot find something.

    Tools that look for installed packages name the package, not its folder.
    """
    words = f"{failed.command}\n{failed.output}"
    if failed.result != evidence.ERRORED and not _LACKING.search(words):
        return []
    return [path for path in ignored if _is_installed(path) or _names(words, path.rstrip("/"))]


def _names(words: str, path: str) -> bool:
    inside = re.escape(path.rpartition("/")[2])
    return re.search(rf"(?<![\w./-])(?:{re.escape(path)}(?![\w-])|{inside}/)", words) is not None


def _is_installed(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2] in dependency_setup.FOLDERS


def _with_hint(
    checked: Sequence[Evidence], failed: Evidence, ignored: Sequence[str], how: str, fix: str
) -> Sequence[Evidence]:
    """Return the evidence, where that of a failed check names ignored paths that it may need."""
    names = wording.listed([path.rstrip("/") for path in ignored])
    hinted = dataclasses.replace(
        failed,
        output=f"{failed.output.rstrip()}\n[git ignores {names}{how}. If this check needs it, {fix}]".lstrip(),
        may_need=f"{names}, which git ignores{how}: {fix}",
    )
    return [hinted if each is failed else each for each in checked]


def explain_verification(
    services: Services, checks: Checks, phase: str, tree: str, present: str, checked: Sequence[Evidence]
) -> FailureMessage | None:
    """Return the same for a phase that is verified on `tree`; `present` is a scan of the user's working tree.

    A path that git ignores may be one that a task made, so the message names both ways out.
    """
    failed = _first_failed(checked)
    if failed is None:
        return None
    search = _Search(services, checks, phase, tree, present, f"idumb verify-work {phase}", may_be_work=True)
    differing = [c.path for c in services.trees.changes(tree, present) if c.new is not None]
    differing = [path for path in differing if not paths.matches_any(path, paths.OWN_FILES)]
    ignored = _usable(services.trees.ignored())
    candidates = _sorted(ignored, services.history.uncommitted(differing))
    needed = _needed(search, failed, candidates, _around(search, failed))
    if needed is None:
        return None
    return _message(search, failed, needed, services.trees.ignored())


def _first_failed(checked: Sequence[Evidence]) -> Evidence | None:
    rows = (e for e in checked if e.command and not (e.changed and e.exit_code == 0))
    return next((e for e in rows if e.result in (evidence.FAILED, evidence.ERRORED)), None)


def _around(search: _Search, failed: Evidence) -> tuple[Candidate, ...]:
    return tuple(Candidate(name, around=True) for name in search.checks.surroundings(failed))


def _needed(
    search: _Search, failed: Evidence, inside: Sequence[Candidate], around: Sequence[Candidate]
) -> Sequence[Candidate] | None:
    """Return with what the check passes; None if nothing helps, or if a second run passes without it.

    If no program could be started without it, a run that fails then is enough: what is missing hides what is wrong.
    """
    if not inside and not around:
        return None
    needed = _narrow(inside, around, lambda some: _helps(search, failed, some))
    return None if needed is None or _helps(search, failed, ()) else needed


def _usable(ignored: Sequence[str]) -> list[str]:
    named = [path for path in ignored if path.rstrip("/").rpartition("/")[2] not in _NEVER]
    return [path for path in named if not paths.matches_any(path, paths.OWN_FILES)]


def _sorted(ignored: Sequence[str], uncommitted: Sequence[str]) -> tuple[Candidate, ...]:
    candidates = [*(Candidate(p, ignored=True) for p in ignored), *map(Candidate, uncommitted)]
    return tuple(sorted(candidates, key=_likelihood)[:_MOST_CANDIDATES])


def not_prepared(context: RunContext, refusal: Refusal) -> FailureMessage | None:
    """Return the failure of an attempt whose checks could not run because `checks.prepare` failed; None for others."""
    if refusal.code != PREPARE:
        return None
    correct = "Correct checks.prepare in .idumb/config.yaml, or the files that it reads"
    command = f"idumb execute-phase {context.contract.phase}"
    return FailureMessage(failures.NOT_PREPARED, refusal.message, correct, command)


def _candidates(
    context: RunContext, attempt: Attempt, tree: str, failed: Evidence
) -> tuple[tuple[Candidate, ...], frozenset[str]]:
    """Return the paths that may help, and which of them were not there before the task's first attempt."""
    trees, task_paths = context.services.trees, frozenset(attempt.ledger.changed)
    ignored = _usable(trees.ignored())
    older = frozenset(path for path in ignored if trees.is_older(path))
    before: frozenset[str] = context.notes.setdefault(f"{_NOTES} of {attempt.task.id}", older)
    differing: list[str] = []
    if context.workspace.kind == "here":
        named = _named(failed, ignored)
        ignored = [path for path in ignored if path in older or path in named]
        changes = trees.changes(tree, attempt.candidate)
        differing = [c.path for c in changes if c.new is not None and c.path not in task_paths]
        differing = [p for p in differing if not paths.matches_any(p, paths.OWN_FILES)]
    made = frozenset(ignored) - before
    if inner := [path for path in trees.repositories() if trees.entry(tree, path) is None and path not in ignored]:
        changed = {change.repository for change in trees.nested_changes(attempt.snapshot)}
        ignored += [path for path in inner if path not in changed]
    if any(map(tool_files.PATTERN.search, differing)):  # installed packages in a project that does not ignore them
        leftover = tool_leftovers.of_attempt(context, attempt, attempt.candidate)
        roots = {path: match.root for path in differing if (match := leftover(path)) is not None}
        differing = [path for path in differing if path not in roots]
        ignored += [root for root in dict.fromkeys(roots.values()) if _was_left_before(trees, attempt, root)]
    return _sorted(ignored, context.services.history.uncommitted(differing)), made


def _was_left_before(trees: Trees, attempt: Attempt, root: str) -> bool:
    tree, path = attempt.snapshot.tree, root.rstrip("/")
    name = path.rpartition("/")[2]
    return name not in _NEVER and (trees.is_folder(tree, path) or trees.entry(tree, path) is not None)


def _likelihood(candidate: Candidate) -> tuple[int, str]:
    name = candidate.path.rstrip("/").rpartition("/")[2]
    return (_LIKELY.index(name) if name in _LIKELY else len(_LIKELY)), candidate.path


def _narrow(
    inside: Sequence[Candidate], around: Sequence[Candidate], passes: Callable[[Sequence[Candidate]], bool]
) -> Sequence[Candidate] | None:
    """Return as few of the candidates as `MOST_RUNS` calls can find; None if not even all of them help."""
    candidates = (*inside, *around)
    if not passes(candidates):
        return None
    runs = 1
    if inside and around:
        runs += 1
        if passes(inside):
            candidates = tuple(inside)
        else:
            runs += 1
            candidates = tuple(around) if passes(around) else candidates
    while len(candidates) > 1 and runs < MOST_RUNS:
        middle = len(candidates) // 2
        runs += 1
        if passes(candidates[:middle]):
            candidates = candidates[:middle]
        elif runs < MOST_RUNS and passes(candidates[middle:]):
            runs += 1
            candidates = candidates[middle:]
        else:
            break
    return candidates


def _helps(search: _Search, failed: Evidence, candidates: Sequence[Candidate]) -> bool:
    """Return whether the check passes with these paths, or fails after it could not even be made without them."""
    services = search.services
    uncommitted = [c.path for c in candidates if not c.ignored and not c.around]
    tree = services.trees.overlay(search.tree, search.present, uncommitted) if uncommitted else search.tree
    lent = [c.path.rstrip("/") for c in candidates if c.ignored]
    views = [c.path for c in candidates if c.around]
    with services.interrupts.armed():
        limit = float(services.settings.run.check_timeout)
        again = search.checks.command(
            failed.subject, failed.text, failed.command or "", timeout=limit, tree=tree, lent=lent, views=views
        )
    return again.passed or (failed.result == evidence.ERRORED and again.result == evidence.FAILED)


def _message(
    search: _Search, failed: Evidence, needed: Sequence[Candidate], ignored_by_git: Sequence[str]
) -> FailureMessage:
    ignored = [c.path.rstrip("/") for c in needed if c.ignored]
    uncommitted = [c.path for c in needed if not c.ignored and not c.around]
    around = [c.path for c in needed if c.around]
    if around:
        return _message_around(search, failed, around, ignored, uncommitted)
    if not ignored:
        words = f"{failed.subject} needs your uncommitted {wording.listed(uncommitted)}"
        return FailureMessage(failures.NOT_COMMITTED, words, "Commit it", search.again)
    also = f" and your uncommitted {wording.listed(uncommitted)}" if uncommitted else ""
    by_git = {path.rstrip("/") for path in ignored_by_git}
    inner = frozenset(search.services.trees.repositories())
    why = "git ignores it" if by_git.issuperset(ignored) else "a tool left it, or git ignores it"
    why = "it is a repository of its own" if inner.issuperset(ignored) else why
    words = f"{failed.subject} needs {wording.listed(ignored)}{also}, which the commit does not hold: {why}"
    own = "If a task made it, correct .gitignore and commit it. If you installed it, " if search.may_be_work else ""
    fix = _fix(search, ignored, verb="add" if own else "Add")
    return FailureMessage(failures.NOT_PROVIDED, words, f"{own}{fix}", f"idumb execute-phase {search.phase}")


def _fix(search: _Search, ignored: Sequence[str], verb: str) -> str:
    """Return the lines that provide ignored paths or, if they are installed, install them."""
    changes: list[Mapping[str, Any]] = [{"provide": ignored}]
    proposed = dependencies.proposals(search.services) if dependency_setup.FOLDERS.issuperset(ignored) else ()
    commands = [command for each in proposed if each.folder in ignored for command in each.commands]
    if commands:
        changes.append({"prepare": commands})
    return check_lines.adding(search.services.settings.checks, *changes, verb=verb)


def _message_around(
    search: _Search, failed: Evidence, around: Sequence[str], ignored: Sequence[str], uncommitted: Sequence[str]
) -> FailureMessage:
    """Return the message about what is around the user's working tree, and paths in it."""
    names = {HOME: "your HOME", TMPDIR: "a file in your TMPDIR"}
    needs = wording.listed([*(names.get(name, name) for name in around), *ignored, *uncommitted])
    words = f"{failed.subject} needs {needs}"
    if failed.result == evidence.FAILED:
        words += ": with it, the check passes"
    change: dict[str, Any] = {"provide": ignored} if ignored else {}
    change |= {"home": USER_HOME} if HOME in around else {}
    change |= {"tree": IN_PLACE} if any(name.startswith(BESIDE) for name in around) else {}
    if not change:
        return FailureMessage(failures.NOT_AROUND, words, "Let the check make the file itself", search.again)
    commit = f"Commit {wording.listed(uncommitted)}. " if uncommitted else ""
    fix = f"{commit}{check_lines.adding(search.services.settings.checks, change)}"
    return FailureMessage(failures.NOT_AROUND, words, fix, f"idumb execute-phase {search.phase}")
