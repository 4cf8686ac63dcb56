"""A folder below the top of the repository is no project of its own, and idumb says so before anything is written."""

from __future__ import annotations

import io
import shlex

import pytest

from idumb.app.upkeep import init
from idumb.cli import reporters
from idumb.composition.container import Container
from idumb.domain.errors import Refusal
from idumb.views.terminal import ask
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project


@pytest.fixture
def below(sandbox: GitSandbox) -> Project:
    """The folder `app/src` of a repository in which idumb is not set up."""
    sandbox.write("app/src/main.py", "pass\n")
    sandbox.commit()
    return Project(sandbox, sandbox.root / "app/src")


def container(project: Project, typed: str) -> Container:
    asker = ask.Terminal(io.StringIO(typed), io.StringIO(), "me")
    return Container(str(project.start), lambda: asker, reporters.Silent)


def test_init_here_refuses_a_subfolder_and_writes_nothing(below: Project) -> None:
    """R-GIT-8: it says what works instead, and at the top it is the same as init."""
    before = below.repo.ledger()
    refused = below.quick("init", "--here", "--json")
    assert (refused.code, refused.error["code"]) == (4, "init.subfolder")
    assert "scope: {root: app/src}" in refused.error["hint"]
    assert below.repo.ledger() == before
    top = Project(below.repo, below.folder)
    assert top.quick("init", "--here", "--json").data["folder"] == "."


def test_without_a_terminal_init_sets_up_the_top_and_says_where(below: Project) -> None:
    """R-GIT-8."""
    answer = below.quick("init", "--json")
    assert (answer.code, answer.data["root"], answer.data["folder"]) == (0, str(below.folder), "app/src")
    assert (below.folder / ".idumb/config.yaml").exists()
    assert not (below.start / ".idumb").exists()
    assert below.quick("init").out.startswith(f"In {below.folder}, the top of the repository.")


def test_at_a_terminal_init_asks_before_it_sets_up_another_folder(below: Project) -> None:
    """R-GIT-8, R-ASK-2: no answer means no."""
    configuration = below.folder / ".idumb/config.yaml"
    for typed in ("no\n", "\n", ""):
        with pytest.raises(Refusal) as caught:
            init.init(container(below, typed), {}, "app/src")
        assert caught.value.code == "init.not-confirmed"
        assert not configuration.exists()
    init.init(container(below, "yes\n"), {}, "app/src")
    assert configuration.exists()


def test_plans_of_a_subfolder_that_are_not_used_are_named(sandbox: GitSandbox) -> None:
    """R-GIT-8: by every command that is started there, also from the cached view; elsewhere nothing is said."""
    top = projects.create(sandbox)
    sandbox.write("app/src/main.py", "pass\n")
    sandbox.write("app/.planning/phases/1/01-PLAN.md", "mine\n")
    inside, beside = Project(sandbox, top.folder / "app/src"), Project(sandbox, top.folder)
    for command in ("status", "status", "next", "roadmap", "check-plan 1"):
        answer = inside.idumb(*shlex.split(command), "--json")
        assert [text for text in answer.object["warnings"] if text.startswith("Plans and settings of app/")], command
        assert beside.idumb(*shlex.split(command), "--json").object["warnings"] == []
