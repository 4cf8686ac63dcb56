"""Recorded output of real agents, read again: six agents with five failures each and a success (R-ADAPT-2)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

from idumb.agents import acp, registry
from idumb.agents.acp_client import Client
from idumb.agents.answers import Report
from idumb.agents.known_agent import Preset
from idumb.domain import agent, outcome
from idumb.domain.settings import Binding
from idumb.system.child_process import Finished
from idumb.system.supervision import Captured
from tests.support.cases import every
from tests.support.equipment import equipped

PLACE = Path(__file__).parent / "recorded"
KINDS = {
    "unauthorized": {agent.NOT_LOGGED_IN},
    "rate-limited": {agent.RATE_LIMITED},
    # Some providers' words for it are those of too many requests.
    "server-error": {agent.NETWORK, agent.RATE_LIMITED},
    "context": {agent.CONTEXT_EXHAUSTED},
    "closed-port": {agent.NETWORK},
}
SILENT = {
    ("opencode", "rate-limited"),
    ("opencode", "server-error"),
    ("opencode", "closed-port"),
    ("qwen", "rate-limited"),
    ("qwen", "server-error"),
}
"""These wait and say nothing; the clock ends them."""


def versions() -> Iterator[Path]:
    for name in (*registry.PRESETS, *registry.SPEAKERS):
        yield from sorted((PLACE / name).iterdir())


def recordings(*scenes: str) -> list[Path]:
    return [place / f"{scene}.out" for place in versions() for scene in scenes]


def read(place: Path) -> Report:
    name = place.parts[-3]
    if name in registry.PRESETS:
        preset: Preset = importlib.import_module(f"idumb.agents.{name}").PRESET
        return preset.read(place.read_bytes(), place.with_suffix(".err").read_bytes())
    return heard(name, place.read_bytes())


def heard(name: str, messages: bytes) -> Report:
    """What the adapter concludes from an agent's messages."""
    client = Client("/home/me/project", "Write the greeting.", lambda _: "")
    client.begin()
    client.heard(messages)
    made = acp.AcpAgent(Binding("it", name), equipped(PLACE))
    ended, words, failure = made._ending(
        client,
        Finished(0, None, timed_out=False, output=Captured(b"", b"", 0, ""), errors=None, seconds=1.0),
        "",
    )
    completed = ended == outcome.COMPLETED
    return Report(client.reply, client.session, acp.usage_of(client.used), ended=client.over,
                  error="" if completed else words, failure=failure)  # fmt: skip


def shown(place: Path) -> str:
    return "-".join((*place.parts[-3:-1], place.stem))


def exit_code(place: Path) -> int | None:
    exit_status: int | None = json.loads((place.parent / "exits.json").read_text(encoding="utf-8"))[place.stem]["exit"]
    return exit_status


@every("place", recordings("success"))
def test_a_success_has_reply_session_and_usage(place: Path) -> None:
    report = read(place)
    assert (report.reply, report.ended, report.error, report.failure) == ("The greeting is written.", True, "", None)
    assert report.session
    assert report.usage.tokens_out is not None or place.parts[-3] == "qwen"  # it tells of no sum


@every("place", recordings("denied"))
def test_a_refused_permission_is_not_a_failure_of_the_agent(place: Path) -> None:
    """The agent skips the denied action, says so and ends normally; its claim is judged by the files."""
    report = read(place)
    vetoed = place.parts[-3] == "copilot"  # a veto ends its turn
    assert (report.reply, report.failure) == (
        "Info: Operation cancelled by user" if vetoed else "It was not permitted.",
        None,
    )
    if place.parts[-3] == "claude":
        assert report.denied


@every("place", recordings(*KINDS))
def test_the_kind_of_a_failure_does_not_depend_on_the_exit_code(place: Path) -> None:
    report = read(place)
    if (place.parts[-3], place.stem) in SILENT and exit_code(place) is None:
        assert not report.ended or report.error
        return
    assert report.failure in KINDS[place.stem], report
    assert report.error


@every("place", recordings("success", *KINDS))
def test_a_report_cut_at_any_line_is_read_safely(place: Path) -> None:
    name, data = place.parts[-3], place.read_bytes()
    preset = importlib.import_module(f"idumb.agents.{name}").PRESET if name in registry.PRESETS else None

    def report_of(part: bytes) -> Report:
        return heard(name, part) if preset is None else preset.read(part, b"")

    whole = report_of(data)
    for cut in range(0, len(data), max(1, len(data) // 12)):
        report = report_of(data[:cut])
        assert not report.ended or (report.reply, report.error) == (whole.reply, whole.error), cut


def test_recordings_contain_no_path_of_a_machine() -> None:
    text = b"".join(path.read_bytes() for path in PLACE.rglob("*.*") if path.is_file())
    assert b"/tmp/tmp" not in text
    assert b"/root" not in text
