"""What `init`, `install`, `deinit`, `doctor`, `plan-phase` and `fake-model` need besides a container."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from idumb.composition import project_folder
from idumb.composition.container import Container

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from idumb.app.upkeep.install import Place
    from idumb.domain.health import Check
    from idumb.domain.hosts import Host


def machine_checks(repository: str = "") -> tuple[Check, ...]:
    """The checks of `idumb doctor` that need no repository."""
    from idumb.app.upkeep import doctor_machine
    from idumb.composition.sandboxes import LocalSandboxes
    from idumb.git import doctor_checks
    from idumb.system.machine import LocalMachine

    return (
        *doctor_checks.program_checks(),
        *doctor_machine.user_checks(LocalMachine("/", "/", "/")),
        doctor_machine.sandbox_check(LocalSandboxes(repository).support),
    )


def health_checks(services: Container) -> tuple[Check, ...]:
    """The checks of `idumb doctor` on the machine, the repository and the store."""
    from functools import partial

    from idumb.app.upkeep import doctor_machine
    from idumb.app.worktree import abandoned_clones
    from idumb.git import doctor_checks
    from idumb.git.clones import clone_places
    from idumb.store import doctor_checks as store
    from idumb.store import local_data
    from idumb.system.machine import LocalMachine

    repository = services.repository
    folder = os.path.join(repository.common_dir, "idumb")
    is_clone = partial(clone_places.is_clone_of, repository.common_dir)
    machine = LocalMachine(services.root, repository.git_dir, folder, is_clone)
    return (
        *machine_checks(services.root),
        *doctor_checks.repository_checks(repository, services.backups, services.folder),
        *abandoned_clones.checks(services, lambda: store.owned(folder)),
        *doctor_machine.repository_checks(machine, lambda: store.owned(folder)),
        local_data.check_unpacked(services.project.state_dir),
        *store.checks(repository.common_dir, services.log.database, services.log.verify, repository.worktree_id),
    )


def projects_below(services: Container) -> Mapping[str, bool]:
    """Return the folders below the project with a configuration of their own, and whether idumb has runs of them."""
    from idumb.git.projects import known_projects

    start = f"{services.folder}/" if services.folder else ""
    found = known_projects.below(services.repository, services.folder)
    return {folder.removeprefix(start): has_runs for folder, has_runs in found.items()}


@contextlib.contextmanager
def project_in(services: Container, folder: str) -> Iterator[Container]:
    """Yield the services of the project in a folder below that of `services`; `services` itself for ""."""
    if not folder:
        yield services
        return
    inner = services.of_folder(f"{services.folder}/{folder}" if services.folder else folder)
    try:
        yield inner
    finally:
        inner.close()


def command_folder(start: str, host: Host, *, user: bool) -> Place:
    """Where a host looks for slash commands: the user's folder, or one of the repository around `start`."""
    from idumb.app.upkeep.install import Place
    from idumb.domain.errors import Refusal
    from idumb.system.files import host_files

    if not user:
        return Place(host, "project", host.project, host_files.HostFiles(project_folder.find_repository(start).root))
    if host.user is None:
        raise Refusal(
            "install.no-user-folder",
            f"{host.title} has no fixed folder for a user's commands.",
            hint=f"idumb install --host {host.name} --project",
            details={"project": f"idumb install --host {host.name} --project"},
        )
    root, folder = host_files.user_root(host.variable, host.user)
    return Place(host, "user", folder, host_files.HostFiles(root))


def command_folders(start: str, host: Host, *, user: bool) -> tuple[Place, ...]:
    """Every folder where one host looks for slash commands; for a user, only the fixed ones."""
    places = [place for place in host.places if place.user is not None] if user else host.places
    return tuple(command_folder(start, place, user=user) for place in places or (host,))


def all_command_folders(start: str) -> Iterator[Place]:
    """Every folder of every host; outside a repository, only those of the user."""
    from idumb.domain.errors import Refusal
    from idumb.domain.hosts import HOSTS

    for host in (place for each in HOSTS for place in each.places):
        for user in (False, True):
            if user and host.user is None:
                continue
            with contextlib.suppress(Refusal):
                yield command_folder(start, host, user=user)


def slash_commands() -> dict[str, str]:
    """Name to text of every slash command that comes with idumb."""
    from idumb.system.files import shipped_files

    return shipped_files.commands()


def project_templates() -> dict[str, str]:
    """Path to text of the files that `init` creates in `.planning/`."""
    from idumb.system.files import shipped_files

    return {f".planning/{name}": shipped_files.template(name) for name in ("PROJECT.md", "ROADMAP.md")}


def plan_template() -> str:
    """The plan that `plan-phase --template` fills in."""
    from idumb.system.files import shipped_files

    return shipped_files.template("phase-plan.md")


def shipped_plan(name: str) -> str:
    """The template of a plan that `plan new` fills in."""
    from idumb.system.files import shipped_files

    return shipped_files.template(f"plans/{name}.md")


def fake_model(script: str | None, port: int, log: str | None, ready: Callable[[str], None]) -> None:
    """Serve a scripted model until a signal ends it; `ready` is called with its address. Needs no repository."""
    from idumb.domain.model_script import Script
    from idumb.fake_model import server
    from idumb.markdown.documents import model_script

    server.serve(Script() if script is None else model_script.load(script), port, log, ready)
