"""T16: idumb stores and prints no secret that agents, steps, checks and validators print.

Canaries are random, so any sufficiently long part of one is searched for on its own: half a secret counts too.
Snapshots may contain the user's own files with secrets, so such files are outside the repository here.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import os
import random
import shlex
import string
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from idumb.agents.transcript import Transcript
from idumb.system.redaction import Redactor
from idumb.system.supervision import HEAD, MARGIN, TAIL, Capture, Captured
from tests.crash.programme import Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task

PART = 12  # a part of a secret with this many characters must appear nowhere
_LETTERS = string.ascii_letters + string.digits

# Name of a token's kind: the text before it, its prefix, the alphabet and length of the rest, and the text after it.
TOKENS: Mapping[str, tuple[str, str, str, int, str]] = {
    "aws-key-id": ("", "AKIA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, ""),
    "github": ("", "ghp_", _LETTERS, 36, ""),
    "github fine": ("", "github_pat_", _LETTERS, 60, ""),
    "gitlab": ("", "glpat-", _LETTERS, 20, ""),
    "anthropic": ("", "sk-ant-", _LETTERS, 80, ""),
    "openai": ("", "sk-proj-", _LETTERS, 48, ""),
    "slack": ("", "xoxb-", _LETTERS, 40, ""),
    "google": ("", "AIza", _LETTERS, 35, ""),
    "google-oauth": ("", "ya29.", _LETTERS, 60, ""),
    "npm": ("", "npm_", _LETTERS, 36, ""),
    "python-index": ("", "pypi-AgE", _LETTERS, 80, ""),
    "stripe": ("", "sk_live_", _LETTERS, 24, ""),
    "digitalocean": ("", "dop_v1_", "0123456789abcdef", 64, ""),
    "vault": ("", "hvs.", _LETTERS, 40, ""),
    "url": ("git clone https://me:", "", _LETTERS, 24, "@example.invalid/x.git"),
    "authorization": ("Authorization: Bearer ", "", _LETTERS, 40, ""),
    "private key": ("", "-----BEGIN PRIVATE " + "KEY-----\n", _LETTERS, 600, "\n-----END PRIVATE " + "KEY-----"),
}
VALUES = 13


@dataclass(frozen=True, slots=True)
class Canary:
    """`secret` must not appear. `text` is its printed form. `variable` is its name if it is a known value."""

    name: str
    secret: str
    text: str
    variable: str = ""

    def parts(self) -> list[bytes]:
        return [self.secret[at : at + PART].encode() for at in range(0, len(self.secret) - PART + 1, 3)]

    def seen_in(self, data: bytes) -> bool:
        return any(part in data for part in self.parts())


def canaries(chance: random.Random) -> list[Canary]:
    canary_list = []
    for name, (before, prefix, alphabet, length, behind) in TOKENS.items():
        secret = "".join(chance.choices(alphabet, k=length))
        if name == "private key":
            lines = "\n".join(secret[at : at + 60] for at in range(0, length, 60))
            canary_list += [Canary(name, secret[:60], f"{before}{prefix}{lines}{behind}")]
        else:
            canary_list.append(Canary(name, secret, f"{before}{prefix}{secret}{behind}"))
    for number in range(VALUES):
        odd = "".join(chance.choices(_LETTERS + "/+='\"\\ &%", k=30)).strip()
        canary_list.append(Canary(f"value {number}", odd, odd, f"CANARY_{number}"))
    return canary_list


def spelled(canary: Canary) -> list[Canary]:
    """Return a known value in each spelling that programs give it, each as its own canary; return a token unchanged."""
    value, raw = canary.secret, canary.secret.encode()
    if not canary.variable:
        return [canary]
    forms = {
        "plain": value,
        "URL": quote(value, safe=""),
        "form": quote_plus(value),
        "JSON": json.dumps(value),
        "shell": shlex.quote(value),
        "base64": base64.b64encode(raw).decode(),
        "base64 for URLs": base64.urlsafe_b64encode(raw).decode(),
        "hexadecimal": raw.hex(),
    }
    return [Canary(f"{canary.name}, {name}", form, form, canary.variable) for name, form in forms.items()]


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """`size` is the number of secrets, None means all; a sample cuts them in fewer places."""
    chance = random.Random(seed)
    planted = canaries(chance)
    if size is not None:
        values = [canary for canary in planted if canary.variable]
        tokens = chance.sample(planted[: len(TOKENS)], len(TOKENS))
        turns = itertools.zip_longest(tokens, chance.sample(values, len(values)))
        planted = [canary for turn in turns for canary in turn if canary is not None][:size]
    redactor = Redactor({c.variable: c.secret for c in planted if c.variable}, key=b"key")
    step = 1 if size is None else 17 if size == PROGRAMME.push else 7
    at_cuts(folder, planted, redactor, tally, step)
    in_pieces(folder, planted, redactor, tally, step)
    everywhere(folder, planted, tally)


def at_cuts(folder: Path, planted: list[Canary], redactor: Redactor, tally: Tally, step: int = 1) -> None:
    """Assert that truncated output, of which head and tail are kept, never shows part of a secret."""
    for canary in planted:
        data = canary.text.encode()
        with tally.case(f"{canary.name} at the cuts"):
            for offset in range(1, len(data), step):
                head = b"." * (HEAD - offset - 1) + b" " + data + b" "
                tail = b" " + data + b" " + b"." * (TAIL - len(data) + offset - 1)
                whole = head + b"." * (2 * MARGIN) + tail
                shown = capture(folder / "output", whole).text(redactor.redact).encode()
                assert not canary.seen_in(shown), f"cut after {offset} bytes"


def capture(path: Path, data: bytes) -> Captured:
    path.write_bytes(data)
    with open(path, "rb", buffering=0) as file:
        taken = Capture(file, None)
        while taken.read():
            pass
        return taken.result()


def in_pieces(folder: Path, planted: list[Canary], redactor: Redactor, tally: Tally, step: int = 1) -> None:
    """Assert that transcripts, written in chunks with arbitrary ends, contain no secret."""
    for canary in planted:
        data = canary.text.encode()
        with tally.case(f"{canary.name} in pieces"):
            for offset in range(1, len(data), step):
                written = Transcript(f"{folder}/pieces-{offset}.log", redactor.stream)
                for piece in (b"x" * 40_000 + b" " + data[:offset], data[offset:] + b" y"):
                    written(piece)
                kept = written.close()
                assert kept is not None
                assert not canary.seen_in(Path(kept).read_bytes()), f"cut after {offset} bytes"


PRINTER = """
import json, os, sys
mode = sys.argv[1]
with open(os.path.dirname(sys.argv[0]) + "/canaries.json") as file:
    known = json.load(file)
