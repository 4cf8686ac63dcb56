"""The one place that names both ports and their implementations. Everything is imported when it is first needed."""

from __future__ import annotations

import os
from functools import cached_property

from idumb import __version__
from idumb.git import discover

TYPE_CHECKING = False  # `typing` is dear, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from idumb.app import ports
    from idumb.domain.settings import Settings
    from idumb.git.trees import GitTrees
    from idumb.store.connection import Database
    from idumb.store.event_log import SqliteEventLog
    from idumb.system.redaction import Redactor
    from idumb.system.signals import SignalInterrupts


class Wired:
    """Fills `idumb.app.services.Services`: every port with its real implementation, for one repository."""

    version = __version__

    def __init__(self, start: str, asker: Callable[[], ports.Asker], reporter: Callable[[], ports.Reporter]) -> None:
        self.place = discover.find(start)
        self._make_asker = asker
        self._make_reporter = reporter

    @property
    def root(self) -> str:
        return self.place.root

    @property
    def worktree(self) -> str:
        return self.place.worktree_id

    @cached_property
    def settings(self) -> Settings:
        from idumb.markdown import configuration

        return configuration.load(self.root)

    @cached_property
    def tools(self) -> Mapping[str, str]:
        import platform

        from idumb.git import program

        found = program.output(self.root, ["version"]).decode("ascii", "replace").split()
        return {"python": platform.python_version(), "git": found[2] if len(found) > 2 else "unknown"}

    @cached_property
    def clock(self) -> ports.Clock:
        from idumb.system.clock import SystemClock

        return SystemClock()

    @cached_property
    def history(self) -> ports.History:
        from idumb.git.history import GitHistory

        return GitHistory(self.place)

    @cached_property
    def trees(self) -> GitTrees:
        from idumb.git.trees import GitTrees

        return GitTrees(self.place)

    @cached_property
    def log(self) -> SqliteEventLog:
        from idumb.store.event_log import SqliteEventLog

        return SqliteEventLog(self.place.common_dir, self.worktree, self.clock)

    @property
    def _database(self) -> Database:
        return self.log.database

    @cached_property
    def runs(self) -> ports.RunIndex:
        from idumb.store.run_index import SqliteRunIndex

        return SqliteRunIndex(self._database, self.worktree)

    @cached_property
    def owner(self) -> ports.Ownership:
        from idumb.store.ownership import FileOwnership

        return FileOwnership(self._database, self.worktree, self.clock)

    @cached_property
    def consent(self) -> ports.ConsentStore:
        from idumb.store.consent import FileConsentStore

        return FileConsentStore(self.place.common_dir)

    @cached_property
    def plans(self) -> ports.PlanFiles:
        from idumb.markdown.plan_files import PlanningFolder

        return PlanningFolder(self.root)

    @cached_property
    def reports(self) -> ports.Reports:
        from idumb.system.reports import FileReports

        return FileReports(self.root)

    @cached_property
    def documents(self) -> ports.Documents:
        from idumb.agents import prompt
        from idumb.views.documents import MarkdownDocuments

        return MarkdownDocuments(prompt.render)

    @cached_property
    def asker(self) -> ports.Asker:
        return self._make_asker()

    @cached_property
    def reporter(self) -> ports.Reporter:
        return self._make_reporter()

    @cached_property
    def interrupts(self) -> SignalInterrupts:
        from idumb.domain.errors import Interrupted
        from idumb.system.signals import SignalInterrupts

        return SignalInterrupts(Interrupted)

    @cached_property
    def gates(self) -> Sequence[ports.Gate]:
        from idumb.gates import registry

        return registry.build()

    @cached_property
    def redactor(self) -> Redactor:
        """Knows the values of every variable that a binding hands to a program."""
        from idumb.agents import registry
        from idumb.store import consent
        from idumb.system.redaction import Redactor

        secrets = registry.secret_variables(self.settings)
        return Redactor(secrets, key=consent.repository_id(self.place.common_dir).encode("ascii"))

    def open_workspace(self, kind: str, run: str) -> ports.Workspace:
        if kind == "clone":
            from idumb.git.clone import Clone

            return Clone(self.place, self.trees, run, self.history.head().commit)
        from idumb.git.here import Here

        return Here(self.trees)

    def open_agents(self, workspace: ports.Workspace, run: str) -> ports.Agents:
        from idumb.agents import registry

        return registry.build(
            self.settings,
            self.root,
            workspace.trees.apply_patch,
            self.redactor.text,
            asker=self.asker,
            transcripts=os.path.join(self.place.state_dir, "transcripts", run),
            stream=self.redactor.stream,
        )

    def open_checks(self, workspace: ports.Workspace, run: str) -> ports.Checks:
        from idumb.gates.checks import ShellChecks

        return ShellChecks(workspace.trees.root, self.settings.environment, self.redactor.text, run)

    def close(self) -> None:
        """Save what makes the next command fast."""
        if "trees" in self.__dict__:
            self.trees.close()


def project_templates() -> dict[str, str]:
    """What `init` puts under `.planning/`: path to text."""
    from idumb.system import shipped

    return {f".planning/{name}": shipped.template(name) for name in ("PROJECT.md", "ROADMAP.md")}


VIEW_INPUTS = (".idumb/config.yaml", ".planning/ROADMAP.md", ".planning/phases")


def kept_view(start: str) -> dict[str, Any] | None:
    """The status view as it was kept, if it is still true; opens neither database nor plans."""
    from idumb.store import status_view

    place = discover.find(start)
    return status_view.read(place.state_dir, place.root)


def fresh_view(services: Wired) -> dict[str, Any]:
    """The status view made anew, and kept for the next time where that is possible."""
    import gc

    from idumb.app import status
    from idumb.store import status_view

    gc.disable()
    place = services.place
    folders = [folder for _, folder in services.plans.phases()]
    files = [path for folder in folders for path, _ in services.plans.plans(folder)]
    inputs = [*VIEW_INPUTS, *folders, *files]
    seen = status_view.observe(place.state_dir, place.root, inputs)
    view = status.view(services)
    try:
        if os.path.isdir(os.path.join(place.root, ".idumb")):
            status_view.write(place.state_dir, place.root, view, inputs, seen=seen)
    except OSError:
        pass  # a read-only repository is shown all the same
    return view
