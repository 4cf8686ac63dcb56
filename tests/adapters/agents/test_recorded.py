"""Recorded output of real agents, parsed again: two versions of each, six failures and a success (R-ADAPT-2)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

from idumb.agents import registry
from idumb.agents.answers import Report
from idumb.agents.presets.preset import Preset
from idumb.domain import agent
from tests.support.cases import every

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
    for name in registry.PRESETS:
        yield from sorted((PLACE / name).iterdir())


def recordings(*scenes: str) -> list[Path]:
    return [place / f"{scene}.out" for place in versions() for scene in scenes]


def read(place: Path) -> Report:
    preset: Preset = importlib.import_module(f"idumb.agents.presets.{place.parts[-3]}").PRESET
    return preset.read(place.read_bytes(), place.with_suffix(".err").read_bytes())


def shown(place: Path) -> str:
    return "-".join((*place.parts[-3:-1], place.stem))


def exit_code(place: Path) -> int | None:
    exit_status: int | None = json.loads((place.parent / "exits.json").read_text(encoding="utf-8"))[place.stem]["exit"]
    return exit_status


def test_two_versions_of_each_are_recorded() -> None:
    names = [place.parts[-2] for place in versions()]
    assert {name: names.count(name) for name in registry.PRESETS} == dict.fromkeys(registry.PRESETS, 2)


@every("place", recordings("success"))
def test_a_success_has_reply_session_and_usage(place: Path) -> None:
    report = read(place)
    assert (report.reply, report.ended, report.error, report.failure) == ("The greeting is written.", True, "", None)
    assert report.session
    assert report.usage.tokens_out is not None or place.parts[-3] == "copilot"  # newer ones tell of no tokens
    assert exit_code(place) == 0


@every("place", recordings("denied"))
def test_a_refused_permission_is_not_a_failure_of_the_agent(place: Path) -> None:
    """The agent skips the denied action, says so and ends normally; its claim is judged by the files."""
    report = read(place)
    assert (report.reply, report.failure) == ("It was not permitted.", None)
    if place.parts[-3] in {"claude", "copilot"}:
        assert report.denied


@every("place", recordings(*KINDS))
def test_the_kind_of_a_failure_does_not_depend_on_the_exit_code(place: Path) -> None:
    report = read(place)
    if (place.parts[-3], place.stem) in SILENT and exit_code(place) is None:
        assert not report.ended or report.error
        return
    assert report.failure in KINDS[place.stem], report
    assert report.error


def test_a_server_error_is_recognized_with_exit_code_zero() -> None:
    assert {place.parts[-3] for place in recordings("unauthorized") if exit_code(place) == 0} == {"opencode", "qwen"}


@every("place", recordings("success", *KINDS))
def test_a_report_cut_at_any_line_is_read_safely(place: Path) -> None:
    data = place.read_bytes()
    preset: Preset = importlib.import_module(f"idumb.agents.presets.{place.parts[-3]}").PRESET
    whole = preset.read(data, b"")
    for cut in range(0, len(data), max(1, len(data) // 40)):
        report = preset.read(data[:cut], b"")
        assert not report.ended or (report.reply, report.error) == (whole.reply, whole.error), cut


def test_recordings_contain_no_path_of_a_machine() -> None:
    text = b"".join(path.read_bytes() for path in PLACE.rglob("*.*") if path.is_file())
    assert b"/tmp/tmp" not in text
    assert b"/root" not in text
