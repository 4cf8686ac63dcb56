"""The known agents of the Agent Client Protocol: how each is started, and what its home holds (R-ADAPT-2)."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from idumb.agents import acp, registry
from idumb.agents.adapter import Equipment
from idumb.agents.known_agent import ROWS, Call
from idumb.domain import outcome
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.permissions import SandboxSettings
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from tests.support import acp_agent, programs
from tests.support.cases import every
from tests.support.equipment import equipped

REQUEST = AgentRequest(BUILDER, plan.Task("T1-01", "Work"), "the prompt", "", (), deadline=30.0, run_id="r")


def as_one(name: str, folder: Path, *script: str, role: str = BUILDER, **of_request: Any) -> AgentResult:
    """The answer of an agent that a script plays, after it noted its arguments and its variables."""
    played = shlex.join([sys.executable, acp_agent.__file__, *script])
    seen = f'env > {folder}/seen\nfind "$HOME" -name "*.json" -exec cat {{}} + > {folder}/settings'
    given = f'for a in "$@"; do echo "$a"; done > {folder}/arguments'
    program = programs.script(folder / "bin" / name, f"{given}\n{seen}\nexec {played}")
    (folder / "work").mkdir(exist_ok=True)
    return acp.AcpAgent(
        Binding("it", name, (str(program),), options={"shell": True}, model="big"), equipment(folder)
    ).run(replace(REQUEST, role=role, workspace=str(folder / "work"), **of_request))


def equipment(folder: Path) -> Equipment:
    seen = {"PATH": os.environ["PATH"]}
    return equipped(folder / "work", environment=lambda _: seen, unpacked=str(folder / "unpacked"))


def test_the_registry_names_every_row() -> None:
    assert set(registry.SPEAKERS) == set(ROWS)


@every("name", ROWS)
def test_each_agent_is_started_in_its_protocol_with_its_model_and_a_home_of_its_own(name: str, tmp_path: Path) -> None:
    result = as_one(name, tmp_path, "say", "Done.")
    assert (result.outcome, result.reply) == (outcome.COMPLETED, "Done.")
    given = (tmp_path / "arguments").read_text(encoding="utf-8").split()
    assert given[: len(ROWS[name].argv) - 1] == list(ROWS[name].argv[1:])
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text(encoding="utf-8").splitlines())
    settings = (tmp_path / "settings").read_text(encoding="utf-8")
    assert not os.path.exists(seen["HOME"])
    assert "big" in given or "big" in settings or "big" in seen.values()


def test_opencode_is_told_to_ask_before_it_writes() -> None:
    """R-ADAPT-2: by default it allows everything."""
    for shell in (True, False):
        (settings,) = ROWS["opencode"].files(Call(model="m", shell=shell)).values()
        assert settings["permission"]["edit"] == "ask"
        assert settings["permission"]["bash"] == ("ask" if shell else "deny")
        assert settings["experimental"] == {"continue_loop_on_deny": True}
    in_mine = ROWS["opencode"].variables(Call(model="m"))
    assert json.loads(in_mine["OPENCODE_CONFIG_CONTENT"])["permission"]["edit"] == "ask"


@every("vendor, package", [("OPENAI", "@ai-sdk/openai-compatible"), ("ANTHROPIC", "@ai-sdk/anthropic")])
def test_opencode_gets_another_server_with_its_model(vendor: str, package: str) -> None:
    (settings,) = ROWS["opencode"].files(Call(model="m", environment={f"{vendor}_BASE_URL": "http://x"})).values()
    assert settings["provider"]["endpoint"]["npm"] == package
    assert settings["model"] == "endpoint/m"


def test_agents_that_end_their_turn_at_a_veto_have_no_tool_that_would_meet_one() -> None:
    """A validator that tries to write goes on, and gives its verdict."""
    (settings,) = ROWS["opencode"].files(Call(writes=False, shell=True)).values()
    assert settings["permission"]["edit"] == "deny"
    hidden = [ROWS["copilot"].arguments(Call(writes=writes, shell=not writes)) for writes in (True, False)]
    assert hidden == [("--excluded-tools=bash",), ("--excluded-tools=create", "--excluded-tools=edit")]


def test_copilot_finds_folders_of_declared_files(tmp_path: Path) -> None:
    """R-ADAPT-2: Copilot writes no file into a folder that does not exist."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "old").mkdir(parents=True)
    outside.mkdir()
    (work / "link").symlink_to(outside)
    (work / "file").write_bytes(b"")
    declared = ("new/deep/a.txt", "new/other/b.txt", "old/c.txt", "link/d/e.txt", "file/f.txt", "glob/*/g.txt", "t.txt")
    look = "find . -mindepth 1 -type d | sort > seen; echo x > new/deep/a.txt"
    assert as_one("copilot", tmp_path, "run", look, allowed_paths=declared).outcome == outcome.COMPLETED
    assert (work / "seen").read_text(encoding="utf-8").split() == ["./new", "./new/deep", "./new/other", "./old"]
    assert list(outside.iterdir()) == []
    as_one("copilot", tmp_path, "run", "find . -type d > seen", role=VALIDATOR, allowed_paths=("more/h.txt",))
    assert "more" not in (work / "seen").read_text(encoding="utf-8")


def test_homes_share_what_copilot_unpacks(tmp_path: Path) -> None:
    """R-ADAPT-2: the unpacked files are 240 MB, and a judging role has a new home each time."""
    script = 'echo "$COPILOT_PKG_CACHE_HOME" >> seen; test -d "$COPILOT_PKG_CACHE_HOME" && echo there >> seen'
    for role in (BUILDER, VALIDATOR):
        as_one("copilot", tmp_path, "run", script, role=role)
    shared = str(tmp_path / "unpacked/copilot")
    assert (tmp_path / "work/seen").read_text(encoding="utf-8").split() == [shared, "there"] * 2


@every("role, folder", [(BUILDER, "copilot"), (VALIDATOR, "copilot-judging")])
def test_in_a_sandbox_judging_roles_unpack_apart_from_builders(tmp_path: Path, role: str, folder: str) -> None:
    """What a builder changed there would judge its own work."""
    in_sandbox = replace(equipment(tmp_path), settings=Settings(sandbox=SandboxSettings()))
    shared = acp.AcpAgent(Binding("it", "copilot"), in_sandbox)._shared(replace(REQUEST, role=role))
    assert [os.path.basename(place) for place in shared.values()] == [folder]
