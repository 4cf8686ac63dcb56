"""Builds `fault.c` and tells it which system call must fail, through a file that all processes share."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.crash.programme import CannotRun

SOURCE = Path(__file__).with_name("fault.c")
OPEN, WRITE, FSYNC, RENAME, LINK, UNLINK, MKDIR, CLOSE, FORK, EXEC = range(10)
NAMES = ("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "close", "fork", "execve")
SHORT = -1
_OPTIONS = ("-O2", "-Wall", "-Wextra", "-shared", "-fPIC")


class Order(ctypes.Structure):
    """`struct order` of fault.c."""

    _fields_ = (
        ("spared", ctypes.c_int),
        ("armed", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("error", ctypes.c_int),
        ("sticky", ctypes.c_int),
        ("repeated", ctypes.c_int),
        ("renewed", ctypes.c_int),
        ("nth", ctypes.c_long),
        ("fired", ctypes.c_long),
        ("counts", ctypes.c_long * len(NAMES)),
        ("device", ctypes.c_ulong),
        ("inode", ctypes.c_ulong),
        ("below", ctypes.c_char * 4096),
        ("where", ctypes.c_char * 4096),
    )


class Shim:
    """The library and its orders; one for each process that forks for cases."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.library, place = folder / "fault.so", folder / "orders"
        build(self.library, place)
        place.write_bytes(bytes(ctypes.sizeof(Order)))
        with open(place, "r+b") as stream:
            self.order = Order.from_buffer(mmap.mmap(stream.fileno(), 0))
        self.environment = {"LD_PRELOAD": str(self.library)}

    @contextlib.contextmanager
    def armed(
        self, below: Path, *, kind: int = 0, error: int = 0, nth: int = 0, for_good: bool = False
    ) -> Iterator[Order]:
        """While the block runs, the nth call of a kind about paths below a folder fails; 0 only counts."""
        order = self.order
        order.kind, order.error, order.nth, order.sticky = kind, error, nth, int(for_good)
        order.fired = order.repeated = order.renewed = order.device = order.inode = 0
        order.counts = type(order.counts)()
        order.below, order.where = os.fsencode(below.resolve()), b""
        order.armed = 1
        try:
            yield order
        finally:
            order.armed = 0


def build(target: Path, orders: Path) -> None:
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        raise CannotRun("system calls are made to fail on Linux with a C compiler")
    done = subprocess.run(
        [compiler, *_OPTIONS, f'-DFAULT_FILE="{orders.resolve()}"', "-o", str(target), str(SOURCE), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CannotRun(f"fault.c cannot be compiled: {done.stderr.strip()}")
