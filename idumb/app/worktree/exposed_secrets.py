"""Known secrets that a change would expose: in a file name they fail the attempt, in a file a person decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, Trees
from idumb.domain import outcome, wording
from idumb.domain.errors import Refusal
from idumb.domain.proof import ledger
from idumb.domain.settings import COMMIT_TASK

_REDACTED = "[redacted:"  # the start of every mark in place of a secret
_SHOWN = 20


def is_redacted(path: str) -> bool:
    """Return whether a recorded path held a secret, so that its real name is nowhere."""
    return _REDACTED in path


def in_any_name(services: Services, paths: Sequence[str]) -> bool:
    """Return whether the name of a path holds a secret, or held one before it was recorded."""
    return any(map(is_redacted, paths)) or bool(services.redactor.redacted(paths))


def why_names_fail(context: RunContext, attempt: Attempt, paths: Iterable[str]) -> str:
    """Return why an attempt fails if a changed file has a name that must not be recorded; "" otherwise."""
    exposed = context.services.redactor.redacted(paths)
    if not exposed:
        return ""
    return (
        "the names of files hold a known secret, and nothing under such a name is recorded, committed or restored:"
        f" {wording.listed(exposed.values())}; rename or remove them"
        f" (git ls-tree -r --name-only {attempt.ref}/checkpoint names them)"
    )


def require_public_names(services: Services, paths: Iterable[str]) -> None:
    """Refuse to restore paths whose names hold a secret that is known only since they were recorded."""
    exposed = services.redactor.redacted(paths)
    if exposed:
        raise Refusal(
            "secret.in-name",
            f"Nothing was changed: the names of these files hold a known secret: {wording.listed(exposed.values())}",
            hint="Unset the variable that holds it, then run the command again; or restore these files with git",
            details={"paths": list(exposed.values())},
        )


def search(context: RunContext, attempt: Attempt) -> Attempt:
    """Search what would be committed for secrets.

    A strict run fails if there is one; otherwise a person is asked later.
    """
    # A dry run commits nothing, and says what a run would ask.
    policies = (context.state.policy, context.services.settings.git.commit)
    if COMMIT_TASK not in policies or not context.services.redactor.knows_secrets():
        return attempt  # nobody commits it, or nothing more can be found in it
    # A person may have committed his work himself.
    head = context.services.history.head() if attempt.task.is_human else attempt.before.head
    exposed = _added(context.services, context.work, head.commit, attempt.candidate, attempt.committed)
    if exposed and context.strict:
        words = questions.secret(attempt.task, attempt.number, exposed).what
        return attempt.ended(outcome.FAILED, f"{words}; {questions.WITHOUT_SECRET}")
    return replace(attempt, exposed=exposed)


def require_none(services: Services, task: str, tree: str, paths: Sequence[str]) -> None:
    """Refuse to accept work with a known secret: `accept.secret-name` in a file name, `accept.secret` in a file."""
    named = [path for path in paths if in_any_name(services, [path])]
    if named:
        shown = [services.redactor.redact(path) for path in named]
        raise Refusal(
            "accept.secret-name",
            f"The names of files that {task} left hold a known secret: {wording.listed(shown)}",
            hint=f"Rename or remove them (git status names them), then idumb accept {task} --why REASON",
            details={"task": task, "paths": shown},
        )
    exposed = _added(services, services.trees, services.history.head().commit, tree, paths)
    if exposed:
        raise Refusal(
            "accept.secret",
            f"Accepting {task} would commit a known secret: {wording.listed(exposed, 5, between='; ')}",
            hint=f"idumb take {task} puts its files here; {questions.WITHOUT_SECRET}, then idumb submit {task}",
            details={"task": task, "evidence": list(exposed)},
        )


def _added(services: Services, trees: Trees, commit: str | None, tree: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return a line for each known value in these files of a tree that the commit lacks there: file, line, variable."""
    redactor, lines = services.redactor, dict[str, None]()
    head = services.history.tree_of(commit) if redactor.knows_secrets() else ""
    for path in paths if head else ():
        new, old = trees.entry(tree, path), trees.entry(head, path)
        if new is None or new.mode == ledger.SUBMODULE or new == old:
            continue
        found = redactor.find(trees.pieces(new.oid))
        before = trees.pieces(old.oid) if found and old is not None and old.mode != ledger.SUBMODULE else ()
        known = {name for name, _ in redactor.find(before)}
        place = redactor.redact(path)
        lines |= {f"{place}:{at}: the value of {name}": None for name, at in found if name not in known}
    return tuple(lines)[:_SHOWN]


def paths_with_secret(services: Services, blobs: Mapping[str, str]) -> frozenset[str]:
    """Return the paths, given with the ids of their bytes, that hold a known secret in their name or bytes."""
    redactor = services.redactor
    if not redactor.knows_secrets():
        return frozenset(redactor.redacted(blobs))
    pieces = services.trees.pieces
    return frozenset(p for p, oid in blobs.items() if any(redactor.find(pieces(oid)))).union(redactor.redacted(blobs))
