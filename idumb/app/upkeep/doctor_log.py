"""Checks of `idumb doctor` that compare the event log with what git keeps: refs, the branch, and commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.services import Services, run_ref
from idumb.app.session import operation
from idumb.app.worktree import rewritten
from idumb.domain import health, outcome
from idumb.domain.errors import Refusal
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass

_REFS = "refs/idumb/"
_KEPT_BY = dict.fromkeys(("amendment.intended", "contract.amended"), "the plans of the amended contract")
_OF_RUN = (("base", "base_snapshot", "the snapshot before the run"), ("plans", "plans_object", "the plans of the run"))
"""Names of a run, the keys of `run.started` that have their objects, and what they are."""


def checks(services: Services) -> tuple[Check, ...]:
    look = Look(services)
    return (
        Check("snapshots.kept", "what idumb keeps of runs, and how to free it", look.kept),
        Check("log.refs", "every snapshot and checkpoint in the event log is kept", look.refs, look.keep),
        Check("log.branch", "the branch has the commit of every done task", look.lost),
        Check("log.commits", "every task that a commit names as done is done", look.unknown, look.accept, alone=True),
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """A ref that the event log expects, and the number of the event."""

    ref: str
    commit: str
    name: str
    seq: int


@dataclass(frozen=True, slots=True)
class Look:
    services: Services

    def kept(self) -> Iterator[Symptom]:
        """Yield how much only idumb's refs keep, and what frees it. git needs a tenth of a second for 500 tasks."""
        size = self.services.history.kept_bytes()
        if size is None:
            yield health.warn(health.NOT_EXAMINED, means="git cannot read all that is kept; see log.refs and git.refs")
            return
        words = kept_runs.kept(self.services)["words"] or "Kept: no snapshots of runs"
        yield health.passed(f"{words}. On disk: {size / 1e6:.1f} MB that only idumb keeps")

    def refs(self) -> Iterator[Symptom]:
        """Yield missing names and objects. A name can be restored while its object exists."""
        present = self.services.history.refs(_REFS)
        freed = kept_runs.freed(self.services)
        by_ref = {kept.ref: kept for kept in self._expected()}
        expected = [kept for kept in by_ref.values() if not kept_runs.freed_before(freed, kept.ref, kept.seq)]
        missing = [kept for kept in expected if kept.ref not in present]
        yield from map(self._missing, missing)
        yield from (_gone(kept) for kept in expected if kept.ref in present and not self._exists(kept.commit))
        yield health.passed(f"{len(expected) - len(missing)} of {len(expected)} exist")

    def keep(self, symptom: Symptom) -> str:
        ref, _, commit = symptom.subject.partition(" ")
        self.services.history.keep_ref(ref, commit)
        return f"{ref} names {commit[:12]} again"

    def _exists(self, oid: str) -> bool:
        """Return whether an object can be read."""
        try:
            self.services.trees.read(oid)
        except (Refusal, KeyError, ValueError):
            return False
        return True

    def _missing(self, kept: _Kept) -> Symptom:
        if not self._exists(kept.commit):
            return _gone(kept)
        return health.problem(
            f"nothing names {kept.name} any more; object {kept.commit[:12]} still exists",
            kept.ref,
            means="git gc may remove it",
            fixes=True,
            subject=f"{kept.ref} {kept.commit}",
        )

    def _expected(self) -> Iterator[_Kept]:
        """Yield the refs that events name; a later event on the same ref replaces an earlier one."""
        worktrees: dict[str, str] = {}
        of_runs: list[_Kept] = []
        for event in self.services.log.events():
            p = event.payload
            ref, snapshot = p.get("ref"), p.get("snapshot")
            if event.kind == "operation.started" and p.get("worktree"):
                worktrees[event.operation] = p["worktree"]
            elif event.kind == "run.started":
                names = (row for row in _OF_RUN if p.get(row[1]))
                of_runs += [
                    _Kept(self._name(event, worktrees, name), p[key], words, event.seq) for name, key, words in names
                ]
            elif isinstance(ref, str) and isinstance(snapshot, str):
                words = f"the snapshot of {event.task}, attempt {event.attempt} ({event.kind})"
                yield _Kept(ref, snapshot, words, event.seq)
                if p.get("kept"):
                    words = f"the task base of {event.task}, attempt {event.attempt}"
                    yield _Kept(f"{ref.removesuffix('base')}task-base", p["kept"], words, event.seq)
            elif isinstance(ref, str) and isinstance(p.get("object"), str):
                yield _Kept(ref, p["object"], _KEPT_BY.get(event.kind, event.kind), event.seq)
            elif event.kind == "rollback.completed" and p.get("before"):
                name = self._name(event, worktrees, f"operations/{p.get('operation', event.operation)}/before")
                yield _Kept(name, p["before"], "the snapshot before a rollback", event.seq)
        yield from of_runs

    def _name(self, event: Event, worktrees: Mapping[str, str], name: str) -> str:
        return run_ref(self.services, event.run or "", name, worktrees.get(event.operation))

    def lost(self) -> Iterator[Symptom]:
        """Yield the done tasks whose commits the branch lost, as after `git reset`."""
        for state in run_lookup.latest_runs(self.services):
            commits = rewritten.lost(self.services, state)
            if commits:
                words, fix = rewritten.words(state, commits), f"idumb resume {state.phase}"
                yield health.warn(words, means="these tasks are not done any more", fix=fix)

    def unknown(self) -> Iterator[Symptom]:
        """Yield the tasks that commits name as done and a restored log does not know. Commits outlive the log."""
        restored = any(self.services.log.events(kind="log.restored", limit=1))
        for state in run_lookup.latest_runs(self.services) if restored else ():
            for task, commit in _unrecorded(self.services, state).items():
                yield health.warn(
                    f"{task} is not done in the event log, and commit {commit[:12]} names it as done",
                    means="resume would build it again",
                    fixes=True,
                    subject=f"{state.phase} {task}",
                )

    def accept(self, symptom: Symptom) -> str:
        """Record as accepted work what a commit's trailers say, since its evidence is lost."""
        phase, task = symptom.subject.split(" ")
        with operation.owned(self.services, "doctor") as owned:
            state = run_lookup.latest_run(self.services, phase)
            commit = None if state is None else _unrecorded(self.services, state).get(task)
            if state is None or commit is None:
                return f"{task} was recorded meanwhile"
            journal = owned.journal(state)
            reason = f"commit {commit[:12]} names it as done; its events and evidence were lost with the event log"
            journal.write(journal.event("task.accepted", task, reason=reason, by="idumb doctor", commit=commit))
        return f"{task} is done: {reason}"


def _unrecorded(services: Services, state: RunState) -> dict[str, str]:
    """Return tasks of a run with their commits that no event names; what was rolled back since does not count."""
    events = services.log.events(run=state.id)
    known = {event.payload[name] for event in events for name in ("commit", "git_hash") if name in event.payload}
    found: dict[str, str] = {}
    for commit, trailers in services.history.trailers_since(state.base.commit):
        if trailers.get("Idumb-Run") != state.id or commit in known:
            continue
        if "Idumb-Rollback" in trailers or "Idumb-Undo" in trailers:
            break
        name = trailers.get("Idumb-Task", "")
        task = state.tasks.get(name)
        if task is not None and task.status not in outcome.DONE and not task.attempt.running:
            found.setdefault(name, commit)
    return dict(reversed(found.items()))


def _gone(kept: _Kept) -> Symptom:
    return health.problem(
        f"{kept.name} is lost: object {kept.commit} is missing or damaged",
        kept.ref,
        means="idumb cannot restore it; the task's commit on the branch may still have its files",
        fix="git fsck --connectivity-only, or fetch the object from a backup",
    )
