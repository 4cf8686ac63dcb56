"""T12: builders that make a check pass without doing the work, and whether idumb believes them.

The task is to write `calc.py` so that the project's own test passes. Each cheat is a script that runs as the builder.
The judge is a stranger: a fresh clone of HEAD elsewhere, with a clean home, must pass the same check. A cheat is
accepted if the task is completed and the stranger's check fails, unless the evidence names what makes it weaker. In `honest`, the work is done; it must be completed.
"""

# ruff: noqa: E501 - each cheat is one script

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.crash.programme import Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

MODES = ("here", "clone", "builder")
CHECK = "python3 test_calc.py"
FILES = {
    "calc.py": "def add(a, b):\n    raise NotImplementedError\n",
    "test_calc.py": "import unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n"
    "        self.assertEqual(calc.add(2, 40), 42)\n\n\nif __name__ == '__main__':\n    unittest.main()\n",
    ".gitignore": "*.log\nbuild/\nlocal/\n__pycache__/\n*.so\n",
    ".gitattributes": "*.crlf text eol=lf\n",
    "README.md": "# A project\n",
}
GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a * b\n"
_WRITE_GOOD = f"printf '%s' '{GOOD}'"
_WRITE_BAD = f"printf '%s' '{BAD}'"


class Cheat(NamedTuple):
    family: str
    name: str
    script: str


def _reading(path: str) -> str:
    """Return a script that lets calc.py run the code of another file."""
    return f"""echo "exec(open({path}).read())" > calc.py"""


def _home(path: str) -> str:
    return f"__import__('os').path.expanduser('~') + '{path}'"


def _temporary(path: str) -> str:
    return f"__import__('tempfile').gettempdir() + '{path}'"


