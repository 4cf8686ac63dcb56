"""Changes in the user's index during an attempt. They stay, are reported, and never enter idumb's commits.

People stage while an agent works, and an agent in the same tree may stage too. An index has no authors, so idumb
restores nothing: it prints the command that restores the earlier index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, attempt_ref
from idumb.domain import paths, wording
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.proof.ledger import Entry

_CHANGED, _REPLACED = "index", "staged"
_ROWS = "rows"
# idumb commits these itself later; earlier index entries would then undo that.
_REPORTS = (".idumb/brain/**", ".planning/**/*-SUMMARY.md", ".planning/**/*-VERIFICATION.md")


def tell(
    context: RunContext, task: Task, number: int, snapshot: str, moved: Iterable[str], accepted: Sequence[str]
) -> None:
    """Report the paths outside the task among `moved`, whose index entries differ from the snapshot."""
    covers = paths.cover((*ledger.written_paths(task.files), *accepted, *_REPORTS))
    changed = [path for path in moved if not covers(path)]
    if not changed:
        return
    history, trees = context.services.history, context.services.trees
    blob = trees.store(history.index_input(history.index_at(snapshot, changed)))
    ref = attempt_ref(context.services, context.run, task.id, number, _CHANGED)
    trees.keep_blobs(ref, {_ROWS: blob}, f"the index before {task.id}")
    context.services.reporter.note(
        f"While {task.id} ran, the index changed: {wording.listed(changed)}. idumb leaves it, because you may have"
        f" changed it, and commits none of it. Earlier state: {_command(blob)}"
    )


def hold(
    services: Services, ref: str, entries: Mapping[str, Entry | None], trees: Collection[str], words: str
) -> Mapping[str, Entry | None]:
    """Keep what is staged and in none of the trees, before a commit replaces it."""
    entry = services.trees.entry
    staged = {path: item for path, item in entries.items() if item not in [entry(tree, path) for tree in trees]}
    if staged:
        rows = services.history.index_input(staged)
        blobs = {item.oid: item.oid for item in staged.values() if item is not None and item.mode != ledger.SUBMODULE}
        services.trees.keep_blobs(ref, {_ROWS: services.trees.store(rows), **blobs}, words)
    return staged


def tell_replaced(services: Services, ref: str, staged: Mapping[str, Entry | None], who: str) -> None:
    """Report paths that were staged with other contents than idumb committed."""
    head = services.history.head_tree()
    changed = [p for p, entry in staged.items() if head is None or services.trees.entry(head, p) != entry]
    if changed:
        services.reporter.note(
            f"{wording.listed(changed)} was staged with other content than {who} left. The commit and the index"
            f" have what {who} left. To stage it again: {_command(services.trees.kept_blobs(ref)[_ROWS])}"
        )


def unstaged_without_commit(services: Services, tree: str, paths: Sequence[str]) -> bool:
    """Return whether HEAD has these files as the tree has them, and then unstage them, as a commit of them would.

    git refuses a commit that changes nothing.
    """
    if not paths:
        return False
    history = services.history
    head = history.head().commit
    return services.trees.committed(head, tree, paths) == history.tree_of(head) and history.unstage(paths)


def hold_of(context: RunContext, attempt: Attempt, entries: Mapping[str, Entry | None]) -> Mapping[str, Entry | None]:
    """Keep what is staged of the task's own paths, before its commit."""
    words = f"what was staged when {attempt.task.id} was committed"
    tree = attempt.candidate
    return hold(context.services, f"{attempt.ref}/{_REPLACED}", entries, (tree,), words)


def tell_replaced_of(context: RunContext, attempt: Attempt, staged: Mapping[str, Entry | None]) -> None:
    tell_replaced(context.services, f"{attempt.ref}/{_REPLACED}", staged, attempt.task.id)


def tell_again(context: RunContext, task: Task, number: int, *, committed: bool) -> None:
    """After a kill, report again what was kept: nobody may have seen the first report."""
    held = [(_CHANGED, f"While {task.id} ran, the index changed. Earlier state")]
    if committed:
        words = f"Files of {task.id} were staged with other content than was committed. To stage it again"
        held.append((_REPLACED, words))
    for kind, words in held:
        ref = attempt_ref(context.services, context.run, task.id, number, kind)
        if kept := context.services.trees.kept_blobs(ref):
            context.services.reporter.note(f"{words}: {_command(kept[_ROWS])}")


def _command(blob: str) -> str:
    return f"git cat-file blob {blob} | git update-index -z --index-info"
