"""Checks of `idumb doctor` on the machine: disk, file system, owners and modes, what earlier processes left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from idumb.app.ports.host import Machine
from idumb.domain import file_system_kinds, health
from idumb.domain.health import Check, Symptom

_LITTLE = 64 << 20
_LITTLE_NODES = 1000
_FORGETFUL = frozenset({"tmpfs", "ramfs"})


def of_user(machine: Machine) -> tuple[Check, ...]:
    def look() -> Iterator[Symptom]:
        """Consent and the copy of the log count only where nobody else could have written them."""
        place, why = machine.state_directory()
        if why is None:
            yield health.fine(place)
        else:
            yield health.problem(why, place, means="consent and the copy in it do not count", mend=f"ls -ld {place}")

    return (Check("state-directory.private", "the user's state directory is theirs alone", look),)


def of_place(machine: Machine, owned: Callable[[], bool]) -> tuple[Check, ...]:
    """`owned` says whether some work tree of the repository has a live owner, whose processes are none of ours."""
    look = _Look(machine, owned)
    return (
        Check("disk.kind", "the file systems are local and lasting", look.kinds),
        Check("disk.space", "there is room for snapshots and the log", look.space),
        Check("disk.writable", "the git folder can be written", look.writable),
        Check("store.private", "the event log's folder is the user's alone", look.modes, look.make_private),
        Check("temporary.files", "no killed idumb left temporary files", look.temporary, look.set_aside),
        Check("processes.left", "no process of a killed run goes on", look.processes, look.end),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    machine: Machine
    owned: Callable[[], bool]

    def kinds(self) -> Iterator[Symptom]:
        machine = self.machine
        places = (machine.root, machine.git_dir, machine.state_directory()[0])
        seen = {path: machine.file_system(path) for path in places}
        for path, kind in seen.items():
            if file_system_kinds.is_network(kind):
                yield health.warn(
                    f"it is on {kind}",
                    path,
                    means="locks and forced writes may not hold there; let one machine at a time work in it",
                    mend="keep the repository on a local disk",
                )
            elif kind in _FORGETFUL:
                yield health.warn(f"it is on {kind}", path, means="it is gone when the machine stops")
        yield health.fine(", ".join(dict.fromkeys(kind for kind in seen.values() if kind)))

    def space(self) -> Iterator[Symptom]:
        place = self.machine.git_dir
        free, nodes = self.machine.room(place)
        if free < _LITTLE:
            found = f"{free >> 20} MiB are free"
            yield health.problem(found, place, means="a snapshot may not fit", mend="Make room on that disk")
        if nodes is not None and nodes < _LITTLE_NODES:
            yield health.problem(
                f"{nodes} files can still be made there",
                place,
                means="a snapshot needs one for each new content",
                mend="Make room on that disk; git gc packs many files into few",
            )
        yield health.fine(f"{free / (1 << 30):.1f} GiB are free")

    def writable(self) -> Iterator[Symptom]:
        machine = self.machine
        for place in (machine.root, machine.git_dir, machine.folder):
            if not machine.writable(place):
                yield health.problem("it cannot be written", place, means="nothing can be run", mend=f"ls -ld {place}")
        owner = machine.owner(machine.git_dir)
        if owner != machine.user():
            yield health.warn(
                f"it belongs to user {owner}, and you are {machine.user()}",
                machine.git_dir,
                means="what idumb writes there would not belong to its owner",
                mend="run idumb as the owner of the repository",
            )

    def modes(self) -> Iterator[Symptom]:
        for path, owner, mode in self.machine.exposed():
            if owner != self.machine.user():
                means = "others could change the log"
                yield health.problem(f"it belongs to user {owner}", path, means=means, mend=f"ls -ldn {path}")
            else:
                means = "other users could read or change what idumb remembers"
                yield health.warn(f"its mode is {mode:04o}", path, means=means, mends=True, subject=path)

    def make_private(self, symptom: Symptom) -> str:
        mode = self.machine.make_private(symptom.subject)
        return f"{symptom.subject} is gone by now" if mode is None else f"{symptom.subject} has mode {mode:04o} now"

    def temporary(self) -> Iterator[Symptom]:
        for path, age in self.machine.temporary():
            found = f"a killed idumb left it {_ago(age)}"
            yield health.warn(found, path, means="nothing needs it", mends=True, subject=path)

    def set_aside(self, symptom: Symptom) -> str:
        place = self.machine.set_aside(symptom.subject)
        return f"{symptom.subject} is in {place} now" if place else f"{symptom.subject} is gone by now"

    def processes(self) -> Iterator[Symptom]:
        for pid, run in () if self.owned() else self.machine.left_processes():
            yield health.problem(
                f"process {pid} of run {run} goes on",
                means="its idumb was killed, and it may still write files",
                mends=True,
                subject=str(pid),
            )

    def end(self, symptom: Symptom) -> str:
        self.machine.end(int(symptom.subject))
        return f"process {symptom.subject} was ended"


def _ago(seconds: float) -> str:
    if seconds < 120:
        return "just now"
    return f"{seconds / 60:.0f} minutes ago" if seconds < 7200 else f"{seconds / 3600:.0f} hours ago"
