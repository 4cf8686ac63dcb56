"""Build every port's implementation for one repository.

Each implementation is imported when it is first used, so that a command loads no more than it needs.
"""

from __future__ import annotations

import contextlib
import os
from functools import cached_property

from idumb import __version__
from idumb.composition import project_folder
from idumb.git import discover
from idumb.system.files import user_folders

TYPE_CHECKING = False  # importing `typing` is slow, and `idumb status` loads this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType

    from idumb.app.ports.agents import Agents
    from idumb.app.ports.checks import Checks
    from idumb.app.ports.ui import Asker, Reporter
    from idumb.app.ports.workspace import Workspace
    from idumb.composition.check_sandbox import CheckSandbox
    from idumb.composition.kept_plans import KeptPlans
    from idumb.composition.sandboxes import LocalSandboxes
    from idumb.domain.settings import CheckSettings, Policy, Settings
    from idumb.gates.base_checks import BaseChecks
    from idumb.gates.check_environment import CheckEnvironment
    from idumb.gates.proving import Proving
    from idumb.gates.registry import StepGates
    from idumb.git.clones.abandoned_clones import GitClones
    from idumb.git.clones.builder_clone import BuilderClone
    from idumb.git.clones.fresh_clone import FreshClone
    from idumb.git.history import GitHistory
    from idumb.git.refs import GitKeptRefs
    from idumb.git.trees import GitTrees
    from idumb.markdown.workflows.definition_files import DefinitionFolders
    from idumb.store.connection import Database
    from idumb.store.consent import FileConsentStore
    from idumb.store.event_log import SqliteEventLog
    from idumb.store.local_data import FileLocalData
    from idumb.store.log_files import SqliteLogFiles
    from idumb.store.ownership import FileOwnership
    from idumb.store.saved_answers import FileSavedAnswers
    from idumb.store.signing import SshSignatures
    from idumb.system.clock import SystemClock
    from idumb.system.files.backup_store import FileBackupStore
    from idumb.system.files.named_files import LocalToolchain, NamedFiles
    from idumb.system.files.report_files import FileReports
    from idumb.system.processes.signals import SignalInterrupts
    from idumb.system.redaction import Redactor
    from idumb.views.documents import MarkdownDocuments


