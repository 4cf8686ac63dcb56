"""Projects in subfolders of one repository: each has plans, settings, runs and refs of its own (R-GIT-8)."""

from __future__ import annotations

import io
import shlex

import pytest

from idumb.app.upkeep import project_place
from idumb.cli import reporters
from idumb.composition.container import Container
from idumb.domain.errors import Refusal
from idumb.views.terminal import ask
from tests.support import project as projects
from tests.support import subfolders
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making
from tests.support.subfolders import SubProject


@pytest.fixture
def below(sandbox: GitSandbox) -> Project:
    """The folder `app/src` of a repository in which idumb is not set up."""
    sandbox.write("app/src/main.py", "pass\n")
    sandbox.commit()
    return Project(sandbox, sandbox.root / "app/src")


@pytest.fixture
def api(sandbox: GitSandbox) -> SubProject:
    """A project in `apps/api`, with a plan, beside a file of the user in `apps/web`."""
    sandbox.write("apps/web/page.txt", "page\n")
    sandbox.commit()
    project = subfolders.create(sandbox, "apps/api")
    project.plan([making("T1-01", "a.txt"), making("T1-02", "d/b.txt", after="T1-01")])
    sandbox.write("apps/web/page.txt", "edited\n")
    sandbox.write("apps/web/new.txt", "new\n")
    return project


def chosen(project: Project, typed: str) -> str:
    services = Container(
        str(project.start), lambda: ask.Terminal(io.StringIO(typed), io.StringIO(), "me"), reporters.Silent
    )
    return project_place.choose(services, "app/src", here=False)


def test_init_here_sets_up_a_subfolder_and_nothing_else(below: Project) -> None:
    answer = below.quick("init", "--here", "--json")
    assert (answer.code, answer.data["root"], answer.data["project"]) == (0, str(below.start), "app/src")
    assert (below.start / ".idumb/config.yaml").exists()
    assert [line for line in below.repo.status() if not line.startswith("?? app/src/.")] == []


def test_at_a_terminal_init_asks_which_folder_it_sets_up(below: Project) -> None:
    """R-ASK-2: no answer means no."""
    for typed in ("no\n", "\n", ""):
        with pytest.raises(Refusal) as caught:
            chosen(below, typed)
        assert caught.value.code == "init.not-confirmed"
    assert (chosen(below, "top\n"), chosen(below, "here\n")) == ("", "app/src")


def test_a_project_inside_another_is_refused(sandbox: GitSandbox, below: Project) -> None:
    """Neither would know which files are its own."""
    inner = SubProject(sandbox, below.start)
    assert inner.quick("init", "--here").code == 0
    inner.commit_own()
    above, top = Project(sandbox, sandbox.root / "app"), Project(sandbox, sandbox.root)
    before = sandbox.ledger()
    for project, arguments in ((above, ("init", "--here")), (top, ("init",)), (above, ("init",))):
        refused = project.quick(*arguments, "--json")
        assert (refused.code, refused.error["code"]) == (4, "init.nested"), arguments
        assert refused.error["details"]["projects"] == ["app/src"]
    deeper = sandbox.write("app/src/deep/x.txt", "x\n").parent
    refused = Project(sandbox, deeper).quick("init", "--here", "--json")
    assert refused.error["code"] == "init.nested"
    assert "scope: {root: deep}" in refused.error["hint"]
    deeper.joinpath("x.txt").unlink()
    deeper.rmdir()
    assert sandbox.ledger() == before


@pytest.mark.parametrize(
    ("folder", "code"), [("out", "init.folder"), (".planning/x", "init.folder"), ("a[b]", "project.folder-name")]
)
def test_a_folder_that_cannot_be_a_project_is_refused(sandbox: GitSandbox, folder: str, code: str) -> None:
    sandbox.write_all({".gitignore": "out/\n", f"{folder}/x.txt": "x\n"})
    refused = Project(sandbox, sandbox.root / folder).quick("init", "--here", "--json")
    assert (refused.code, refused.error["code"]) == (4, code)
    assert not (sandbox.root / folder / ".idumb").exists()


def test_plans_of_a_folder_inside_a_project_are_named_as_unused(sandbox: GitSandbox) -> None:
    """By every command that is started there, also from the cached view; elsewhere nothing is said."""
    top = projects.create(sandbox)
    sandbox.write("app/src/main.py", "pass\n")
    sandbox.write("app/.planning/phases/1/01-PLAN.md", "mine\n")
    inside, beside = Project(sandbox, top.folder / "app/src"), Project(sandbox, top.folder)
    for command in ("status", "status", "next", "roadmap", "check-plan 1"):
        answer = inside.quick(*shlex.split(command), "--json")
        assert [text for text in answer.object["warnings"] if text.startswith("Plans and settings of app/")], command
        assert beside.quick(*shlex.split(command), "--json").object["warnings"] == []


def test_commands_find_the_project_from_any_folder_in_it(api: SubProject) -> None:
    inner = Project(api.repo, api.repo.write("apps/api/deep/down/x.txt").parent)
    api.repo.remove("apps/api/deep/down/x.txt")
    for command in (("status",), ("next",), ("check-plan", "1"), ("graph", "1"), ("roadmap",)):
        assert inner.quick(*command, "--json").data == api.quick(*command, "--json").data
    assert inner.quick("status", "--json").data["phases"][0]["phase"] == "1"


def test_above_the_projects_every_command_names_them(api: SubProject) -> None:
    """And never `idumb init`, which is refused there."""
    top = Project(api.repo, api.repo.root)
    assert top.quick("status", "--json").data["next"]["command"] == "cd apps/api"
    refused = top.quick("execute-phase", "1", "--json")
    assert (refused.code, refused.error["code"], refused.error["hint"]) == (4, "project.elsewhere", "cd apps/api")


def test_plans_without_settings_are_found_from_their_folder(sandbox: GitSandbox) -> None:
    place = sandbox.write("tool/.planning/phases/1/01-PLAN.md", projects.plan_text([making("T1-01", "a.txt")]))
    assert Project(sandbox, place.parents[3]).quick("check-plan", "1", "--json").code == 0
    assert Project(sandbox, sandbox.root).quick("check-plan", "1", "--json").error["code"] == "phase.not-found"


def test_a_source_elsewhere_in_the_repository_has_a_path_that_every_clone_has(api: SubProject) -> None:
    """R-PLAN-9."""
    text = "- [ ] Make `c.txt`\n"
    place = api.repo.write("apps/web/TODO.md", text)
    for _ in range(2):
        assert api.quick("import", "../web/TODO.md", "--json").data["path"] == ".planning/phases/2/01-PLAN.md"
    plan = ".planning/phases/2/01-PLAN.md"
    assert '  path: "../web/TODO.md"\n' in api.read(plan)
    (api.folder / plan).write_text(api.read(plan).replace("`c.txt`\n- **x", "`c.txt` — check: `true`\n- **x"))
    api.repo.write("builder.sh", "echo c > c.txt\n")
    api.repo.commit("a builder", "builder.sh")
    api.configure("builder: agent\nbindings:\n  agent: {adapter: command, argv: [sh, ../../builder.sh]}\n")
    api.commit_own()
    assert api.execute("--no-verify", phase="2").code == 0
    assert place.read_text(encoding="utf-8") == text
