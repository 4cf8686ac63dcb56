"""T5: a file system that is full (in bytes or files), read-only, or not writable for the user.

The project and the user's home are on a tmpfs. Its free space ranges from nothing to enough.
"""

from __future__ import annotations

import importlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from idumb.system import atomic_write
from tests.crash import harness, scenes
from tests.crash.programme import ENDING, TRACEBACK, CannotRun, Programme, Tally
from tests.crash.scenes import Scene, Stage, Trial, require
from tests.support.answer import Answer
from tests.support.gitrepo import work_tree
from tests.support.project import Project

_PAGE = 4096
_ROOMY = ("1g", "1000000")
_NOBODY = 65534
WRITING = ("execute-phase", "execute-phase without commits", "resume", "rollback", "undo", "verify-work", "init")


class Size(NamedTuple):
    """The free space of a file system when the command starts, in pages of 4 KiB or in files."""

    scene: str
    what: str  # pages | files
    left: int

    @property
    def words(self) -> str:
        return f"{self.scene}: {self.left} {self.what} left"


@dataclass(frozen=True, slots=True)
class Disk:
    """A mounted tmpfs."""

    place: Path

    def used(self) -> tuple[int, int]:
        """Return used pages and used files."""
        usage = os.statvfs(self.place)
        return (usage.f_blocks - usage.f_bfree) * usage.f_frsize // _PAGE, usage.f_files - usage.f_ffree

    def leave(self, *, pages: int | None = None, files: int | None = None) -> None:
        """Resize the file system so that only this much is free; None means plenty."""
        used = self.used()
        size = _ROOMY[0] if pages is None else str(max(1, used[0] + pages) * _PAGE)
        nodes = _ROOMY[1] if files is None else str(used[1] + files)
        self.remount(f"size={size},nr_inodes={nodes}")

    def remount(self, options: str) -> None:
        _run("mount", "-o", f"remount,{options}", str(self.place))


