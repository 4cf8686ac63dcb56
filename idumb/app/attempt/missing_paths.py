"""Finds what a failed check needs besides the commit, so that the user learns the one line that helps.

The check runs once more in its own working tree, with everything that the user has and the commit has not: ignored
paths that were there before the attempt, uncommitted changes, and a view of what is around the working tree, such as
the home. Nothing runs in the user's folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from idumb import lazy_pattern
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports.checks import BESIDE, HOME, TMPDIR, Checks
from idumb.app.worktree import tool_leftovers
from idumb.domain import check_lines, dependency_setup, failures, paths, wording
from idumb.domain.errors import Refusal
from idumb.domain.failures import FailureMessage
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import IN_PLACE, USER_HOME

PREPARE = "checks.prepare"
_MOST = 64
_SHORT = 30.0
"""Seconds: a check that took longer runs again only if its command or output names one of the paths."""
_NEVER = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".git"})
_LACKING = lazy_pattern.compile(r"(?i)not found|(?:can|could )not (?:find|open|resolve)|no such file|no module named")


class Missing(NamedTuple):
    """What a check may need. `ignored`: untracked paths, without the `/` of folders. `around`: see `surroundings`."""

    ignored: Sequence[str] = ()
    uncommitted: Sequence[str] = ()
    around: Sequence[str] = ()


class _Search(NamedTuple):
    """`tree` is what the check `failed` on, `present` the user's working tree. `again` continues after a commit."""

    services: Services
    checks: Checks
    phase: str
    tree: str
    present: str
    failed: Evidence
    again: str

    def names(self, path: str) -> bool:
        """Return whether the command or output names the path; tools name an installed package, not its folder."""
        words, last = f"{self.failed.command}\n{self.failed.output}", re.escape(path.rpartition("/")[2])
        if _is_installed(path) and (self.failed.result == evidence.ERRORED or _LACKING.search(words)):
            return True
        named = re.search(rf"(?<![\w./-])(?:{re.escape(path)}(?![\w-])|{last}/)", words) is not None
        return named or (path == HOME and "~/" in words)


def explain(
    context: RunContext, checks: Checks, attempt: Attempt, checked: Sequence[Evidence]
) -> FailureMessage | None:
    """Return what a failed check of this attempt needs besides the commit; None if that is not the cause."""
    tree, failed, phase = attempt.proven, _first_failed(checked), context.contract.phase
    if tree is None or failed is None:
        return None
    search = _Search(context.services, checks, phase, tree, attempt.candidate, failed, f"idumb resume {phase}")
    ignored, trees = _ignored(search), context.services.trees
    if context.workspace.kind != "here":
        return _message(search, _needed(search, ignored, ()))
    # What was there before the first attempt: the task itself may have made the others.
    before: set[str] = context.notes.setdefault(f"older, {attempt.task.id}", {*filter(trees.is_older, ignored)})
    ignored = [path for path in ignored if path in before or _is_installed(path)]
    differing, leftover = _differing(search), tool_leftovers.of_attempt(context, attempt, attempt.candidate)
    roots = {path: match.root.rstrip("/") for path in differing if (match := leftover(path)) is not None}
    left = [path for path in _usable(roots.values()) if trees.is_folder(attempt.snapshot.tree, path)]
    mine = [path for path in differing if path not in {*roots, *attempt.ledger.changed}]
    return _message(search, _needed(search, [*ignored, *left], mine))


def explain_verification(
    services: Services, checks: Checks, phase: str, tree: str, present: str, checked: Sequence[Evidence]
) -> FailureMessage | None:
    """Return the same for a phase that is verified on `tree`; `present` is a scan of the user's working tree.

    A path that git ignores may be one that a task made, so the message names both ways out.
    """
    failed = _first_failed(checked)
    if failed is None:
        return None
    search = _Search(services, checks, phase, tree, present, failed, f"idumb verify-work {phase}")
    own = "If a task made it, correct .gitignore and commit it. If you installed it, "
    return _message(search, _needed(search, _ignored(search), _differing(search)), own)


def not_prepared(context: RunContext, refusal: Refusal) -> FailureMessage | None:
    """Return the failure of an attempt whose checks could not run because `checks.prepare` failed; None for others."""
    if refusal.code != PREPARE:
        return None
    correct, phase = "Correct checks.prepare in .idumb/config.yaml, or the files that it reads", context.contract.phase
    return FailureMessage(failures.NOT_PREPARED, refusal.message, correct, f"idumb execute-phase {phase}")


def installations(services: Services) -> tuple[dependency_setup.Proposal, ...]:
    """Return how the dependencies can be installed that the manifests in the working tree name."""
    present = services.files.existing(dependency_setup.FILES)
    return dependency_setup.proposals(present, lambda path: services.reports.read(path) or "")


