"""Known secrets that a change would expose: in a file name they fail the attempt, in a file a person decides.

The log redacts such names, so the real ones are looked up in the trees.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports.repository import Trees
from idumb.domain import outcome, wording
from idumb.domain.errors import Refusal, Waiting
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import ledger
from idumb.domain.proof.ledger import Change
from idumb.domain.runs.task_state import TaskState
from idumb.domain.settings import COMMIT_TASK

_REDACTED = "[redacted:"  # the start of every mark in place of a secret
_SHOWN = 20


def any_in(services: Services, paths: Iterable[str]) -> bool:
    """Return whether the name of a path holds a secret, or held one before it was recorded."""
    all_paths = tuple(paths)
    return any(_REDACTED in path for path in all_paths) or bool(services.redaction.redacted(all_paths))


def _new_names(services: Services, paths: Iterable[str], commit: str | None, base: str | None) -> dict[str, str]:
    """Return the paths whose names expose a secret that neither the commit nor the base exposes already.

    A base has uncommitted files too, so a name that only resembles theirs is new.
    """
    exposed = services.redaction.redacted(paths)
    if not exposed:
        return {}
    trees, redaction, head = services.trees, services.redaction, services.history.tree_of(commit)
    earlier = [tree for tree in (head, base) if tree is not None]
    exposed = {path: text for path, text in exposed.items() if not any(trees.entry(tree, path) for tree in earlier)}
    held = {path: {name for name, _ in redaction.find([_bytes(path)])} for path in exposed}
    committed = _in_commit(services, commit, frozenset[str]().union(*held.values()))
    # A token that is known only by its form belongs to no variable, and counts as new in every name.
    return {path: text for path, text in exposed.items() if not held[path] or held[path] - committed}


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def words_of_names(context: RunContext, attempt: Attempt, paths: Iterable[str]) -> str:
    """Return why an attempt fails if a changed file has a name that must not be recorded; "" otherwise."""
    head = attempt.before.head.commit
    exposed = _new_names(context.services, paths, head, attempt.base)
    if not exposed:
        return ""
    return (
        "the names of files hold a known secret, and nothing under such a name is recorded or committed:"
        f" {wording.listed(exposed.values())}; rename or remove them"
        f" (git ls-tree -r --name-only {attempt.ref}/checkpoint names them)"
    )


def found_again(services: Services, task_state: TaskState) -> TaskState:
    """Return the state of a task with the real names of files that the log redacted."""
    if task_state.work.base is None or task_state.work.left_tree is None:
        return task_state
    touched, deviations = (
        names_in(services, paths, task_state.work.base, task_state.work.left_tree, task_state.work.touched)
        for paths in (task_state.work.touched, task_state.work.deviations)
    )
    work = dataclasses.replace(task_state.work, touched=touched, deviations=deviations)
    return dataclasses.replace(task_state, work=work)


def of_record(services: Services, attempt: Attempt) -> Attempt:
    """Return an attempt from the log with the real names of files that the log redacted."""
    lines = attempt.ledger.lines
    recorded = [line.path for line in lines]
    names = {
        path: names_in(services, (path,), attempt.base, attempt.candidate, recorded)
        for path in recorded
        if _REDACTED in path
    }
    if not names:
        return attempt
    real = (dataclasses.replace(line, path=name) for line in lines for name in names.get(line.path, (line.path,)))
    changes = (
        dataclasses.replace(change, path=name)
        for change in attempt.changes
        for name in names.get(change.path, (change.path,))
    )
    compared = dataclasses.replace(attempt.ledger, lines=tuple(real))
    return dataclasses.replace(attempt, ledger=compared, changes=tuple(changes))


def names_in(
    services: Services, paths: Iterable[str], old: str, new: str, others: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return recorded paths, with redacted names replaced by those that differ between two trees.

    A name without a difference is omitted. Refusal `secret.unknown-name` if the secret is not known now, because the
    real name would be logged. `others` are recorded paths that cannot be the redacted one.
    """
    recorded = tuple(paths)
    marked = [path for path in recorded if _REDACTED in path]
    if not marked:
        return recorded
    changed = [change.path for change in services.trees.changes(old, new)]
    shown = services.redaction.redacted(changed)
    candidates = {redacted: [path for path in changed if shown.get(path, path) == redacted] for redacted in marked}
    plain = [path for path in changed if path not in {*recorded, *others}]
    hides = services.redaction.may_match
    unknown = [
        redacted for redacted, names in candidates.items() if not names and any(hides(redacted, path) for path in plain)
    ]
    if unknown:
        raise Refusal(
            "secret.unknown-name",
            f"Nothing was changed: the names of these files hold a secret that is not known now:"
            f" {wording.listed(unknown)}",
            hint="Set the variables that this run had, then run the command again",
            details={"paths": unknown},
        )
    return tuple(dict.fromkeys(name for path in recorded for name in candidates.get(path, (path,))))


