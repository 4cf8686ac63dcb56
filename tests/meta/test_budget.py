"""`.ci/budget` adds up processor time by part, and fails above the budgets in CONTRIBUTING.md."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta import source

FIGURES = """
printf 'types: 3.5\\ntests: 40\\n' > "$FIGURES/checks"
cat > "$FIGURES/tests.json" <<'END'
{"tests/cli/test_a.py::x": 2.5, "tests/cli/test_b.py::y": 3, "tests/unit/app/test_c.py::z": 1.8}
END
"""
# The orphan works, and says so when it ends; the command ends after the orphan was reaped.
ORPHAN = """
cd {folder} && mkfifo end
sh -c 'sh -c "i=0; while [ \\$i -lt 200000 ]; do i=\\$((i + 1)); done; echo >end" & echo $! >pid'
read -r _ <end
while kill -0 "$(cat pid)" 2>/dev/null; do :; done
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(source.ROOT / ".ci" / "budget", tmp_path / ".ci")
    (tmp_path / "CONTRIBUTING.md").write_text(
        "| part | budget |\n|---|---|\n| `tests/cli` | 2 |\n| `tests/unit` | 2 |\n| `all` | 90 |\n\n"
    )
    return tmp_path


def budget(project: Path, script: str) -> tuple[int, list[str]]:
    command = [str(project / ".ci" / "budget"), "sh", "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout.splitlines()


def test_seconds_are_added_up_by_folder_and_check_and_a_part_above_its_budget_fails(project: Path) -> None:
    code, lines = budget(project, FIGURES)
    rows = {line[25:]: line.split() for line in lines[1:-1]}
    assert rows["tests/cli"][:3] == ["5.5", "2", "2"]
    assert rows["tests/unit"][:3] == ["1.8", "2", "1"]
    assert rows["types"][:1] == ["3.5"]
    assert rows["all"][1:3] == ["90", "3"]
    assert (code, lines[-1]) == (1, "above the budget in CONTRIBUTING.md: tests/cli")


def test_the_command_s_failure_is_passed_on(project: Path) -> None:
    assert budget(project, "exit 3")[0] == 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a program adopt orphans")
def test_a_program_that_outlives_its_parent_is_counted(project: Path) -> None:
    _, lines = budget(project, ORPHAN.format(folder=project))
    assert float(lines[-1].split()[0]) > 0.1


def test_every_part_of_the_project_s_own_table_has_a_budget() -> None:
    text = (source.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| part | budget |")[2].partition("\n\n")[0]
    folders = {f"tests/{place.parent.relative_to(source.ROOT / 'tests').parts[0]}" for place in _tests()}
    missing = sorted(folder for folder in folders - {"tests/agents"} if f"| `{folder}` |" not in table)
    assert missing == []
    assert "| `all` |" in table


def _tests() -> list[Path]:
    return sorted((source.ROOT / "tests").rglob("test_*.py"))
