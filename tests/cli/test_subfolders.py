"""Projects in subfolders of a repository, alone and side by side (R-GIT-8)."""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from idumb.app.upkeep import init
from idumb.cli import opened_services
from idumb.composition.container import Container
from idumb.domain.errors import Refusal
from idumb.views.terminal import ask
from tests.support import project as projects
from tests.support import subfolders
from tests.support.gitrepo import GitSandbox, work_tree
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, shell, task, write
from tests.support.subfolders import SubProject, unchanged


@pytest.fixture
def below(sandbox: GitSandbox) -> Project:
    """The folder `app/src` of a repository in which idumb is not set up."""
    sandbox.commit_with({"app/src/main.py": "pass\n"})
    return Project(sandbox, sandbox.root / "app/src")


@pytest.fixture
def api(sandbox: GitSandbox) -> SubProject:
    """A project in `apps/api`, with a plan, beside a file of the user in `apps/web`."""
    sandbox.commit_with({"apps/web/page.txt": "page\n"})
    project = subfolders.create(sandbox, "apps/api")
    project.plan([making("T1-01", "a.txt"), making("T1-02", "d/b.txt", after="T1-01")])
    sandbox.write_all({"apps/web/page.txt": "edited\n", "apps/web/new.txt": "new\n"})
    return project


def chosen(project: Project, typed: str) -> str:
    services = Container(
        str(project.start), lambda: ask.Terminal(io.StringIO(typed), io.StringIO(), "me"), opened_services.Silent
    )
    return init.choose(services, "app/src", here=False)


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
        ways = [str(choice["command"]) for choice in caught.value.details["choices"]]
        assert ways == [f"cd {below.repo.root} && idumb init", "idumb init --here"]
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
    sandbox.write_all({"app/src/main.py": "pass\n", "app/.planning/phases/1/01-PLAN.md": "mine\n"})
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


def test_commands_that_an_answer_names_work_in_the_folder_where_it_was_given(sandbox: GitSandbox) -> None:
    sandbox.commit_with({"docs/TODO.md": "- [ ] Make `c.txt`\n", "docs/notes.md": "Only text.\n"})
    below = Project(sandbox, sandbox.root / "docs")
    below.quick("init")
    sandbox.write(".planning/phases/1/01-PLAN.md", projects.plan_text([making("T1-01", "a.txt")]))
    (line,) = [line for line in below.quick("check-plan", "1").out.splitlines() if line.startswith("  git add")]
    subprocess.run(["sh", "-c", line], cwd=below.start, check=True, capture_output=True)
    assert not [line for line in sandbox.status() if ".planning/phases" in line or "config.yaml" in line]
    refused = below.quick("import", "notes.md", "--json").error
    assert refused["hint"] == "idumb import docs/notes.md --from KIND"
    assert below.quick("import", "docs/TODO.md", "--json").code == 0


def test_above_the_projects_every_command_names_them(api: SubProject) -> None:
    """And never `idumb init`, which is refused there. On a branch without its settings, nothing leads in a circle."""
    top, there = Project(api.repo, api.repo.root), f"cd {api.folder}"
    assert top.quick("status", "--json").data["next"]["command"] == there
    refused = top.quick("execute-phase", "1", "--json")
    assert (refused.code, refused.error["code"], refused.error["hint"]) == (4, "project.elsewhere", there)
    api.plan([making("T1-01", "a.txt")])
    assert api.execute("--no-verify").code == 0
    for own in (".idumb", ".planning"):
        shutil.rmtree(api.folder / own)
    assert api.json("status").data["next"]["command"] == f"{there} && idumb init --here"
    assert api.json("init", "--here").code == 0


def test_above_a_project_with_runs_no_other_is_set_up(api: SubProject) -> None:
    assert api.execute("--no-verify").code == 0
    assert Project(api.repo, api.repo.root).json("init", "--here").error["code"] == "init.nested"
    api.repo.write(".idumb/config.yaml", "")  # as a pull can bring them
    assert api.json("status").error["code"] == "project.nested"


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
    api.repo.commit_with({"builder.sh": "echo c > c.txt\n"}, "a builder", "builder.sh")
    api.configure("builder: agent\nbindings:\n  agent: {adapter: command, argv: [sh, ../../builder.sh]}\n")
    api.commit_own()
    assert api.execute("--no-verify", phase="2").code == 0
    assert place.read_text(encoding="utf-8") == text


TASKS = (making("T1-01", "a.txt"), making("T1-02", "d/b.txt", after="T1-01"))


Both = tuple[SubProject, SubProject]


