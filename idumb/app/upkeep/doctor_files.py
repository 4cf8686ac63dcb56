"""Checks of `idumb doctor` on files that people read and write: configuration, plans, projections, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from idumb.app.attempt import handoff_writer
from idumb.app.attempt import projections as publish
from idumb.app.contract import loading
from idumb.app.core import projection_paths, run_lookup, schedule
from idumb.app.core.services import Services, kept_at
from idumb.app.engine import state_file
from idumb.app.upkeep import old_idumb
from idumb.app.upkeep.doctor_log import latest_runs
from idumb.domain import canonical_json, finding, health, outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.health import Check, Symptom
from idumb.domain.runs import legacy
from idumb.domain.runs.run import Checkpoint, RunState

_SHOWN = 20
_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
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
    """`made` are the texts of projections at one head of the log."""

    services: Services
    made: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

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
        for path, wanted in self._wanted().items():
            why = self._differs(path, wanted)
            if why:
                yield _mendable(why, path)
        yield from self._state_file()

    def _wanted(self) -> dict[str, str]:
        """Path and text of every file below `.idumb/brain` that the log tells of, but for `state.json`."""
        head = self.services.log.head()
        if head not in self.made:
            self.made.clear()
            self.made[head] = dict(self._made())
        return self.made[head]

    def _made(self) -> Iterator[tuple[str, str]]:
        services = self.services
        for state in latest_runs(services):
            contract = self._contract(state)
            if contract is not None:
                wanted = services.documents.progress(state, schedule.statuses(contract, state))
                yield projection_paths.progress_path(state.phase), wanted
        yield from self._documents().items()
        for document in handoff_writer.known(services):
            yield handoff_writer.path(document), services.documents.handoff(document)

    def _documents(self) -> dict[str, str]:
        """What the runs of this work tree wrote about their tasks; a later run writes over an earlier one."""
        found: dict[str, str] = {}
        branch = self.services.history.head().branch
        for run in state_file.runs_here(self.services):
            state = run_lookup.run_of(self.services, run)
            # Those of a run on another branch lie there, and made here they would bar the way to it.
            contract = self._contract(state) if state.branch == branch else None
            if contract is None:
                continue
            found.update(publish.contexts(self.services, state, contract))
            for path, text in publish.checkpoints(self.services, state, contract, contract.order):
                if text is None:
                    found.pop(path, None)
                else:
                    found[path] = text
        return found

    def _differs(self, path: str, wanted: str) -> str:
        """Why a file is not what the log says; "" where it is. Git may have written other ends of lines."""
        text, wanted = self._read(path), self.services.redaction.redact(wanted)
        if text is not None and wanted in (text, text.replace("\r\n", "\n")):
            return ""
        is_json = path.endswith(".json")
        why = damaged(text) if is_json else _emptied(text)
        if why or text is None or not is_json:
            return why or "it is not as the log says"
        present, known = json.loads(text), json.loads(wanted)
        moved = sorted({key for key in {*known, *present} if present.get(key) != known.get(key)})
        return f"it is not as the log says in {', '.join(moved)}" if moved else "it is not as idumb writes it"

    def _state_file(self) -> Iterator[Symptom]:
        path, wanted = projection_paths.STATE_FILE, state_file.text(self.services)
        more = state_file.of_path(self.services, path)
        if more is not None and more[0].what == legacy.STATE and wanted is not None:
            words = "it holds what the log does not have yet"
            yield health.warn(words, path, means="it is recorded before the file is rebuilt", mends=True)
            return
        why = "" if wanted is None else self._differs(path, wanted)
        if why:
            yield _mendable(why, path)

    def _read(self, path: str) -> str | None:
        try:
            return self.services.reports.read(path)
        except OSError:
            return ""

    def _contract(self, state: RunState) -> Contract | None:
        """The contract as the run locked it, None where its kept bytes cannot be read any more."""
        try:
            return loading.contract_of(self.services, state)
        except IdumbError:
            return None

    def project(self, symptom: Symptom) -> str:
        """Rebuild a projection from the log; what was there is kept."""
        services, path = self.services, symptom.path
        text = state_file.text(services) if path == projection_paths.STATE_FILE else self._wanted().get(path)
        if text is None:
            return f"{path}: the log says nothing of it any more, left as it is"
        kept = self._keep(path)
        services.reports.write(path, text)
        return f"{path} rebuilt from the log" + (f"; what was there is in {kept}" if kept else "")

    def _keep(self, path: str) -> str:
        """What cannot be read cannot be kept, and is not replaced."""
        text = self.services.reports.read(path)
        if not text:
            return ""
        return self.services.backups.keep(publish.SET_ASIDE, path, text.encode("utf-8", "surrogateescape"))

    def legacy(self) -> Iterator[Symptom]:
        found = [old for old, _ in old_idumb.pending(self.services)]
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
    why = _emptied(text)
    if why:
        return why
    try:
        return "" if isinstance(canonical_json.decode(text or ""), dict) else "it holds no JSON object"
    except ValueError as problem:
        return f"it is no JSON: {problem}"


def _emptied(text: str | None) -> str:
    if text is None:
        return "it is missing"
    if not text.strip():
        return "it is empty"
    return "it has conflict markers of git" if has_markers(text) else ""


def has_markers(text: str) -> bool:
    return all(any(line.startswith(marker) for line in text.splitlines()) for marker in _MARKERS)


def _mendable(why: str, path: str) -> Symptom:
    return health.warn(why, path, means=_LOSES_NOTHING, mends=True)
