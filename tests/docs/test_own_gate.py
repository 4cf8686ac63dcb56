"""The gates that docs/gates.md shows are installed, named by its configuration, and judge a task."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from idumb.gates import own_gate
from tests.docs.test_own_adapter import fenced
from tests.meta import source
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import task, write

if TYPE_CHECKING:
    import pytest

PAGE = (source.ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Gates of your own")[2].partition("\n## ")[0]


def install(folder: Path) -> None:
    """A package with the entry point, as an installer leaves it."""
    [(name, module, function)] = re.findall(r'^([\w-]+) = "(\w+):(\w+)"$', fenced(SECTION, "toml"), re.MULTILINE)
    information = folder / "house_gates-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: house-gates\nVersion: 1\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(f"[idumb.gates]\n{name} = {module}:{function}\n", encoding="utf-8")
    (folder / f"{module}.py").write_text(fenced(SECTION, "python"), encoding="utf-8")


def test_the_example_gate_of_the_page_judges_a_task(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GATE-5. Without the lines in the configuration, the same task passes."""
    install(tmp_path)
    monkeypatch.setattr(own_gate, "PYTHON", f"PYTHONPATH={tmp_path}:{source.ROOT} {sys.executable}")
    project = projects.create(sandbox, files={"tools/check-licences": "#!/bin/sh\nexit 1\n"})
    (project.folder / "tools/check-licences").chmod(0o755)
    project.repo.git("commit", "-qam", "executable")
    project.configure(fenced(SECTION, "yaml") + "sandbox: auto\n")
    project.plan([task("T1-01", files="create `a.go`", steps=(write("a.go", "package a\n// TODO\n"),))])
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--max-attempts", "1", "--json")
    assert answer.code == 1
    rows = project.json("show", "T1-01").data["attempts"][-1]["evidence"]
    found = {row["subject"]: (row["result"], row["output"]) for row in rows if row["subject"].startswith("gate ")}
    assert found["gate todo"] == ("failed", "a.go:2: a TODO")
    assert found["gate licence"][0] == "failed"
    limited = {row["subject"]: row["sandbox"] for row in rows if row["subject"] in found}
    assert limited["gate todo"] == limited["gate licence"]  # it has the sandbox of checks
    project.configure("")
    assert project.execute("--force", "--no-verify").code == 0
