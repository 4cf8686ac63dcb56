"""What adapters promise of what is said to them: by a server, a protocol, a report, a file or a recording (R-ADAPT-2).

`test_agents.py` has the promises about processes.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from idumb.agents import registry
from idumb.app.ports import Agent, Conflict
from idumb.domain import agent, contract, outcome
from idumb.domain.agent import BUILDER, PLANNER, ROLES, VALIDATOR, AgentRequest, AgentResult, RecordedAttempt
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from tests.support import acp_agent, chat_server, preset_stand_in
from tests.support.cases import every
from tests.support.chat_server import ChatServer, Response
from tests.support.equipment import equipped
from tests.support.seed import one_of

TASK = plan.Task("T1-01", "Work", files=(plan.FileClaim("create", "a.txt"),))
SECRET = "sk-very-secret"


class Kind:
    """How the suite makes an adapter answer with a text, or not at all."""

    name: str

    def binding(self, root: Path, says: str | None, stack: ExitStack) -> Binding:
        raise NotImplementedError

    def answer(self, root: Path, says: str | None) -> None:
        """Called after the first call of the adapter, if the answer comes later."""


@dataclasses.dataclass
class Served(Kind):
    """A model behind a server; None is a server that is silent."""

    name: str
    model: str

    def binding(self, root: Path, says: str | None, stack: ExitStack) -> Binding:
        reply = Response(b"", silent=True) if says is None else chat_server.text(says, usage=None)
        server = stack.enter_context(ChatServer(reply).serving())
        options = {"base_url": server.url, "output": "native"}
        return Binding("one", self.name, options=options, model=self.model)


class Acp(Kind):
    name = "acp"

    def binding(self, root: Path, says: str | None, stack: ExitStack) -> Binding:
        script = ("hang",) if says is None else ("say", says)
        return Binding("one", "acp", (sys.executable, acp_agent.__file__, *script))


class Handoff(Kind):
    name = "handoff"

    def binding(self, root: Path, says: str | None, stack: ExitStack) -> Binding:
        return Binding("one", "handoff", options={"wait": 0 if says is not None else 60})

    def answer(self, root: Path, says: str | None) -> None:
        for requests in () if says is None else list((root / "handoffs").glob("*.md")):
            text = f"---\nhandoff: {requests.stem}\noutcome: done\n---\n{says}\nEND OF ANSWER\n"
            requests.with_name(f"{requests.stem}.answer.md").write_text(text, encoding="utf-8")


class Replay(Kind):
    name = "replay"

    def binding(self, root: Path, says: str | None, stack: ExitStack) -> Binding:
        return Binding("one", "replay", options={"run": "r" if says is not None else "gone"})


@dataclasses.dataclass
class Reporting(Kind):
    """A command-line agent whose stand-in reports as the real one was recorded; None is one that never ends.

    One that `leaks` has a secret where the id of its conversation stands; one that does not end is killed before the
    end of its report. `scene` is what was recorded.
    """

    name: str
    scene: str = "success"
    leaks: bool = False
    ends: bool = True

    def binding(self, root: Path, says: str | None, stack: ExitStack) -> Binding:
        work = "exec sleep 1000" if says is None else ":"
        program = preset_stand_in.write_program(root / "programs", self.name, work, says=says or "", scene=self.scene)
        report = program.with_suffix(".out")
        if self.leaks:
            session = preset_stand_in.session(self.name).encode()
            report.write_bytes(report.read_bytes().replace(session, SECRET.encode()))
        if not self.ends:
            report.write_bytes(b"".join(report.read_bytes().splitlines(keepends=True)[:-1]))
            program.write_text(f"{program.read_text(encoding='utf-8')}kill -9 $$\n", encoding="utf-8")
        return Binding("one", self.name, (str(program),))


EXCEPT = {
    ("replay", "roles"): "builders and validators are recorded, the other roles are not",
    ("replay", "verdict"): "it says what was recorded",
}
"""Promises that an adapter cannot keep, with the reason; each is shown not to hold."""

USED = {
    "acp": agent.Usage(12, 3),
    "claude": agent.Usage(9584, 50, 0.029502),
    "codex": agent.Usage(6347, 42),
}
"""What an answer here says it used, of those adapters whose other side tells; all else is unknown."""

KINDS: tuple[Kind, ...] = (
    Served("model", "openai-chat:m-1"),
    Acp(),
    *(Reporting(name) for name in registry.PRESETS),
    Handoff(),
    Replay(),
)


class OneRecording:
    def has_run(self, run: str) -> bool:
        return run == "r"

    def find(self, run: str, task: str, number: int) -> RecordedAttempt | None:
        result = AgentResult(outcome.COMPLETED, output=VERDICT, reply=VERDICT)
        return RecordedAttempt(contract.task_digest(TASK), result, result, ("t",), ())

    def differing(self, recorded: RecordedAttempt, candidate: str) -> tuple[str, ...]:
        return ()

    def play(self, recorded: RecordedAttempt) -> tuple[Conflict, ...]:
        return ()


VERDICT = '{"verdict": "PASS", "findings": []}'


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    kind_under_test: Kind = request.param
    if kind_under_test.name == "model" and importlib.util.find_spec("pydantic_ai") is None:
        pytest.skip("the extra `models` is not installed: pip install -e '.[models]'")
    return kind_under_test


def build(kind: Kind, root: Path, says: str | None, stack: ExitStack) -> Agent:
    (root / "work").mkdir(exist_ok=True)
    settings = Settings(bindings={"one": kind.binding(root, says, stack)}, environment=("PATH",))
    redact = lambda text: text.replace(SECRET, "[secret]")  # noqa: E731 - one word
    more = {"recordings": OneRecording(), "handoffs": str(root / "handoffs")}
    return registry.build(equipped(root / "work", settings=settings, redact=redact, **more)).get("one")


def ask(kind: Kind, root: Path, says: str | None, stack: ExitStack, request: AgentRequest) -> AgentResult:
    who = build(kind, root, says, stack)
    request = replace(request, workspace=str(root / "work"))
    first = who.run(request)
    if first.outcome != outcome.WAITING:
        return first
    kind.answer(root, says)
    return who.run(request)


def a_request(role: str, deadline: float | None = 30.0) -> AgentRequest:
    task = TASK if role in {BUILDER, VALIDATOR} else None
    about = "" if task is not None else "phase-1"
    return AgentRequest(
        role, task, "the prompt", "", ("a.txt",), deadline=deadline, about=about, run_id="r", ticket="5f0c"
    )


OTHERS = [role for role in ROLES if role not in {BUILDER, VALIDATOR, PLANNER}]


@every("role", [BUILDER, VALIDATOR, PLANNER, one_of(OTHERS, "role")])
def test_every_role_gets_an_outcome_and_a_kind_and_never_an_exception(
    kind: Kind, role: str, tmp_path: Path, stack: ExitStack
) -> None:
    result = ask(kind, tmp_path, VERDICT, stack, a_request(role))
    assert result.failure in {None, *agent.FAILURES}
    if (kind.name, "roles") not in EXCEPT or role in {BUILDER, VALIDATOR}:
        assert (result.outcome, result.failure) == (outcome.COMPLETED, None)
    else:
        assert (result.outcome, result.failure) == (outcome.ERRORED, agent.MISSING)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_verdict_other_than_pass_never_completes(kind: Kind, tmp_path: Path, stack: ExitStack) -> None:
    """R-ADAPT-2: judged files can contain any text, and a validator quotes them."""
    failed = '{"verdict": "FAIL", "findings": []}'
    quoted = f"It says:\n\n```json\n{VERDICT}\n```\n\nI say:\n\n{failed}\n"
    for says in ('{"verdict": "PARTIAL", "findings": []}', "It looks good to me.", quoted):
        place = tmp_path / str(len(says))
        place.mkdir()
        result = ask(kind, place, says, stack, a_request(VALIDATOR))
        assert (result.outcome != outcome.COMPLETED) == ((kind.name, "verdict") not in EXCEPT)


def test_secrets_are_redacted_and_unknown_usage_stays_unknown(kind: Kind, tmp_path: Path, stack: ExitStack) -> None:
    result = ask(kind, tmp_path, f"The key is {SECRET}.", stack, a_request(PLANNER))
    assert SECRET not in repr(result)
    assert result.usage == USED.get(kind.name, agent.Usage())


def test_the_deadline_holds_whatever_the_other_side_does(kind: Kind, tmp_path: Path, stack: ExitStack) -> None:
    result = ask(kind, tmp_path, None, stack, a_request(BUILDER, deadline=0.4))
    assert result.seconds < 20
    assert result.outcome in {outcome.TIMED_OUT, outcome.WAITING, outcome.ERRORED}
    assert result.failure in {agent.STALL, None, agent.MISSING}


def test_an_adapter_has_the_name_of_its_registry_entry(kind: Kind, tmp_path: Path, stack: ExitStack) -> None:
    who = build(kind, tmp_path, VERDICT, stack)
    assert who.name == kind.name
    assert kind.name in registry.ADAPTERS
    assert who.version
    described = who.describe()
    assert all(isinstance(part, str) for part in described)


@every("name", registry.PRESETS)
def test_secrets_are_redacted_in_every_part_of_a_report(name: str, tmp_path: Path, stack: ExitStack) -> None:
    leaking = Reporting(name, leaks=True)
    result = ask(leaking, tmp_path, "done", stack, a_request(BUILDER))
    assert result.session is None  # what is left of it is no id
    assert SECRET not in repr(result)


@every("name", registry.PRESETS)
def test_a_killed_agent_has_reported_its_conversation(name: str, tmp_path: Path, stack: ExitStack) -> None:
    result = ask(Reporting(name, ends=False), tmp_path, "done", stack, a_request(BUILDER))
    assert result.outcome == outcome.FAILED
    assert (result.session == preset_stand_in.session(name)) == ((name, "session") not in EXCEPT)


@every("name", registry.PRESETS)
def test_a_report_of_an_error_is_never_a_success_whatever_the_exit_code(
    name: str, tmp_path: Path, stack: ExitStack
) -> None:
    result = ask(Reporting(name, scene="unauthorized"), tmp_path, "done", stack, a_request(BUILDER))
    assert (result.outcome, result.failure, result.exit_code) == (outcome.ERRORED, agent.NOT_LOGGED_IN, 0)
