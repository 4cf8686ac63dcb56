"""What `install` and `doctor` need besides a container."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from idumb.app.upkeep import doctor_machine
from idumb.app.upkeep.install import Place
from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.health import Check
from idumb.domain.hosts import Host
from idumb.git import discover
from idumb.system import rooted_files
from idumb.system.machine import LocalMachine

if TYPE_CHECKING:
    from idumb.composition.container import Container


def machine_checks(repository: str = "") -> tuple[Check, ...]:
    """The checks of `idumb doctor` that need no repository."""
    from idumb.git import doctor_checks

    return (
        *doctor_checks.program_checks(),
        *doctor_machine.user_checks(LocalMachine("/", "/", "/")),
        doctor_machine.sandbox_check(LocalSandboxes(repository).support),
    )


def health_checks(services: Container, *, accept_loss: bool) -> tuple[Check, ...]:
    """The checks of `idumb doctor` on the machine, the repository and the store.

    `accept_loss`: `--fix` may restore an event log although events are missing in its backup.
    """
    from idumb.git import doctor_checks
    from idumb.git.checkouts import places
    from idumb.store import doctor_checks as store

    repository = services.repository
    folder = os.path.join(repository.common_dir, "idumb")
    is_checkout = partial(places.is_checkout_of, repository.common_dir)
    machine = LocalMachine(services.root, repository.git_dir, folder, is_checkout)
    return (
        *machine_checks(services.root),
        *doctor_checks.repository_checks(repository, services.backups, services.folder),
        *doctor_machine.checkout_checks(services, lambda: store.owned(folder)),
        *doctor_machine.repository_checks(machine, lambda: store.owned(folder)),
        *store.checks(services.log, repository.name, services.clock, accept_loss=accept_loss),
    )


def command_folder(start: str, host: Host, *, user: bool) -> Place:
    """Where a host looks for slash commands: the user's folder, or one of the repository around `start`."""
    if not user:
        return Place(host, "project", host.project, rooted_files.HostFiles(discover.find(start).root))
    assert host.user is not None  # noqa: S101 - one of its places has a fixed folder
    root, folder = rooted_files.user_root(host.variable, host.user)
    return Place(host, "user", folder, rooted_files.HostFiles(root))


def command_folders(start: str, host: Host, *, user: bool) -> tuple[Place, ...]:
    """Every folder where one host looks for slash commands; for a user, only the fixed ones."""
    places = [place for place in host.places if place.user is not None] if user else host.places
    return tuple(command_folder(start, place, user=user) for place in places)
