"""States that working agents report through the file in IDUMB_STATE_FILE (R-ADAPT-2)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.agents import answers, registry
from idumb.agents.answers import StateFileWatch
from idumb.app.ports import ReportingAgent
from idumb.domain import outcome
from idumb.domain.agent import BUILDER, STATES, AgentRequest, AgentResult, Claim, capabilities
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from idumb.system import supervision
from tests.support import preset_stand_in
from tests.support.cases import every
from tests.support.equipment import equipped

SAY = 'say() { printf "%s" "$1" > "$IDUMB_STATE_FILE.new"; mv "$IDUMB_STATE_FILE.new" "$IDUMB_STATE_FILE"; }\n'
HEARD = "until [ -e heard-$n ]; do sleep 0.02; done\n"


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_EVERY", 0.02)


def redact(text: str) -> str:
    return text.replace("s3cret", "[redacted]")


def run_agent(root: Path, adapter: str, script: str, **fields: object) -> tuple[AgentResult, list[Claim]]:
    """Run an agent script; return its answer and its reported states; each state leaves a file `heard-N`."""
    (root / "work").mkdir()
    if adapter == "command":
        binding = Binding("it", adapter, ("sh", "-c", SAY + script))
    else:
        binding = Binding(
            "it", adapter, (str(preset_stand_in.write_program(root / "programs", adapter, SAY + script)),)
        )
    settings = Settings(bindings={"it": binding}, environment=("PATH",))
    builder = registry.build(equipped(root / "work", settings=settings, redact=redact))
    claims: list[Claim] = []

    def hear(claim: Claim) -> None:
        claims.append(claim)
        (root / "work" / f"heard-{len(claims)}").touch()

    who = builder.get("it")
    request = AgentRequest(BUILDER, plan.Task("T1-01", "Work"), "the prompt", str(root / "work"), (), **fields)  # type: ignore[arg-type]
    reporting: ReportingAgent = who  # type: ignore[assignment]
    assert capabilities(who).reports_progress
    return reporting.run(request, hear), claims


@every("adapter", ["command", *registry.PRESETS])
def test_each_state_is_reported_while_the_agent_works(tmp_path: Path, adapter: str) -> None:
    """The agent writes each state only after the one before was read."""
    claims = [Claim("working", "reads"), Claim("waiting", "for [redacted]"), Claim("working", "writes"), Claim("done")]
    script = "".join(
        f"say '{json.dumps({'state': claim.state, 'message': message})}'\nn={n}; {HEARD}"
        for n, (claim, message) in enumerate(zip(claims, ("reads", "for s3cret", "writes", ""), strict=True), 1)
    )
    result, heard = run_agent(tmp_path, adapter, script)
    assert heard == claims
    assert result.outcome == outcome.COMPLETED


def test_an_agent_that_waits_for_a_person_is_not_stopped(tmp_path: Path) -> None:
    result, _ = run_agent(tmp_path, "command", """say '{"state": "waiting"}'; sleep 1.5""", idle_timeout=1.0)
    assert (result.outcome, result.failure) == (outcome.COMPLETED, None)


def test_a_state_of_done_does_not_turn_a_failure_into_a_success(tmp_path: Path) -> None:
    result, heard = run_agent(tmp_path, "command", f"""say '{{"state": "done"}}'; n=1; {HEARD} exit 3""")
    assert heard == [Claim("done")]
    assert (result.outcome, result.failure, result.exit_code) == (outcome.FAILED, None, 3)


def test_a_full_context_is_recognized_by_the_last_state(tmp_path: Path) -> None:
    """The state is reported early but proves nothing: only the files at the end count."""
    full, better = '{"state": "context-exhausted", "handover": "half"}', '{"state": "working"}'
    (tmp_path / "1").mkdir()
    result, heard = run_agent(tmp_path / "1", "command", f"say '{full}'; n=1; {HEARD}")
    assert heard == [Claim("context-exhausted")]
    assert (result.outcome, result.failure, result.handover) == (outcome.FAILED, "context-exhausted", "half")
    (tmp_path / "2").mkdir()
    result, _ = run_agent(tmp_path / "2", "command", f"say '{full}'; n=1; {HEARD} say '{better}'")
    assert (result.outcome, result.failure) == (outcome.COMPLETED, None)


@every(
    "end",
    [
        'rm -f "$IDUMB_STATE_FILE"; mkfifo "$IDUMB_STATE_FILE"',
        'rm -f "$IDUMB_STATE_FILE"; mkdir "$IDUMB_STATE_FILE"',
        'rm -rf "${IDUMB_STATE_FILE%/*}"',
        'i=0; while [ $i -lt 60 ]; do say "{}"; i=$((i+1)); done',
        'truncate -s 1T "$IDUMB_STATE_FILE"',
    ],
)
def test_a_hostile_state_file_never_blocks_the_reader(tmp_path: Path, end: str) -> None:
    """It prints more than a pipe holds afterwards, so it ends only if it is still read from."""
    script = f'say \'{{"state": "working"}}\'; n=1; {HEARD} {end}; head -c 3000000 /dev/zero; sleep 0.1'
    result, heard = run_agent(tmp_path, "command", script)
    assert heard == [Claim("working")]
    assert (result.outcome, result.failure) == (outcome.COMPLETED, None)


class Scene:
    """A file that is listened to, on a clock of its own."""

    def __init__(self, folder: Path, hear: Callable[[Claim], None] | None = None) -> None:
        self.now = 0.0
        self.heard: list[Claim] = []
        self.place = folder / "state.json"
        self.listening = StateFileWatch(str(self.place), redact, hear or self.heard.append, lambda: self.now)

    def says(self, content: str | bytes) -> bool:
        """Return the state that is read from this content."""
        self.place.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.listening.look()


def test_a_half_written_file_is_read_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    whole = '{"state": "waiting", "message": "for you"}'
    assert [scene.says(whole[:at]) for at in range(len(whole))] == [False] * len(whole)
    assert scene.says(whole)
    assert scene.heard == [Claim("waiting", "for you")]
    assert scene.listening.waits
    scene.says(whole[:20])
    scene.says(whole)
    assert len(scene.heard) == 1


@every(
    "content",
    [
        b"",
        b"\xff\xfe\x00{",
        b'{"state": "working", "message": "\xff"}',
        b"[" * 100_000,
        b'{"state": ' * 20_000,
        b"1" * 10_000,
        b"null",
        b'["working"]',
        b'{"state": "never heard of"}',
        b'{"state": ["working"]}',
        b'{"state": {"working": 1}}',
        b'{"state": 1}',
        b'{"message": "no state"}',
        b'{"state": "working", "message": "' + b"x" * answers.STATE_BYTES + b'"}',
    ],
)
def test_an_invalid_state_is_ignored(tmp_path: Path, content: bytes) -> None:
    scene = Scene(tmp_path)
    assert not scene.says(content)
    assert not scene.listening.look()
    assert scene.heard == []
    assert scene.says('{"state": "working", "message": ["not", "a", "text"]}')
    assert scene.heard == [Claim("working")]


def test_a_link_is_never_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    other = tmp_path / "other.json"
    other.write_text('{"state": "declined", "message": "of somebody else"}', encoding="utf-8")
    scene.place.symlink_to(other)
    assert not scene.listening.look()
    assert scene.heard == []
    assert answers.read_state_file(str(scene.place), redact) == answers.Report()


def test_a_repeated_state_is_not_reported(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for tokens in range(5):
        scene.says(json.dumps({"state": "working", "message": "", "usage": {"tokens_in": tokens}}))
    assert scene.heard == [Claim("working")]


def test_updates_of_a_chatty_agent_are_throttled_and_its_newest_state_is_kept(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for step in range(30 * 60):  # an hour
        scene.now = step * 2.0
        if step % 2:
            os.utime(scene.place)
            scene.listening.look()
        else:
            assert scene.says(json.dumps({"state": "working", "message": f"step {step}"}))
    assert answers.PROMPTLY < len(scene.heard) < answers.PROMPTLY + 15
    assert [c.message for c in scene.heard[:3]] == ["step 0", "step 2", "step 4"]
    scene.says('{"state": "blocked"}')
    scene.now *= 3
    scene.listening.look()
    assert scene.heard[-1] == Claim("blocked")


def test_an_agent_without_a_listener_may_wait_too(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"state": "waiting"}', encoding="utf-8")
    unheard = StateFileWatch(str(tmp_path / "state.json"), redact, None)
    assert unheard.look()
    assert unheard.waits


@every("state", STATES)
def test_every_known_state_is_accepted(tmp_path: Path, state: str) -> None:
    scene = Scene(tmp_path)
    scene.says(json.dumps({"state": state}))
    assert scene.heard == [Claim(state)]
    assert scene.listening.waits is (state == "waiting")
