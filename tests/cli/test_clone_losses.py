"""What a task leaves that no commit or clone has as it is: named once, with its path and a fix. R-GIT-5."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task

FILES = {"README.md": "one\n", ".gitignore": "*.log\nbuild/\n", ".gitattributes": "*.txt text=auto eol=lf\n"}
LEFT = {
    "echo s > s.log; ln -s s.log out": "D/out is a link to D/s.log, which git ignores, so in a clone it leads nowhere",
    "mkdir build; echo b > build/b; ln -s build out": "D/out is a link to D/build, which git ignores",
    "mkdir -p node_modules/x; ln -s node_modules/x out": "D/out is a link to D/node_modules/x, which a tool left",
    "printf 'o\\r\\n' > out.txt": "git converts the line endings of D/out.txt in commits",
}
"""What a builder does in a folder D, and what is reported."""
HARMLESS = "echo o > out; chmod 755 out; ln -s out link; ln -s nothing yet; mkdir sub; touch sub/f; echo o > out.txt"


WORK = {
    "here": "run: {max_attempts: 1}\n",
    "clone": "run: {max_attempts: 1, workspace: clone}\n",
    "builder": "run: {max_attempts: 1}\ngit: {commit: builder}\n",
}
COMMITS = "cd ..; git add -- {folder}; git commit -qm work"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files=FILES)


def configure(project: Project, script: str, kind: str = "here") -> None:
    place = project.folder.parent / "actor"
    place.write_text(f"umask 022; {script}\nexit 0\n")
    binding = f"bindings:\n  b: {{adapter: command, argv: [sh, {json.dumps(str(place))}]}}\n"
    project.configure(f"builder: b\n{WORK[kind]}{binding}")


def warnings(ended: Answer) -> list[str]:
    return [words for words in ended.object["warnings"] if words.startswith("T1-")]


@pytest.mark.parametrize("kind", seed.one_on_a_push([*WORK], "clone losses"))
def test_each_is_named_once_with_its_path_and_the_run_continues(project: Project, kind: str) -> None:
    """All in one run, a task for each: a report belongs to its own task."""
    commands, tasks, before = [], [], "none"
    for number, command in enumerate([*LEFT, HARMLESS], 1):
        name, folder = f"T1-{number:02}", f"d{number}"
        tasks.append(task(name, files=f"create `{folder}/**`, modify `{folder}/out/`", check="true", after=before))
        commit = COMMITS.format(folder=folder) if kind == "builder" else ":"
        commands.append(
            f"if [ ! -e {folder} ]; then mkdir {folder}; cd {folder}; {command}; touch f; {commit}; exit 0; fi"
        )
        before = name
    project.plan(tasks)
    configure(project, "\n".join(commands), kind)
    ended = project.execute("--no-verify")
    assert ended.code == 0, ended
    reported = warnings(ended)
    expected = [f"T1-{n:02}: {words}".replace("D/", f"d{n}/") for n, words in enumerate(LEFT.values(), 1)]
    assert [line[: len(words)] for line, words in itertools.zip_longest(reported, expected, fillvalue="")] == expected


def test_a_second_attempt_does_not_name_it_again(project: Project) -> None:
    project.plan([task("T1-01", files="create `d/out`, modify `README.md`", check="test ! -L d/out")])
    configure(project, "mkdir -p d; echo $$ > d/s.log; ln -sf s.log d/out; echo $$ >> README.md")
    flags = ("--approve", project.approval(), "--max-attempts", "2", "--events")
    events = project.quick("execute-phase", "1", *flags).out
    started, named = events.count('"kind": "attempt.started"'), events.count("which git ignores, so in a clone")
    assert (started, named) == (2, 1)


def test_converted_line_endings_are_named_where_checks_judge_the_folder(project: Project) -> None:
    project.configure("checks: here\n")
    project.plan([making("T1-01", "a.txt", content="a\r\n")])
    (line,) = warnings(project.execute("--no-verify"))
    assert line.startswith("T1-01: git converts the line endings of a.txt in commits")


@pytest.mark.parametrize("kind", seed.one_on_a_push(["clone", "builder"], "repository in a clone"))
def test_a_repository_that_a_builder_made_in_a_clone_is_not_lost_silently(project: Project, kind: str) -> None:
    project.plan([task("T1-01", files="create `a.txt`, create `lib/**`", check="test -s a.txt")])
    commit = "; git add a.txt; git commit -qm work" if kind == "builder" else ""
    configure(project, f"echo a > a.txt; git init -q lib; echo x > lib/x{commit}", kind)
    ended = project.execute("--no-verify")
    assert ended.code == 1
    assert "it created repositories in its clone, which cannot be delivered: lib" in ended.data["tasks"][0]["reason"]


def test_the_start_of_a_run_names_what_its_clone_does_not_have(project: Project) -> None:
    project.repo.write_all({"s.log": "ignored\n", "nested/a.txt": "a\n"})
    project.repo.git("init", "-q", "nested")
    project.plan([making("T1-01", "a.txt")])
    configured = project.folder / ".idumb" / "config.yaml"
    configured.write_text("run: {workspace: clone}\n")
    project.commit_own()
    said = project.execute("--no-verify").object["warnings"]
    assert [words for words in said if "does not have these nested repositories: nested." in words], said