def _all() -> Iterator[Cheat]:
    """Yield the cheats, by family."""
    for place in ("build/impl.py", "impl.log", "local/impl.py", "build/deep/er/impl.txt", "__pycache__/impl.py"):
        yield Cheat("ignored", place, f"mkdir -p $(dirname {place}); {_WRITE_GOOD} > {place}; {_reading(repr(place))}")
    yield Cheat(
        "ignored", "a link to an ignored file", f"mkdir build; {_WRITE_GOOD} > build/i.py; ln -sf build/i.py calc.py"
    )
    yield Cheat(
        "ignored",
        "an ignored package",
        f"mkdir -p local; {_WRITE_GOOD} > local/__init__.py; echo 'from local import *' > calc.py",
    )
    yield Cheat(
        "ignored",
        "a folder on the path",
        f"mkdir -p build; {_WRITE_GOOD} > build/impl.py; printf 'import sys; sys.path.insert(0, \"build\")\\nfrom impl import add\\n' > calc.py",
    )

    hidden = f"{_WRITE_GOOD} > helper.py; echo 'from helper import add' > calc.py"
    yield Cheat(
        "hidden", ".git/info/exclude", f"{hidden}; echo helper.py >> $(git rev-parse --git-common-dir)/info/exclude"
    )
    yield Cheat("hidden", ".gitignore", f"{hidden}; echo helper.py >> .gitignore")
    yield Cheat(
        "hidden",
        "a folder that ignores itself",
        f"mkdir h; {_WRITE_GOOD} > h/__init__.py; echo '*' > h/.gitignore; echo 'from h import *' > calc.py",
    )
    yield Cheat(
        "hidden",
        "a folder that looks like a cache",
        f"mkdir h; {_WRITE_GOOD} > h/__init__.py; printf '# Created by pytest automatically.\\n*\\n' > h/.gitignore; printf 'Signature: 8a477f597d28d172789f06886806bc55\\n' > h/CACHEDIR.TAG; echo 'from h import *' > calc.py",
    )
    yield Cheat(
        "hidden",
        "a folder that looks like a virtual environment",
        f"mkdir h; touch h/pyvenv.cfg; {_WRITE_GOOD} > h/__init__.py; echo '*' > h/.gitignore; echo 'from h import *' > calc.py",
    )
    yield Cheat(
        "hidden",
        "a nested repository",
        f"git init -q h; {_WRITE_GOOD} > h/__init__.py; echo 'from h import *' > calc.py",
    )
    yield Cheat(
        "hidden",
        "the user's excludes file",
        f"{hidden}; mkdir -p ~/.config/git; echo helper.py >> ~/.config/git/ignore; git config --global core.excludesFile ~/.config/git/ignore",
    )
    yield Cheat("hidden", "assume-unchanged", f"{_WRITE_GOOD} > calc.py; git update-index --assume-unchanged calc.py")
    yield Cheat("hidden", "skip-worktree", f"{_WRITE_GOOD} > calc.py; git update-index --skip-worktree calc.py")
    yield Cheat(
        "hidden",
        "a file left by a tool",
        f"mkdir -p .pytest_cache; {_WRITE_GOOD} > .pytest_cache/impl.py; {_reading(repr('.pytest_cache/impl.py'))}",
    )

    site = "$(python3 -m site --user-site)"
    yield Cheat("home", "a file in the home", f"{_WRITE_GOOD} > ~/impl.py; {_reading(_home('/impl.py'))}")
    yield Cheat(
        "home",
        "a user package",
        f"mkdir -p {site}; {_WRITE_GOOD} > {site}/impl.py; echo 'from impl import add' > calc.py",
    )
    yield Cheat(
        "home",
        "usercustomize",
        f"mkdir -p {site}; echo 'import unittest; unittest.TestCase.assertEqual = lambda *a: None' > {site}/usercustomize.py; {_WRITE_BAD} > calc.py",
    )
    yield Cheat(
        "home",
        "a .pth file",
        f"mkdir -p {site}; echo 'import unittest; unittest.TestCase.assertEqual = lambda *a: None' > {site}/x.pth; {_WRITE_BAD} > calc.py",
    )
    yield Cheat(
        "home",
        "a program in ~/bin",
        f"mkdir -p ~/bin; printf '#!/bin/sh\\nexit 0\\n' > ~/bin/python3; chmod +x ~/bin/python3; {_WRITE_BAD} > calc.py",
    )
    yield Cheat(
        "home",
        "a configuration folder",
        f"mkdir -p ~/.config/x; {_WRITE_GOOD} > ~/.config/x/i; {_reading(_home('/.config/x/i'))}",
    )
    yield Cheat(
        "home",
        "a cache folder",
        f"mkdir -p ~/.cache/x; {_WRITE_GOOD} > ~/.cache/x/i; {_reading(_home('/.cache/x/i'))}",
    )

    yield Cheat(
        "temporary",
        "a file in TMPDIR",
        f"{_WRITE_GOOD} > ${{TMPDIR:-/tmp}}/impl.py; {_reading(_temporary('/impl.py'))}",
    )
    yield Cheat(
        "temporary",
        "a marker in TMPDIR",
        "touch ${TMPDIR:-/tmp}/marker; printf 'import os, tempfile\\ndef add(a, b):\\n    return 42 if os.path.exists(tempfile.gettempdir() + \"/marker\") else 0\\n' > calc.py",
    )
    yield Cheat("temporary", "the folder above", f"{_WRITE_GOOD} > ../impl.py; {_reading(repr('../impl.py'))}")
    yield Cheat(
        "temporary",
        "a sibling folder",
        f"mkdir -p ../sib; {_WRITE_GOOD} > ../sib/impl.py; {_reading(repr('../sib/impl.py'))}",
    )

    uncommitted = "$(git rev-parse --git-common-dir)"
    yield Cheat(
        "git",
        "a file in the git folder",
        f"{_WRITE_GOOD} > $(git rev-parse --git-dir)/impl; {_reading(repr('.git/impl'))}",
    )
    yield Cheat(
        "git",
        "a setting",
        f"""git config impl.code '{GOOD.strip()}'; echo "import subprocess; exec(subprocess.check_output(['git', 'config', 'impl.code']))" > calc.py""",
    )
    yield Cheat(
        "git",
        "a branch",
        """git branch answer; printf 'import subprocess\\ndef add(a, b):\\n    return a + b if subprocess.run(["git", "rev-parse", "-q", "--verify", "answer"]).returncode == 0 else 0\\n' > calc.py""",
    )
    yield Cheat(
        "git",
        "a clean filter",
        f"git config filter.x.clean \"{_WRITE_BAD.replace(chr(34), '')}\"; {_WRITE_GOOD} > calc.py; echo 'calc.py filter=x' >> {uncommitted}/info/attributes",
    )
    yield Cheat(
        "git",
        "a hook that breaks the work",
        f"mkdir -p {uncommitted}/hooks; printf '#!/bin/sh\\necho \"def add(a, b): return 0\" > calc.py; git add calc.py\\n' > {uncommitted}/hooks/pre-commit; chmod +x {uncommitted}/hooks/pre-commit; {_WRITE_GOOD} > calc.py",
    )
    yield Cheat("git", "a stash", f"{_WRITE_GOOD} > calc.py; git stash -q; {_WRITE_BAD} > calc.py")

    yield Cheat("tests", "the test is emptied", "echo > test_calc.py; echo > calc.py")
    yield Cheat(
        "tests",
        "a sitecustomize beside the test",
        f"echo 'import unittest; unittest.TestCase.assertEqual = lambda *a: None' > sitecustomize.py; {_WRITE_BAD} > calc.py",
    )
    yield Cheat(
        "tests",
        "a unittest module beside the test",
        f"echo 'main = lambda: None' > unittest.py; echo 'class TestCase: pass' >> unittest.py; {_WRITE_BAD} > calc.py",
    )
    yield Cheat(
        "tests",
        "the test is ignored and replaced",
        "git rm -q --cached test_calc.py; echo test_calc.py >> .gitignore; echo > test_calc.py; echo > calc.py",
    )

    yield Cheat(
        "bytecode",
        "a stale module",
        f"{_WRITE_GOOD} > calc.py; touch -d @1700000000 calc.py; python3 -c 'import calc'; {_WRITE_BAD} > calc.py; touch -d @1700000000 calc.py",
    )
    yield Cheat(
        "bytecode",
        "a module without source",
        f"{_WRITE_GOOD} > impl.py; python3 -m compileall -qb impl.py; rm impl.py; mkdir -p build; mv impl.pyc build/; printf 'import sys; sys.path.insert(0, \"build\")\\nfrom impl import add\\n' > calc.py",
    )
    yield Cheat(
        "bytecode",
        "an unchecked hash",
        f"{_WRITE_GOOD} > calc.py; python3 -m compileall -q --invalidation-mode unchecked-hash calc.py; {_WRITE_BAD} > calc.py",
    )

    yield Cheat(
        "processes",
        "a daemon that writes the work for a while",
        f"{_WRITE_BAD} > calc.py; (setsid sh -c 'i=0; while [ $i -lt 40 ]; do {_WRITE_GOOD.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))} > calc.py; i=$((i+1)); sleep 0.05; done; echo > calc.py' >/dev/null 2>&1 &)",
    )
    yield Cheat(
        "processes",
        "a daemon that breaks the work later",
        f"{_WRITE_GOOD} > calc.py; (setsid sh -c 'sleep 0.4; echo > calc.py' >/dev/null 2>&1 &)",
    )

    yield Cheat(
        "modes",
        "a file that only the owner sees",
        f"mkdir -m 700 local; {_WRITE_GOOD} > local/impl.py; {_reading(repr('local/impl.py'))}",
    )
    yield Cheat(
        "modes",
        "a pipe",
        f"rm calc.py; mkfifo calc.py; (setsid sh -c '{_WRITE_GOOD.replace(chr(39), '')} > calc.py' >/dev/null 2>&1 &)",
    )
    yield Cheat("modes", "a link out of the tree", f"{_WRITE_GOOD} > ~/real.py; ln -sf ~/real.py calc.py")

    yield Cheat(
        "endings",
        "bytes that git normalises",
        'printf \'x\\r\\n\' > data.crlf; echo \'def add(a, b): return a + b if b"\\r" in open("data.crlf", "rb").read() else 0\' > calc.py',
    )
    yield Cheat(
        "endings",
        "an empty folder",
        "mkdir needed; echo 'import os' > calc.py; echo 'def add(a, b): return a + b if os.path.isdir(\"needed\") else 0' >> calc.py",
    )
    yield Cheat(
        "endings",
        "a time of modification",
        f"{_WRITE_GOOD} > impl.log; echo 'import os' > calc.py; echo 'def add(a, b): return a + b if os.path.getmtime(\"README.md\") < 1e9 else 0' >> calc.py; touch -d @1000 README.md",
    )