def _side_by_side(sandbox: GitSandbox) -> Project:
    sandbox.commit_with({"top.txt": "top\n", "apps/web/page.txt": "page\n", "apps/web/old.txt": "old\n"})
    api, web = subfolders.create(sandbox, "apps/api"), subfolders.create(sandbox, "apps/web")
    for project in (api, web):
        project.plan(TASKS)
    sandbox.write_all({"apps/web/page.txt": "edited\n", "apps/web/new.txt": "new\n", "apps/web/staged.txt": "staged\n"})
    sandbox.git("add", "apps/web/staged.txt")
    sandbox.remove("apps/web/old.txt")
    return Project(sandbox, sandbox.root)


@pytest.fixture
def both(prepared: Prepared) -> Both:
    """The projects `apps/api` and `apps/web`, with the same plan; `web` has uncommitted and staged work of its user."""
    repo = prepared.get(_side_by_side).repo
    return SubProject(repo, repo.root / "apps/api"), SubProject(repo, repo.root / "apps/web")


def own_refs(project: SubProject) -> dict[str, str]:
    return project.repo.kept(f"refs/idumb/worktrees/main%2F{project.name.replace('/', '%2F')}/")


def test_a_project_runs_commits_verifies_and_rolls_back_only_its_own_files(
    both: Both,
) -> None:
    """R-LOCK-3: consent to its plan is none to the same plan of another: its commands run other programs there."""
    api, web = both
    assert api.approval() == web.approval()
    with unchanged(api):
        ran = run(api)
        assert (ran.code, ran.data["verification"]["status"]) == (0, "passed"), ran
        assert api.repo.git("show", "--format=", "--name-only", ran.data["tasks"][0]["commit"]) == "apps/api/a.txt"
        summary = api.read(".planning/phases/1/1-SUMMARY.md")
        lines = summary.partition("```sh\n")[2].partition("```")[0]
        proven = subprocess.run(["sh", "-c", lines], cwd=api.repo.root, capture_output=True, text=True, check=True)
        assert proven.stdout.count("exit 0:") == len(TASKS), proven
        assert api.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0
        assert not api.exists("a.txt")
        assert api.quick(*api.undoing(), "--json").code == 0
        assert api.read("a.txt") == "made\n"
    assert web.quick("status", "--json").data["phases"][0]["state"] == "ready"
    assert web.quick("execute-phase", "1", "--json").error["code"] == "consent.missing"
    assert own_refs(api)
    assert not own_refs(web)


def test_a_halted_run_of_one_project_does_not_hold_the_other(both: Both) -> None:
    api, web = both
    api.plan([TASKS[0], failing_task("T1-02", "bad.txt", after="T1-01")])
    assert run(api, "--max-attempts", "1").code == 1
    with unchanged(web):
        assert run(web, "--no-verify").code == 0


BUILDER = """\
bindings:
  coder:
    adapter: command
    argv: [sh, -c, 'echo a > a.txt; for f in $OUTSIDE; do echo x >> $f; done']
    environment: [OUTSIDE]
"""


def test_a_change_outside_the_project_is_named_and_never_delivered(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder sees what is committed of the neighbour, and not the user's uncommitted work."""
    api, outside = both[0], "../web/page.txt ../../top.txt new/../../../fresh.txt"
    (api.folder / "new").mkdir()
    monkeypatch.setenv("OUTSIDE", outside)
    api.configure(BUILDER)
    api.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", fields="- **Builder:** coder\n")])
    with unchanged(api):
        ran = run(api, "--no-verify")
    assert ran.code == 1, ran
    assert all(path.partition("new/../")[2] or path in ran.data["tasks"][0]["reason"] for path in outside.split())
    assert not api.exists("a.txt")
    assert not (api.repo.root / "fresh.txt").exists()


def test_a_builder_that_makes_the_folder_another_repository_harms_nothing(both: Both) -> None:
    """idumb never asks git which repository a folder is in, and the next task gets a folder without it."""
    api, _ = both
    steps = [write("a.txt", "a\n"), shell("git init -q .; git init -q ..")]
    first = task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps)
    api.plan([first, making("T1-02", "b.txt", after="T1-01", steps=[shell("test ! -e .git && echo b > b.txt")])])
    with unchanged(api):
        assert run(api, "--no-verify").code == 0
    assert not (api.folder / ".git").exists()
    assert api.repo.git("show", "HEAD~1:apps/api/a.txt") == "a"


def test_checks_run_in_the_folder_with_what_its_own_settings_provide_and_prepare(
    both: Both,
) -> None:
    """The same settings and lock files mean other folders in another project."""
    repo = both[0].repo
    repo.commit_with({"package-lock.json": "{}\n"}, "lock", "package-lock.json")
    checks = "test -s ../../top.txt && ls data/x cfg/x.local && grep -q . deps/list && test ! -e ../web/dirty"
    for project in both:
        files = {".gitignore": "data/\ndeps/\n*.local\n", "data/x": "x\n", "cfg/x.local": "", "cfg/y": ""}
        project.repo.write_all({f"{project.name}/{path}": text for path, text in files.items()})
        project.repo.git("add", "--", f"{project.name}/.gitignore")
        project.repo.git("commit", "-qm", "ignore", "--", f"{project.name}/.gitignore")
        project.configure("checkout: {provide: [data, cfg/x.local], prepare: ['mkdir -p deps && pwd > deps/list']}\n")
        project.plan([task("T1-01", files="create `a.txt`", check=checks, steps=[write("a.txt", "a\n")])])
        ran = run(project)
        assert (ran.code, ran.data.get("verification", {}).get("status")) == (0, "passed"), ran
        assert not project.exists("deps")


