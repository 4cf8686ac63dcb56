"""Finds the files outside the commit that a failed check needs, so that the user learns the one line that helps.

The check runs again in its own working tree, with candidates from the user's: ignored paths that were there before the
attempt, and uncommitted changes. Nothing runs in the user's working tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from idumb.app.core.run_context import Measured, RunContext
from idumb.app.ports.checks import Checks
from idumb.app.ports.repository import Trees
from idumb.app.worktree import tool_leftovers
from idumb.domain import failures, paths, tool_files, wording
from idumb.domain.failures import FailureMessage
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence

MOST_RUNS = 5
_MOST_CANDIDATES = 64
_LIKELY = ("node_modules", ".venv", "venv", "vendor", ".env", "env", "target", "data", "third_party")
_NEVER = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".git"})
_NOTES = "missing paths"


class Candidate(NamedTuple):
    """A path of the user's working tree; folders end with `/`."""

    path: str
    ignored: bool


def explain(
    context: RunContext, checks: Checks, attempt: Measured, checked: Sequence[Evidence]
) -> FailureMessage | None:
    """Return which path a failed check of this attempt needs; None if no path helps."""
    tree = attempt.proven
    failed = next(
        (e for e in checked if e.command and not e.changed and e.result in (evidence.FAILED, evidence.ERRORED)), None
    )
    if tree is None or failed is None or failed.command is None:
        return None
    candidates = _candidates(context, attempt, tree)
    tried: set[object] = context.notes.setdefault(_NOTES, set())
    key = (attempt.task.id, failed.command, candidates)
    if not candidates or key in tried:
        return None
    needed = _narrow(candidates, lambda some: _runs(context, checks, attempt, failed, tree, some))
    if needed is None or _runs(context, checks, attempt, failed, tree, ()):
        tried.add(key)  # nothing helps, or it is enough that an earlier check left nothing
        return None
    return _message(context, failed, needed)


def _candidates(context: RunContext, attempt: Measured, tree: str) -> tuple[Candidate, ...]:
    trees, task_paths = context.services.trees, frozenset(attempt.ledger.changed)
    ignored = [p for p in trees.ignored_before() if p.rstrip("/").rpartition("/")[2] not in _NEVER]
    ignored = [p for p in ignored if not paths.matches_any(p, paths.OWN_FILES)]
    differing: list[str] = []
    if context.workspace.kind == "here":
        changes = trees.changes(tree, attempt.candidate)
        differing = [c.path for c in changes if c.new is not None and c.path not in task_paths]
        differing = [p for p in differing if not paths.matches_any(p, paths.OWN_FILES)]
    if any(map(tool_files.PATTERN.search, differing)):  # installed packages in a project that does not ignore them
        leftover = tool_leftovers.of_attempt(context, attempt, attempt.candidate)
        roots = {path: match.root for path in differing if (match := leftover(path)) is not None}
        differing = [path for path in differing if path not in roots]
        ignored += [root for root in dict.fromkeys(roots.values()) if _was_left_before(trees, attempt, root)]
    uncommitted = context.services.history.uncommitted(differing) if differing else ()
    found = [*(Candidate(p, ignored=True) for p in ignored), *(Candidate(p, ignored=False) for p in uncommitted)]
    return tuple(sorted(found, key=_likelihood)[:_MOST_CANDIDATES])


def _was_left_before(trees: Trees, attempt: Measured, root: str) -> bool:
    tree, path = attempt.snapshot.tree, root.rstrip("/")
    name = path.rpartition("/")[2]
    return name not in _NEVER and (trees.is_folder(tree, path) or trees.entry(tree, path) is not None)


def _likelihood(candidate: Candidate) -> tuple[int, str]:
    name = candidate.path.rstrip("/").rpartition("/")[2]
    return (_LIKELY.index(name) if name in _LIKELY else len(_LIKELY)), candidate.path


def _narrow(
    candidates: Sequence[Candidate], passes: Callable[[Sequence[Candidate]], bool]
) -> Sequence[Candidate] | None:
    """Return as few of the candidates as `MOST_RUNS` calls can find; None if not even all of them help."""
    if not passes(candidates):
        return None
    runs = 1
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


def _runs(
    context: RunContext, checks: Checks, attempt: Measured, failed: Evidence, tree: str, candidates: Sequence[Candidate]
) -> bool:
    """Return whether the check passes with these paths."""
    uncommitted = [c.path for c in candidates if not c.ignored]
    with_changes = context.services.trees.overlay(tree, attempt.candidate, uncommitted) if uncommitted else tree
    lent = [c.path.rstrip("/") for c in candidates if c.ignored]
    with context.services.interrupts.armed():
        limit = float(context.services.settings.run.check_timeout)
        again = checks.command(
            failed.subject, failed.text, failed.command or "", timeout=limit, tree=with_changes, lent=lent
        )
    return again.passed


def _message(context: RunContext, failed: Evidence, needed: Sequence[Candidate]) -> FailureMessage:
    phase = context.contract.phase
    ignored = [c.path.rstrip("/") for c in needed if c.ignored]
    uncommitted = [c.path for c in needed if not c.ignored]
    if not ignored:
        words = f"{failed.subject} needs your uncommitted {wording.listed(uncommitted)}"
        return FailureMessage(failures.NOT_COMMITTED, words, f"Commit it, then idumb resume {phase}")
    also = f" and your uncommitted {wording.listed(uncommitted)}" if uncommitted else ""
    by_git = {path.rstrip("/") for path in context.services.trees.ignored_before()}
    why = "git ignores it" if by_git.issuperset(ignored) else "a tool left it, or git ignores it"
    words = f"{failed.subject} needs {wording.listed(ignored)}{also}, which the commit does not hold: {why}"
    line = f"checks: {{provide: [{', '.join(ignored)}]}}"
    return FailureMessage(
        failures.NOT_PROVIDED, words, f"Add `{line}` to .idumb/config.yaml, then idumb execute-phase {phase}"
    )
