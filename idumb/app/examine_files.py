"""Checks of `idumb doctor` on files that people read and write: configuration, plans, projections, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from idumb.app import loading, publish, schedule, takeover
from idumb.app.examine_log import latest_runs
from idumb.app.services import Services, kept_at
from idumb.domain import canonical, finding, health, outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.health import Check, Symptom
from idumb.domain.run import Checkpoint, RunState

_SHOWN = 20
_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
SET_ASIDE = "set-aside"
# HEAD moves on by itself, and so does the log: the end of the operation is recorded after the projection.
_MOVES_ON = frozenset({"git_hash", "updated_at"})
_LOSES_NOTHING = "it is made from the event log, nothing is lost"


def checks(services: Services) -> tuple[Check, ...]:
    look = _Look(services)
    return (
        Check("config.reads", ".idumb/config.yaml can be read", look.configuration),
        Check("plans.read", "every plan can be read", look.plans),
        Check("files.emptied", "no file of a completed task was emptied by a crash", look.emptied),
        Check("projections.true", "what people read is as the log says", look.projections, look.project),
        Check("legacy.taken-over", "what an old iDumb left is taken over", look.legacy),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    services: Services

    def configuration(self) -> Iterator[Symptom]:
        if not self.services.reports.exists(".idumb/config.yaml"):
            yield health.warn(
                "there is none", ".idumb/config.yaml", means="idumb is not set up here", mend="idumb init"
            )
            return
        try:
            _ = self.services.settings
        except IdumbError as problem:
            found = [f"{f.place}: {f.message}" for f in getattr(problem, "findings", ())] or [problem.message]
            for words in found[:_SHOWN]:
                yield health.problem(
                    words, ".idumb/config.yaml", means="no command that needs it runs", mend="Correct the line"
                )

    def plans(self) -> Iterator[Symptom]:
        try:
            _ = self.services.settings
        except IdumbError:
            yield health.warn(health.NOT_EXAMINED, means="config.reads says why, and what to do")
            return
        for number, folder in self.services.plans.phases():
            if self.services.plans.plans(folder):
                yield from self._plan(number, folder)

    def _plan(self, number: str, folder: str) -> Iterator[Symptom]:
        try:
            found = finding.errors(loading.present(self.services, number).findings)
            words = [f"{one.place}: {one.message}" for one in found]
        except IdumbError as problem:
            words = [problem.message]
        if words:
            more = f", and {len(words) - 1} more" if len(words) > 1 else ""
            yield health.warn(
                f"{words[0]}{more}",
                folder,
                means=f"phase {number} cannot be run",
                mend=f"idumb check-plan {number}",
            )

    def emptied(self) -> Iterator[Symptom]:
        """A power cut can leave a file without its bytes; nobody but git still has them then."""
        for state in latest_runs(self.services):
            for path, kept in sorted(_last_words(state).items()):
                if self._lost_its_bytes(path, kept):
                    yield health.problem(
                        f"it is empty, and checkpoint {kept.snapshot[:12]} has its bytes",
                        path,
                        means="a crash can do that, so it is no change of yours until you say so",
                        mend=f"git show {kept_at(kept.snapshot[:12], path)}",
                    )

    def _lost_its_bytes(self, path: str, kept: Checkpoint) -> bool:
        if not self._is_empty(path):
            return False
        try:
            entry = self.services.trees.entry(kept.tree, path)
            return entry is not None and bool(self.services.trees.read(entry.oid))
        except (Refusal, KeyError, ValueError):
            return False  # `log.refs` tells of objects that are gone

    def _is_empty(self, path: str) -> bool:
        try:
            return self.services.reports.empty(path)
        except OSError:
            return False

    def projections(self) -> Iterator[Symptom]:
        for state in latest_runs(self.services):
            contract = self._contract(state)
            if contract is not None:
                yield from self._documents(state, contract)
        yield from self._state_file()

    def _documents(self, state: RunState, contract: Contract) -> Iterator[Symptom]:
        folder = publish.execution_folder(state.phase)
        progress = f"{folder}/progress.json"
        wanted = self.services.documents.progress(state, schedule.statuses(contract, state), head=None)
        why = self._differs(progress, wanted)
        if why:
            yield _mendable(why, progress, state.phase)
        # Those of a run on another branch lie there, and made here they would bar the way to it.
        if state.branch != self.services.history.head().branch:
            return
        for task in state.attempted:
            if state.tasks[task].checkpoint is not None and task in contract.tasks:
                path = publish.checkpoint_path(state.phase, task)
                why = self._damaged_document(path, state)
                if why:
                    yield _mendable(why, path, state.phase)

    def _differs(self, path: str, wanted: str) -> str:
        """Why a projection in JSON is not what the log says."""
        text = self._read(path)
        why = damaged(text)
        if why or text is None:
            return why
        present, known = json.loads(text), json.loads(wanted)
        moved = {key for key in known if key not in _MOVES_ON and present.get(key) != known[key]}
        return f"it is behind the log in {', '.join(sorted(moved))}" if moved else ""

    def _damaged_document(self, path: str, state: RunState) -> str:
        text = self._read(path)
        if text is None:
            return "it is missing"
        if not text.strip():
            return "it is empty"
        if has_markers(text):
            return "it has conflict markers of git"
        kept = state.tasks[path.rpartition("/checkpoint-")[2].removesuffix(".md")].checkpoint
        if kept is not None and not (text.startswith("---\n") and kept.snapshot in text):
            return "it is not the one of the newest checkpoint"
        return ""

    def _state_file(self) -> Iterator[Symptom]:
        path = publish.STATE_FILE
        if any(True for _ in latest_runs(self.services)):
            why = damaged(self._read(path))
            if why:
                yield _mendable(why, path, "")

    def _read(self, path: str) -> str | None:
        try:
            return self.services.reports.read(path)
        except OSError:
            return ""

    def _contract(self, state: RunState) -> Contract | None:
        """The contract of the run, None where the plan is another one by now."""
        try:
            loaded = loading.present(self.services, state.phase)
        except IdumbError:
            return None
        contract = loaded.contract
        return contract if contract is not None and contract.hash == state.contract_hash else None

    def project(self, symptom: Symptom) -> str:
        """Make a projection anew from the log; what was there is kept."""
        services, path = self.services, symptom.path
        kept = self._keep(path)
        states = [state for state in latest_runs(services) if symptom.subject in {"", state.phase}]
        if path == publish.STATE_FILE:
            self._write_state(states)
            return _done(path, kept)
        state = states[0]
        contract = self._contract(state)
        if contract is None:
            return f"{path}: its plan changed meanwhile, left as it is"
        if path.endswith("progress.json"):
            publish.write_progress(services, contract, state)
        else:
            task = path.rpartition("/checkpoint-")[2].removesuffix(".md")
            publish.checkpoint_again(services, state, contract.tasks[task])
        return _done(path, kept)

    def _keep(self, path: str) -> str:
        text = self._read(path)
        if not text:
            return ""
        return self.services.attic.keep(SET_ASIDE, path, text.encode("utf-8", "surrogateescape"))

    def _write_state(self, states: list[RunState]) -> None:
        """One line of history a run; what an old iDumb wrote comes back from where it is kept."""
        services = self.services
        text = self._old_state()
        for state in sorted(states, key=lambda state: state.last_seq):
            contract = self._contract(state)
            shown = schedule.statuses(contract, state) if contract else {t: k.status for t, k in state.tasks.items()}
            text = services.documents.state(
                text, state, version=services.version, now=state.changed_at, result=publish.result(shown)
            )
        publish.write(services, publish.STATE_FILE, text or "{}\n")

    def _old_state(self) -> str | None:
        for event in self.services.log.events(kind=takeover.EVENT, newest_first=True):
            if event.payload["state"]:
                told = event.payload
                return json.dumps({**told["state"], "anchors": told["anchors"], "history": told["history"]})
        return None

    def legacy(self) -> Iterator[Symptom]:
        found = [old for old, _ in takeover.pending(self.services)]
        for old in found[:_SHOWN]:
            yield health.warn(
                f"an old iDumb left its {old.what}" if not old.why else f"not idumb's: {old.why}",
                old.path,
                means="its history is not in the log yet; nothing of it will count as proven",
                mend="idumb init",
            )
        if len(found) > _SHOWN:
            yield health.warn(f"and {len(found) - _SHOWN} more files", means="the same", mend="idumb init")


def _last_words(state: RunState) -> dict[str, Checkpoint]:
    """Path to the newest checkpoint of a completed task that changed it."""
    done = [t.checkpoint for t in state.tasks.values() if t.status in outcome.DONE and t.checkpoint is not None]
    return {path: kept for kept in sorted(done, key=lambda kept: kept.seq) for path in kept.files}


def damaged(text: str | None) -> str:
    """Why a projection in JSON cannot be read; "" where it can."""
    if text is None:
        return "it is missing"
    if not text.strip():
        return "it is empty"
    if has_markers(text):
        return "it has conflict markers of git"
    try:
        return "" if isinstance(canonical.decode(text), dict) else "it holds no JSON object"
    except ValueError as problem:
        return f"it is no JSON: {problem}"


def has_markers(text: str) -> bool:
    return all(any(line.startswith(marker) for line in text.splitlines()) for marker in _MARKERS)


def _mendable(why: str, path: str, phase: str) -> Symptom:
    return health.warn(why, path, means=_LOSES_NOTHING, mends=True, subject=phase)


def _done(path: str, kept: str) -> str:
    return f"{path} made anew from the log" + (f"; what was there is in {kept}" if kept else "")
