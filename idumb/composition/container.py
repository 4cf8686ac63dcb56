"""The services of one project: every class that a use case reaches, made here and nowhere else.

What each command needs is imported here; what only some commands need, where it is first used.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING

from idumb import __version__
from idumb.agents import registry, transcript
from idumb.agents.adapter import Equipment
from idumb.composition import before_services
from idumb.composition.kept_plans import KeptPlans
from idumb.domain import paths as path_rules
from idumb.domain.errors import IdumbError, Interrupted, Refusal
from idumb.domain.permissions import Policy
from idumb.domain.settings import SNAPSHOT_LIMIT, Settings
from idumb.git import discover
from idumb.markdown import configuration, single_settings
from idumb.markdown.plan_files import DefinitionFolders
from idumb.store import connection
from idumb.store.connection import Database
from idumb.store.consent import FileConsentStore, ForgetfulConsent
from idumb.store.event_log import SqliteEventLog, SqliteLogFiles
from idumb.system import private_folders, redaction, user_folders
from idumb.system.atomic_write import FileBackupStore
from idumb.system.clock import SystemClock
from idumb.system.named_files import LocalToolchain, NamedFiles
from idumb.system.redaction import Redactor
from idumb.system.rooted_files import ProjectFiles
from idumb.system.signals import SignalInterrupts

if TYPE_CHECKING:
    from idumb.app.core.services import Workspace
    from idumb.app.ports import Agents, Asker, Reporter
    from idumb.composition.run_checks import RunChecks
    from idumb.composition.sandboxes import LocalSandboxes
    from idumb.gates.checks import ShellChecks
    from idumb.gates.registry import StepGates
    from idumb.git.checkouts.checkout import Additions, Checkout
    from idumb.git.checkouts.pool import Checkouts
    from idumb.git.history import GitHistory
    from idumb.git.refs import GitKeptRefs
    from idumb.git.trees import GitTrees
    from idumb.store.local_data import FileLocalData
    from idumb.store.ownership import FileOwnership
    from idumb.store.signing import SshSignatures
    from idumb.views.documents import MarkdownDocuments


class Container:
    """What a use case gets from outside, for one project.

    - `root` is the absolute path of the project, `folder` the same from the top of the repository, "" there. `start`
      is the absolute path of the folder in which the command was started, for the commands that it prints. `worktree`
      identifies the project and its working tree in the repository. `typed` is the command line, for hints.
    - `log`: the event log. `log_files`: its files and archives, and transcripts. `backups`: files set aside.
    - `files`: text files of the project. `named_files`: whether files and programs exist, and digests.
    - `plans`: plans in files, and those that runs keep. `definitions`: workflows. `documents`: the texts of reports.
    - `trees`: trees and snapshots of the user's files, and how to restore them. `history`: HEAD, branches, commits.
    - `consent`: what was agreed to. `owner`: who may write in the working tree.
    - `here`, `open_checkout`, `open_proof`: where people work, where programs do, and where checks judge.
    - `adapters` only describe agents: what they would start, and in which version; `open_agents` are those of a run.
    """

    version = __version__
    typed: tuple[str, ...] = ()
    change_setting: Callable[[str, str], object]

    def __init__(
        self,
        start: str,
        asker: Callable[[], Asker],
        reporter: Callable[[], Reporter],
        on_exit: Callable[[int], None] = lambda _: None,
        *,
        project: discover.Project | None = None,
    ) -> None:
        """Find the project around `start`, unless it is known.

        `on_exit` is called with the signal that ends the program at once.
        """
        self._open(project or before_services.find_project(start))
        self.start = os.path.realpath(start)
        self._make_asker, self._make_reporter, self._on_exit = asker, reporter, on_exit

    def of_folder(self, folder: str) -> Container:
        """Return the services of the project in a folder below this one."""
        project = discover.Project(self.repository, f"{self.folder}/{folder}" if self.folder else folder)
        before_services.require_plain(project)
        return Container(self.start, self._make_asker, self._make_reporter, self._on_exit, project=project)

    def _open(self, project: discover.Project) -> None:
        self.project = project
        self.repository = self.user_repository = project.worktree  # a dry run has the user's ignored files elsewhere
        self.root, self.folder, self.worktree = project.root, project.folder, project.key
        self.start = self.root
        common_dir = self.repository.common_dir
        self.clock = SystemClock()
        owner, redactor = self.repository.name, lambda: self.redactor
        self.log = SqliteEventLog(self._database(), self.worktree, self.clock, owner=owner, redactor=redactor)
        self.log_files = SqliteLogFiles(self.log.database)
        self.consent = FileConsentStore(common_dir, self.folder)
        self.named_files, self.plans = NamedFiles(self.root), KeptPlans(self)
        # Later the guard is that of the owner.
        self.files = ProjectFiles(self.root, lambda: self.repository.guard(), lambda: self.redactor)  # noqa: PLW0108
        self.backups = FileBackupStore(os.path.join(common_dir, "idumb"))
        self._closing = contextlib.ExitStack()

    def _database(self) -> Database:
        return Database(
            self.repository.common_dir,
            lambda: bool(discover.refs_in(self.repository, discover.OWN_REFS)),
            partial(connection.refuse_network, allowed=lambda: self.settings.git.network),
        )

    @cached_property
    def toolchain(self) -> LocalToolchain:
        from idumb.git import git_program

        return LocalToolchain(lambda: git_program.path(self.root), lambda: git_program.version(self.root))

    @cached_property
    def inner_projects(self) -> Mapping[str, bool]:
        """The folders below with a configuration of their own, relative to `root`, and whether idumb has runs of them.

        It starts git.
        """
        from idumb.git import projects

        start = f"{self.folder}/" if self.folder else ""
        found = projects.below(self.repository, self.folder)
        return {folder.removeprefix(start): has_runs for folder, has_runs in found.items()}

    @cached_property
    def settings(self) -> Settings:
        return self.present_settings()

    def present_settings(self) -> Settings:
        """The configuration file as it is now; `settings` are from the start of the command."""
        return single_settings.load(self.root)

    def setting_place(self, *keys: str) -> tuple[int, int]:
        """Line and column of a key in the present configuration file, such as `bindings` and a name."""
        return configuration.position(self.root, *keys)

    @cached_property
    def policy(self) -> Policy:
        return self.present_policy()

    def present_policy(self) -> Policy:
        return configuration.policy(self.root, user_folders.system_wide())

    @cached_property
    def asker(self) -> Asker:
        return self._make_asker()

    @cached_property
    def reporter(self) -> Reporter:
        return self._make_reporter()

    @cached_property
    def interrupts(self) -> SignalInterrupts:
        return SignalInterrupts(Interrupted, self._on_exit)

    @cached_property
    def output_redactor(self) -> Redactor:
        """Redacts the output of programs: every variable that a binding passes to a program."""
        return self._make_redactor(self._variables)

    @cached_property
    def redactor(self) -> Redactor:
        """Redacts what idumb itself writes, file names included: only the variables that are certainly secrets."""
        return self._make_redactor(redaction.certain_secrets(self._variables), self.output_redactor)

    def _make_redactor(self, variables: Mapping[str, str], output: Redactor | None = None) -> Redactor:
        key = user_folders.repository_id(self.repository.common_dir).encode("ascii")
        return Redactor(variables, key=key, output=output)

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        """The variables that may be secrets. If the configuration cannot be read, their names decide."""
        try:
            return registry.secret_variables(self.settings)
        except (IdumbError, OSError):
            return registry.named_secret()

    @cached_property
    def owner(self) -> FileOwnership:
        from idumb.store.ownership import FileOwnership

        # All projects of a working tree share its HEAD and index, and so its lock.
        owner = FileOwnership(self.log.database, self.repository.name, self.clock)
        self.repository.guard = owner.guard  # from now on, a lost working tree refuses each effect
        return owner

    @cached_property
    def history(self) -> GitHistory:
        from idumb.git.history import GitHistory

        return GitHistory(self.repository, lambda: self.redactor, self.project, self.open_proof)

    def open_proof(self) -> Checkout:
        """The checkout in which checks and validators judge."""
        from idumb.git.checkouts.checkout import PROOF

        return self.checkouts.open(PROOF)

    @cached_property
    def trees(self) -> GitTrees:
        from idumb.git.trees import GitTrees

        limit = lambda: self.settings.snapshot.get("limit", SNAPSHOT_LIMIT)  # noqa: E731
        return GitTrees(self.repository, limit=limit, folder=self.folder)

    @cached_property
    def definitions(self) -> DefinitionFolders:
        return DefinitionFolders(self.root)

    @cached_property
    def documents(self) -> MarkdownDocuments:
        from idumb.agents import prompt
        from idumb.views.documents import MarkdownDocuments

        return MarkdownDocuments(prompt.render, prompt.of_name)

    @cached_property
    def gates(self) -> StepGates:
        from idumb.gates.registry import StepGates

        return StepGates()

    @cached_property
    def signatures(self) -> SshSignatures:
        from idumb.store.signing import SshSignatures

        return SshSignatures(self.root)

    def forget_consent(self) -> None:
        """Record no consent from now on: it is asked for a dry run."""
        self.consent = ForgetfulConsent(self.repository.common_dir, self.folder)

    @cached_property
    def kept_refs(self) -> GitKeptRefs:
        from idumb.git.refs import GitKeptRefs

        return GitKeptRefs(self.repository)

    @cached_property
    def local_data(self) -> FileLocalData:
        from idumb.git import projects
        from idumb.store.local_data import FileLocalData

        checkouts = None
        with contextlib.suppress(Refusal):
            checkouts = self.checkouts.place()
        folders = tuple(folder for folder in projects.with_state(self.repository) if folder)
        return FileLocalData(self.repository.common_dir, checkouts, folders)

    @cached_property
    def here(self) -> Workspace:
        """The user's own working tree, where people work."""
        from idumb.git.trees import Here

        return Here(self.trees)

    @cached_property
    def checkouts(self) -> Checkouts:
        from idumb.git.checkouts.pool import Checkouts

        checkouts = Checkouts(self.repository, lambda: self.trees, self._additions)
        self._closing.callback(checkouts.close)
        return checkouts

    def _additions(self) -> Additions:
        """What a checkout has besides its tree, by the configuration."""
        from idumb.gates import toolchains
        from idumb.git.checkouts.checkout import Additions
        from idumb.system import child_process

        chosen, note = self.settings.checkout, self.reporter.note
        cached, needed = path_rules.cover(chosen.cache), () if chosen.prepare else chosen.provide
        names = set(self.settings.environment).difference(("HOME", "TMPDIR"), toolchains.VARIABLES)
        seen, limit = child_process.environment(sorted(names)), chosen.limit << 30
        return Additions(chosen.provide, limit, cached, self.user_repository, note=note, needed=needed, variables=seen)

    def open_checkout(self) -> Workspace:
        """The checkout of the repository in which programs work."""
        from idumb.git.checkouts.checkout import BUILD

        return self.checkouts.open(BUILD)

    @contextlib.contextmanager
    def open_copy(self) -> Iterator[str]:
        """A temporary copy of all files that are not ignored; yields its absolute path."""
        from idumb.git.checkouts import copies

        with copies.copy_of(self.repository, self.history.head()) as copy:
            yield discover.Project(copy, self.folder).root

    @contextlib.contextmanager
    def open_dry_run(self, also: Iterable[str]) -> Iterator[Container]:
        """The services of a copy, which has HEAD, the branch, all files that are not ignored, and the ignored `also`.

        The copy is removed at the end.
        """
        from idumb.git.checkouts import copies

        copied = [f"{self.folder}/{path}" if self.folder else path for path in (*also, configuration.PATH)]
        with copies.copy_of(self.repository, self.history.head(), copied) as repository:
            os.makedirs(discover.Project(repository, self.folder).root, exist_ok=True)
            with contextlib.closing(DryRunContainer(self, repository)) as services:
                yield services

    @cached_property
    def adapters(self) -> Agents:
        return registry.build(Equipment(self.settings, self.root, self.trees.apply_patch, self.output_redactor.redact))

    def open_agents(self, workspace: Workspace, run: str) -> Agents:
        """The agents of a run."""
        from idumb.app.history.recordings import Recordings
        from idumb.store import local_data

        folder = self.project.state_dir
        private_folders.make(folder, root=self.repository.common_dir)  # by it, others see that the project has runs
        equipment = Equipment(
            self.settings,
            self.root,
            workspace.trees.apply_patch,
            self.output_redactor.redact,
            transcripts=self.transcripts_of(run),
            stream=self.output_redactor.stream,
            guard=self.owner.guard,
            inputs=os.path.join(folder, "papers"),
            recordings=Recordings(self, workspace.trees),
            handoffs=os.path.join(folder, "handoffs"),
            unpacked=os.path.join(folder, local_data.UNPACKED),
            sandboxes=lambda: self.sandboxes,
            guarded=self.guarded(self.repository, self.user_repository),
        )
        return registry.build(equipment)

    def transcripts(self, run: str, task: str, attempt: int) -> Mapping[str, str]:
        """What the agents of an attempt did, by role."""
        return transcript.kept(self.transcripts_of(run), task, attempt)

    def transcripts_of(self, run: str) -> str:
        return os.path.join(self.project.state_dir, "transcripts", run)

    @cached_property
    def sandboxes(self) -> LocalSandboxes:
        from idumb.composition.sandboxes import LocalSandboxes

        return LocalSandboxes(self.root)

    @staticmethod
    def guarded(*repositories: discover.Worktree) -> tuple[str, ...]:
        """Return what nothing in a sandbox may write: git folders, and the user's approvals and keys."""
        git = (folder for place in repositories for folder in (place.git_dir, place.common_dir))
        return (*git, user_folders.path(), user_folders.configuration())

    @cached_property
    def _checks(self) -> RunChecks:
        from idumb.composition.run_checks import RunChecks

        checks = RunChecks(self, self.checkouts)
        self._closing.callback(checks.close)
        return checks

    def open_checks(self, workspace: Workspace, run: str, *, continued: bool = False) -> ShellChecks:
        """The checks of a run; `continued` if an attempt of it began in another process and has not ended."""
        return self._checks.open(workspace, run, continued=continued)

    def open_fresh_clone(
        self, head: str | None, work: Collection[str]
    ) -> AbstractContextManager[tuple[Checkout, ShellChecks]]:
        """A checkout with files as in a fresh clone, and the checks that run in it, on top of the commit `head`.

        A check that changes a path of `work` fails.
        """
        return self._checks.fresh_clone(head, work)

    def close(self) -> None:
        """Remove what only checks need."""
        self._closing.close()


class DryRunContainer(Container):
    """The services of a dry run: read plans, configuration, policy and consent of the user; write to the copy only.

    It asks no questions, because no answer would be kept.
    """

    def __init__(self, user: Container, repository: discover.Worktree) -> None:  # pylint: disable=super-init-not-called
        from idumb.views.terminal import ask

        self._open(discover.Project(repository, user.folder))
        self.user_repository = user.repository
        self.settings, self.policy, self.plans = user.settings, user.policy, user.plans
        self.consent, self.signatures, self.typed = user.consent, user.signatures, user.typed
        self.output_redactor, self.redactor = user.output_redactor, user.redactor
        # Approvals bind these files and agents, so they are read in the user's repository.
        self.named_files, self.adapters = user.named_files, user.adapters
        self.reporter, self.interrupts, self.toolchain = user.reporter, user.interrupts, user.toolchain
        self.asker = ask.Nobody()
        self._closing.callback(self.log.database.close)

    def _database(self) -> Database:
        return Database(self.repository.common_dir, backed_up=False)
