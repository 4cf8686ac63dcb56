"""Checks of `idumb doctor` that compare the event log with refs, the branch, git's files and processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from idumb import lazy_pattern
from idumb.app.core import kept_runs, open_attempt, run_lookup
from idumb.app.core.services import Services, run_ref
from idumb.app.worktree import rewritten
from idumb.domain import health
from idumb.domain.errors import Refusal
from idumb.domain.health import Check, Symptom
from idumb.domain.runs import guarded_names, run
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass

_REFS = "refs/idumb/"
_RUN_OF_REF = lazy_pattern.compile(r"refs/idumb/worktrees/[^/]+/runs/([^/]+)/")
_SHOWN = 10
_KEPT_BY = dict.fromkeys(("amendment.intended", "contract.amended"), "the plans of the amended contract")
_OF_RUN = (("base", "base_snapshot", "the snapshot before the run"), ("plans", "plans_object", "the plans of the run"))
"""Names of a run, the keys of `run.started` that have their objects, and what they are."""


def checks(services: Services) -> tuple[Check, ...]:
    look = _Look(services)
    return (
        Check("snapshots.kept", "what idumb keeps of runs, and how to free it", look.kept),
        Check("log.refs", "every snapshot and checkpoint in the event log is kept", look.refs, look.keep),
        Check("log.unknown-refs", "every run under refs/idumb/ is in the event log", look.unknown_refs),
        Check("log.branch", "every commit that names a run is in the event log", look.branch),
        Check("git.guarded", "git's hooks and configuration are unchanged since the newest run began", look.guarded),
        Check("run.killed", "no run was killed", look.killed),
        Check("run.open", "no attempt is open in an editor", look.opened),
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """A ref that the event log expects, and the number of the event."""

    ref: str
    commit: str
    name: str
    seq: int


@dataclass(frozen=True, slots=True)
class _Look:
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
                name = self._name(event, worktrees, f"operations/{event.operation}/before")
                yield _Kept(name, p["before"], "the snapshot before a rollback", event.seq)
        yield from of_runs

    def _name(self, event: Event, worktrees: Mapping[str, str], name: str) -> str:
        return run_ref(self.services, event.run or "", name, worktrees.get(event.operation))

    def unknown_refs(self) -> Iterator[Symptom]:
        runs = {event.run for event in self.services.log.events(kind="run.started")}
        refs_by_run: dict[str, int] = {}
        for ref in self.services.history.refs(_REFS):
            match = _RUN_OF_REF.match(ref)
            if match is not None and match[1] not in runs:
                refs_by_run[match[1]] = refs_by_run.get(match[1], 0) + 1
        for run_id, number in refs_by_run.items():
            yield health.warn(
                f"{number} refs belong to run {run_id}, which is not in the event log",
                f"{_REFS}worktrees/*/runs/{run_id}",
                means="snapshots of a run that was killed at its start, or of another event log; they are kept",
                fix="git for-each-ref refs/idumb",
            )

    def branch(self) -> Iterator[Symptom]:
        """Yield commits whose run is not in the log, as in a clone, and commits of runs that no longer exist."""
        runs = {event.run for event in self.services.log.events(kind="run.started")}
        foreign: dict[str, int] = {}
        for _, trailers in self.services.history.trailers_since(None):
            committed_run = trailers.get("Idumb-Run")
            if committed_run is not None and committed_run not in runs:
                foreign[committed_run] = foreign.get(committed_run, 0) + 1
        for run_id, number in list(foreign.items())[:_SHOWN]:
            yield health.warn(
                f"{number} commits name run {run_id}, which is not in the event log",
                means="the run took place elsewhere; nothing of it counts as proven here",
                fix="idumb status",
            )
        for state in latest_runs(self.services):
            yield from self._lost_commits(state)

    def _lost_commits(self, state: RunState) -> Iterator[Symptom]:
        for task, commit in rewritten.lost(self.services, state).items():
            yield health.warn(
                rewritten.words(state, {task: commit}),
                means="the task is not done any more",
                fix=f"idumb resume {state.phase}",
            )
        for task, task_state in state.tasks.items():
            kept = task_state.checkpoint
            if kept is not None and kept.commit is not None and not self._exists(kept.commit):
                yield health.warn(
                    f"commit {kept.commit[:12]} of {task} no longer exists",
                    means=f"history was rewritten; checkpoint {kept.snapshot[:12]} still has the files",
                    fix=f"idumb show {task}",
                )

    def guarded(self) -> Iterator[Symptom]:
        """Yield changes of git's configuration, hooks and attributes, which decide what the next commit runs."""
        own = {state.id for state in latest_runs(self.services)}
        runs = self.services.log.events(kind="run.started", newest_first=True)
        started = next((event for event in runs if event.run in own), None)
        if started is None or "guarded" not in started.payload:
            return
        was = started.payload["guarded"]
        now = self.services.history.state().guarded
        for name in guarded_names.changed(was, now):
            how = "added" if name not in was else "removed" if name not in now else "changed"
            yield health.warn(
                f"{how} after run {started.payload['number']} of phase {started.payload['phase']} began",
                name,
                means="git runs or filters by it. If you did not change it, a task may have",
                fix=f"Review {name}",
            )

    def killed(self) -> Iterator[Symptom]:
        """Yield active runs without an owner, which were killed."""
        if self.services.owner.holder() is not None:
            return
        for state in latest_runs(self.services):
            running = [t for t, task in state.tasks.items() if task.attempt.running and task.attempt.opened is None]
            if state.state == run.ACTIVE and (running or not self._ended(state)):
                during = f" during {', '.join(running)}" if running else ""
                yield health.warn(
                    f"run {state.number} of phase {state.phase} was killed{during}",
                    means="nothing is lost; the interrupted task starts again",
                    fix=f"idumb resume {state.phase}",
                )

    def _ended(self, state: RunState) -> bool:
        """Return whether the last command that wrote to the run finished. Work in an editor may continue."""
        log = self.services.log
        last = next(iter(log.events(run=state.id, newest_first=True, limit=1)))
        return any(log.events(operation=last.operation, kind="operation.finished", limit=1))

    def opened(self) -> Iterator[Symptom]:
        attempt = open_attempt.find(self.services)
        if attempt is not None:
            submit, give_up = open_attempt.choices(attempt.task)
            yield health.warn(
                attempt.words,
                means="no other command changes files until it is submitted or given up",
                fix=f"{submit.command}, or {give_up.command}",
            )


def latest_runs(services: Services) -> Iterable[RunState]:
    """Yield the newest run of each phase in this working tree."""
    for phase in services.log.phases():
        state = run_lookup.latest_run(services, phase)
        if state is not None:
            yield state


def _gone(kept: _Kept) -> Symptom:
    return health.problem(
        f"{kept.name} is lost: object {kept.commit} is missing or damaged",
        kept.ref,
        means="idumb cannot restore it; the task's commit on the branch may still have its files",
        fix="git fsck --connectivity-only, or fetch the object from a backup",
    )
