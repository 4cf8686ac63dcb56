"""The actions of a script, expressed with the tools that real clients offer (R-ADAPT-2)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from idumb.agents import model_tools
from idumb.domain.agent import BUILDER
from idumb.domain.model_script import Call
from idumb.fake_model.conversation import Conversation, Schema, Tool, offered_calls, structured_call
from tests.support.cases import every

WRITE = Call("write", {"path": "src/a.txt", "content": "it's\n"})
EDIT = Call("edit", {"path": "a.txt", "old": "one", "new": "two"})
RUN = Call("run", {"command": "make test"})


def tool(name: str, *properties: str, kind: str = "string", required: tuple[str, ...] = ()) -> Tool:
    return Tool(name, Schema({p: {"type": kind} for p in properties}, required))


def conversation(*offered: Tool, system: str = "") -> Conversation:
    return Conversation("m", "do it", 0, offered, text=system)


@every(
    "offered, given",
    [
        (tool("Write", "file_path", "content"), {"file_path": "src/a.txt", "content": "it's\n"}),
        (tool("write", "filePath", "content"), {"filePath": "src/a.txt", "content": "it's\n"}),
        (tool("create", "path", "file_text"), {"path": "src/a.txt", "file_text": "it's\n"}),
    ],
)
def test_each_client_is_called_by_its_own_tool_names(offered: Tool, given: dict[str, Any]) -> None:
    assert offered_calls(WRITE, conversation(offered)) == [(offered.name, given)]


def test_idumb_s_own_tools_get_the_arguments_they_expect() -> None:
    """R-ADAPT-2."""
    rows = [{"name": name, "parameters": model_tools.schema(name)} for name in model_tools.offered(BUILDER)]
    offered = msgspec.convert(rows, list[Tool])
    [(name, given)] = offered_calls(EDIT, conversation(*offered))
    intent = {"intent": "as the script says"}
    assert (name, given) == ("edit_file", {"path": "a.txt", "find": "one", "replace": "two", **intent})
    [(name, given)] = offered_calls(WRITE, conversation(*offered))
    assert (name, given) == ("write_file", {"path": "src/a.txt", "content": "it's\n", **intent})


@every(
    "field, given",
    [
        ({"type": "string"}, "as the script says"),
        ({"type": "string", "enum": ["sync", "async"]}, "sync"),
        ({"type": ["null", "integer"]}, 0),
        (True, "as the script says"),
    ],
)
def test_a_required_argument_that_the_script_lacks_is_of_the_kind_that_the_client_expects(
    field: Any, given: Any
) -> None:
    offered = Tool("bash", Schema({"command": {"type": "string"}, "mode": field}, ("mode",)))
    assert offered_calls(RUN, conversation(offered)) == [("bash", {"command": "make test", "mode": given})]


def test_a_command_is_a_list_if_the_client_expects_one() -> None:
    offered = tool("shell", "command", kind="array")
    assert offered_calls(RUN, conversation(offered)) == [("shell", {"command": ["bash", "-lc", "make test"]})]


def test_a_shell_replaces_missing_tools(tmp_path: Path) -> None:
    [(_, given)] = offered_calls(WRITE, conversation(tool("exec_command", "cmd")))
    assert isinstance(given, dict)
    subprocess.run(["sh", "-c", given["cmd"]], cwd=tmp_path, check=True)
    assert (tmp_path / "src/a.txt").read_text(encoding="utf-8") == "it's\n"
    (tmp_path / "a.txt").write_text("one $1 {\n", encoding="utf-8")
    [(_, given)] = offered_calls(EDIT, conversation(tool("exec_command", "cmd")))
    assert isinstance(given, dict)
    subprocess.run(["sh", "-c", given["cmd"]], cwd=tmp_path, check=True)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "two $1 {\n"


def test_a_client_without_tools_gets_no_tool_calls() -> None:
    assert not any(offered_calls(call, conversation()) for call in (WRITE, EDIT, RUN))


@every(
    "system",
    [
        "<env>\nWorking directory: /home/me/project\nPlatform: linux\n</env>",
        "I'm currently working in the directory: /home/me/project\n",
        "<environment_context><cwd>/home/me/project</cwd></environment_context>",
        "# Environment\n - Primary working directory: /home/me/project\n",
    ],
)
def test_paths_are_below_the_working_folder_of_the_client(system: str) -> None:
    [(_, given)] = offered_calls(WRITE, conversation(tool("Write", "file_path", "content"), system=system))
    assert isinstance(given, dict)
    assert given["file_path"] == "/home/me/project/src/a.txt"


def test_a_structured_reply_uses_the_client_s_tool_for_it() -> None:
    data = {"verdict": "PASS"}
    assert structured_call(data, conversation(tool("final_result", "verdict"))) == ("final_result", data)
    assert structured_call(data, conversation(tool("Write", "content"))) is None