class Container:
    """What a use case gets from outside, for one repository.

    `root` is the absolute path of the project, `folder` the same from the top of the repository, "" there. `start` is
    the absolute path of the folder in which the command was started, for the commands that it prints. `worktree`
    identifies the project and its working tree in the repository; `version` is idumb's own. `adapters` only describe
    agents: what they would start, and in which version.
    """

    version = __version__

    def __init__(
        self,
        start: str,
        asker: Callable[[], Asker],
        reporter: Callable[[], Reporter],
        farewell: Callable[[int], None] = lambda _: None,
        *,
        project: discover.Project | None = None,
    ) -> None:
        """Find the project around `start`, unless it is known.

        `farewell` is called with the signal that ends the program at once.
        """
        self._open(project or project_folder.find(start))
        self.start = os.path.realpath(start)
        self._make_asker = asker
        self._make_reporter = reporter
        self._farewell = farewell

    def of_folder(self, folder: str) -> Container:
        """Return the services of the project in another folder of the repository."""
        project = discover.Project(self.repository, folder)
        project_folder.require_plain(project)
        return Container(self.start, self._make_asker, self._make_reporter, self._farewell, project=project)

    def _open(self, project: discover.Project) -> None:
        self.project = project
        self.repository = project.repository
        self.root, self.folder, self.worktree = project.root, project.folder, project.key
        self.start = self.root

    @cached_property
    def inner_projects(self) -> tuple[str, ...]:
        """The folders below with a configuration of their own, relative to `root`. It starts git."""
        from idumb.git.projects import known_projects

        return tuple(known_projects.below(self.repository, self.folder))

    @cached_property
    def settings(self) -> Settings:
        from idumb.markdown.settings import configuration

        return configuration.load(self.root)

    @cached_property
    def policy(self) -> Policy:
        return self.present_policy()

    def present_policy(self) -> Policy:
        from idumb.markdown.settings import policy

        return policy.load(self.root, user_folders.system_wide())

    @cached_property
    def sandboxes(self) -> LocalSandboxes:
        from idumb.composition.sandboxes import LocalSandboxes

        return LocalSandboxes(self.root)

    @cached_property
    def toolchain(self) -> LocalToolchain:
        from idumb.git import git_program
        from idumb.system.files.named_files import LocalToolchain

        def git_version() -> str:
            words = git_program.output(self.root, ["version"]).decode("ascii", "replace").split()
            return words[2] if len(words) > 2 else "unknown"

        return LocalToolchain(lambda: git_program.path(self.root), git_version)

    @cached_property
    def clock(self) -> SystemClock:
        from idumb.system.clock import SystemClock

        return SystemClock()

    @cached_property
    def history(self) -> GitHistory:
        from idumb.git.history import GitHistory

        return GitHistory(self.repository, lambda: self.redaction, self.project)

    @cached_property
    def trees(self) -> GitTrees:
        from idumb.domain.settings import SNAPSHOT_LIMIT
        from idumb.git.trees import GitTrees

        limit = lambda: self.settings.snapshot.get("limit", SNAPSHOT_LIMIT)  # noqa: E731
        has_secret = lambda names: bool(self.redaction.find([names]))  # noqa: E731
        return GitTrees(self.repository, limit=limit, has_secret=has_secret, folder=self.folder)

    @cached_property
    def log(self) -> SqliteEventLog:
        from functools import partial

        from idumb.store import connection
        from idumb.store.event_log import SqliteEventLog

        common_dir = self.repository.common_dir
        return SqliteEventLog(
            common_dir,
            self.worktree,
            self.clock,
            owner=self.repository.worktree_id,
            kept_refs=self.repository.has_own_refs,
            may_create=partial(connection.refuse_network, allowed=lambda: self.settings.git.network),
            redactor=lambda: self.redaction,
        )

    @cached_property
    def log_files(self) -> SqliteLogFiles:
        from idumb.store.log_files import SqliteLogFiles

        return SqliteLogFiles(self._database, self.clock)

    @property
    def _database(self) -> Database:
        return self.log.database

    @cached_property
    def owner(self) -> FileOwnership:
        from idumb.store.ownership import FileOwnership

        # All projects of a working tree share its HEAD and index, and so its lock.
        owner = FileOwnership(self._database, self.repository.worktree_id, self.clock)
        self.repository.guard = owner.guard  # from now on, a lost working tree refuses each effect
        return owner

    def _guard(self) -> None:
        self.repository.guard()

    @cached_property
    def consent(self) -> FileConsentStore:
        from idumb.store.consent import FileConsentStore

        return FileConsentStore(self.repository.common_dir, self.folder)

    @cached_property
    def signatures(self) -> SshSignatures:
        from idumb.store.signing import SshSignatures

        return SshSignatures(self.root)

    @cached_property
    def files(self) -> NamedFiles:
        from idumb.system.files.named_files import NamedFiles

        return NamedFiles(self.root)

    @cached_property
    def adapters(self) -> Agents:
        from idumb.agents import registry
        from idumb.agents.adapter import Equipment

        return registry.build(Equipment(self.settings, self.root, self.trees.apply_patch, self.redactor.redact))

    def present_settings(self) -> Settings:
        """The configuration file as it is now; `settings` are from the start of the command."""
        from idumb.markdown.settings import configuration

        return configuration.load(self.root)

    def setting_place(self, *keys: str) -> tuple[int, int]:
        """Line and column of a key in the present configuration file, such as `bindings` and a name."""
        from idumb.markdown.settings import configuration

        return configuration.place(self.root, *keys)

    @cached_property
    def saved_answers(self) -> FileSavedAnswers:
        from idumb.store.saved_answers import FileSavedAnswers

        return FileSavedAnswers(self.repository.common_dir, self.folder)

    @cached_property
    def plans(self) -> KeptPlans:
        from idumb.composition.kept_plans import KeptPlans

        return KeptPlans(self)

    @cached_property
    def definitions(self) -> DefinitionFolders:
        from idumb.markdown.workflows.definition_files import DefinitionFolders

        return DefinitionFolders(self.root)

    @cached_property
    def reports(self) -> FileReports:
        from idumb.system.files.report_files import FileReports

        return FileReports(self.root, self._guard, lambda: self.redaction)

    @cached_property
    def backups(self) -> FileBackupStore:
        from idumb.system.files.backup_store import FileBackupStore

        return FileBackupStore(os.path.join(self.repository.common_dir, "idumb"))

    @cached_property
    def documents(self) -> MarkdownDocuments:
        from idumb.agents import prompt
        from idumb.views.documents import MarkdownDocuments

        return MarkdownDocuments(prompt.render, prompt.of_name)

    @cached_property
    def asker(self) -> Asker:
        return self._make_asker()

    @cached_property
    def reporter(self) -> Reporter:
        return self._make_reporter()

    @cached_property
    def interrupts(self) -> SignalInterrupts:
        from idumb.domain.errors import Interrupted
        from idumb.system.processes.signals import SignalInterrupts

        return SignalInterrupts(Interrupted, self._farewell)

    @cached_property
    def gates(self) -> StepGates:
        from idumb.gates import registry

        return registry.StepGates()

    @cached_property
    def redactor(self) -> Redactor:
        """Redacts the output of programs: every variable that a binding passes to a program."""
        return self._redactor(self._variables)

    @cached_property
    def redaction(self) -> Redactor:
        """Redacts what idumb itself writes, file names included: only the variables that are certainly secrets."""
        from idumb.agents import registry

        return self._redactor(registry.certain(self._variables), self.redactor)

    def _redactor(self, variables: Mapping[str, str], output: Redactor | None = None) -> Redactor:
        from idumb.system.files import user_folders
        from idumb.system.redaction import Redactor

        key = user_folders.repository_id(self.repository.common_dir).encode("ascii")
        return Redactor(variables, key=key, output=output)

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        """The variables that may be secrets. If the configuration cannot be read, their names decide."""
        from idumb.agents import registry
        from idumb.domain.errors import IdumbError

        try:
            return registry.secret_variables(self.settings)
        except (IdumbError, OSError):
            return registry.named_secret()

    def open_workspace(self, kind: str, run: str) -> Workspace:
        if kind == "clone":
            from idumb.git.clones.clone import Clone

            return Clone(self.repository, self.trees, run, self.history.head().commit)
        from idumb.git.trees import Here

        return Here(self.trees)

    @cached_property
    def clones(self) -> GitClones:
        from idumb.git.clones.abandoned_clones import GitClones

        return GitClones(self.repository, self.folder)

    @cached_property
    def kept_refs(self) -> GitKeptRefs:
        from idumb.git.refs import GitKeptRefs

        return GitKeptRefs(self.repository)

    @cached_property
    def local_data(self) -> FileLocalData:
        from idumb.domain.errors import Refusal
        from idumb.git.projects import known_projects
        from idumb.store.local_data import FileLocalData

        clones = None
        with contextlib.suppress(Refusal):
            clones = self.clones.place()
        folders = tuple(folder for folder in known_projects.with_state(self.repository) if folder)
        return FileLocalData(self.repository.common_dir, clones, folders)

    def open_commits(self, workspace: Workspace) -> BuilderClone:
        """The commits of builders in this workspace, which must be a clone."""
        from idumb.git.clones.builder_clone import BuilderClone
        from idumb.git.clones.clone import Clone

        if not isinstance(workspace, Clone):
            raise TypeError("builders commit in a clone")
        return BuilderClone(self.repository, self.trees, workspace, self.redactor.redact)

    @contextlib.contextmanager
    def open_copy(self) -> Iterator[str]:
        """A temporary copy of all files that are not ignored; yields its absolute path."""
        from idumb.git.clones import dry_run_clone

        with dry_run_clone.present_files(self.repository, self.history.head()) as copy:
            yield discover.Project(copy, self.folder).root

    @contextlib.contextmanager
    def open_fresh_clone(self, work: Collection[str]) -> Iterator[tuple[FreshClone, Checks]]:
        """A temporary place for a clone outside the repository, and the checks that run in it.

        A check that changes a path of `work` fails.
        """
        from idumb.composition import check_environments
        from idumb.domain.settings import CheckSettings
        from idumb.gates.checks import ShellChecks
        from idumb.git.clones import fresh_clone

        settings = self.settings
        chosen = settings.checks or CheckSettings()
        with (
            fresh_clone.opened(self.repository, chosen.provide, chosen.share, self.folder) as clone,
            contextlib.closing(
                check_environments.build(self.repository, settings.environment, chosen, project=self.project)
            ) as private,
        ):
            yield (
                clone,
                ShellChecks(
                    clone.root,
                    settings.environment,
                    self.redactor.redact,
                    fresh_clone.RUN,
                    idle_timeout=settings.run.check_idle_timeout,
                    limits=settings.limits.chosen(),
                    private=private,
                    proving=clone,
                    prepare=chosen.prepare,
                    prepare_timeout=float(settings.run.check_timeout),
                    is_work=lambda _, path: path in work,
                    configured=settings.checks,
                    note=self.reporter.note,
                    sandbox=self._check_sandbox(chosen, private),
                ),
            )

    def forget_consent(self) -> None:
        """Record no consent from now on: it is asked for a dry run."""
        from idumb.store.consent import ForgetfulConsent

        self.consent = ForgetfulConsent(self.repository.common_dir, self.folder)

    def open_rehearsal(self, also: Iterable[str]) -> AbstractContextManager[Container]:
        """The services of a copy, which has HEAD, the branch, all files that are not ignored, and the ignored `also`.

        The copy is removed at the end.
        """
        from idumb.composition import rehearsal

        return rehearsal.opened(self, also)

    def open_agents(self, workspace: Workspace, run: str, *, aside: bool = False) -> Agents:
        """The agents of a run. Unless they work `aside` of a run, homes of other runs are removed."""
        from idumb.agents import registry
        from idumb.agents.adapter import Equipment
        from idumb.app.history.recordings import Recordings
        from idumb.store import local_data

        folder = self.project.state_dir
        equipment = Equipment(
            self.settings,
            self.root,
            workspace.trees.apply_patch,
            self.redactor.redact,
            asker=self.asker,
            transcripts=os.path.join(folder, "transcripts", run),
            stream=self.redactor.stream,
            guard=self.owner.guard,
            inputs=os.path.join(folder, "papers"),
            recordings=Recordings(self, workspace.trees),
            handoffs=os.path.join(folder, "handoffs"),
            homes=os.path.join(folder, "homes", run or "none"),
            unpacked=os.path.join(folder, local_data.UNPACKED),
            sandboxes=lambda: self.sandboxes,
            guarded=self._guarded(self.repository, self.user_repository),
        )
        self._guardians.expect_guarded()
        return registry.build(equipment, aside=aside)

    def open_checks(self, workspace: Workspace, run: str, *, continued: bool = False) -> Checks:
        """The checks of a run; `continued` if an attempt of it began in another process and has not ended."""
        from idumb.domain.settings import IN_COMMIT, CheckSettings
        from idumb.gates.checks import ShellChecks

        settings = self.settings
        chosen = settings.checks or CheckSettings()
        private = self._check_environment(run, chosen, continued=continued)
        return ShellChecks(
            workspace.trees.root,
            settings.environment,
            self.redactor.redact,
            run,
            idle_timeout=settings.run.check_idle_timeout,
            limits=settings.limits.chosen(),
            guard=self.owner.guard,
            private=private,
            proving=self._proving_tree if chosen.tree == IN_COMMIT else None,
            head=lambda: self.history.head().commit,
            prepare=chosen.prepare if chosen.tree == IN_COMMIT else (),
            prepare_timeout=float(settings.run.check_timeout),
            base=lambda: self._base_checks(run),
            sandbox=self._check_sandbox(chosen, private),
            is_work=lambda tree, path: self._is_work(run, tree, path),
            configured=settings.checks,
            note=self.reporter.note,
        )

    def _is_work(self, run: str, tree: str, path: str) -> bool:
        from idumb.app.worktree import work_of_run  # few checks change committed files

        return work_of_run.has_changed(self, run, tree, path)

    def _check_sandbox(self, chosen: CheckSettings, private: CheckEnvironment) -> CheckSandbox | None:
        """Return what limits the checks; None if the configuration limits nothing."""
        settings = self.settings
        if settings.sandbox is None and chosen.network is None:
            return None
        from idumb.composition.check_sandbox import CheckSandbox

        user, limits = self.user_repository, settings.sandbox if settings.sandboxed else None
        guarded = (*self._guarded(user), os.path.join(user.root, ".git"))
        return CheckSandbox(self.sandboxes, limits, chosen, user.root, guarded, private.caches, self.folder)

    @staticmethod
    def _guarded(*repositories: discover.Repository) -> tuple[str, ...]:
        """Return what nothing in a sandbox may write: git folders, and the user's approvals and keys."""
        from idumb.system.files import user_folders

        git = (folder for place in repositories for folder in (place.git_dir, place.common_dir))
        return (*git, user_folders.path(), user_folders.configuration())

    @property
    def user_repository(self) -> discover.Repository:
        """Return the repository with the user's ignored files; a dry run works in another one."""
        return self.repository

    @cached_property
    def _proving_folder(self) -> str:
        from idumb.git import proving_folders

        return proving_folders.place(self.user_repository)

    @cached_property
    def _proving_tree(self) -> Proving:
        return self._new_proving_tree()

    @cached_property
    def _base_tree(self) -> Proving:
        return self._new_proving_tree("-base")

    @cached_property
    def _base_checks_of_runs(self) -> dict[str, BaseChecks[Proving]]:
        return {}

    def _base_checks(self, run: str) -> BaseChecks[Proving]:
        """Return the checks of a run before the work, which share one working tree."""
        from idumb.gates.base_checks import BaseChecks

        if run not in self._base_checks_of_runs:
            record = os.path.join(self.project.state_dir, "controls.json")
            self._base_checks_of_runs[run] = BaseChecks(lambda: self._base_tree, record=record, run=run)
        return self._base_checks_of_runs[run]

    def _new_proving_tree(self, suffix: str = "") -> Proving:
        from idumb.domain import paths
        from idumb.domain.settings import CheckSettings
        from idumb.git import proving_tree

        chosen = self.settings.checks or CheckSettings()
        top = self._proving_folder + suffix
        lender = self.user_repository.root
        cached = paths.cover(chosen.cache)
        return proving_tree.ProvingTree(self.repository, top, cached, chosen.provide, lender, chosen.share, self.folder)

    def close_proving_tree(self) -> None:
        for checks in self._base_checks_of_runs.values():
            checks.close()
        if "_base_tree" in self.__dict__:
            self._base_tree.close()
        if "_proving_tree" in self.__dict__:
            self._proving_tree.close()

    @cached_property
    def _check_environments(self) -> dict[str, CheckEnvironment]:
        return {}

    def _check_environment(self, run: str, chosen: CheckSettings, *, continued: bool) -> CheckEnvironment:
        """Return the environment of the run's checks, one for all workspaces: builders may change what it reads."""
        from idumb.composition import check_environments

        if run not in self._check_environments:
            self._check_environments[run] = check_environments.build(
                self.repository,
                self.settings.environment,
                chosen,
                run,
                continued=continued,
                proving=self._proving_folder,
                project=self.project,
            )
        return self._check_environments[run]

    @cached_property
    def _guardians(self) -> ModuleType:
        from idumb.system.processes import started_program

        return started_program

    def close(self) -> None:
        """Remove what only checks need, end the guardians, and save the caches that speed up the next command."""
        self.close_proving_tree()
        if "_guardians" in self.__dict__:
            self._guardians.end_free_guardians()
        for environment in self._check_environments.values():
            environment.close()
