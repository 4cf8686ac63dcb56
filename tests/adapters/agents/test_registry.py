"""Which adapter a name selects, which variables a role sees, and how a person is asked (R-ADAPT-1, R-ADAPT-2)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from idumb.agents import registry
from idumb.agents.adapter import Equipment
from idumb.app.core import questions
from idumb.app.ports import Agent
from idumb.domain import outcome
from idumb.domain.action import Answer, Decision
from idumb.domain.agent import BUILDER, AgentRequest
from idumb.domain.plans.plan import Option, Task
from idumb.domain.settings import Binding, Settings
from idumb.system import redaction
from tests.support.cases import every
from tests.support.errors import refusing

SETTINGS = Settings(
    bindings={
        "coder": Binding("coder", "command", ("sh", "-c", "echo $KEY_A-$KEY_B"), environment=("KEY_A",)),
        "judge": Binding("judge", "command", ("sh", "-c", "echo $KEY_A-$KEY_B"), environment=("KEY_B",)),
        "odd": Binding("odd", "comand"),
    }
)


def build(root: Path, settings: Settings = SETTINGS) -> registry.AgentRegistry:
    return registry.build(Equipment(settings, str(root), lambda *_: (True, ""), lambda text: text))


def human(root: Path) -> Agent:
    return build(root).get("human")


def request(root: Path, question: Decision | None = None, answer: Answer | None = None) -> AgentRequest:
    return AgentRequest(BUILDER, Task("T1-01", "Work"), "", str(root), (), question=question, answer=answer, run_id="r")


def test_steps_and_human_need_no_configuration(tmp_path: Path) -> None:
    agents = build(tmp_path, Settings())
    assert agents.get("steps").name == "steps"
    assert agents.get("human").name == "human"
    assert agents.get("steps").describe() == ()


def test_a_key_reaches_only_the_role_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S5: the builder's key never reaches the validator."""
    monkeypatch.setenv("KEY_A", "aaaa")
    monkeypatch.setenv("KEY_B", "bbbb")
    agents = build(tmp_path)
    assert agents.get("coder").run(request(tmp_path)).output == "aaaa-\n"
    assert agents.get("judge").run(request(tmp_path)).output == "-bbbb\n"
    assert registry.secret_variables(SETTINGS) == {"KEY_A": "aaaa", "KEY_B": "bbbb"}


def test_an_unknown_adapter_gets_the_nearest_name_suggested(tmp_path: Path) -> None:
    with refusing("agent.unknown-adapter") as caught:
        build(tmp_path).get("odd")
    assert caught.value.hint == "Did you mean command?"


def install(folder: Path, target: str) -> None:
    """A distribution with an adapter `theirs`, as an installer leaves it."""
    information = folder / "theirs-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(f"[idumb.agents]\ntheirs = {target}\n", encoding="utf-8")
    (folder / "their_adapter.py").write_text(
        "from tests.support.scripted_agent import ScriptedAgent\n"
        "def make(binding, equipment):\n"
        "    agent = ScriptedAgent()\n"
        "    agent.options = binding.options\n"
        "    return agent\n",
        encoding="utf-8",
    )


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_an_installed_adapter_is_loaded_by_name(tmp_path: Path, installed: Path) -> None:
    install(installed, "their_adapter:make")
    settings = Settings(bindings={"mine": Binding("mine", "theirs", options={"depth": 3})})
    agents = build(tmp_path, settings)
    agents.get("steps")
    assert "their_adapter" not in sys.modules
    builder = agents.get("mine")
    assert builder.name == "scripted"
    assert builder.run(request(tmp_path)).outcome == outcome.COMPLETED
    del sys.modules["their_adapter"]


def test_a_broken_installed_adapter_is_one_clear_error(tmp_path: Path, installed: Path) -> None:
    install(installed, "their_adapter:absent")
    settings = Settings(bindings={"mine": Binding("mine", "theirs")})
    with refusing("agent.not-loadable"):
        build(tmp_path, settings).get("mine")
    sys.modules.pop("their_adapter", None)


QUESTION = questions.work(Task("T1-01", "Look", kind="human-verify"), 1)
OPTIONS = (Option("no", "none of them"), Option("b", "the second"))
CHOOSE = questions.work(Task("T1-01", "Which?", kind="decision", options=OPTIONS), 1)


@every(
    "question, choice, ended",
    [
        (QUESTION, "yes", outcome.COMPLETED),
        (QUESTION, "no", outcome.FAILED),
        (QUESTION, "perhaps", outcome.FAILED),
        (QUESTION, None, outcome.WAITING),
        (CHOOSE, "no", outcome.COMPLETED),
    ],
)
def test_a_person_s_answer_is_the_outcome(tmp_path: Path, question: Decision, choice: str | None, ended: str) -> None:
    answer = None if choice is None else Answer(question.id, choice, "pat", "because")
    result = human(tmp_path).run(request(tmp_path, question, answer))
    assert result.outcome == ended
    assert result.answer == (answer if ended in {outcome.COMPLETED, outcome.FAILED} else None)


def test_a_person_must_have_something_to_answer(tmp_path: Path) -> None:
    assert human(tmp_path).run(request(tmp_path)).outcome == outcome.ERRORED


@every(
    "name, value, secret",
    [
        ("API_KEY", "my-project", False),
        ("API_KEY", "x7k-9qz-2mf", True),
        ("PIN_SECRET", "48213377", True),
        ("API_KEY", "/Zq81xWvT+2dk/9sLq", True),
        ("PGPASSWORD", "postgres", False),
        ("PGPASSWORD", "p0stgr3s!", True),
        ("API_KEY", "changeme", False),
        ("AUTH_HEADER", "Bearer Zq81xWvT2dk9", True),
        ("OLLAMA_API_KEY", "ollama", False),
        ("GIT_AUTHOR_NAME", "Alice Smith", False),
        ("GIT_AUTHOR_DATE", "1700000000 +0000", False),
        ("XAUTHORITY", "/run/user/1000/.Xauth-Zq81xW", False),
        ("SSH_AUTH_SOCK", "/tmp/ssh-Zq81xWvT2d/agent.4242", False),
        ("TOKEN_FILE", "/run/Zq81xWvT/token", False),
        ("PRIVATE_KEY", "~/.ssh/id_ed25519x", False),
        ("AUTH_KEY", "/run/secrets/id_ed25519", False),
        ("TOKEN_FLAGS", "--max-old-space-size=16384 --es2022", False),
        ("TOKEN_FLAGS", "--key=Zq81xWvT2dk9sLq0pQ", True),
        ("CANARY", "hunter-Zq81xWvT-2", True),
        ("CANARY", "p4ss!word", True),
        ("CLOUD_PROJECT", "my-project", False),
        ("REGION", "us-central1", False),
        ("MODEL", "claude-sonnet-4-20250514", False),
        ("SMALL_MODEL", "gpt-4o-mini", False),
        ("HOME", "/home/me", False),
        ("BASE_URL", "https://proxy.example.com:8080/v1", False),
        ("DATABASE_URL", "postgres://me:pa55word@db/x", True),
        ("LANG", "en_US.UTF-8", False),
        ("ID", "0123456789abcdef", True),
    ],
)
def test_a_variable_is_certainly_a_secret_by_its_name_or_value(name: str, value: str, *, secret: bool) -> None:
    """R-LOG-3."""
    assert bool(redaction.certain_secrets({name: value})) is secret
