"""`make demo`: the main job of idumb on a small real project in a temporary folder. Needs git and nothing else."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
IDUMB = [sys.executable, "-m", "idumb"]

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
    say(f"A small project with two commits, and a plan for its phase 1: {project}/.planning/phases/1/01-PLAN.md")
    show(project, "init")
    shutil.copy(HERE / "01-PLAN.md", phase(project) / "01-PLAN.md")
    (project / ".idumb/config.yaml").write_text(CONFIG, encoding="utf-8")
    git(project, "add", ".planning", ".idumb")
    git(project, "commit", "-qm", "Plan phase 1")
    show(project, "check-plan", "1")
    show(project, "graph", "1")
    say("The demo consents to exactly this contract, by the hash that check-plan prints:")
    contract = json.loads(idumb(project, "check-plan", "1", "--json").stdout)["data"]["contract_hash"]
    code = show(project, "execute-phase", "1", "--approve", contract)
    show(project, "verify-work", "1")
    say("The git log afterwards:")
    print(git(project, "log", "--oneline", "--stat=60"), flush=True)
    say(f"The summary is {project}/.planning/phases/1/1-SUMMARY.md. Look around, it is all yours:")
    command = shutil.which("idumb", path=os.path.dirname(sys.executable)) or " ".join(IDUMB)
    for words in ("status", "show T1-02", "diff T1-02", "rollback 1 --to T1-02", "undo", "resume 1", "log 1"):
        print(f"  cd {project} && {command} {words}")
    return code


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


def show(project: pathlib.Path, *arguments: str) -> int:
    """Run an idumb command as a user would, with its own output."""
    say(f"idumb {' '.join(arguments)}")
    return subprocess.run([*IDUMB, *arguments], cwd=project, check=False).returncode


def idumb(project: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*IDUMB, *arguments], cwd=project, check=True, capture_output=True, text=True)


def git(project: pathlib.Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
