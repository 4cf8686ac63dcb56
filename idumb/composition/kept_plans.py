"""The plans of the working tree, and those that only a run keeps. A plan in a file comes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from idumb.app.core import run_lookup
from idumb.app.core.services import Services, plans_ref
from idumb.domain.errors import InputError
from idumb.domain.plans import phase_ids
from idumb.domain.runs.run import RunState
from idumb.domain.settings import REPORTS_NONE
from idumb.markdown.plan_files import PHASES, PlanningFolder

Sources = tuple[tuple[str, bytes], ...]


class KeptPlans(PlanningFolder):
    """The plans in files, and those that runs keep (`git.reports: none`), so that such a run continues without files.

    `hold` does so for a plan until its run has begun.
    """

    def __init__(self, services: Services) -> None:
        super().__init__(services.root)
        self._services = services
        self._held: dict[str, tuple[str, Sources]] = {}

    def hold(self, phase: str, folder: str, sources: Sequence[tuple[str, bytes]]) -> None:
        """Give these plans of a folder from now on, although no file has them: a run is about to keep them."""
        self._held[folder] = (phase, tuple(sources))

    def is_kept(self, path: str) -> bool:
        """Whether only a run keeps this plan, and no file has it. A step plan is in no folder of plans."""
        folder = path.rpartition("/")[0]
        return path not in dict(super().plans(folder)) and path in dict(self.plans(folder))

    def phase_folder(self, phase: str) -> str:
        try:
            return super().phase_folder(phase)
        except InputError as problem:
            if problem.code == "phase.not-found" and (folder := self._folder(phase)) is not None:
                return folder
            raise

    def phases(self) -> tuple[tuple[str, str], ...]:
        rows = super().phases()
        return (*rows, *self._unfinished({phase for phase, _ in rows}))

    def plans(self, folder: str) -> Sources:
        files = super().plans(folder)
        if files and not folder.startswith(f"{phase_ids.QUICK.parent}/"):
            return files  # a plan that is missing beside others was removed
        return tuple(sorted({**dict(self._kept_of(folder)), **dict(files)}.items()))

    def _folder(self, phase: str) -> str | None:
        """Return the folder of a phase without a plan file, if its plan is held or kept; None otherwise."""
        held = next((folder for folder, (name, _) in self._held.items() if self.same_phase(name, phase)), None)
        if held is not None:
            return held
        state = self._newest_run(phase)
        return None if state is None else state.contract.plans[0][0].rpartition("/")[0]

    def _unfinished(self, present: set[str]) -> Iterator[tuple[str, str]]:
        """Yield (phase, folder) of plans that idumb wrote, that no file has, and that are not verified."""
        for phase in self._services.log.phases():
            if phase in present or not phase_ids.is_numbered(phase):
                continue
            state = self._newest_run(phase)
            if state is not None and not (state.verified and state.restoring is None):
                yield phase, state.contract.plans[0][0].rpartition("/")[0]

    def _kept_of(self, folder: str) -> Sources:
        state = self._newest_run(_phase_in(folder))
        if state is None:
            return self._held[folder][1] if folder in self._held else ()
        paths = {path.rpartition("/")[2]: path for path, _ in state.contract.plans}
        trees = self._services.trees
        blobs = trees.kept_blobs(plans_ref(self._services, state.id, state.contract.version))
        return tuple((paths[name], trees.read(blob)) for name, blob in sorted(blobs.items()))

    def _newest_run(self, phase: str) -> RunState | None:
        """Return the newest run of a phase if it keeps its plans."""
        state = run_lookup.newest_run(self._services, phase)
        return state if state is not None and state.reports == REPORTS_NONE else None


def _phase_in(folder: str) -> str:
    """Return the phase whose plans are in a folder."""
    steps = phase_ids.step_plan_of_reports(folder)
    if steps is not None:
        return phase_ids.step_plan_phase(steps) or steps
    numbered = (kind.phase_of(f"{folder}/") for kind in phase_ids.NUMBERED)
    return next(filter(None, numbered), folder.removeprefix(f"{PHASES}/"))