def judge(context: RunContext, attempt: Attempt) -> Attempt:
    """Search what would be committed for secrets.

    A strict run fails if there is one; otherwise a person is asked later.
    """
    # A dry run commits nothing, and says what a run would ask.
    policies = (context.policy, context.services.settings.git.commit)
    if COMMIT_TASK not in policies:
        return attempt  # nobody commits it
    # A person may have committed his work himself.
    head = context.services.history.head() if attempt.task.is_human else attempt.before.head
    exposed = _added(context.services, context.work, attempt.changes, head.commit)
    if exposed and STRICT in (attempt.plan.mode, context.journal.state.mode):
        words = questions.secret(attempt.task.id, attempt.number, exposed).what
        return attempt.ended(outcome.FAILED, f"{words}; {questions.WITHOUT_SECRET}")
    return dataclasses.replace(attempt, exposed=exposed)


def require_consent(services: Services, journal: Journal, task: str, tree: str, paths: Sequence[str]) -> None:
    """Ask before a person's acceptance commits a secret, and refuse a file name that holds one.

    Errors `accept.secret-name` and `accept.secret`. The question waits if nobody can be asked.
    """
    commit = services.history.head().commit
    base = journal.state.tasks[task].work.base if task in journal.state.tasks else None
    names = _new_names(services, paths, commit, base)
    names |= {path: path for path in paths if _REDACTED in path}
    if names:
        raise Refusal(
            "accept.secret-name",
            f"The names of files that {task} left hold a known secret: {wording.listed(names.values())}",
            hint=f"Rename or remove them (git status names them), then idumb accept {task} --why REASON",
            details={"task": task, "paths": list(names.values())},
        )
    head, trees = services.history.tree_of(commit), services.trees
    exposed = _added(services, trees, trees.changes(head, trees.overlay(head, tree, paths)), commit)
    if not exposed:
        return
    consent_question = questions.secret_to_accept(journal.state, task, exposed)
    answer = journal.ask_once(services.asker, consent_question)
    if answer is not None and answer.choice == questions.YES:
        return
    again = f"idumb accept {task} --why REASON"
    words = f"{consent_question.what}. Nothing was accepted."
    details = {"task": task, "decision": consent_question.id, "evidence": list(exposed)}
    if answer is not None and answer.choice == questions.NO:
        without = f"{questions.WITHOUT_SECRET.capitalize()}, then {again}"
        raise Refusal("accept.secret", words, hint=without, details=details)
    decide = f"idumb decide {consent_question.id} {questions.YES}"
    raise Waiting("accept.secret", words, hint=f"{decide}, then {again}", details=details)


def _added(services: Services, trees: Trees, changes: Iterable[Change], commit: str | None) -> tuple[str, ...]:
    """Return a line for each known value in these files that the commit lacks: file, line, variable."""
    redaction = services.redaction
    if not redaction.knows_secrets():
        return ()
    new = {(c.path, c.new.oid): None for c in changes if c.new is not None and c.new.mode != ledger.SUBMODULE}
    matches = [(path, line, name) for path, oid in new for name, line in redaction.find(trees.pieces(oid))]
    if not matches:
        return ()
    committed = _in_commit(services, commit, frozenset(name for _, _, name in matches))
    new_matches = [match for match in matches if match[2] not in committed]
    lines = (f"{redaction.redact(path)}:{line}: the value of {name}" for path, line, name in new_matches)
    return tuple(dict.fromkeys(lines))[:_SHOWN]


def secret_in(services: Services, blobs: Mapping[str, str]) -> frozenset[str]:
    """Return the paths, given with the ids of their bytes, that hold a known secret in their name or bytes."""
    redaction = services.redaction
    if not redaction.knows_secrets():
        return frozenset(redaction.redacted(blobs))
    pieces = services.trees.pieces
    return frozenset(p for p, oid in blobs.items() if any(redaction.find(pieces(oid)))).union(redaction.redacted(blobs))


def _in_commit(services: Services, commit: str | None, names: frozenset[str]) -> frozenset[str]:
    """Return the variables whose values a commit already has in some file or name."""
    if not names:
        return frozenset()
    history, trees, redaction = services.history, services.trees, services.redaction
    changes = trees.changes(history.tree_of(None), history.tree_of(commit))
    missing = names - redaction.variables_in((_bytes(f"{change.path}\n") for change in changes), names)
    for change in changes:
        if not missing:
            break
        if change.new is None or change.new.mode == ledger.SUBMODULE:
            continue
        # In a partial clone, some objects cannot be read.
        with suppress(Refusal):
            missing -= redaction.variables_in(trees.pieces(change.new.oid), missing)
    return names - missing
