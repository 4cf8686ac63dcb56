"""The adapter that docs/agents.md shows is installed, named by the configuration that it shows, and builds a task."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.meta import source
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import task

SECTION = (source.ROOT / "docs" / "agents.md").read_text(encoding="utf-8").partition("## An adapter of your own")[2]


def fenced(section: str, word: str) -> str:
    """Return the fenced block of this language in a section."""
    block = re.search(rf"^```{word}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    return block[1]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages, as an installer leaves it."""
    [(name, value)] = re.findall(r'^(\w+) = "(.+)"$', fenced(SECTION, "toml"), re.MULTILINE)
    information = tmp_path / "site" / "templater-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: templater\nVersion: 1\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(f"[idumb.agents]\n{name} = {value}\n", encoding="utf-8")
    (information.parent / "templater.py").write_text(fenced(SECTION, "python"), encoding="utf-8")
    return information.parent


def test_the_example_adapter_of_the_page_builds_a_task(sandbox: GitSandbox, site: Path) -> None:
    """R-ADAPT-2: by an entry point; without the package the binding is refused before anything starts."""
    project = projects.create(sandbox)
    project.configure(fenced(SECTION, "yaml"))
    project.plan([task("T1-01", files="create `a.txt`", check="grep -qx 'T1-01: Task T1-01' a.txt")])
    environment = {"PYTHONPATH": f"{site}:{source.ROOT}"}
    refused = project.idumb("execute-phase", "1", "--json", environment=environment).object
    consent = refused["error"]["details"]["consent_hash"]
    absent = project.quick("execute-phase", "1", "--json", "--approve", consent)
    assert (absent.code, project.exists("a.txt")) == (4, False)
    assert "templater" in absent.error["message"]
    ended = project.idumb("execute-phase", "1", "--json", "--approve", consent, environment=environment)
    assert ended.code == 0, ended.out + ended.err
    assert project.read("a.txt") == "T1-01: Task T1-01\n"