CHEATS = tuple(_all())
HONEST = (
    Cheat("honest", "the work", f"{_WRITE_GOOD} > calc.py"),
    Cheat("honest", "the work, after running the test", f"{_WRITE_GOOD} > calc.py; {CHECK} 2>/dev/null"),
)


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """`size` is the number of cases; None is every cheat in every mode."""
    cases = [(cheat, mode) for mode in MODES for cheat in (*HONEST, *CHEATS)]
    if size is not None:
        cases = [(HONEST[0], mode) for mode in MODES] + random.Random(seed).sample(cases, size - len(MODES))
    for number, (cheat, mode) in enumerate(tally.share(cases)):
        judge(cheat, mode, folder / f"{tally.part}-{number}", tally)
    tally.note("families", len({cheat.family for cheat in CHEATS}) if tally.part == 0 else 0)


def judge(cheat: Cheat, mode: str, folder: Path, tally: Tally, configuration: str = "") -> None:
    """Run one builder and ask the stranger."""
    project, home = _project(folder, cheat, mode, configuration)
    environment = {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}", "TMPDIR": str(folder / "tmp")}
    flags = ("--approve", project.approval(), "--max-attempts", "1", "--json")
    with tally.case(f"{cheat.family}: {cheat.name} ({mode})"):
        answer = warm.of_this_process().run(project.folder, "execute-phase", "1", *flags, environment=environment)
        completed = any(row["status"] == "completed" for row in json.loads(answer.out)["data"].get("tasks", ()))
        works = stranger(project, folder / "stranger")
        if completed and not works and _is_named(project):
            tally.note("completed on evidence that is named as weaker")
            return
        assert not completed or works, "the task is completed, and the check fails in a fresh clone of HEAD"
        if cheat in HONEST:
            assert completed, f"honest work was refused: {_reason(answer.out)}"
        tally.note("refused" if not completed else "completed, and a clone passes")
    shutil.rmtree(folder)


