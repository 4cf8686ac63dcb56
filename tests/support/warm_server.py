"""The process behind `warm.Warm`: has imported everything, and forks for each command line it is given.

One JSON object a line comes in, `{id, cwd, argv, environment, in, out, err, hook, given}`; `{id, pid}` and, when the
command has ended, `{id, status, seconds}` go out; the seconds are of processor time.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import sys
import time
import traceback
from typing import Any

# What the program imports where it needs it: found by comparing `sys.modules` before and after commands.
_IMPORTED_LATE = (
    "concurrent.futures.thread",
    "ctypes",
    "difflib",
    "encodings.ascii",
    "encodings.utf_8_sig",
    "filelock",
    "frontmatter",
    "getpass",
    "gzip",
    "importlib.metadata",
    "importlib.resources",
    "json",
    "mistune",
    "platform",
    "resource",
    "ruamel.yaml",
    "select",
    "subprocess",
    "tempfile",
    "termios",
)


def _import_everything() -> None:
    import idumb

    for module in pkgutil.walk_packages(idumb.__path__, "idumb."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("idumb.__main__")  # a command of another user may not be able to read the checkout
    for name in _IMPORTED_LATE:
        importlib.import_module(name)


def _set_libgit2_home(home: str) -> None:
    """Libgit2 remembers the home that it was loaded in; each case may have one of its own."""
    import pygit2

    levels = pygit2.enums.ConfigLevel
    for level in (levels.GLOBAL, levels.XDG, levels.SYSTEM):
        pygit2.settings.search_path[level] = home


def _child(request: dict[str, Any]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    _set_libgit2_home(os.environ.get("HOME", "/nonexistent"))
    time.tzset()
    os.chdir(request["cwd"])
    for target, path, flags in (
        (0, request["in"], os.O_RDONLY),
        (1, request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, request["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        descriptor = os.open(path, flags, 0o600)
        os.dup2(descriptor, target)
        os.close(descriptor)
    sys.argv = ["idumb", *request["argv"]]
    if request["hook"]:
        module, _, name = request["hook"].partition(":")
        getattr(sys.modules[module], name)(request["given"])
    from idumb import __main__ as program

    try:
        program.main()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    finally:
        atexit._run_exitfuncs()
    return 0


def _import_hook(name: str) -> None:
    """Import the module of a hook here, so that the cases after this one find it imported."""
    module = name.partition(":")[0]
    if module and module not in sys.modules:
        importlib.import_module(module)
        gc.collect()
        gc.freeze()


def _fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        code = _child(request)
    except BaseException:  # noqa: BLE001 - what leaves the program here would be a traceback of the program's
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _say(message: dict[str, Any]) -> None:
    os.write(_ANSWERS, json.dumps(message).encode("ascii") + b"\n")


def _ended(running: dict[int, int]) -> None:
    while running:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if pid == 0:
            return
        if pid in running:
            seconds = usage.ru_utime + usage.ru_stime
            _say({"id": running.pop(pid), "status": os.waitstatus_to_exitcode(status), "seconds": seconds})


def serve() -> None:
    _import_everything()
    gc.collect()
    gc.freeze()
    running: dict[int, int] = {}
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    chosen = selectors.DefaultSelector()
    chosen.register(wake_read, selectors.EVENT_READ)
    chosen.register(_REQUESTS, selectors.EVENT_READ)
    _say({"ready": True})
    waiting = b""
    while True:
        for key, _ in chosen.select():
            if key.fd == wake_read:
                os.read(wake_read, 4096)
                continue
            data = os.read(_REQUESTS, 1 << 20)
            if not data:
                return
            waiting += data
            *lines, waiting = waiting.split(b"\n")
            for line in lines:
                request = json.loads(line)
                _import_hook(request["hook"])
                pid = _fork(request)
                running[pid] = request["id"]
                _say({"id": request["id"], "pid": pid})
        _ended(running)


if __name__ == "__main__":
    # Away from 0 and 1, which cases use; what a case starts does not inherit them.
    _REQUESTS, _ANSWERS = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    serve()
