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


def command_folders(start: str, host: Host, *, user: bool) -> tuple[Place, ...]:
    """Every folder where a host looks for slash commands: of the user, or in the repository around `start`."""
    if not user:
        files = rooted_files.HostFiles(discover.find(start).root)
        return tuple(Place(each, "project", each.project, files) for each in host.places)
    roots = [(each, rooted_files.user_root(each.variable, each.user)) for each in host.places if each.user is not None]
    return tuple(
        Place(each, "user", folder, rooted_files.HostFiles(root), f"{root}/") for each, (root, folder) in roots
    )
