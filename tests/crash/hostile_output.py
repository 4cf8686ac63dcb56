"""T15: output of any size and kind costs little memory, moves no cursor, and hides nothing from a reader.

The first part streams through an agent and measures the executor; the second sends characters that steer, hide or
reorder through every command that shows foreign text, on a real terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import select
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from idumb.system import escaping
from tests.crash.programme import CannotRun, Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task

LIMIT = 150_000  # KiB
MEGA = 1_000_000

# Runs a command line and notes the most memory that it ever had, in KiB.
MEASURED = """
import sys
from idumb.cli import main
code = main.run(sys.argv[2:])
with open("/proc/self/status") as status, open(sys.argv[1], "w") as note:
    note.write([line.split()[1] for line in status if line.startswith("VmHWM")][0])
sys.stdout.flush()
sys.exit(code)
"""
PRINT = """
import os, sys
kind, left = sys.argv[1], int(sys.argv[2])
piece = {
    "lines": b"a line of output like any other, only that there are many of it\\n" * 1000,
    "one line": b"x" * 65536,
    "nothing but NUL": bytes(65536),
    "not UTF-8": bytes(range(128, 256)) * 512,
    "UTF-16": "a line\\n".encode("utf-16") * 4000,
    "escapes": b"\\x1b[31337m\\x1b]52;c;aGk=\\x07\\r" * 2000,
}[kind]
while left > 0:
    left -= os.write(1, piece[:left])
with open(sys.argv[3], "w") as file:
    file.write("made\\n")
"""
READING = ("check-plan", "graph", "show", "status", "next", "log", "decisions", "roadmap", "audit")
KINDS = ("lines", "one line", "nothing but NUL", "not UTF-8", "UTF-16", "escapes")

ESC = "\x1b"
CORPUS = (
    f"{ESC}[31337m",
    f"{ESC}]0;title\x07",
    f"{ESC}]8;;http://x.invalid{ESC}\\link",
    f"{ESC}]52;c;aGk=\x07",
    f"{ESC}P1;2|x{ESC}\\",
    f"{ESC}c",
    "\x9b31337m",
    "\x90q\x9c",
    "\x08\x08\x08",
    "\x7f",
    "\u202egnp.exe\u202c",
    "\u2066hidden\u2069",
    "\u200bzero\u200dwidth\u2060",
    "\ufeffmark",
    "\U000e0041\U000e0042tags",
    "\u2028line\u2029paragraph",
    "\u00adsoft",
    "\u3164filler",
)
# What a terminal is told by idumb itself.
OURS = re.compile(r"\x1b\[[0-9;?]{0,8}[A-Za-z]")
_ALLOWED = "\r\n\t"


def harmful(text: str) -> list[str]:
    """Characters that act or hide, each once; what idumb's own terminal sequences consist of does not count."""
    if "31337" in text and ("\x1b[31337" in text or "\x9b31337" in text):
        return ["31337"]
    bare = OURS.sub("", text)
    return sorted({hex(ord(char)) for char in bare if char not in _ALLOWED and _acts(char)})


