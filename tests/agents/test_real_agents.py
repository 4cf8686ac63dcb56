"""Real command-line agents, asked as users' are, with a scripted model as the only host they can reach (R-ADAPT-2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.agents import recorder
from tests.agents import faults, installed
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

RULES = [
    """when: "# T1-01:"
tools: true
answers:
  - write: {path: words.txt, content: "one\\ntwo\\n"}
  - {say: "words.txt is there.", tokens: {in: 1000, out: 20}}""",
    """when: "# T1-02:"
tools: true
answers:
  - write: {path: count.txt, content: "2\\n"}
  - {say: "count.txt is there.", tokens: {in: 2000, out: 30}}""",
]


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    one = task("T1-01", files="create `words.txt`", check="grep -q two words.txt")
    two = task("T1-02", files="create `count.txt`", check="grep -qx 2 count.txt", after="T1-01")
    project.plan([one, two])
    return project


@pytest.mark.parametrize("name", installed.PACKAGES)
def test_a_real_agent_builds_a_phase_of_two_tasks(name: str, project: Project, home: Path) -> None:
    installed.configure(project, name)
    before = {*home.iterdir(), home / "state"}
    ended = installed.alone(project, name, RULES, "execute-phase", "1", "--approve", project.approval(), "--json")
    assert ended.code == 0, ended.out + ended.err
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed"}
    assert (project.read("words.txt"), project.read("count.txt")) == ("one\ntwo\n", "2\n")
    assert project.repo.git("status", "--porcelain") == ""
    used = [e["payload"]["builder"]["usage"] for e in project.events("1", "--kind", "attempt.finished")]
    assert [entry["tokens_out"] is not None for entry in used] == [name != "qwen"] * 2
    assert ended.asked
    assert set(home.iterdir()) == before


OVER_THE_PROTOCOL = [
    """when: "# T1-01:"
tools: true
answers:
  - write: {path: ../outside.txt, content: "x\\n"}
  - write: {path: other.txt, content: "x\\n"}
  - run: touch sneaky.txt
  - write: {path: words.txt, content: "one\\ntwo\\n"}
    tokens: {in: 900, out: 40}
  - {say: "words.txt is there.", tokens: {in: 1000, out: 20}}""",
    """when: "# T1-02:"
