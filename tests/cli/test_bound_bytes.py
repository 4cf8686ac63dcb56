"""Only approved content runs: one changed byte voids the approval, and the message says where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task, write

PLAN = ".planning/phases/1/01-PLAN.md"
SECOND = ".planning/phases/1/02-PLAN.md"
CONFIGURATION = ".idumb/config.yaml"
POLICY = ".idumb/policy/tools.yaml"
FIELDS = "- **Requirements:** REQ-1\n- **Change:** extending\n"
HEAD = (
    "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: [{id: N-1, text: nothing else}]\n"
    "scope: {root: ., protected: [docs/keep.md]}\nlimits: {files: 7}\n"
    "invariants: [{id: I-1, text: it stays, check: sh tools/stays.sh}]\n"
    "success_criteria: [{text: it is there, check: make there}]\n"
)
SECOND_HEAD = (
    'depends_on: ["01"]\nmode: strict\nrequirements: {REQ-1: files}\nnon_goals: []\n'
    "success_criteria: [{text: built, check: test -s built.txt}]\n"
)
FILES = {
    "README.md": "# A project\n",
    ".gitignore": "*.log\n",
    "tools/build.sh": "echo built > built.txt # by the agent\n",
    "tools/check.sh": "# is it there\ntest -s a.txt\n",
    "tools/stays.sh": "exit 0 # always\n",
    "tests/test_a.py": (
        '"""A test."""\nimport unittest  # one case\n\n\nclass Built(unittest.TestCase):\n'
        "    def test_it(self):\n        self.assertTrue(open('built.txt').read())\n"
    ),
    "Makefile": "there:\n\ttest -s a.txt\n",
}
SETTINGS = """\
# how this project runs
bindings:
  maker: {adapter: command, argv: [sh, tools/build.sh, fast], timeout: 60}
protected: [vendor/keep.txt]
environment: [PATH, HOME, LANG]
limits: {open_files: 512}
run: {max_attempts: 2, check_timeout: 300, halt_after: 3}
"""
RULES = "# what steps may use\nallow: [write_file, run]\n"


@dataclass(frozen=True, slots=True)
class Flip:
    """Replace `old`, which occurs once in `path`, by `new`: one byte differs. `part` is the name in the message."""

    path: str
    old: str
    new: str
    part: str


FLIPS = (
    # The plans: what they say, and how they say it.
    Flip(PLAN, "A plan of tests", "B plan of tests", "plans"),
    Flip(PLAN, "nothing else", "nothing Else", "plans"),
    Flip(SECOND, "Task T1-02", "task T1-02", "plans"),
    # Commands, limits and protected paths stand in the plans; each is named as what it is, too.
    Flip(PLAN, "check.sh`", "check.sH`", "commands"),
    Flip(PLAN, "stays.sh}", "stays.sH}", "commands"),
    Flip(PLAN, "make there", "make There", "commands"),
    Flip(SECOND, "tests.test_a`", "tests.test_b`", "commands"),
    Flip(PLAN, "files: 7", "files: 8", "limits"),
    Flip(PLAN, "keep.md", "kelp.md", "protected"),
    # Files that commands and argument lists name.
    Flip("tools/check.sh", "test -s", "test -e", "files"),
    Flip("tools/check.sh", "# is", "#\tis", "files"),
    Flip("tools/stays.sh", "exit 0", "exit 1", "files"),
    Flip("tools/build.sh", "echo built", "echo Built", "files"),
    Flip("tests/test_a.py", "import", "Import", "files"),
    Flip("Makefile", "test -s", "test -e", "files"),
    # The policy, to its comments.
    Flip(POLICY, "what", "What", "policy"),
    Flip(POLICY, "run]\n", "run] ", "policy"),
    # The configuration.
    Flip(CONFIGURATION, "max_attempts: 2", "max_attempts: 4", "configuration"),
    Flip(CONFIGURATION, "LANG", "MANG", "configuration"),
    Flip(CONFIGURATION, "check_timeout: 300", "check_timeout: 400", "limits"),
    Flip(CONFIGURATION, "keep.txt", "keep.tXt", "protected"),
    # What agents start with.
    Flip(CONFIGURATION, "fast]", "last]", "agent maker"),
    Flip(CONFIGURATION, "build.sh", "build.sH", "agent maker"),
    Flip(CONFIGURATION, "[sh,", "[sb,", "agent maker"),
)


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A strict phase of two plans that uses everything an approval is bound to. `sh` and `sb` are one program."""
    for folder in ("bin", "bit"):
        place = tmp_path / folder
        place.mkdir()
        for name in ("sh", "sb") if folder == "bin" else ("sh",):
            (place / name).write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
            (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    project = projects.create(sandbox, files=FILES)
    first = task(
        "T1-01", files="create `a.txt`", check="sh tools/check.sh", steps=(write("a.txt", "made\n"),), fields=FIELDS
    )
    second = task(
        "T1-02",
        files="create `built.txt`",
        check="python3 -m unittest tests.test_a",
        fields=FIELDS + "- **Builder:** maker\n",
    )
    project.plan([first], head=HEAD, commit=False)
    project.plan([second], name="02", head=SECOND_HEAD, commit=False)
    project.repo.write(POLICY, RULES)
    project.configure(SETTINGS)
    return project


def _approve(project: Project) -> None:
    consent = project.quick("check-plan", "1", "--json")
    assert consent.code == 0, consent
    answer = project.quick("approve", "1", *project.answers(), "--hash", consent.data["contract_hash"], "--json")
    assert answer.code == 0, answer
    assert set(answer.data["bound"]["files"]["value"]) == {
        "Makefile",
        "tests/test_a.py",
        "tools/build.sh",
        "tools/check.sh",
        "tools/stays.sh",
    }


def _refused(project: Project, part: str, why: object) -> None:
    answer = project.quick("execute-phase", "1", "--json")
    assert (answer.code, answer.error["code"]) == (4, "approval.void"), (why, answer)
    assert part in answer.error["details"]["changed"], (why, answer)
    assert part in answer.error["message"]
    assert not project.exists("a.txt")


def test_one_changed_byte_voids_the_approval_and_its_part_is_named(project: Project) -> None:
    """R-LOCK-4, S2: nothing runs; after the byte is restored, the same approval is valid again."""
    _approve(project)
    for path in dict.fromkeys(flip.path for flip in FLIPS):
        text = project.read(path)
        for flip in (one for one in FLIPS if one.path == path):
            assert text.count(flip.old) == 1, flip
            project.repo.write(path, text.replace(flip.old, flip.new))
            _refused(project, flip.part, flip)
        project.repo.write(path, text)
        standing = project.quick("check-plan", "1", "--json").data["approval"]["standing"]
        assert standing == "live"


def test_a_program_at_another_path_voids_the_approval(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOCK-4, S2, S4: the resolved path is bound; here one byte of PATH differs."""
    _approve(project)
    monkeypatch.setenv("PATH", str(tmp_path / "bit"), prepend=":")
    _refused(project, "agent maker", "PATH")