def _acts(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or char in "\u3164\u115f"


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """`size` is the number of megabytes that are streamed; None is ten thousand. A small sample shows less, too."""
    if sys.platform != "linux":
        raise CannotRun("only Linux tells how much memory a process had")
    streams(folder, size or 10_000, tally)
    small = size is not None and size <= len(KINDS)
    shown(folder / "shown", tally, chosen=random.Random(seed).sample(READING, 3) if small else READING)


def streams(folder: Path, megabytes: int, tally: Tally) -> None:
    """One run, a task for each kind of output: half of all as lines, the rest in equal parts."""
    (folder / "print.py").write_text(PRINT, encoding="utf-8")
    project = projects.create(GitSandbox.create(folder / "streams"), files={"README.md": "x\n"})
    bindings, tasks = ["bindings:"], []
    for number, kind in enumerate(KINDS, 1):
        amount = megabytes * MEGA // (2 if kind == "lines" else 10)
        argv = json.dumps([sys.executable, str(folder / "print.py"), kind, str(amount), f"{number}.txt"])
        bindings.append(f"  b{number}: {{adapter: command, argv: {argv}, timeout: 3h}}")
        tasks.append(making(f"T1-0{number}", f"{number}.txt", fields=f"- **Builder:** b{number}\n", steps=()))
    project.configure("\n".join([*bindings, ""]))
    project.plan(tasks)
    answer, most = _measured(project, folder / "note")
    for number, kind in enumerate(KINDS):
        with tally.case(f"{kind}, {megabytes} MB in all"):
            assert answer.data["tasks"][number]["status"] == "completed", answer
    with tally.case(f"memory for {megabytes} MB in all"):
        assert most < LIMIT, f"{most} KiB for {megabytes} MB"
    tally.note("KiB of memory at most", most)
    with tally.case(f"disk for {megabytes} MB in all"):
        kept = sum(path.stat().st_size for path in (project.folder / ".git/idumb").rglob("*") if path.is_file())
        assert kept < 10 * len(KINDS) * MEGA, f"{kept} bytes are kept"


def _measured(project: Project, note: Path) -> tuple[Answer, int]:
    argv = [sys.executable, "-c", MEASURED, str(note), "execute-phase", "1"]
    done = subprocess.run(
        [*argv, "--approve", project.approval(), "--json"],
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr), int(note.read_text(encoding="ascii"))


def shown(folder: Path, tally: Tally, plant: str = "", chosen: Sequence[str] = READING) -> None:
    """Run the commands; of those that only read, the chosen ones."""
    project = hostile_project(folder / "project")
    consent = project.approval()
    for arguments in commands(consent):
        if arguments[0] in READING and arguments[0] not in chosen:
            continue
        with tally.case(f"{' '.join(arguments)} on a terminal"):
            assert harmful(on_terminal(project, *arguments, plant=plant)) == []
        if arguments[0] in READING:
            with tally.case(f"{' '.join(arguments)} as JSON"):
                answer = warm.run(project.folder, *arguments, "--json")
                assert answer.out.isascii()
                assert answer.object["command"] == arguments[0]
    documents = [p for top in (".idumb/brain", ".planning") for p in (project.folder / top).rglob("*.md")]
    for path in (p for p in documents if not p.name.endswith("PLAN.md")):
        with tally.case(f"document {path.name}"):
            assert harmful(path.read_text(encoding="utf-8")) == []


def hostile_project(folder: Path) -> Project:
    """Every place that takes foreign text holds all of the corpus that it accepts."""
    repo = GitSandbox.create(folder)
    everything = "".join(CORPUS)
    visible = "".join(part for part in CORPUS if not any(unicodedata.category(c) in {"Cc", "Cs"} for c in part))
    project = projects.create(repo, files={"README.md": "# A project\n", f"odd{CORPUS[0]}.txt": "one\n"})
    repo.commit(f"subject {everything}")
    repo.git("switch", "-q", "-c", "b\u202eranch\u200b")
    (folder / "says.txt").write_text(everything * 3, encoding="utf-8")
    repo.commit("more")
    tasks = [
        making("T1-01", "a.txt").replace("Task T1-01", f"Title {visible}"),
        task(
            "T1-02",
            files="create `b.txt`",
            check="cat says.txt; cat says.txt >&2; false",
            after="T1-01",
            criteria=f"  - [ ] holds {visible} — check: `cat says.txt; echo '{visible}'; false`\n",
            steps=[projects.shell("cat says.txt; echo made > b.txt")],
        ),
        making("T1-03", f"c{CORPUS[10]}.txt"),
    ]
    project.plan(tasks)
    return project


PROMPT = b"): "  # the end of each question; an empty line leaves it open


def commands(consent: str) -> Iterator[list[str]]:
    yield from (["check-plan", "1"], ["graph", "1"])
    yield ["execute-phase", "1", "--approve", consent, "--max-attempts", "1"]
    for task_id in ("T1-01", "T1-02"):
        yield from (["show", task_id], ["show", task_id, "--diff"])
    yield from (["status"], ["next"], ["log"], ["decisions"], ["roadmap"], ["audit", "verify"])
    yield ["accept", "T1-02", "--reason", "".join(CORPUS)]
    yield from (["show", "T1-02"], ["log"])
    yield ["show", f"T1-9{CORPUS[0]}"]
    yield [f"nonsense{CORPUS[3]}"]


def on_terminal(project: Project, *arguments: str, plant: str = "") -> str:
    """Return the output of a command to its own terminal, at which no person answers."""
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    hook, given = "tests.crash.hostile_output:take_terminal", [os.ttyname(theirs), plant]
    with os.fdopen(theirs, "wb", buffering=0) as held:
        running = warm.start(project.folder, *arguments, environment={"TERM": "xterm"}, hook=hook, given=given)
        parts: list[bytes] = []
        with contextlib.suppress(ProcessLookupError):  # it may have ended already
            ended = os.pidfd_open(running.pid)
            while ours in select.select([ours, ended], [], [])[0]:
                parts.append(_read(ours))
                if b"".join(parts[-len(PROMPT) :]).endswith(PROMPT):  # it may arrive in pieces
                    os.write(ours, b"\n")
            os.close(ended)
        running.wait()
        held.write(b"\r\n")
    while part := _read(ours):
        parts.append(part)
    os.close(ours)
    return b"".join(parts).decode("utf-8", "surrogateescape")


def take_terminal(given: list[str]) -> None:
    """In the process under test: its streams are the terminal; and the fault, if one is planted."""
    handle = os.open(given[0], os.O_RDWR)
    for stream in range(3):
        os.dup2(handle, stream)
    if given[1]:
        escaping._HARMFUL = re.compile("(?!)")


def _read(handle: int) -> bytes:
    """A terminal whose other side has gone is an error, not an end."""
    try:
        return os.read(handle, 65536)
    except OSError:
        return b""


PROGRAMME = Programme("T15", "hostile output", 28, 10_000, run, least={"cases": 31})
