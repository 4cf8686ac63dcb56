"""The one place that names both ports and their implementations. Everything is imported when it is first needed."""

from __future__ import annotations

import contextlib
import os
from functools import cached_property

from idumb import __version__
from idumb.git import discover

TYPE_CHECKING = False  # `typing` is dear, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from idumb.app.ports.agents import Agents
    from idumb.app.ports.checks import Checks, Gate, Symbols
    from idumb.app.ports.consent import ConsentStore, Memory, Signatures
    from idumb.app.ports.event_log import LogFiles, RunIndex
    from idumb.app.ports.host import Belongings, Clock, Files, Surroundings
    from idumb.app.ports.ownership import Ownership
    from idumb.app.ports.planning import PlanFiles, Texts
    from idumb.app.ports.reports import Documents, Reports
    from idumb.app.ports.repository import History, KeptRefs
    from idumb.app.ports.ui import Asker, Reporter
    from idumb.app.ports.workspace import Clones, CommittingClone, Workspace
    from idumb.app.upkeep.install import Place
    from idumb.domain.health import Check
    from idumb.domain.hosts import Host
    from idumb.domain.plans.policy import Policy
    from idumb.domain.settings import Settings
    from idumb.git.trees import GitTrees
    from idumb.store.connection import Database
    from idumb.store.event_log import SqliteEventLog
    from idumb.system.files.backup_store import FileAttic
    from idumb.system.processes.signals import SignalInterrupts
    from idumb.system.redaction import Redactor