def _first_failed(checked: Sequence[Evidence]) -> Evidence | None:
    rows = (e for e in checked if e.command and not (e.changed and e.exit_code == 0))
    return next((e for e in rows if e.result in (evidence.FAILED, evidence.ERRORED)), None)


def _ignored(search: _Search) -> list[str]:
    """Return the ignored paths and nested repositories that checks do not have already."""
    trees, settings = search.services.trees, search.services.settings.checks
    provided = (*settings.provide, *settings.share) if settings else ()
    inner = [path for path in trees.repositories() if trees.entry(search.tree, path) is None]
    return [path for path in _usable((*trees.ignored(), *inner)) if path not in {p.rstrip("/") for p in provided}]


def _differing(search: _Search) -> list[str]:
    changes = search.services.trees.changes(search.tree, search.present)
    return _usable(change.path for change in changes if change.new is not None)


def _usable(names: Iterable[str]) -> list[str]:
    unique = dict.fromkeys(name.rstrip("/") for name in names if not paths.matches_any(name, paths.OWN_FILES))
    return [path for path in unique if path.rpartition("/")[2] not in _NEVER]


def _is_installed(path: str) -> bool:
    return path.rpartition("/")[2] in dependency_setup.FOLDERS


def _needed(search: _Search, ignored: Sequence[str], differing: Sequence[str]) -> Missing:
    """Return what the check names of all with which it passes, or else all; nothing if that is not the cause.

    What is around counts only if it names nothing inside: the next run shows whether that was enough.
    """
    likely_first = sorted(ignored, key=lambda path: not search.names(path))
    uncommitted = search.services.history.uncommitted(differing)[:_MOST]
    everything = Missing(likely_first[:_MOST], uncommitted, search.checks.surroundings(search.failed))
    inside, mine, around = (list(filter(search.names, group)) for group in everything)
    named = Missing(inside, mine, () if inside or mine else around)
    if not any(named) and (search.failed.seconds >= _SHORT or not any(everything)):
        return Missing()
    # A check that passes without them too is only unreliable.
    helps = _passes(search, everything) and not _passes(search, Missing())
    return (named if any(named) else everything) if helps else Missing()


def _passes(search: _Search, missing: Missing) -> bool:
    """Return whether the check passes with these, or fails after it could not even start without them."""
    services, failed, tree, run = search.services, search.failed, search.tree, search.checks.command
    if missing.uncommitted:
        tree = services.trees.overlay(tree, search.present, missing.uncommitted)
    limit, lent, views = float(services.settings.run.check_timeout), missing.ignored, missing.around
    with services.interrupts.armed():
        again = run(failed.subject, failed.text, str(failed.command), timeout=limit, tree=tree, lent=lent, views=views)
    return again.passed or (failed.result == evidence.ERRORED and again.result == evidence.FAILED)


def _message(search: _Search, needed: Missing, own: str = "") -> FailureMessage | None:
    """Return what the check needs, with the line that provides it; `own` is what to do if a task made it."""
    ignored, uncommitted, around = needed
    if not any(needed):
        return None
    shown = [{HOME: "your HOME", TMPDIR: "a file in your TMPDIR"}.get(name, name) for name in around]
    names = [wording.listed([*shown, *ignored])] if shown or ignored else []
    names += [f"your uncommitted {wording.listed(uncommitted)}"] if uncommitted else []
    words = f"{search.failed.subject} needs {' and '.join(names)}"
    words += ", which the commit does not hold: git does not track it" if ignored and not around else ""
    kind = failures.NOT_AROUND if around else failures.NOT_PROVIDED if ignored else failures.NOT_COMMITTED
    change: dict[str, Any] = {"provide": ignored} if ignored else {}
    change |= {"home": USER_HOME} if HOME in around else {}
    change |= {"tree": IN_PLACE} if any(name.startswith(BESIDE) for name in around) else {}
    if not change:
        fix = "Let the check make the file itself" if around else "Commit it"
        return FailureMessage(kind, words, fix, search.again)
    commands = [c for each in installations(search.services) if each.folder in ignored for c in each.commands]
    install = {**change, "provide": (), "prepare": commands}
    lines = [change, install] if commands and all(map(_is_installed, ignored)) else [change]
    own = own if ignored else ""
    fix = check_lines.adding(search.services.settings.checks, *lines, verb="add" if own else "Add")
    commit = f"Commit {wording.listed(uncommitted)}. " if uncommitted else ""
    return FailureMessage(kind, words, f"{commit}{own}{fix}", f"idumb execute-phase {search.phase}")
