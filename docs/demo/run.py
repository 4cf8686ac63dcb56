"""`make demo`: the main job of idumb on a small real project in a temporary folder. Needs git and nothing else."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
IDUMB = [sys.executable, "-m", "idumb"]

TRY = ("status", "show T1-02 --diff", "log 1", "rollback 1 --to start", "resume 1")
"""What the last lines suggest to somebody who wants to go on."""

CONFIG = """\
builder: demo
bindings:
  demo:
    adapter: command
    argv: [python3, tools/builder.py]
"""


def main() -> int:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="idumb-demo-"))
    project = folder / "words"
    make_project(project)
    say(f"A small project with two commits: {project}")
    show(project, "init")
    shutil.copy(HERE / "01-PLAN.md", phase(project) / "01-PLAN.md")
    (project / ".idumb/config.yaml").write_text(CONFIG, encoding="utf-8")
    git(project, "add", ".planning", ".idumb")
    git(project, "commit", "-qm", "Plan phase 1")
    say("Its plan has five tasks, each with the files it may touch and a command that proves it. The third is:")
    print(third_task().strip(), flush=True)
    show(project, "check-plan", "1")
    show(project, "graph", "1")
    contract = json.loads(idumb(project, "check-plan", "1", "--json").stdout)["data"]["consent_hash"]
    say("Nothing runs without consent; the demo gives it by the hash. In T1-03 it kills the run with kill -9:")
    show_until(project, "[3/5]", "execute-phase", "1", "--approve", contract)
    say("Killed. What is proven is kept, and the rest goes on from there:")
    code = show(project, "resume", "1")
    say("What happened to T1-02, with the evidence of both attempts:")
    show(project, "show", "T1-02")
    say("Back to where T1-02 was done. Files go back in a new commit, and undo brings them again:")
    code = show(project, "rollback", "1", "--to", "T1-02", "--yes") or code
    code = show(project, *undoing(project)) or code
    say("git log: a commit for each proven task, with your name, your hooks, and nothing rewritten")
    print(git(project, "log", "--oneline"), flush=True)
    closing(project)
    return code


def third_task() -> str:
    plan = (HERE / "01-PLAN.md").read_text(encoding="utf-8")
    return plan[plan.index("### T1-03") : plan.index("### T1-04")]


def closing(project: pathlib.Path) -> None:
    say("It is all yours now. Read .planning/phases/1/1-SUMMARY.md there, and try:")
    command = shutil.which("idumb", path=os.path.dirname(sys.executable)) or " ".join(IDUMB)
    print(f"  cd {project}\n  alias idumb='{command}'")
    for words in TRY:
        print(f"  idumb {words}")


def make_project(project: pathlib.Path) -> None:
    for name, text in {
        "README.md": "# Words\n\nA library that knows a thing or two about words.\n",
        "words/__init__.py": '"""Counting words."""\n',
        "tests/__init__.py": "",
        "tests/test_package.py": "import unittest\n\nimport words\n\n\nclass PackageTest(unittest.TestCase):\n"
        "    def test_it_says_what_it_is(self):\n        self.assertIn('words', words.__doc__)\n",
        ".gitignore": "__pycache__/\n",
    }.items():
        target = project / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    phase(project).mkdir(parents=True)
    (project / "tools").mkdir()
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "Demo")
    git(project, "config", "user.email", "demo@localhost")
    git(project, "add", "README.md", "words", ".gitignore")
    git(project, "commit", "-qm", "A package for words")
    shutil.copy(HERE / "builder.py", project / "tools/builder.py")
    git(project, "add", "tests", "tools")
    git(project, "commit", "-qm", "A first test, and the builder")


def phase(project: pathlib.Path) -> pathlib.Path:
    return project / ".planning/phases/1"


def say(text: str) -> None:
    print(f"\n== {text}\n", flush=True)


def typed(arguments: tuple[str, ...]) -> None:
    print(f"\n$ idumb {' '.join(arguments)}", flush=True)


def show(project: pathlib.Path, *arguments: str) -> int:
    """Run an idumb command as a user would, with its own output."""
    typed(arguments)
    return subprocess.run([*IDUMB, *arguments], cwd=project, check=False).returncode


def show_until(project: pathlib.Path, line: str, *arguments: str) -> None:
    """Run an idumb command, and kill it without any warning as soon as a line of its progress begins so."""
    typed(arguments)
    with subprocess.Popen([*IDUMB, *arguments], cwd=project, stderr=subprocess.PIPE, text=True) as process:
        for said in process.stderr or ():
            print(said, end="", flush=True)
            if said.startswith(line):
                process.kill()


def idumb(project: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*IDUMB, *arguments], cwd=project, check=True, capture_output=True, text=True)


def undoing(project: pathlib.Path) -> list[str]:
    """Return the words that undo the newest operation. Without a terminal, `undo` refuses and names them."""
    refused = subprocess.run([*IDUMB, "undo", "--json"], cwd=project, check=False, capture_output=True, text=True)
    return shlex.split(json.loads(refused.stdout)["error"]["hint"])[1:]


def git(project: pathlib.Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
