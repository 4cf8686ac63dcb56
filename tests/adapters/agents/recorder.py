"""Takes recordings of a real agent: `python -m tests.adapters.agents.recorder NAME PROGRAM`.

The agent is started as the adapter starts it, against the scripted model, in a network of its own that knows no other
host. What it printed goes to `recorded/PRESET/VERSION/`, with neutral names for folders and addresses.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from msgspec.structs import replace

from idumb.agents import acp, registry
from idumb.agents.acp_client import Client
from idumb.agents.adapter import Equipment
from idumb.agents.answers import Report
from idumb.agents.known_agent import Preset
from idumb.agents.preset_agent import PresetAgent
from idumb.agents.program import installed_version
from idumb.domain.agent import BUILDER, AgentRequest, AgentResult
from idumb.domain.plans import plan
from idumb.domain.settings import Binding
from tests.support import gemini_protocol
from tests.support.equipment import equipped
from tests.support.fake_model import serving

PLACE = Path(__file__).parent / "recorded"
ALONE = "IDUMB_RECORDER_ALONE"
PROMPT = "Write the greeting."
SCENES: Mapping[str, str] = {
    "success": """answers:
  - write: {path: greeting.txt, content: "hello\\n"}
  - {say: "The greeting is written.", tokens: {in: 1200, out: 30}}""",
    "denied": """answers:
  - tool: {name: TOOL, arguments: {ARGUMENT: "../outside.txt", CONTENT: "x\\n"}}
  - {say: "It was not permitted."}""",
    "unauthorized": "answers: [{fault: unauthorized}, {fault: unauthorized}]",
    "rate-limited": "answers: [{fault: rate-limited}, {fault: rate-limited}]",
    "server-error": "answers: [{fault: server-error}, {fault: server-error}]",
    "context": "answers: [{fault: context}, {fault: context}]",
    "closed-port": "",
}
TOOLS: Mapping[str, tuple[str, str, str]] = {
    "claude": ("Write", "file_path", "content"),
    "gemini": ("write_file", "file_path", "content"),
    "qwen": ("write_file", "file_path", "content"),
    "copilot": ("create", "path", "file_text"),
    "opencode": ("write", "filePath", "content"),
}
SHELL = """answers:
  - run: echo x > ../outside.txt
  - {say: "It was not permitted."}"""
ADDRESSES: Mapping[str, Mapping[str, str]] = {
    "claude": {"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": "k"},
    "codex": {"OPENAI_BASE_URL": "/v1", "OPENAI_API_KEY": "k"},
    "gemini": {"GOOGLE_GEMINI_BASE_URL": "", "GEMINI_API_KEY": "k"},
    "qwen": {"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": "k"},
    "copilot": {
        "COPILOT_PROVIDER_BASE_URL": "",
        "COPILOT_PROVIDER_API_KEY": "k",
        "COPILOT_PROVIDER_TYPE": "=anthropic",
    },
    "opencode": {"ANTHROPIC_BASE_URL": "/v1", "ANTHROPIC_API_KEY": "k"},
}
MODELS = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}


def variables(name: str, address: str) -> dict[str, str]:
    """Return the variables that give the agent its server and key."""
    known = ADDRESSES[name].items()
    return {k: "dummy" if v == "k" else v[1:] if v.startswith("=") else address + v for k, v in known}


def rule(name: str, scene: str) -> str:
    if scene != "denied":
        return SCENES[scene]
    if name not in TOOLS:
        return SHELL
    tool, argument, content = TOOLS[name]
    return SCENES[scene].replace("TOOL", tool).replace("ARGUMENT", argument).replace("CONTENT", content)


def record(name: str, program: str) -> None:
    folder = PLACE / name / installed_version(program)
    folder.mkdir(parents=True, exist_ok=True)
    recordings = {}
    for scene in sys.argv[3:] or SCENES:
        with tempfile.TemporaryDirectory() as place:
            result, printed = _run(name, program, scene, Path(place))
        output, errors = (neutral(data) for data in printed)
        (folder / f"{scene}.out").write_bytes(output)
        (folder / f"{scene}.err").write_bytes(errors)
        recordings[scene] = {"exit": result.exit_code, "cause": result.cause}
        print(scene, result.outcome, result.failure, result.exit_code, f"{result.seconds:.1f} s", result.message[:300])  # noqa: T201
    index = folder / "exits.json"
    exits = json.loads(index.read_text(encoding="utf-8")) if index.exists() else {}
    index.write_text(json.dumps({**exits, **recordings}, indent=1) + "\n", encoding="utf-8")


def _run(name: str, program: str, scene: str, place: Path) -> tuple[AgentResult, tuple[bytes, bytes]]:
    work = place / "project"
    work.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    more = gemini_protocol.FORMATS if name == "gemini" else {}
    with serving(rule(name, scene) or "answers: [{say: x}]", more=more) as served:
        address = served.address if scene != "closed-port" else "http://127.0.0.1:9"
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables(name, address)}
        binding = Binding("it", name, (program,), model=MODELS.get(name, "fake-model"))
        equipment = equipped(work, environment=lambda _: environment)
        request = AgentRequest(
            BUILDER, plan.Task("T1-01", "Greet"), PROMPT, str(work), ("greeting.txt",), deadline=90, idle_timeout=45
        )
        result, printed = (_by_protocol if name in registry.SPEAKERS else _by_report)(binding, equipment, request)
        print([(n.get("path"), n.get("rule"), n.get("calls"), n.get("status")) for n in served.notes][:6])  # noqa: T201
    print(sorted(p.name for p in work.iterdir() if p.name != ".git"), (place / "outside.txt").exists())  # noqa: T201
    return result, (_shorter(printed[0]), printed[1])


def _by_protocol(
    binding: Binding, equipment: Equipment, request: AgentRequest
) -> tuple[AgentResult, tuple[bytes, bytes]]:
    """What an agent of the protocol sent; its standard error is not recorded."""
    sent: list[bytes] = []

    class Recorded(Client):
        def heard(self, data: bytes) -> bytes:
            sent.append(data)
            return super().heard(data)

    with patch.object(acp, "Client", Recorded):
        result = acp.AcpAgent(binding, equipment).run(request)
    return result, (b"".join(sent), b"")


def _by_report(
    binding: Binding, equipment: Equipment, request: AgentRequest
) -> tuple[AgentResult, tuple[bytes, bytes]]:
    preset: Preset = importlib.import_module(f"idumb.agents.{binding.adapter}").PRESET
    printed = (b"", b"")

    def read(output: bytes, errors: bytes) -> Report:
        nonlocal printed
        printed = (output, errors)
        return preset.read(output, errors)

    result = PresetAgent(binding, equipment, replace(preset, read=read)).run(request)
    return result, printed


def _shorter(output: bytes) -> bytes:
    """Remove long lists of tools and commands: they do not affect how a report is read."""
    lines = []
    for line in output.splitlines(keepends=True):
        try:
            message = json.loads(line)
        except ValueError:
            lines.append(line)
            continue
        lines.append(json.dumps(_cut(message), ensure_ascii=False).encode() + b"\n")
    return b"".join(lines)


def _cut(value: object) -> object:
    if isinstance(value, dict):
        return {key: _cut(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_cut(entry) for entry in value[:3]]
    return value[:2000] if isinstance(value, str) else value


def neutral(data: bytes) -> bytes:
    """Replace folders, addresses and ports of this machine by neutral names."""
    data = re.sub(rb"/(?:tmp|var/tmp)/tmp\w+/project", b"/home/me/project", data)
    data = re.sub(rb"/(?:tmp|var/tmp)/tmp\w+", b"/home/me", data)
    data = re.sub(rb"(?:/[\w.@-]+)+/node_modules", b"/usr/lib/node_modules", data)
    data = re.sub(rb"-tmp-tmp\w+", b"-home-me", data)
    data = re.sub(rb"^ +at .*\n", b"", data, flags=re.MULTILINE)
    return re.sub(rb"127\.0\.0\.1:\d{4,5}", b"127.0.0.1:8901", data)


if __name__ == "__main__":
    if ALONE not in os.environ:
        module = ["-m", "tests.adapters.agents.recorder", *sys.argv[1:]]
        inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *module]
        sys.exit(subprocess.run(["unshare", "-n", *inside], env={**os.environ, ALONE: "1"}, check=False).returncode)
    record(sys.argv[1], sys.argv[2])