class Wired:
    """Fills `idumb.app.services.Services`: every port with its real implementation, for one repository."""

    version = __version__

    def __init__(
        self,
        start: str,
        asker: Callable[[], Asker],
        reporter: Callable[[], Reporter],
        farewell: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`farewell` says that a second signal ends the program at once."""
        self.place = _found(start)
        self.place.guard = self._guard
        self._make_asker = asker
        self._make_reporter = reporter
        self._farewell = farewell

    @property
    def root(self) -> str:
        return self.place.root

    @property
    def worktree(self) -> str:
        return self.place.worktree_id

    @cached_property
    def settings(self) -> Settings:
        from idumb.markdown.settings import configuration

        return configuration.load(self.root)

    @cached_property
    def policy(self) -> Policy:
        return self.present_policy()

    def present_policy(self) -> Policy:
        from idumb.markdown.settings import policy
        from idumb.system.files import policy_paths

        return policy.load(self.root, policy_paths.system_wide())

    @cached_property
    def surroundings(self) -> Surroundings:
        from idumb.git import git_program
        from idumb.system.surroundings import LocalSurroundings

        def git_version() -> str:
            found = git_program.output(self.root, ["version"]).decode("ascii", "replace").split()
            return found[2] if len(found) > 2 else "unknown"

        return LocalSurroundings(lambda: git_program.path(self.root), git_version, self.redactor, self.secrets)

    @cached_property
    def clock(self) -> Clock:
        from idumb.system.clock import SystemClock

        return SystemClock()

    @cached_property
    def history(self) -> History:
        from idumb.git.history import GitHistory

        return GitHistory(self.place, self.redact)

    @cached_property
    def trees(self) -> GitTrees:
        from idumb.git.trees import GitTrees

        return GitTrees(self.place, has_secret=lambda names: bool(self.secrets.named([names])))

    @cached_property
    def log(self) -> SqliteEventLog:
        from functools import partial

        from idumb.git.refs import ref_presence
        from idumb.store import network
        from idumb.store.event_log import SqliteEventLog

        common_dir = self.place.common_dir
        return SqliteEventLog(
            common_dir,
            self.worktree,
            self.clock,
            kept_refs=partial(ref_presence.exist, common_dir),
            may_create=partial(network.refuse, allowed=lambda: self.settings.git.network),
            redactor=lambda: self.secrets,
        )

    @cached_property
    def log_files(self) -> LogFiles:
        from idumb.store.log_files import SqliteLogFiles

        return SqliteLogFiles(self._database, self.clock)

    @property
    def _database(self) -> Database:
        return self.log.database

    @cached_property
    def runs(self) -> RunIndex:
        from idumb.store.run_index import SqliteRunIndex

        return SqliteRunIndex(self._database, self.worktree)

    @cached_property
    def owner(self) -> Ownership:
        from idumb.store.ownership import FileOwnership

        return FileOwnership(self._database, self.worktree, self.clock)

    def _guard(self) -> None:
        if "owner" in self.__dict__:
            self.owner.guard()

    @cached_property
    def consent(self) -> ConsentStore:
        from idumb.store.consent import FileConsentStore

        return FileConsentStore(self.place.common_dir)

    @cached_property
    def signatures(self) -> Signatures:
        from idumb.store.signing import SshSignatures

        return SshSignatures(self.root)

    @cached_property
    def files(self) -> Files:
        from idumb.system.files.named_files import NamedFiles

        return NamedFiles(self.root)

    @cached_property
    def adapters(self) -> Agents:
        from idumb.agents import registry

        return registry.build(self.settings, self.root, self.trees.apply_patch, self.redactor.text)

    def present_settings(self) -> Settings:
        from idumb.markdown.settings import configuration

        return configuration.load(self.root)

    def setting_place(self, *keys: str) -> tuple[int, int]:
        from idumb.markdown.settings import configuration

        return configuration.place(self.root, *keys)

    @cached_property
    def memory(self) -> Memory:
        from idumb.store.saved_answers import FileMemory

        return FileMemory(self.place.common_dir)

    @cached_property
    def plans(self) -> PlanFiles:
        from idumb.markdown.plan_files import PlanningFolder

        return PlanningFolder(self.root)

    @cached_property
    def texts(self) -> Texts:
        from idumb.markdown.documents.planning_documents import MarkdownTexts

        return MarkdownTexts()

    @cached_property
    def reports(self) -> Reports:
        from idumb.system.files.report_files import FileReports

        return FileReports(self.root, self._guard, self.redact)

    @cached_property
    def attic(self) -> FileAttic:
        from idumb.system.files.backup_store import FileAttic

        return FileAttic(os.path.join(self.place.common_dir, "idumb"))

    @cached_property
    def documents(self) -> Documents:
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
    def symbols(self) -> Symbols:
        from idumb.gates.symbols import FileSymbols

        return FileSymbols()

    @cached_property
    def gates(self) -> Sequence[Gate]:
        from idumb.gates import registry

        return registry.build()

    @cached_property
    def redactor(self) -> Redactor:
        """Knows the values of every variable that a binding hands to a program, for what programs say."""
        return self._redactor(self._variables)

    @cached_property
    def secrets(self) -> Redactor:
        """Knows those of them that are secrets beyond doubt, for all that idumb itself writes, names of files too."""
        from idumb.agents import registry

        return self._redactor(registry.certain(self._variables))

    def _redactor(self, variables: Mapping[str, str]) -> Redactor:
        from idumb.system.files import state_dir
        from idumb.system.redaction import Redactor

        return Redactor(variables, key=state_dir.repository_id(self.place.common_dir).encode("ascii"))

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        """Where the configuration cannot be read, which others report, those whose names say that they are secrets."""
        from idumb.agents import registry
        from idumb.domain.errors import IdumbError

        try:
            return registry.secret_variables(self.settings)
        except (IdumbError, OSError):
            return registry.named_secret()

    def redact(self, text: str) -> str:
        """A text without known secrets; what knows them is made when the first one is looked for."""
        return self.secrets.text(text)

    def open_workspace(self, kind: str, run: str) -> Workspace:
        if kind == "clone":
            from idumb.git.clones.clone import Clone

            return Clone(self.place, self.trees, run, self.history.head().commit)
        from idumb.git.clones.in_place import Here

        return Here(self.trees)

    @cached_property
    def clones(self) -> Clones:
        from idumb.git.clones.abandoned_clones import GitClones

        return GitClones(self.place)

    def open_commits(self, workspace: Workspace) -> CommittingClone:
        from idumb.git.clones.builder_clone import BuilderClone
        from idumb.git.clones.clone import Clone

        if not isinstance(workspace, Clone):
            raise TypeError("builders commit in a clone")
        return BuilderClone(self.place, self.trees, workspace, self.redactor.text)

    @contextlib.contextmanager
    def open_copy(self) -> Iterator[str]:
        from idumb.git.clones import dry_run_clone

        with dry_run_clone.made(self.place, self.history.head()) as copy:
            yield copy.root

    def open_agents(self, workspace: Workspace, run: str, *, aside: bool = False) -> Agents:
        from idumb.agents import registry
        from idumb.app.history.recordings import Recordings
        from idumb.store import agent_caches

        return registry.build(
            self.settings,
            self.root,
            workspace.trees.apply_patch,
            self.redactor.text,
            asker=self.asker,
            transcripts=os.path.join(self.place.state_dir, "transcripts", run),
            stream=self.redactor.stream,
            guard=self._guard,
            papers=os.path.join(self.place.state_dir, "papers"),
            recordings=Recordings(self, workspace.trees),
            handoffs=os.path.join(self.place.state_dir, "handoffs"),
            homes=os.path.join(self.place.state_dir, "homes", run or "none"),
            unpacked=os.path.join(self.place.state_dir, agent_caches.FOLDER),
            aside=aside,
        )

    def open_checks(self, workspace: Workspace, run: str) -> Checks:
        from idumb.gates.checks import ShellChecks

        known = self.settings
        return ShellChecks(
            workspace.trees.root,
            known.environment,
            self.redactor.text,
            run,
            idle_timeout=known.run.check_idle_timeout,
            limits=known.limits.chosen(),
            guard=self._guard,
        )

    def close(self) -> None:
        """Save what makes the next command fast."""
        if "trees" in self.__dict__:
            self.trees.close()


def project_templates() -> dict[str, str]:
    """What `init` puts under `.planning/`: path to text."""
    from idumb.system.files import shipped_files

    return {f".planning/{name}": shipped_files.template(name) for name in ("PROJECT.md", "ROADMAP.md")}


def plan_template() -> str:
    """What `plan-phase --template` fills in."""
    from idumb.system.files import shipped_files

    return shipped_files.template("phase-plan.md")


VIEW_INPUTS = (
    ".idumb/config.yaml",
    ".idumb/policy/tools.yaml",
    ".planning/ROADMAP.md",
    ".planning/phases",
    ".planning/quick",
)


def kept_view(start: str) -> dict[str, Any] | None:
    """The status view as it was kept, if it is still true; opens neither database nor plans."""
    from idumb.store import status_view

    place = _found(start)
    kept = status_view.read(place.state_dir, place.root)
    return None if kept is None else _with_owner(kept, _owner(place))


def _with_owner(view: dict[str, Any], owner: dict[str, Any] | None) -> dict[str, Any]:
    """While somebody is at work no other command can go on; no command is named, lest a script cancels the work."""
    if owner is None or not view["initialised"]:
        return {**view, "owner": owner}
    words = f"{owner['command']} is at work, as process {owner['pid']}; wait for it, or end it with idumb cancel"
    return {**view, "owner": owner, "next": {**view["next"], "command": None, "why": words}}


def _found(start: str) -> discover.Repository:
    """The repository around a folder; every refusal has a next step."""
    from idumb.domain.errors import Refusal

    try:
        return discover.find(start)
    except Refusal as refusal:
        refusal.hint = refusal.hint or (
            "git status says the same: put the .git of a clone or backup in its place, or move it away and git init"
        )
        raise


def _owner(place: discover.Repository) -> dict[str, Any] | None:
    """Who owns the work tree at this moment, which no kept view can know; one look for a file where nobody does."""
    path = os.path.join(place.state_dir, "owner.json")
    if not os.path.lexists(path):
        return None
    from idumb.store import owner_card

    known = owner_card.holder(path) or {}
    return {name: known.get(name) for name in ("pid", "host", "since", "command", "standing")} if known else None


def worked_for(start: str) -> str | None:
    """Which agent or check of this repository the command runs inside of, in words; None for a person's own terminal.

    One of another repository has no part in this one. Outside of all of them the command's own mark counts.
    """
    from idumb.domain.errors import Refusal
    from idumb.store import owner_card
    from idumb.system import caller_detection

    own = caller_detection.own()
    try:
        place = discover.find(start)
    except Refusal:
        return own.who if own is not None else None
    for mark in (own, *caller_detection.above()):
        if mark is not None and _works_in(mark.folder, place):
            return mark.who
    holder = _owner(place)
    if (
        holder is None
        or holder["standing"] == owner_card.ELSEWHERE
        or holder["pid"] not in caller_detection.ancestors()
    ):
        return None
    return f"what idumb {holder['command']} started"


def _works_in(folder: str, place: discover.Repository) -> bool:
    """Whether a workspace is a work tree of this repository, or one of idumb's private copies."""
    from idumb.domain.errors import Refusal
    from idumb.git.clones import clone_places

    real = os.path.realpath(folder)
    if real == place.root or clone_places.is_copy_of(place.common_dir, real):
        return True
    try:
        return discover.find(real).common_dir == place.common_dir
    except Refusal:
        return False


def fresh_view(services: Wired) -> dict[str, Any]:
    """The status view made anew, and kept for the next time where that is possible."""
    import gc
    import json

    from idumb.app.reading import status
    from idumb.domain.plans import step_plan
    from idumb.store import consent, status_view
    from idumb.system.files import policy_paths

    gc.disable()
    place = services.place
    folders = [folder for _, folder in services.plans.phases()]
    files = [path for folder in folders for path, _ in services.plans.plans(folder)]
    files += [path for phase in services.runs.phases() if (path := step_plan.path_of(phase)) is not None]
    # Commits tell of phases that were not run here, so a pull changes the view then.
    commits = os.path.join(place.git_dir, "logs", "HEAD")
    rules = [path for path, _ in policy_paths.system_wide()]
    inputs = [*VIEW_INPUTS, *rules, *folders, *files, commits, consent.folder_of(place.common_dir)]
    seen = status_view.observe(place.state_dir, place.root, inputs)
    view = status.view(services)
    redactor = services.secrets
    if redactor.holds(json.dumps(view)):
        view = redactor.value(view)
    if all(row["run"] for row in view["phases"]):
        del seen["inputs"][commits]
    try:
        named = redactor.holds(json.dumps(inputs))  # it is kept with these names, which must be exact
        here = os.path.isdir(os.path.join(place.root, ".idumb"))
        if here and not named and not status.lists_consent(view):
            status_view.write(place.state_dir, place.root, view, inputs, seen=seen)
    except OSError:
        pass  # a read-only repository is shown all the same
    return _with_owner(view, _owner(place))


def machine_checks() -> tuple[Check, ...]:
    """Checks of `idumb doctor` that need no repository."""
    from idumb.app.upkeep import doctor_machine
    from idumb.git import doctor_checks
    from idumb.system.machine import LocalMachine

    return (*doctor_checks.of_programs(), *doctor_machine.of_user(LocalMachine("/", "/", "/")))


def health_checks(services: Wired) -> tuple[Check, ...]:
    """Checks of `idumb doctor` by the rooms that own what is looked at."""
    from functools import partial

    from idumb.app.upkeep import doctor_machine
    from idumb.app.worktree import abandoned_clones
    from idumb.git import doctor_checks
    from idumb.git.clones import clone_places
    from idumb.store import agent_caches
    from idumb.store import doctor_checks as store
    from idumb.system.machine import LocalMachine

    place = services.place
    folder = os.path.join(place.common_dir, "idumb")
    machine = LocalMachine(services.root, place.git_dir, folder, partial(clone_places.is_clone_of, place.common_dir))
    return (
        *machine_checks(),
        *doctor_checks.of_repository(place, services.attic),
        *abandoned_clones.checks(services, lambda: store.owned(folder)),
        *doctor_machine.of_place(machine, lambda: store.owned(folder)),
        agent_caches.check(place.state_dir),
        *store.checks(place.common_dir, services.log.database, services.log.verify, place.worktree_id),
    )


def fake_model(script: str | None, port: int, log: str | None, ready: Callable[[str], None]) -> None:
    """Serve a scripted model until told to stop; `ready` is given its address. Needs no repository."""
    from idumb.domain.model_script import Script
    from idumb.fake_model import server
    from idumb.markdown.documents import model_script

    server.serve(Script() if script is None else model_script.load(script), port, log, ready)


def belongings(services: Wired) -> tuple[KeptRefs, Belongings]:
    """What `idumb deinit` removes."""
    from idumb.domain.errors import Refusal
    from idumb.git.refs.ref_removal import GitKeptRefs
    from idumb.store.local_data import FileBelongings

    clones = None
    with contextlib.suppress(Refusal):
        clones = services.clones.place()
    return GitKeptRefs(services.place), FileBelongings(services.place.common_dir, clones)


def host_place(start: str, host: Host, *, user: bool) -> Place:
    """Where a host looks for slash commands: of the user, or of the repository around `start`."""
    from idumb.app.upkeep.install import Place
    from idumb.domain.errors import Refusal
    from idumb.system.files import host_files

    if not user:
        return Place(host, "project", host.project, host_files.HostFiles(_found(start).root))
    if host.user is None:
        raise Refusal(
            "install.no-user-folder",
            f"{host.title} has no folder of its own for a user's commands that could be known from outside.",
            hint=f"idumb install --host {host.name} --project",
            details={"project": f"idumb install --host {host.name} --project"},
        )
    root, folder = host_files.user_root(host.variable, host.user)
    return Place(host, "user", folder, host_files.HostFiles(root))


def places_of_host(start: str, host: Host, *, user: bool) -> tuple[Place, ...]:
    """Every place where one host looks; for a user those alone that are known from outside."""
    known = [each for each in host.places if each.user is not None] if user else host.places
    return tuple(host_place(start, each, user=user) for each in known or (host,))


def host_places(start: str) -> Iterator[Place]:
    """Every place of every host; those of a repository only inside one."""
    import contextlib

    from idumb.domain.errors import Refusal
    from idumb.domain.hosts import HOSTS

    for host in (place for each in HOSTS for place in each.places):
        for user in (False, True):
            if user and host.user is None:
                continue
            with contextlib.suppress(Refusal):
                yield host_place(start, host, user=user)


def slash_commands() -> dict[str, str]:
    """Name to text of every slash command that comes with the program."""
    from idumb.system.files import shipped_files

    return shipped_files.commands()
