"""Checks of `idumb doctor` on the machine: file systems, owners and modes, checkouts, and what killed runs left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from idumb.domain import health, permissions
from idumb.domain.errors import Refusal
from idumb.domain.health import Check, Symptom

if TYPE_CHECKING:
    from idumb.app.core.services import Services
    from idumb.domain.permissions import Support
    from idumb.system.machine import LocalMachine

_LOW_SPACE = 64 << 20
_LOW_FILES = 1000


def user_checks(machine: LocalMachine) -> tuple[Check, ...]:
    def look() -> Iterator[Symptom]:
        """Consent and the backups of the log count only if no other user could have written them."""
        place, why = machine.state_directory()
        if why is None:
            yield health.passed(place)
        else:
            yield health.problem(
                why, place, means="approvals and the backups of the event log in it are ignored", fix=f"ls -ld {place}"
            )

    return (Check("state-directory.private", "no other user can write to your state directory", look),)


def sandbox_check(support: Callable[[], Support]) -> Check:
    def look() -> Iterator[Symptom]:
        yield health.passed(permissions.sandbox_words(support()))

    return Check("sandbox.support", "what this machine offers to limit where agents write", look)


def repository_checks(machine: LocalMachine, owned: Callable[[], bool]) -> tuple[Check, ...]:
    """Return the checks. `owned` tells whether a live process owns a working tree; its processes are not orphaned."""
    look = _Look(machine, owned)
    return (
        Check("disk.space", "there is enough disk space for snapshots and the event log", look.space),
        Check("disk.writable", "the git folder is writable", look.writable),
        Check("store.private", "no other user can access the folder of the event log", look.modes, look.make_private),
        Check("processes.left", "there are no orphaned processes", look.processes, look.end),
    )


class _Look(Struct, frozen=True):
    machine: LocalMachine
    owned: Callable[[], bool]

    def space(self) -> Iterator[Symptom]:
        place = self.machine.git_dir
        free, nodes = self.machine.room(place)
        if free < _LOW_SPACE:
            words = f"{free >> 20} MiB are free"
            yield health.problem(words, place, means="a snapshot may not fit", fix="Free disk space")
        if nodes is not None and nodes < _LOW_FILES:
            yield health.problem(
                f"only {nodes} more files can be created",
                place,
                means="a snapshot creates a file for each new file content",
                fix="Delete files on that disk; git gc packs many files into few",
            )
        yield health.passed(f"{free / (1 << 30):.1f} GiB are free")

    def writable(self) -> Iterator[Symptom]:
        machine = self.machine
        for place in (machine.root, machine.git_dir, machine.folder):
            if not machine.writable(place):
                yield health.problem(
                    "the folder is not writable", place, means="nothing can run", fix=f"ls -ld {place}"
                )
        owner = machine.owner(machine.git_dir)
        if owner != machine.user():
            yield health.warn(
                f"the owner is user {owner}, and you are user {machine.user()}",
                machine.git_dir,
                means="files that idumb writes there would have another owner",
                fix="Run idumb as the owner of the repository",
            )

    def modes(self) -> Iterator[Symptom]:
        for path, owner, mode in self.machine.exposed():
            if owner != self.machine.user():
                means = "another user could change the event log"
                yield health.problem(f"the owner is user {owner}", path, means=means, fix=f"ls -ldn {path}")
            else:
                means = "other users could read or change idumb's data"
                yield health.warn(f"the mode is {mode:04o}", path, means=means, fixes=True, subject=path)

    def make_private(self, symptom: Symptom) -> str:
        return f"{symptom.subject} now has mode {self.machine.make_private(symptom.subject):04o}"

    def processes(self) -> Iterator[Symptom]:
        for pid, run in () if self.owned() else self.machine.left_processes():
            yield health.problem(
                f"process {pid} of run {run} is still running",
                means="its idumb was killed; the process may still write files",
                fixes=True,
                subject=str(pid),
            )

    def end(self, symptom: Symptom) -> str:
        self.machine.end(int(symptom.subject))
        return f"process {symptom.subject} was killed"


def checkout_checks(services: Services, owned: Callable[[], bool]) -> tuple[Check, ...]:
    """The checks of `doctor` on checkouts: what is left there is kept before anything else happens there.

    `owned` returns whether a working tree of the repository has a live owner, whose checkout is in use.
    """

    def place() -> Iterator[Symptom]:
        try:
            yield health.passed(services.checkouts.require_place())
        except Refusal as refusal:
            means = "no program can work, and nothing can be run dry"
            yield health.warn(refusal.message, means=means, fix=refusal.hint or "")

    def left() -> Iterator[Symptom]:
        at_work = owned()
        for path in services.checkouts.left():
            yield health.warn(
                "an attempt works in a checkout",
                path,
                means="a run is under way" if at_work else "it was killed, and this may be the only copy of its work",
                fix="idumb status",
                fixes=not at_work,
                subject=path,
            )

    def keep(symptom: Symptom) -> str:
        """Keep the files of killed attempts under their names."""
        where = services.checkouts.keep_left().get(symptom.subject)
        return f"what it left is kept: {where}" if where else f"{symptom.subject} is in use, or kept by now"

    return (
        Check("checkouts.place", "programs have a place to work", place),
        Check("checkouts.left", "no work of a killed attempt is in a checkout alone", left, keep),
    )
