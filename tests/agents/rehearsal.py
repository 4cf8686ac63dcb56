"""A small project with tests of its own, and the script that a model plays in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from idumb.domain import model_script
from idumb.markdown import model_script as scripts
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

SCRIPT = Path(__file__).with_name("rehearsal.md")
PLAN = ".planning/phases/1/01-PLAN.md"
TASKS = ("T1-01", "T1-02", "T1-03")
FILES = {
    ".gitignore": "__pycache__/\n",
    "README.md": "# Notes\n\nShow the notes of a file:\n\n    python3 -m notes FILE\n\nNotes cannot be searched yet.\n",
    "notes/__init__.py": "",
    "notes/__main__.py": (
        "import sys\n\nfrom notes import store\n\n\ndef main() -> None:\n    place, *words = sys.argv[1:]\n"
        '    print(*store.read(place), sep="\\n")\n\n\nif __name__ == "__main__":\n    main()\n'
    ),
    "notes/store.py": (
        '"""Notes in a file, one a line."""\n\nfrom pathlib import Path\n\n\n'
        "def read(place: str) -> list[str]:\n    lines = Path(place).read_text().splitlines()\n"
        "    return [line for line in lines if line]\n"
    ),
    "tests/__init__.py": "",
    "tests/test_store.py": (
        "import tempfile\nimport unittest\nfrom pathlib import Path\n\nfrom notes import store\n\n\n"
        "class Read(unittest.TestCase):\n    def test_empty_lines_are_no_notes(self) -> None:\n"
        "        with tempfile.TemporaryDirectory() as folder:\n"
        '            place = Path(folder, "notes.txt")\n            place.write_text("one\\n\\ntwo\\n")\n'
        '            self.assertEqual(store.read(str(place)), ["one", "two"])\n'
    ),
}


def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files=FILES)
    assert project.quick("roadmap", "--add", "Search", "--goal", "Notes are found by a word in them").code == 0
    project.commit_own()
    return project


def _rule(title: str) -> model_script.Rule:
    script = scripts.read(SCRIPT.read_bytes(), SCRIPT.name)
    [only] = [rule for rule in script.rules if rule.title == title]
    return only


def plan() -> str:
    """The plan that the scripted planner answers with."""
    return _rule("The planner reads before it plans").answers[-1].say


def tokens(title: str) -> tuple[int, int]:
    """Return the usage that a rule reports, summed over its answers."""
    answers = _rule(title).answers
    return sum(a.tokens_in or 0 for a in answers), sum(a.tokens_out or 0 for a in answers)


def used(events: Sequence[Mapping[str, Any]], *path: str) -> list[tuple[int, int]]:
    """Tokens in and out that events tell of, below `path` in their payload."""
    notes = []
    for event in events:
        payloads: Any = event["payload"]
        for name in path:
            payloads = payloads[name]
        notes.append((payloads["usage"]["tokens_in"], payloads["usage"]["tokens_out"]))
    return notes