def say(text):
    os.write(1, text.encode())
for text in known:
    half = len(text) // 2
    say("whole " + text + chr(10)); say(text[:half]); say(text[half:]); say(chr(10))
if mode == "much":
    for _ in range(40):
        for text in known: say("again " + text + " and more of the same, so that a transcript is kept" + chr(10))
if mode == "error":
    raise SystemExit("last words: " + known[-1] + " " + known[0])
if mode == "judge":
    say(json.dumps({"verdict": "FAIL", "findings": known[:30]}))
with open(sys.argv[2], "w") as file:
    file.write("made")
"""


def everywhere(folder: Path, planted: list[Canary], tally: Tally, plant: str = "") -> None:
    """Run a project whose every part prints every canary, then search everything that idumb stores and prints."""
    forms = [form for canary in planted for form in spelled(canary)]
    project = printing_project(folder / "place", forms, planted)
    environment = {c.variable: c.secret for c in planted if c.variable}
    sinks: dict[str, bytes] = {}
    hook = "tests.crash.secrets:planted" if plant else ""

    def idumb(*arguments: str) -> None:
        answer = warm.run(project.folder, *arguments, environment=environment, hook=hook, given=plant)
        name = " ".join(arguments)
        sinks[f"what {name} says"] = f"{answer.out}\n{answer.err}".encode("utf-8", "surrogateescape")

    idumb("execute-phase", "1", "--approve", project.approval(), "--max-attempts", "2", "--json")
    for task_id in ("T1-01", "T1-02", "T1-03", "T1-04", "T1-05"):
        idumb("show", task_id)
        idumb("show", task_id, "--json")
    idumb("log", "--json", "--limit", "100000")
    idumb("log")
    idumb("status")
    idumb("resume", "1", "--retry-failed")
    sinks.update(kept(project, frozenset(p.read_bytes() for p in (project.folder / ".planning").rglob("*-PLAN.md"))))
    for form in forms:
        leaks = [name for name, data in sinks.items() if form.seen_in(data)]
        with tally.case(f"{form.name} everywhere"):
            assert leaks == [], f"{form.name} stands in {leaks}"
    tally.note("places searched", len(sinks))


def planted(fault: str) -> None:
    """Hook: search for no secret."""
    assert fault == "redaction off", fault
    Redactor.data = lambda _, data: data  # type: ignore[method-assign,assignment]


def printing_project(place: Path, forms: list[Canary], planted: list[Canary]) -> Project:
    project = projects.create(GitSandbox.create(place / "repo"), files={"README.md": "# A project\n"})
    (place / "canaries.json").write_text(json.dumps([form.text for form in forms]), encoding="utf-8")
    (place / "print.py").write_text(PRINTER, encoding="utf-8")
    names = json.dumps([c.variable for c in planted if c.variable])
    bindings = ["bindings:"]
    for mode in ("much", "error", "judge"):
        argv = json.dumps([sys.executable, str(place / "print.py"), mode, f"{mode}.txt"])
        bindings.append(f"  {mode}: {{adapter: command, argv: {argv}, environment: {names}}}")
    project.configure("\n".join([*bindings, ""]))
    line = f"{sys.executable} {place / 'print.py'}"
    # Text that a person wrote into a plan is run and shown unchanged.
    token = next((canary.text for canary in planted if canary.name == "github"), "nothing")
    project.plan(
        [
            making("T1-01", "much.txt", fields="- **Builder:** much\n", steps=()),
            making("T1-02", "error.txt", fields="- **Builder:** error\n", steps=()),
            making("T1-03", "c.txt", fields="- **Validator:** judge\n"),
            task("T1-04", files="create `d.txt`", check=f"{line} error x", steps=[shell(f"{line} more d.txt")]),
            making("T1-05", "e.txt", criteria=f"  - [ ] It takes {token} — check: `test -s e.txt # {token}`\n").replace(
                "Task T1-05", f"With {token}"
            ),
        ]
    )
    return project


def kept(project: Project, theirs: frozenset[bytes] = frozenset()) -> Iterator[tuple[str, bytes]]:
    """Return every file, by name and bytes, and every object that idumb wrote; `theirs` are the user's own."""
    state = Path(os.environ.get("XDG_STATE_HOME", str(Path.home())))
    for top in (project.repo.git_dir / "idumb", project.folder / ".idumb", project.folder / ".planning", state):
        for path in top.rglob("*"):
            data = path.read_bytes() if path.is_file() else b""
            yield str(path), os.fsencode(path) + b"\n" + (b"" if data in theirs else data)
    yield "objects of git", b"\n".join(data for data in objects(project) if data not in theirs)
    names = subprocess.run(["git", "for-each-ref"], cwd=project.folder, capture_output=True, check=True)
    logs = (path.read_bytes() for path in (project.repo.git_dir / "logs").rglob("*") if path.is_file())
    yield "names and logs of refs", b"\n".join([names.stdout, *logs])


def objects(project: Project) -> Iterator[bytes]:
    argv = ["git", "cat-file", "--batch-all-objects", "--batch"]
    objects_read = io.BytesIO(subprocess.run(argv, cwd=project.folder, capture_output=True, check=True).stdout)
    while head := objects_read.readline():
        yield objects_read.read(int(head.split()[2]))
        objects_read.read(1)


SECRETS = len(TOKENS) + VALUES
PROGRAMME = Programme("T16", "secrets in every place", SECRETS, None, run, push=4, least={"cases": 100})