tools: true
answers:
  - run: wc -l words.txt
  - write: {path: count.txt, content: "2\\n"}
  - {say: "count.txt is there.", tokens: {in: 2000, out: 30}}""",
]


@pytest.mark.parametrize("agent", installed.ACP_PACKAGES)
def test_a_real_agent_builds_a_phase_of_two_tasks_over_its_protocol(agent: str, project: Project, home: Path) -> None:
    """R-ADAPT-2: a write outside the task is vetoed on request, and the agent continues."""
    installed.configure_acp(project, agent)
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
    version = installed.ACP_PACKAGES[agent].rpartition("@")[2]
    envelope = begun["payload"]["envelope"]
    assert (envelope["adapter"], envelope["adapter_version"]) == ("acp", f"1 {version}")
    assert {note["model"] for note in ended.asked if "model" in note} == {installed.MODELS["claude"]}
    assert set(home.iterdir()) == before


@pytest.mark.parametrize("fault", faults.FAULTS)
@pytest.mark.parametrize("name", faults.AGENTS)
def test_each_fault_has_the_documented_result(name: str, fault: str, project: Project) -> None:
    """The table in faults.md, row by row; `python -m tests.agents.faults` prints it."""
    ended = faults.ending(project, name, fault)
    assert (ended.outcome, ended.kind, ended.code) == faults.documented()[name, fault]
    assert ended.leftovers == []


COMMANDS = {
    "claude": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
    "opencode": ("bash", "command"),
    "copilot": ("bash", "command"),
    "qwen": ("run_shell_command", "command"),
}
"""The tool by which each runs a command, and its argument."""
RAN = "touch ran.txt; rm kept.txt; sed -i s/old/new/ text.txt; touch ../outside.txt"


def limits(name: str) -> list[str]:
    """A builder, and then a validator, that tries forbidden actions with its own tools."""
    tool, argument = COMMANDS[name]
    more = {} if name == "codex" else {"description": "x", "is_background": False}
    tries = [call(tool, {argument: RAN, **more}), call(tool, {argument: "cat text.txt", **more})]
    verdict = "{verdict: PASS, evidence: [{criterion: AC-1, file: builder.txt, line: 1}], findings: []}"
    own, outside = ([] if name == "codex" else [write(name, path)] for path in ("validator.txt", "../outside.txt"))
    built = ["write: {path: builder.txt, content: x}", *outside, *tries, "say: done"]
    judged = [*own, *outside, *tries, f"data: {verdict}"]
    return [
        f"when: You are the validator\ntools: true\nanswers: {listed(judged)}",
        f'when: "# T1-01:"\ntools: true\nanswers: {listed(built)}',
    ]


def listed(answers: list[str]) -> str:
    return "".join(f"\n  - {answer}" for answer in answers)


def write(name: str, path: str) -> str:
    tool, argument, content = recorder.TOOLS[name]
    return call(tool, {argument: path, content: "x\n"})


def call(tool: str, arguments: dict[str, Any]) -> str:
    return f"tool: {{name: {tool}, arguments: {json.dumps(arguments)}}}"


@pytest.mark.parametrize("name", installed.PACKAGES)
def test_a_real_agent_edits_in_its_workspace_runs_no_commands_and_judges_without_writing(
    name: str, project: Project
) -> None:
    """R-ADAPT-2: the limits of docs/agents.md; Codex runs commands, inside its sandbox."""
    project.repo.commit_with({"kept.txt": "kept\n", "text.txt": "old\n"})
    installed.configure(project, name, {"validator": "real"})
    files = "create `builder.txt`" + ", create `ran.txt`, delete `kept.txt`, modify `text.txt`" * (name == "codex")
    project.plan([task("T1-01", files=files, check="test -s builder.txt")])
    consent = project.approval()
    ended = installed.alone(project, name, limits(name), "execute-phase", "1", "--approve", consent, "--json")
    assert ended.code == 0, ended.out + ended.err
    assert project.read("builder.txt").strip() == "x"
    assert not project.exists("../outside.txt")
    assert not project.exists("validator.txt")
    [finished] = project.events("1", "--kind", "attempt.finished")
    assert (finished["payload"]["verdict"], finished["payload"]["validator"]["outcome"]) == ("PASS", "completed")
    in_sandbox = name == "codex"
    assert project.exists("ran.txt") is in_sandbox
    assert project.exists("kept.txt") is not in_sandbox
    assert project.read("text.txt") == ("new\n" if in_sandbox else "old\n")
    assert project.repo.git("status", "--porcelain") == ""


def test_copilot_creates_a_file_in_a_new_folder_and_unpacks_itself_once(project: Project) -> None:
    """R-ADAPT-2: for the builder and the validator, whose home is a new one each time."""
    installed.configure(project, "copilot", {"validator": "real"})
    project.plan([task("T1-01", files="create `new/deep/a.txt`, create `none/b.txt`", check="test -s new/deep/a.txt")])
    verdict = "{verdict: FAIL, findings: [{file: none/b.txt, line: 1, message: it is not there}]}"
    rules = [
        f"when: You are the validator\ntools: true\nanswers: [{{data: {verdict}}}]",
        'when: "# T1-01:"\ntools: true\nanswers: [{write: {path: new/deep/a.txt, content: x}}, {say: done}]',
    ]
    command = ("execute-phase", "1", "--approve", project.approval(), "--max-attempts", "1", "--json")
    ended = installed.alone(project, "copilot", rules, *command)
    assert ended.code == 1, ended.out + ended.err
    [left] = ended.answer["data"]["tasks"]
    assert project.repo.git("show", f"{left['snapshot']}:worktree/new/deep/a.txt").strip() == "x"
    assert not project.exists("none")
    unpacked = [path for path in (project.folder / ".git/idumb").rglob("app.js") if "linux" in str(path)]
    assert len(unpacked) == 1


TELLS = """when: T1-01
tools: true
answers:
  - run: >-
      printf '{"state": "waiting", "message": "log in"}' > "$IDUMB_STATE_FILE.new";
      mv "$IDUMB_STATE_FILE.new" "$IDUMB_STATE_FILE"; sleep 3; echo done > words.txt
  - say: done"""


@pytest.mark.parametrize("name", installed.PACKAGES)
def test_a_real_agent_runs_commands_if_its_binding_allows_them_and_tells_its_state(name: str, project: Project) -> None:
    """R-ADAPT-2: `shell: true`; the sandbox of Codex lets it write in the workspace alone."""
    installed.configure(project, name, options={"shell": True})
    project.plan([task("T1-01", files="create `words.txt`", check="grep -q done words.txt")])
    consent = project.approval()
    ended = installed.alone(project, name, [TELLS], "execute-phase", "1", "--approve", consent, "--json")
    assert ended.code == 0, ended.out + ended.err
    states = [e["payload"]["state"] for e in project.events("1", "--kind", "attempt.told")]
    assert states == ([] if name == "codex" else ["waiting"])


UNREACHED = {
    "no key": (None, "not-logged-in"),
    "an unknown model": (("answers: [{fault: unknown-model}]",), "unknown-model"),
    "a closed server": ((), "network"),
    "a wrong key": (("answers: [{fault: unauthorized}]",), "not-logged-in"),
    "a failing server": (("answers: [{fault: server-error}]",), "network"),
}
"""What is scripted, where there is a server, and the kind of failure."""
FAILING = {"codex": ["rate-limited"], "qwen": ["stall"], "opencode": ["stall"]}
"""Also right: Codex speaks of high demand; Qwen Code and OpenCode are silent until their last try, often too late."""
NEEDS_NO_KEY = ("codex", "opencode")
"""Codex asks without one, and OpenCode has models that are free; then it is the server that says no."""


@pytest.mark.parametrize("reason", UNREACHED)
@pytest.mark.parametrize("name", installed.PACKAGES)
def test_the_reason_why_an_agent_cannot_work_is_reported_and_costs_no_attempt(
    name: str, reason: str, project: Project
) -> None:
    """R-ADAPT-2: by all six; `retry.calls` is 1, and `idle_timeout` short."""
    rules, kind = UNREACHED[reason]
    if rules is None and name in NEEDS_NO_KEY:
        pytest.skip(f"{name} asks a server without a key")
    alone = {"retry": {"calls": 1}, "run": {"halt_after": 1}}
    named: dict[str, list[str]] = {"environment": []} if rules is None else {}
    installed.configure(project, name, alone, idle_timeout="45s", **named)
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", fields="- **Timeout:** 3m\n")])
    command = ("execute-phase", "1", "--approve", project.approval(), "--max-attempts", "1", "--json")
    ended = installed.alone(project, name, rules or (), *command)
    assert ended.code == 1, ended.out + ended.err
    [finished] = project.events("1", "--kind", "attempt.finished")
    kinds = {kind, *FAILING.get(name, ())} if reason == "a failing server" else {kind}
    kinds = {"stall"} if (name, reason) == ("opencode", "a closed server") else kinds  # it tries again without a word
    assert finished["payload"]["builder"]["failure"] in kinds, finished["payload"]["builder"]


@pytest.mark.parametrize("name", faults.AGENTS)
def test_a_real_agent_works_in_the_copy_of_a_dry_run(name: str, project: Project) -> None:
    """R-RUN-11: some agents refuse to write below a git folder, so the copy is not there."""
    installed.configure(project, name)
    project.plan([task("T1-01", files="create `words.txt`", check="grep -q two words.txt")])
    consent = project.approval()
    command = ("execute-phase", "1", "--approve", consent, "--dry-run", "--json")
    ended = installed.alone(project, name, RULES[:1], *command)
    assert ended.code == 0, ended.out + ended.err
    assert [row["path"] for row in ended.answer["data"]["dry_run"]["files"]] == ["words.txt"]
