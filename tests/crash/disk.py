"""A file system in an image file that can lose power: data that was not forced to the device is then lost.

The shutdown call of ext4 and XFS drops everything that is neither in the journal nor in place. The model has no torn or
reordered sectors, and no disk that reports a write too early.

A sandbox that starts elsewhere holds a copy of every mount while it lives. Until it ends, the file system is still in
use, and a mount of the same image would be the old one with its memory: the next mount waits for it.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.crash.programme import CannotRun
from tests.support.ended import running

KINDS = ("ext4", "xfs")
_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2
# the minimum of mkfs.xfs; both images are sparse
_SIZE = {"ext4": 64 << 20, "xfs": 300 << 20}
_ROUNDS = 200
_PATIENCE = 60.0


def require() -> tuple[str, ...]:
    """Return the kinds of file system that can be created here; raise CannotRun if there are none."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise CannotRun("mounting an image needs Linux and root")
    if not os.path.exists("/dev/loop-control"):
        raise CannotRun("no loop devices")
    kinds = tuple(kind for kind in KINDS if shutil.which(f"mkfs.{kind}"))
    if not kinds:
        raise CannotRun("neither mkfs.ext4 nor mkfs.xfs (package xfsprogs) is here")
    return kinds


def cut(mounted: str) -> None:
    """Cut the power: nothing more reaches the device, and unsynced data is lost."""
    descriptor = os.open(mounted, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
    finally:
        os.close(descriptor)


class Disk:
    """One image at a time, mounted at the same place, so that paths in it stay the same."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.place = folder / kind
        self.place.mkdir(parents=True)
        self._images = folder
        self._mounted = False

    def make(self) -> None:
        """A new, empty file system, mounted."""
        image = self._image("present")
        with image.open("wb") as stream:
            stream.truncate(_SIZE[self.kind])
        _run(f"mkfs.{self.kind}", "-q", str(image))
        self.mount()

    def mount(self) -> None:
        try:
            _run("mount", "-o", "loop", str(self._image("present")), str(self.place))
        except subprocess.CalledProcessError as problem:
            raise CannotRun(f"mounting an image fails: {problem.stderr.strip()}") from problem
        self._mounted = True

    def unmount(self) -> None:
        """End every process that still uses the file system, then unmount it."""
        if not self._mounted:
            return
        for _ in range(_ROUNDS):
            for pid in self.inside():
                kill(pid)
            if subprocess.run(["umount", str(self.place)], capture_output=True, check=False).returncode == 0:
                break
        else:
            _run("umount", str(self.place))
        self._mounted = False
        deadline = time.monotonic() + _PATIENCE
        while self._is_in_use():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._image('present')} is still in use {_PATIENCE:.0f} s after it was unmounted")
            threading.Event().wait(0.01)

    def save(self, name: str) -> None:
        """Unmount the file system and keep its state under a name."""
        self.unmount()
        self._copy("present", name)

    def load(self, name: str) -> None:
        self.unmount()
        self._copy(name, "present")
        self.mount()

    def inside(self) -> list[int]:
        """Return the processes that use the file system."""
        return [pid for pid, _, folder in running() if f"{folder}/".startswith(f"{self.place}/")]

    def _is_in_use(self) -> bool:
        """Return whether a loop device still reads the image, as it does while any process has it mounted."""
        image = str(self._image("present").resolve())
        return any(image == _backing(path) for path in glob.glob("/sys/block/loop*/loop/backing_file"))

    def _image(self, name: str) -> Path:
        return self._images / f"{self.kind}-{name}.img"

    def _copy(self, source: str, target: str) -> None:
        _run("cp", "--sparse=always", str(self._image(source)), str(self._image(target)))


def _backing(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read().rstrip("\n")
    except OSError:  # the device was released between the two looks
        return ""


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _run(*argv: str) -> None:
    subprocess.run(argv, capture_output=True, text=True, check=True)
