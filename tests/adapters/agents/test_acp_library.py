"""The client against an agent that is made with the protocol's own library, which checks every message (R-ADAPT-2).

Skips if the library is not installed; `make setup` installs it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from idumb.agents import registry
from idumb.agents.adapter import Equipment
from idumb.domain import outcome
from idumb.domain.agent import BUILDER, AgentRequest
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings

AGENT = """
import asyncio, pathlib
import acp
from acp import schema as s


class Scripted(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **more):
        assert not client_capabilities.terminal and not client_capabilities.fs.write_text_file
        return s.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, **more):
        self.cwd = pathlib.Path(cwd)
        return s.NewSessionResponse(session_id="s-1")

    async def prompt(self, session_id, prompt, **more):
        for name in ("a.txt", "b.txt"):
            path = str(self.cwd / name)
            call = acp.start_edit_tool_call(name, f"Write {name}", path, "made")
            await self.client.session_update(session_id, call)
            options = [s.PermissionOption(option_id=k, name=k, kind=k) for k in ("allow_once", "reject_once")]
            update = s.ToolCallUpdate(tool_call_id=name)
            answer = await self.client.request_permission(session_id, update, options)
            if getattr(answer.outcome, "option_id", "") == "allow_once":
                pathlib.Path(path).write_text(prompt[0].text)
        await self.client.session_update(session_id, acp.update_agent_message_text("Done."))
        usage = s.Usage(total_tokens=15, input_tokens=12, output_tokens=3)
        return s.PromptResponse(stop_reason="end_turn", usage=usage)


asyncio.run(acp.run_agent(Scripted()))
"""


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("acp") is None, reason="agent-client-protocol is not installed")
def test_an_agent_built_with_the_library_is_understood_and_vetoed(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(AGENT, encoding="utf-8")
    root = tmp_path / "work"
    root.mkdir()
    folder = next(iter(importlib.util.find_spec("acp").submodule_search_locations or ()))  # type: ignore[union-attr]
    argv = ("/usr/bin/env", f"PYTHONPATH={os.path.dirname(folder)}", sys.executable, str(script))
    settings = Settings(bindings={"one": Binding("one", "acp", argv)})
    agents = registry.build(Equipment(settings, str(root), lambda *_: (False, ""), str))
    task = plan.Task("T1-01", "Work", files=(plan.FileClaim("create", "a.txt"),))
    request = AgentRequest(BUILDER, task, "the prompt", str(root), ("a.txt",), deadline=60.0, run_id="r")
    result = agents.get("one").run(request)
    assert (result.outcome, result.reply) == (outcome.COMPLETED, "Done."), result
    written = {p.name: p.read_text(encoding="utf-8").partition("\n")[0] for p in root.iterdir()}
    assert written == {"a.txt": "the prompt"}
    assert [step.ok for step in result.steps] == [True, False]
    assert (result.usage.tokens_in, result.usage.tokens_out) == (12, 3)
