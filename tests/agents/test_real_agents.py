"""Real command-line agents, asked as users' are, with a scripted model as the only host they can reach (R-ADAPT-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents import faults, installed
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

RULES = [
    """when: "T1-01"
tools: true
answers:
  - write: {path: words.txt, content: "one\\ntwo\\n"}
  - {say: "words.txt is there.", tokens: {in: 1000, out: 20}}""",
    """when: "T1-02"
tools: true
answers:
  - run: wc -l words.txt
  - write: {path: count.txt, content: "2\\n"}
  - {say: "count.txt is there.", tokens: {in: 2000, out: 30}}""",
]


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    made = projects.create(sandbox)
    one = task("T1-01", files="create `words.txt`", check="grep -q two words.txt")
    two = task("T1-02", files="create `count.txt`", check="grep -qx 2 count.txt", after="T1-01")
    made.plan([one, two])
    return made


@pytest.mark.parametrize("name", installed.PACKAGES)
def test_a_phase_of_two_tasks_is_built_by_a_real_agent(name: str, project: Project) -> None:
    installed.configure(project, name)
    ended = installed.alone(project, name, RULES, "execute-phase", "1", "--approve", project.approval(), "--json")
    assert ended.code == 0, ended.out + ended.err
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed"}
    assert (project.read("words.txt"), project.read("count.txt")) == ("one\ntwo\n", "2\n")
    assert project.repo.git("status", "--porcelain") == ""
    used = [e["payload"]["builder"]["usage"] for e in project.events("1", "--kind", "attempt.finished")]
    assert [entry["tokens_out"] is not None for entry in used] == [True, True]
    assert {note["path"].rpartition("/")[2] for note in ended.asked} <= {"", "messages", "responses", "models"}


OVER_THE_PROTOCOL = [
    """when: "T1-01"
tools: true
answers:
  - write: {path: ../outside.txt, content: "x\\n"}
  - write: {path: other.txt, content: "x\\n"}
  - run: touch sneaky.txt
  - write: {path: words.txt, content: "one\\ntwo\\n"}
    tokens: {in: 900, out: 40}
  - {say: "words.txt is there.", tokens: {in: 1000, out: 20}}""",
    RULES[1],
]


def test_a_phase_of_two_tasks_is_built_by_a_real_agent_over_its_protocol(project: Project, home: Path) -> None:
    """R-ADAPT-2: what it asks to write outside of its task is vetoed as it asks, and it goes on."""
    installed.configure_acp(project)
    consent = project.approval()
    before = {*home.iterdir(), home / "state"}
    ended = installed.alone(project, "claude", OVER_THE_PROTOCOL, "execute-phase", "1", "--approve", consent, "--json")
    assert ended.code == 0, ended.out + ended.err
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed"}
    assert (project.read("words.txt"), project.read("count.txt")) == ("one\ntwo\n", "2\n")
    assert project.repo.git("status", "--porcelain") == ""
    assert [project.exists(name) for name in ("../outside.txt", "other.txt", "sneaky.txt")] == [False] * 3
    steps = [e["payload"] for e in project.events("1", "--task", "T1-01", "--kind", "step.finished")]
    assert [(s["tool"], s["ok"], s["response"].partition(":")[0]) for s in steps] == [
        ("acp:edit", False, "vetoed"),
        ("acp:edit", False, "vetoed"),
        ("acp:execute", False, "vetoed"),
        ("acp:edit", True, "allowed"),
    ]
    [begun, _] = project.events("1", "--kind", "attempt.started")
    version = installed.ACP_PACKAGE.rpartition("@")[2]
    envelope = begun["payload"]["envelope"]
    assert (envelope["adapter"], envelope["adapter_version"]) == ("acp", f"1 {version}")
    assert {note["model"] for note in ended.asked if "model" in note} == {installed.MODELS["claude"]}
    assert set(home.iterdir()) == before


IN_TWO_ATTEMPTS = [
    """when: [T1-01, did not change]
tools: true
answers:
  - write: {path: count.txt, content: "1\\n"}
  - {say: "count.txt is there too.", tokens: {in: 1000, out: 20}}""",
    """when: T1-01
tools: true
answers:
  - write: {path: words.txt, content: "one\\n"}
  - {say: "words.txt is there.", tokens: {in: 1000, out: 20}}""",
]


@pytest.mark.parametrize("name", installed.PACKAGES)
def test_a_real_agent_is_asked_again_in_its_conversation(name: str, project: Project) -> None:
    """R-ADAPT-2: with `resume: true`; the model hears what was said in the first attempt too."""
    installed.configure(project, name, options={"resume": True})
    project.plan([task("T1-01", files="create `words.txt`, create `count.txt`", check="grep -qx 1 count.txt")])
    ended = installed.alone(
        project, name, IN_TWO_ATTEMPTS, "execute-phase", "1", "--approve", project.approval(), "--json"
    )
    assert ended.code == 0, ended.out + ended.err
    assert (project.read("words.txt"), project.read("count.txt")) == ("one\n", "1\n")
    first, second = [e["payload"] for e in project.events("1", "--kind", "attempt.finished")]
    assert second["resumed"] is True
    assert second["builder"]["session"] == first["builder"]["session"] is not None
    asked = {note["rule"]: note for note in ended.asked if note.get("calls")}
    again, new = asked["Rule 1"], asked["Rule 2"]
    assert again["said_characters"] > new["said_characters"] + again["prompt_characters"]


@pytest.mark.parametrize("fault", faults.FAULTS)
@pytest.mark.parametrize("name", installed.PACKAGES)
def test_what_a_fault_comes_to_is_what_the_page_says(name: str, fault: str, project: Project) -> None:
    """The table in docs/agents.md, row by row; `python -m tests.agents.faults` prints it."""
    ended = faults.ending(project, name, fault)
    assert (ended.outcome, ended.kind, ended.code) == faults.documented()[name, fault]
    assert ended.left == []


COPIES = {
    "a clone": ({"run": {"workspace": "clone"}}, ()),
    "a clone in which it commits": ({"git": {"commit": "builder"}}, ()),
    "the copy of a dry run": ({}, ("--dry-run",)),
}
COMMITTED = """when: T1-01
tools: true
answers:
  - write: {path: words.txt, content: "one\\ntwo\\n"}
  - run: git add words.txt && git commit -m 'Add words'
  - {say: "words.txt is there.", tokens: {in: 1000, out: 20}}"""


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("name", installed.PACKAGES)
def test_a_real_agent_works_in_every_private_copy(name: str, copy: str, project: Project) -> None:
    """R-GIT-7, R-RUN-11: some agents refuse to write below a git folder, so no copy lies there."""
    settings, flags = COPIES[copy]
    installed.configure(project, name, settings, options={"shell": True})
    project.plan([task("T1-01", files="create `words.txt`", check="grep -q two words.txt")])
    consent = project.approval()
    ended = installed.alone(project, name, [COMMITTED], "execute-phase", "1", "--approve", consent, *flags, "--json")
    assert ended.code == 0, ended.out + ended.err
    if flags:
        assert [row["path"] for row in ended.answer["data"]["dry_run"]["files"]] == ["words.txt"]
        return
    assert project.read("words.txt") == "one\ntwo\n"
    assert project.repo.git("status", "--porcelain") == ""
