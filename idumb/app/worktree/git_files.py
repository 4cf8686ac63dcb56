"""The files of the user's repository that decide what git runs: hooks, configuration, attributes.

A program works in a checkout, but it runs as the user and could reach them. What changed while it worked is named;
a strict run stops, and a person decides.
"""

from __future__ import annotations

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports.repository import RepositoryState
from idumb.app.worktree import preconditions
from idumb.domain import wording
from idumb.domain.runs import run

_ADDRESSED = frozenset({"credential", "http", "url"})


def compare(context: RunContext, attempt: Attempt) -> None:
    """Name what changed while the builder worked. Refusal `git.guarded-changed` in a strict run."""
    after = context.services.history.state()
    changed = run.guarded_changes(attempt.before.guarded, after.guarded)
    if not changed:
        return
    how = {name: words(name, attempt.before, after) for name in changed}
    if context.strict:
        state = context.journal.state
        raise preconditions.guarded_changed(f"while {attempt.task.id} ran", state, how, changed)
    _tell(context.services, f"While {attempt.task.id} ran", how)


def tell_changed(services: Services, who: str, before: RepositoryState) -> None:
    """Name what changed since `before`, while a program worked for no run; `who` is its role."""
    after = services.history.state()
    changed = run.guarded_changes(before.guarded, after.guarded)
    if changed:
        _tell(services, f"While the {who} worked", {name: words(name, before, after) for name in changed})


def _tell(services: Services, when: str, how: dict[str, str]) -> None:
    listed = wording.listed(preconditions.guarded_words(how))
    words = f"{when}, files changed that decide what git runs: {listed}. Look at them before you use git"
    services.reporter.note(words)


def words(name: str, before: RepositoryState, after: RepositoryState) -> str:
    """Return what changed in a guarded file: the names of the settings, or whether it is new or was removed."""
    how = run.guarded_change(name, before.guarded, after.guarded)
    rows = before.configuration.get(name, frozenset()) ^ after.configuration.get(name, frozenset())
    keys = wording.listed(sorted({_public(key) for key, _ in rows})) if before.configuration else ""
    return ": ".join(filter(None, (how, keys)))


def _public(key: str) -> str:
    """Return the name of a setting without a part that may be an address with a password in it."""
    section, _, rest = key.partition(".")
    return f"{section}.*.{rest.rpartition('.')[2]}" if section in _ADDRESSED and "." in rest else key
