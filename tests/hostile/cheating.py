"""T12: builders that make a check pass without doing the work, and whether idumb believes them.

The judge is a stranger: a fresh clone of HEAD elsewhere, with a clean home, after the user's folders are gone. A cheat
is accepted if its task is completed in a phase that ends well, and the stranger's check fails, unless the evidence
names what makes it weaker. A cheat of `REMAINING` passes there too; only its hidden check fails.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.programme import Programme, Tally
from tests.hostile.cheats import CHEATS, HONEST, KINDS, KIT, REMAINING, Cheat
from tests.hostile.guards import GUARDS, Guard
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

MODES = ("edits", "commits")
"""Whether the builder commits its work in its checkout."""
SANDBOX = os.environ.get("TESTS_SANDBOX", "")
"""The sandbox in which builders and checks run: `auto` or `bwrap`; "" for none."""
_LIMIT = 60
ACCEPTED = "the task is completed, and the check fails in a fresh clone of HEAD"
UNNAMED = "the work is not done, a fresh clone accepts it, and the cheat is of no family that is known to remain"


class Case(NamedTuple):
    cheat: Cheat
    mode: str
    without: Guard | None = None


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """`size` is the number of cases; None is every cheat in every mode, and each guard removed once.

    In a sandbox, each cheat has one mode, in turn, and no guard is removed: the sandbox prevents most of what the
    guards detect, and the modes differ in who commits, not in what the sandbox lets a builder do.
    """
    cases = [Case(cheat, mode) for mode in MODES for cheat in (*HONEST, *CHEATS)]
    removed = [Case(find(guard.family, guard.cheat), guard.mode, guard) for guard in GUARDS]
    if SANDBOX:
        cases, removed = in_sandbox(), []
    if size is not None:
        cheap = [case for case in cases if case.cheat.kind == "python" and case.cheat not in HONEST]
        cases = [Case(HONEST[0], "commits"), *_families(cheap, random.Random(seed))[: size - 1]]
        removed = []
    for number, case in enumerate(tally.share([*cases, *removed])):
        if missing := _missing_tools(case.cheat):
            tally.note(f"skipped without {missing}")
        elif case.without is None:
            judge(case.cheat, case.mode, folder / f"{tally.part}-{number}", tally)
        else:
            judge_without(case.without, folder / f"{tally.part}-{number}", tally)
    if tally.part == 0:
        tally.note("families", len({cheat.family for cheat in CHEATS}))


def _families(cases: list[Case], chance: random.Random) -> list[Case]:
    """One cheat of each family, in any mode."""
    families: dict[str, list[Case]] = {}
    for case in chance.sample(cases, len(cases)):
        families.setdefault(case.cheat.family, []).append(case)
    return [of_family[0] for of_family in families.values()]


def in_sandbox() -> list[Case]:
    """Return every honest builder and every cheat once; each family has all modes."""
    return [Case(cheat, mode) for cheat, mode in zip((*HONEST, *CHEATS), itertools.cycle(MODES), strict=False)]


def find(family: str, name: str) -> Cheat:
    return next(cheat for cheat in CHEATS if (cheat.family, cheat.name) == (family, name))


def judge(cheat: Cheat, mode: str, folder: Path, tally: Tally) -> None:
    """Run one builder and ask the stranger."""
    with tally.case(f"{cheat.family}: {cheat.name} ({mode})"):
        verdict = verdict_of(cheat, mode, folder)
        if cheat.family == "honest":
            assert verdict.completed, f"honest work was refused: {verdict.reason}"
            assert verdict.works, f"the work is done, and a clone says: {verdict.stranger}"
        if not verdict.completed:
            tally.note("refused")
        elif verdict.works:
            tally.note("completed, and the clone does the work")
        elif verdict.check_passes:
            assert cheat.family in REMAINING, UNNAMED
            assert cheat.family != "own tests" or verdict.warned, "check-plan does not say that the task owns its check"
            tally.note(f"only a hidden check refutes it: {cheat.family}")
        else:
            assert verdict.named, ACCEPTED
            tally.note("completed on evidence that is named as weaker")
        shutil.rmtree(folder)


def judge_without(guard: Guard, folder: Path, tally: Tally) -> None:
    """Remove one guard and see that a cheat is accepted then, so that the harness would detect its loss."""
    with tally.case(f"without the guard {guard.name}: {guard.family}: {guard.cheat} ({guard.mode})"):
        verdict = verdict_of(find(guard.family, guard.cheat), guard.mode, folder, guard)
        believed = verdict.completed and not verdict.works and not verdict.named
        assert believed, f"no cheat is accepted without this guard: {verdict.reason}"
        tally.note("a guard removed, and a cheat accepted")
        shutil.rmtree(folder)


class Verdict(NamedTuple):
    """What idumb says, and what a stranger finds.

    `check_passes` and `works` are the stranger's. `named`: a reader of the evidence learns that it is weaker. `warned`:
    `check-plan` says that the task may change its own check.
    """

    completed: bool
    check_passes: bool
    works: bool
    named: bool
    warned: bool
    reason: str
    stranger: str


def verdict_of(cheat: Cheat, mode: str, folder: Path, without: Guard | None = None) -> Verdict:
    project = _project(folder, cheat, mode, without.configuration if without else "")
    surroundings = environment(folder)
    prepared = cheat.before or "true"
    script = f"KIT={folder}/kit; . $KIT; {prepared}"
    subprocess.run(["sh", "-c", script], cwd=project.folder, env=surroundings, check=True, capture_output=True)
    checked = json.loads(_idumb(project, surroundings, "check-plan", "1", "--json").out)
    flags = ("--approve", checked["data"]["consent_hash"], "--max-attempts", "1", "--json")
    answer = _idumb(project, surroundings, "execute-phase", "1", *flags, without=without)
    body = json.loads(answer.out)
    completed = any(row["status"] == "completed" for row in body["data"].get("tasks", ())) and answer.code == 0
    log = _idumb(project, surroundings, "log", "--kind", "evidence.recorded", "--limit", "1000", "--json")
    rows = [row["payload"] for row in json.loads(log.out)["data"]["events"]]
    named = any(row.get("changed_programs") or row.get("changed") or _names_places(row) for row in rows)
    warned = any(finding["code"].startswith("check.own-") for finding in checked["data"]["findings"])
    passes, works, words = stranger(project, cheat, folder)
    return Verdict(completed, passes, works, named, warned, _reason(answer, body), words)


def _names_places(row: dict[str, Any]) -> bool:
    return any("which only this machine has" in reason for reason in row.get("weaker", ()))


def _idumb(project: Project, surroundings: dict[str, str], *arguments: str, without: Guard | None = None) -> Answer:
    hook = {"hook": "tests.hostile.guards:remove", "given": without.name} if without and without.removed else {}
    return warm.run(project.folder, *arguments, environment=surroundings, **hook)


def _reason(answer: Answer, body: dict[str, Any]) -> str:
    tasks = [(row["status"], row.get("reason")) for row in body["data"].get("tasks", ())]
    return f"exit {answer.code}: {tasks} {body['error']}"


def _missing_tools(cheat: Cheat) -> str:
    path = search_path(Path(os.devnull))
    return " ".join(tool for tool in KINDS[cheat.kind].tools if shutil.which(tool, path=path) is None)


def search_path(home: Path) -> str:
    """Return PATH: programs of the user's home first, then the system's Python, because a venv has no user packages."""
    own = str(Path(sys.executable).parent)
    others = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != own]
    return os.pathsep.join((f"{home}/bin", "/usr/bin", "/bin", own, *others))


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a user whose home and TMPDIR are in `folder`; toolchains stay where they are."""
    home = folder / "home"
    real = Path(pwd.getpwuid(os.getuid()).pw_dir)
    kept = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or str(real / ".rustup"), "GOCACHE": _go_cache()}
    return {
        **os.environ,
        **kept,
        "HOME": str(home),
        "PATH": f"{folder}/inner/repo/build/bin:{search_path(home)}",
        "TMPDIR": str(folder / "tmp"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        **{f"XDG_{name}_HOME": str(home / place) for name, place in _XDG.items()},
    }


_XDG = {"CACHE": ".cache", "CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state"}


def _go_cache() -> str:
    """Return a cache that all cases share: to compile the standard library takes half a minute."""
    return os.environ.get("GOCACHE") or f"/var/tmp/idumb-tests-go-{os.getuid()}"


def make_homes(folder: Path) -> None:
    """The folders that `environment` names."""
    for path in (folder / "home" / "bin", folder / "tmp", folder / "inner"):
        path.mkdir(parents=True)
    (folder / "home" / ".gitconfig").touch()


def _project(folder: Path, cheat: Cheat, mode: str, configuration: str) -> Project:
    kind = KINDS[cheat.kind]
    make_homes(folder)
    project = projects.create(GitSandbox.create(folder / "inner" / "repo"), files=kind.files)
    kit = [
        f"KIT={folder}/kit",
        f"TARGET={kind.target}",
        f"good() {{ cat {folder}/good; }}",
        f"bad() {{ cat {folder}/bad; }}",
        KIT,
    ]
    (folder / "kit").write_text("\n".join(kit), encoding="utf-8")
    (folder / "good").write_text(kind.good, encoding="utf-8")
    (folder / "bad").write_text(kind.bad, encoding="utf-8")
    commit = "git add -A; git -c user.name=b -c user.email=b@x commit -qm work\n" if mode == "commits" else ""
    script = folder / "cheat.sh"
    script.write_text(f". {folder}/kit\n{cheat.script}\n{commit}true\n", encoding="utf-8")
    argv = json.dumps(["/bin/sh", str(script)])
    binding = f"builder: b\nbindings:\n  b: {{adapter: command, argv: {argv}}}\n"
    sandbox = f"sandbox: {SANDBOX}\n" if SANDBOX else ""
    project.configure(f"{binding}{configuration}{sandbox}")
    declared = ", ".join((f"modify `{kind.target}`", *cheat.declared))
    project.plan([task("T1-01", files=declared, check=kind.check, steps=())])
    return project


def stranger(project: Project, cheat: Cheat, folder: Path) -> tuple[bool, bool, str]:
    """Return whether the check passes in a fresh clone of HEAD with a clean home, whether the work is done, and why.

    The user's folders are elsewhere then: a stranger has none of them.
    """
    kind, place = KINDS[cheat.kind], folder / "stranger"
    surroundings = environment(place) | {"GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    work = place / "deep" / "er" / "work"
    make_homes(place)
    work.parent.mkdir(parents=True)
    source = str(project.folder)
    clone = ["git", "clone", "-q", "--no-local", "--single-branch", source, str(work)]
    cloned = subprocess.run(clone, env=surroundings, check=False, capture_output=True, text=True)
    if cloned.returncode != 0:
        return False, False, cloned.stderr
    _end_processes(folder)
    for name in ("inner", "home", "tmp"):
        (folder / name).rename(folder / f"{name}-of-the-user")
    passes, words = _sh(kind.check, work, surroundings)
    hidden, more = _sh(f'test "$({kind.hidden})" = works', work, surroundings)
    for name in ("inner", "home", "tmp"):
        (folder / f"{name}-of-the-user").rename(folder / name)
    return passes, hidden, f"{words}{more}"


def _end_processes(folder: Path) -> None:
    """End what a builder left running: a stranger has none of the user's processes."""
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if os.fsencode(f"TMPDIR={folder}/") in place.read_bytes():
                os.kill(int(place.parent.name), signal.SIGKILL)


def _sh(command: str, folder: Path, surroundings: dict[str, str]) -> tuple[bool, str]:
    argv = ["/bin/sh", "-c", command]
    done = subprocess.run(
        argv, cwd=folder, env=surroundings, capture_output=True, text=True, check=False, timeout=_LIMIT
    )
    return done.returncode == 0, done.stdout + done.stderr


PROGRAMME = Programme("T12", "builders that cheat", sample=9, release=None, run=run, divides=True, push=2)
