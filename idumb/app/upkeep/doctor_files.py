"""Checks of `idumb doctor` on files: the configuration, and the files that idumb makes from the event log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from idumb.app.attempt import handoff_writer
from idumb.app.attempt import projections as publish
from idumb.app.contract import loading
from idumb.app.core import projection_paths, run_lookup, schedule
from idumb.app.core.services import Services
from idumb.app.engine import state_file
from idumb.domain import health
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass

_SHOWN = 20
_CONFIGURATION = ".idumb/config.yaml"


def checks(services: Services) -> tuple[Check, ...]:
    look = _Projections(services)
    return (
        Check("config.reads", f"{_CONFIGURATION} can be read", lambda: _configuration(services)),
        Check("projections.true", "the files in .idumb/brain match the event log", look.look, look.rebuild),
    )


def _configuration(services: Services) -> Iterator[Symptom]:
    if not services.reports.exists(_CONFIGURATION):
        yield health.warn("the file is missing", _CONFIGURATION, means="idumb is not set up here", fix="idumb init")
        return
    try:
        _ = services.settings
    except IdumbError as problem:
        messages = [f"{f.place}: {f.message}" for f in getattr(problem, "findings", ())] or [problem.message]
        for message in messages[:_SHOWN]:
            yield health.problem(message, _CONFIGURATION, means="commands that need it cannot run", fix="Fix this line")


@dataclass(frozen=True, slots=True)
class _Projections:
    """`texts` caches what the files should hold, by path, for one head of the log."""

    services: Services
    texts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

    def look(self) -> Iterator[Symptom]:
        """Yield each file that the log contradicts. A running command writes them later than the log."""
        if self.services.owner.holder() is not None:
            return
        for path, text in self._expected().items():
            why = self._differs(path, text)
            if why:
                yield health.warn(why, path, means="it can be rebuilt from the event log; nothing is lost", fixes=True)

    def rebuild(self, symptom: Symptom) -> str:
        """Rebuild a file from the log, after a backup of the present one. If that cannot be read, this raises."""
        services, path = self.services, symptom.path
        text = self._expected().get(path)
        if text is None:
            return f"{path} was left unchanged: the event log no longer describes it"
        present = services.reports.read(path)
        kept = ""
        if present:
            data = present.encode("utf-8", "surrogateescape")
            kept = f"; the previous file is in {services.backups.keep(publish.SET_ASIDE, path, data)}"
        services.reports.write(path, text)
        return f"{path} rebuilt from the log{kept}"

    def _expected(self) -> dict[str, str]:
        """Return, by path, the text of every file in `.idumb/brain` that the log describes."""
        head = self.services.log.head()
        if head not in self.texts:
            self.texts.clear()
            self.texts[head] = dict(self._render())
        return self.texts[head]

    def _render(self) -> Iterator[tuple[str, str]]:
        services = self.services
        for state in run_lookup.latest_runs(services):
            contract = self._contract(state)
            if contract is not None:
                text = services.documents.progress(state, schedule.statuses(contract, state))
                yield projection_paths.progress_path(state.phase), text
        yield from self._documents().items()
        for document in handoff_writer.all_handoffs(services):
            yield handoff_writer.path(document), services.documents.handoff(document)
        whole = state_file.text(services)
        if whole is not None:
            yield projection_paths.STATE_FILE, whole

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
        try:
            text = self.services.reports.read(path)
        except OSError:
            text = ""
        if text is None:
            return "the file is missing"
        expected = self.services.redaction.redact(expected)
        return "" if expected in (text, text.replace("\r\n", "\n")) else "the file differs from the event log"

    def _contract(self, state: RunState) -> Contract | None:
        """Return the contract that the run locked; None if it can no longer be read."""
        try:
            return loading.locked_contract(self.services, state)
        except IdumbError:
            return None
