"""Checks of `idumb doctor` on files: configuration, plans, completed work and projections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import field

from idumb.app.attempt import handoff_writer
from idumb.app.attempt import projections as publish
from idumb.app.contract import loading
from idumb.app.core import projection_paths, run_lookup, schedule
from idumb.app.core.services import Services, kept_at
from idumb.app.engine import state_file
from idumb.app.upkeep import init
from idumb.app.upkeep.doctor_log import latest_runs
from idumb.domain import canonical_json, check_lines, finding, health, outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.health import Check, Symptom
from idumb.domain.runs import legacy
from idumb.domain.runs.legacy import OldFile
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import Checkpoint
from idumb.lazy_dataclass import dataclass

_SHOWN = 20
_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
_LOSES_NOTHING = "it can be rebuilt from the event log; nothing is lost"


def checks(services: Services) -> tuple[Check, ...]:
    look = _Look(services)
    return (
        Check("config.reads", ".idumb/config.yaml can be read", look.configuration),
        Check("checks.dependencies", "checks have the dependencies of the project", look.dependencies),
        Check("plans.read", "every plan can be read", look.plans),
        Check("files.emptied", "no crash emptied a file of a completed task", look.emptied),
        Check("projections.true", "the files in .idumb/brain match the event log", look.projections, look.project),
        Check("legacy.taken-over", "the files of an old iDumb are imported", look.legacy),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """`texts` caches the projections for one head of the log."""

    services: Services
    texts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

    def configuration(self) -> Iterator[Symptom]:
        if not self.services.reports.exists(".idumb/config.yaml"):
            yield health.warn(
                "the file is missing", ".idumb/config.yaml", means="idumb is not set up here", fix="idumb init"
            )
            return
        try:
            _ = self.services.settings
        except IdumbError as problem:
            messages = [f"{f.place}: {f.message}" for f in getattr(problem, "findings", ())] or [problem.message]
            for message in messages[:_SHOWN]:
                yield health.problem(
                    message, ".idumb/config.yaml", means="commands that need it cannot run", fix="Fix this line"
                )

    def dependencies(self) -> Iterator[Symptom]:
        try:
            checkout = self.services.settings.checkout
        except IdumbError:
            yield health.warn(health.NOT_EXAMINED, means="see config.reads")
            return
        provided = {path.rstrip("/") for path in checkout.provide}
        if checkout.prepare:
            return
        for proposal in init.installations(self.services):
            prepare, provide = {"prepare": proposal.commands}, {"provide": (proposal.folder,)}
            if not proposal.folder:
                line = check_lines.line("checkout", checkout, prepare)
                yield health.passed(f"{line} would install what {proposal.manifest} names", proposal.manifest)
            elif proposal.folder not in provided:
                yield health.warn(
                    f"{proposal.manifest} names dependencies, and checks do not have {proposal.folder}",
                    proposal.manifest,
                    means="a check that needs them stops the run",
                    fix=check_lines.of_checkout(checkout, prepare, provide),
                )

    def plans(self) -> Iterator[Symptom]:
        try:
            _ = self.services.settings
        except IdumbError:
            yield health.warn(health.NOT_EXAMINED, means="see config.reads")
            return
        for number, folder in self.services.plans.phases():
            if self.services.plans.plans(folder):
                yield from self._plan(number, folder)

    def _plan(self, number: str, folder: str) -> Iterator[Symptom]:
        try:
            errors = finding.errors(loading.load_present(self.services, number).findings)
            messages = [f"{error.place}: {error.message}" for error in errors]
        except IdumbError as problem:
            messages = [problem.message]
        if messages:
            more = f", and {len(messages) - 1} more" if len(messages) > 1 else ""
            yield health.warn(
                f"{messages[0]}{more}", folder, means=f"phase {number} cannot run", fix=f"idumb check-plan {number}"
            )

    def emptied(self) -> Iterator[Symptom]:
        """Yield files that a power failure emptied; only git still has their bytes."""
        for state in latest_runs(self.services):
            for path, kept in sorted(_last_checkpoints(state).items()):
                if self._lost_its_bytes(path, kept):
                    yield health.problem(
                        f"the file is empty, but checkpoint {kept.snapshot[:12]} has its content",
                        path,
                        means="a crash may have emptied it",
                        fix=f"git show {kept_at(self.services, kept.snapshot[:12], path)}",
                    )

    def _lost_its_bytes(self, path: str, kept: Checkpoint) -> bool:
        if not self._is_empty(path):
            return False
        try:
            entry = self.services.trees.entry(kept.tree, path)
            return entry is not None and bool(self.services.trees.read(entry.oid))
        except (Refusal, KeyError, ValueError):
            return False  # `log.refs` reports missing objects

    def _is_empty(self, path: str) -> bool:
        try:
            return self.services.reports.empty(path)
        except OSError:
            return False

    def projections(self) -> Iterator[Symptom]:
        """Yield each file that the log contradicts. A running command writes them later than the log."""
        if self.services.owner.holder() is not None:
            return
        for path, text in self._expected_texts().items():
            why = self._differs(path, text)
            if why:
                yield _rebuildable(why, path)
        yield from self._state_file()

    def _expected_texts(self) -> dict[str, str]:
        """Return, by path, the text of every file in `.idumb/brain` that the log describes, except `state.json`."""
        head = self.services.log.head()
        if head not in self.texts:
            self.texts.clear()
            self.texts[head] = dict(self._render())
        return self.texts[head]

    def _render(self) -> Iterator[tuple[str, str]]:
        services = self.services
        for state in latest_runs(services):
            contract = self._contract(state)
            if contract is not None:
                text = services.documents.progress(state, schedule.statuses(contract, state))
                yield projection_paths.progress_path(state.phase), text
        yield from self._documents().items()
        for document in handoff_writer.all_handoffs(services):
            yield handoff_writer.path(document), services.documents.handoff(document)

    def _documents(self) -> dict[str, str]:
        """Return, by path, the text of the documents about tasks; a later run replaces those of an earlier one."""
        documents: dict[str, str] = {}
        branch = self.services.history.head().branch
        for run in state_file.runs_here(self.services):
            state = run_lookup.run_of(self.services, run)
            # The documents of another branch are on that branch. Written here, they would block a checkout.
            in_files = state.branch == branch and not state.reports_in_log
            contract = self._contract(state) if in_files else None
            if contract is None:
                continue
            documents.update(publish.contexts(self.services, state, contract))
            for path, text in publish.checkpoints(self.services, state, contract, contract.order):
                if text is None:
                    documents.pop(path, None)
                else:
                    documents[path] = text
        return documents

    def _differs(self, path: str, expected: str) -> str:
        """Return how a file differs from the log; "" if it does not. Git may have converted its line endings."""
        text, expected = self._read(path), self.services.redaction.redact(expected)
        if text is not None and expected in (text, text.replace("\r\n", "\n")):
            return ""
        is_json = path.endswith(".json")
        why = damaged(text) if is_json else _emptied(text)
        if why or text is None or not is_json:
            return why or "the file differs from the event log"
        present, recorded = json.loads(text), json.loads(expected)
        moved = sorted({key for key in {*recorded, *present} if present.get(key) != recorded.get(key)})
        return (
            f"the file differs from the event log in {', '.join(moved)}"
            if moved
            else "the file is not formatted as idumb writes it"
        )

    def _state_file(self) -> Iterator[Symptom]:
        path, expected = projection_paths.STATE_FILE, state_file.text(self.services)
        why = "" if expected is None else self._differs(path, expected)
        if why:
            yield _rebuildable(why, path)

    def _read(self, path: str) -> str | None:
        try:
            return self.services.reports.read(path)
        except OSError:
            return ""

    def _contract(self, state: RunState) -> Contract | None:
        """Return the contract that the run locked; None if it can no longer be read."""
        try:
            return loading.locked_contract(self.services, state)
        except IdumbError:
            return None

    def project(self, symptom: Symptom) -> str:
        """Rebuild a projection from the log, after a backup of the present file."""
        services, path = self.services, symptom.path
        text = state_file.text(services) if path == projection_paths.STATE_FILE else self._expected_texts().get(path)
        if text is None:
            return f"{path} was left unchanged: the event log no longer describes it"
        kept = self._keep(path)
        services.reports.write(path, text)
        return f"{path} rebuilt from the log" + (f"; the previous file is in {kept}" if kept else "")

    def _keep(self, path: str) -> str:
        """Back up the present file. If it cannot be read, this raises, and the file is not replaced."""
        text = self.services.reports.read(path)
        if not text:
            return ""
        return self.services.backups.keep(publish.SET_ASIDE, path, text.encode("utf-8", "surrogateescape"))

    def legacy(self) -> Iterator[Symptom]:
        pending = [old for old, _ in init.pending_imports(self.services)]
        for old in pending[:_SHOWN]:
            yield health.warn(
                _origin(old),
                old.path,
                means="its history is not in the event log; imported history never counts as proven",
                fix="idumb init",
            )
        if len(pending) > _SHOWN:
            yield health.warn(f"and {len(pending) - _SHOWN} more files", means="the same", fix="idumb init")


def _origin(old: OldFile) -> str:
    if old.why:
        return f"not written by idumb: {old.why}"
    if old.kind == legacy.STATE:  # any version may have written it
        return "the file has entries that the event log does not have"
    return f"an old iDumb wrote this {old.kind} file"


def _last_checkpoints(state: RunState) -> dict[str, Checkpoint]:
    """Return, by path, the newest checkpoint of a completed task that changed the file."""
    done = [t.checkpoint for t in state.tasks.values() if t.status in outcome.DONE and t.checkpoint is not None]
    return {path: kept for kept in sorted(done, key=lambda kept: kept.seq) for path in kept.files}


def damaged(text: str | None) -> str:
    """Return why a JSON projection cannot be read; "" if it can."""
    why = _emptied(text)
    if why:
        return why
    try:
        return "" if isinstance(canonical_json.decode(text or ""), dict) else "the file does not contain a JSON object"
    except ValueError as problem:
        return f"the file is not valid JSON: {problem}"


def _emptied(text: str | None) -> str:
    if text is None:
        return "the file is missing"
    if not text.strip():
        return "the file is empty"
    return "the file has conflict markers" if has_markers(text) else ""


def has_markers(text: str) -> bool:
    return all(any(line.startswith(marker) for line in text.splitlines()) for marker in _MARKERS)


def _rebuildable(why: str, path: str) -> Symptom:
    return health.warn(why, path, means=_LOSES_NOTHING, fixes=True)