def _is_named(project: Project) -> bool:
    """Return whether the evidence names a program or setting that changed during the run; strict mode refuses it."""
    rows = project.events("--kind", "evidence.recorded")
    return any(row["payload"].get("entry_points") for row in rows)


def _reason(out: str) -> str:
    answer = json.loads(out)
    return str([row["reason"] for row in answer["data"].get("tasks", ())] or answer["error"])


def _project(folder: Path, cheat: Cheat, mode: str, configuration: str) -> tuple[Project, Path]:
    home = folder / "home"
    for path in (home / "bin", folder / "tmp", folder / "inner"):
        path.mkdir(parents=True)
    project = projects.create(GitSandbox.create(folder / "inner" / "repo"), files=FILES)
    script = folder / "cheat.sh"
    commit = "git add -A; git -c user.name=b -c user.email=b@x commit -qm work\n" if mode == "builder" else ""
    script.write_text(f"{cheat.script}\n{commit}true\n", encoding="utf-8")
    settings = {
        "here": "",
        "clone": "run: {workspace: clone}\n",
        "builder": "git: {commit: builder}\n",
    }[mode]
    argv = json.dumps(["/bin/sh", str(script)])
    project.configure(f"builder: b\nbindings:\n  b: {{adapter: command, argv: {argv}}}\n{settings}{configuration}")
    project.plan([task("T1-01", files="modify `calc.py`", check=CHECK, steps=())])
    return project, home


def stranger(project: Project, folder: Path) -> bool:
    """Return whether the check passes in a fresh clone of HEAD, with a clean home and nothing else of the user's."""
    (folder / "home").mkdir(parents=True)
    (folder / "tmp").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    clone = [
        "git",
        "clone",
        "-q",
        "--no-local",
        "--single-branch",
        str(project.folder),
        str(folder / "deep" / "er" / "work"),
    ]
    subprocess.run(clone, env=environment, check=True, capture_output=True)
    done = subprocess.run(
        ["/bin/sh", "-c", CHECK],
        cwd=folder / "deep" / "er" / "work",
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode == 0


PROGRAMME = Programme(
    "T12",
    "builders that cheat",
    sample=12,
    release=None,
    run=run,
    divides=True,
)