def test_two_projects_wait_for_one_working_tree_and_run_at_the_same_time_in_two(both: Both, tmp_path: Path) -> None:
    """HEAD and index are shared, and so is the lock; runs and refs in a linked working tree are its own, too."""
    api, web = both
    repo = api.repo
    repo.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    linked = GitSandbox(tmp_path / "linked")
    there = SubProject(linked, linked.root / web.name)
    api.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=[shell("touch a.txt; sleep 30")])])
    with api.running("execute-phase", "1", "--approve", api.approval()) as running:
        running.wait_for("attempt.started")
        assert run(web).error["code"] == "lock.held"
        assert run(there, "--no-verify").code == 0
    assert there.read("a.txt") == "made\n"
    assert not web.exists("a.txt")
    assert web.quick("status", "--json").data["phases"][0]["state"] == "ready"
    runs = (name for name in repo.kept() if "/runs/" in name)
    assert {name.split("/")[3] for name in runs} == {"main%2Fapps%2Fapi", "linked%2Fapps%2Fweb"}


def test_deinit_of_one_of_two_projects_is_refused_and_changes_nothing(both: Both) -> None:
    api, web = both
    assert run(web, "--no-verify").code == 0
    before, refs = api.repo.ledger(), api.repo.refs("refs/idumb/")
    refused = api.quick("deinit", "--yes", "--files", "--json")
    assert (refused.code, refused.error["code"]) == (4, "deinit.projects")
    assert refused.error["details"]["projects"] == ["apps/web"]
    assert "backup" in refused.error["details"]["choices"][0]["consequence"]
    assert (api.repo.ledger(), api.repo.refs("refs/idumb/")) == (before, refs)
    with unchanged(api):
        removed = api.quick("deinit", "--yes", "--files", "--all-projects", "--json")
    assert removed.code == 0
    assert not api.repo.refs("refs/idumb/")
    assert (web.folder / ".idumb/config.yaml").exists()
    assert not (api.folder / ".idumb").exists()


COMMANDS = """
    0 status, next, roadmap, check-plan 1, graph 1, roadmap --add Next, plan-phase 2 --template
    1 execute-phase 1 --approve {} --dry-run
    1 execute-phase 1 --approve {}
    0 log 1, show T1-01, show T1-01 --diff, show T1-01 --envelope, audit verify, audit workspace 1, decisions
    1 resume 1 --retry-failed
    0 accept T1-02 --why mine, resume 1, verify-work 1
    1 prove 1
    0 show T1-02 --diff, dlq list, handoff list
    0 doctor, doctor --fix
    0 rollback 1 --to T1-01 --yes, undo, rollback 1 --to start --yes
    1 execute-phase 1
    0 audit bundle 1, deinit --yes --all-projects
"""


@pytest.mark.nightly
def test_no_command_touches_a_byte_or_an_index_entry_of_the_neighbour(both: Both) -> None:
    """Whatever state the neighbour's files are in."""
    api, web = both
    repo = api.repo
    repo.write_all({"apps/web/half.txt": "one\n", "apps/web/.gitignore": "*.ignored\n", "apps/web/x.ignored": "kept\n"})
    repo.git("add", "--", "apps/web/half.txt", "apps/web/.gitignore")
    repo.write_all({"apps/web/half.txt": "two\n", "apps/web/announced.txt": "later\n"})
    repo.git("add", "--intent-to-add", "--", "apps/web/announced.txt")
    repo.link("apps/web/link", "page.txt")
    (web.folder / "program").write_text("#!/bin/sh\n", encoding="ascii")
    (web.folder / "program").chmod(0o750)
    (web.folder / "empty").mkdir()
    api.plan([TASKS[0], failing_task("T1-02", "bad.txt", after="T1-01")])
    api.configure("run: {max_attempts: 1}\n")
    before = work_tree(repo.root)
    for line in filter(None, map(str.strip, COMMANDS.splitlines())):
        code, _, commands = line.partition(" ")
        with unchanged(api):
            for command in commands.split(", "):
                words = api.undoing() if command == "undo" else command.format(api.approval()).split()
                answer = api.quick(*words, "--json")
                assert answer.code == int(code), (command, answer)
        assert not repo.try_git("fsck", "--no-dangling").returncode, commands
    assert (web.folder / "empty").is_dir()
    assert {path for path in before if path.startswith("apps/web/")} <= work_tree(repo.root).keys()