@contextmanager
def mounted(place: Path) -> Iterator[Disk]:
    """Raise CannotRun if this user may not mount."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        raise CannotRun("a tmpfs of a chosen size needs Linux and root")
    place.mkdir(parents=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={_ROOMY[0]},nr_inodes={_ROOMY[1]}", "tmpfs", str(place))
    except subprocess.CalledProcessError as problem:
        raise CannotRun(f"no tmpfs can be mounted here: {problem.stderr.strip()}") from problem
    try:
        yield Disk(place)
    finally:
        _run("umount", "--lazy", str(place))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)


# The peak need of each command is measured first, because it exceeds the need at the command's end.
_PEAK = 1.5


def need(stage: Stage, disk: Disk, scene: Scene) -> dict[str, int]:
    """Return the pages and files that the command certainly needs."""
    project = stage.prepared(scene, disk.place)
    before = disk.used()
    require(stage.run(project, *scene.argv).code == 0, f"{scene.name} fails with room enough")
    after = disk.used()
    shutil.rmtree(project.folder.parent)
    return {
        resource: int((then - now) * _PEAK) + 8
        for resource, now, then in zip(("pages", "files"), before, after, strict=True)
    }


def all_sizes(needs: dict[str, dict[str, int]]) -> list[Size]:
    return [
        Size(scene, resource, amount)
        for scene, each in needs.items()
        for resource in each
        for amount in range(each[resource] + 1)
    ]


def sample(needs: dict[str, dict[str, int]], size: int, choice: random.Random) -> list[Size]:
    """Return sizes from nothing to enough, as many in pages as in files for each scene."""
    cells = [(scene, resource) for scene, each in needs.items() for resource in each]
    choice.shuffle(cells)
    sizes = []
    for number in range(size):
        scene, resource = cells[number % len(cells)]
        sizes.append(Size(scene, resource, int(choice.random() * needs[scene][resource] * 0.7)))
    return sizes


def play(stage: Stage, disk: Disk, scene: Scene, size: Size, tally: Tally, *, hook: str = "") -> Answer:
    """Run one case: the command on the full disk, checks of the result, and the command again with free space."""
    trial = Trial.begin(scene, stage.prepared(scene, disk.place))
    answer = Answer(0, "", "")
    with tally.case(size.words):
        disk.leave(**{size.what: size.left})
        try:
            answer = stage.run(trial.project, *scene.argv, hook=hook)
            look = stage.run(trial.project, "status")
        finally:
            disk.leave()
        saw = f"{answer}"
        tally.note("enough room" if answer.code == 0 else "too little room")
        trial.judge_answer(answer, saw)
        judge_message(disk, answer, saw)
        scenes.sound(look, saw)
        require(look.code == 0 or scene.argv[0] == "init", f"nothing can be read: {look} {saw}")
        trial.judge_fault(answer, saw)
        if answer.code != 0:
            trial.finish(stage, saw)
        trial.judge_end(saw)
    trial.close()
    return answer


def judge_message(disk: Disk, answer: Answer, saw: str) -> None:
    """Assert that the error reports missing space and where."""
    if answer.code == 0 or answer.error["code"] == "run.failed":
        return
    message = answer.error["message"]
    names_cause = any(words in message.lower() for words in ("no space", "disk is full", "files free"))
    require(names_cause, f"it does not say what is missing {saw}")
    if not answer.error["code"].startswith("git."):
        require(str(disk.place) in message, f"it does not say which file system is full {saw}")


# --- read-only, not permitted


# modules that idumb and its libraries import inside functions
_LAZY = (
    "base64", "bisect", "copy", "csv", "ctypes", "difflib", "fcntl", "filecmp", "fnmatch", "getpass", "glob", "hmac",
    "html", "html.entities", "html.parser", "importlib.metadata", "importlib.resources", "inspect", "locale", "pprint",
    "pwd", "queue", "random", "resource", "secrets", "shlex", "socket", "statistics", "string", "tarfile", "termios",
    "textwrap", "tomllib", "unicodedata", "urllib.parse", "uuid", "xml.etree.ElementTree", "zipfile", "zlib",
)  # fmt: skip


def become_nobody(_: object) -> None:
    """Hook: continue as another user. Lazy imports come first, because that user may be unable to read them."""
    for name in _LAZY:
        importlib.import_module(name)
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)


def _read_only(disk: Disk, project: Project) -> None:
    disk.remount("ro")


def _foreign(_: Disk, project: Project) -> None:
    """Give all files to root and run as another user with a separate home."""
    os.chown(project.folder.parent / "home", _NOBODY, _NOBODY)


def _foreign_git(_: Disk, project: Project) -> None:
    _give(project.folder.parent)
    _give(project.folder / ".git", to=0)


def _no_new_names(_: Disk, project: Project) -> None:
    _give(project.folder.parent)
    for folder in (project.folder, project.folder / ".git", project.folder / ".git" / "idumb"):
        if folder.is_dir():
            folder.chmod(0o555)


def _give(folder: Path, to: int = _NOBODY) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, to, to, follow_symlinks=False)


class State(NamedTuple):
    """An obstacle that keeps idumb from writing, and whether it also affects another user."""

    name: str
    make: Callable[[Disk, Project], None]
    as_nobody: bool


STATES = (
    State("a read-only file system", _read_only, as_nobody=False),
    State("a repository of another user", _foreign, as_nobody=True),
    State("a .git of root", _foreign_git, as_nobody=True),
    State("folders without permission to write", _no_new_names, as_nobody=True),
)


def refuse(stage: Stage, disk: Disk, scene: Scene, state: State, tally: Tally) -> None:
    """Assert that the command reports in one line that it may not write, and that nothing has changed."""
    project = stage.prepared(scene, disk.place)
    with tally.case(f"{scene.name}: {state.name}"):
        log = _log(project)  # later git finds root's own repository in the hands of another
        state.make(disk, project)
        before = work_tree(project.folder)
        hook = "tests.crash.full_disk:become_nobody" if state.as_nobody else ""
        try:
            answer = stage.run(project, *scene.argv, hook=hook)
        finally:
            disk.remount("rw")
            _give(project.folder.parent, to=0)
        saw = f"{answer}"
        Trial.begin(scene, project).judge_answer(answer, saw)
        require(answer.code != 0 or scene.name not in WRITING, f"it says that it wrote {saw}")
        after = work_tree(project.folder)
        changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        require(not changed, f"changed: {changed} {saw}")
        done = [kind for kind in _log(project)[len(log) :] if kind.endswith((".completed", ".recorded"))]
        require(not done, f"done according to the log: {done} {saw}")
        tally.note(f"refused: {state.name}")
    shutil.rmtree(project.folder.parent)


def _log(project: Project) -> list[str]:
    if not (project.folder / ".git" / "idumb" / "store.db").exists():
        return []
    return [event.kind for event in harness.events(project)]


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    with mounted(folder / "disk") as disk, Stage(folder) as stage:
        folder.chmod(0o755)
        choice = random.Random(seed)
        filled, refused = (WRITING, scenes.NAMES) if size is None else scenes_of(size, choice)
        scene_of = scenes.all_of(stage, [name for name in scenes.NAMES if name in {*filled, *refused}])
        needs = {name: need(stage, disk, scene_of[name]) for name in filled}
        for chosen in tally.share(all_sizes(needs) if size is None else sample(needs, size, choice)):
            play(stage, disk, scene_of[chosen.scene], chosen, tally)
        met = [(scene_of[name], state) for state in STATES for name in refused if _meets(name, state)]
        for scene, state in tally.share(met):
            refuse(stage, disk, scene, state, tally)


def scenes_of(size: int, choice: random.Random) -> tuple[Sequence[str], Sequence[str]]:
    """Return the scenes of a sample: those that meet a full disk, and those that may not write."""
    refused = ("execute-phase", "rollback", "status", "init")
    small = size < len(refused)
    return choice.sample(WRITING, min(len(WRITING), -(-size // 2))), [choice.choice(refused)] if small else refused


def _meets(scene: str, state: State) -> bool:
    # `init` writes only into the working tree
    return not (scene == "init" and state.make is _foreign_git)


PROGRAMME = Programme(
    "T5", "a disk without room, or that may not be written", 12, None, run, (*ENDING, TRACEBACK), divides=True
)


def leave_temporary_files(_: object) -> None:
    """A fault planted in idumb to see it detected."""
    atomic_write._discard = lambda *_: None
