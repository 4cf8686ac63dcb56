"""Real agents, installed from the npm registry into a folder that is kept, and commands run with no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.agents import recorder
from tests.support.project import Project

ROOT = Path(__file__).parents[2]
KEPT = Path(os.environ.get("IDUMB_TEST_AGENTS", ROOT / ".venv" / "agents"))
PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.169.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "opencode": "opencode-ai@1.18.33",
    "copilot": "@github/copilot@1.0.102",
    "qwen": "@qwen-code/qwen-code@0.15.10",
}
"""The newest that run on Node 20."""
ACP = "claude-agent-acp"
NEWER_ACP = "claude-agent-acp-049"
ACP_PACKAGES = {
    ACP: "@zed-industries/claude-agent-acp@0.23.1",
    NEWER_ACP: "@agentclientprotocol/claude-agent-acp@0.49.0",
}
"""Claude Code over the Agent Client Protocol, under its older and its newer name."""
KEYS = {name: tuple(known) for name, known in recorder.ADDRESSES.items()}
MODELS = {name: recorder.MODELS.get(name, "fake-model") for name in PACKAGES}
_LOOPBACK_ONLY = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


@dataclass(frozen=True, slots=True)
class Ended:
    """`asked` are the notes of the scripted model, one a request; `unrouted` counts packets to other hosts."""

    code: int
    out: str
    err: str
    asked: list[dict[str, Any]]
    unrouted: int

    @property
    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out)
        return answer


def program(name: str) -> str:
    """Return the path of an agent's program; install it if it is missing, or skip the test."""
    folder = KEPT / name
    place = folder / "node_modules" / ".bin" / (ACP if name in ACP_PACKAGES else name)
    if not place.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        package = {**PACKAGES, **ACP_PACKAGES}[name]
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            pytest.skip(f"npm could not install {package}: {done.stderr[-300:]}")
    return str(place)


def configure(project: Project, name: str, more: dict[str, Any] | None = None, **of_binding: Any) -> None:
    """Return a configuration in which the agent builds everything; `more` are settings beside its binding."""
    if name == "codex" and project.folder.is_relative_to("/dev"):
        pytest.skip("the sandbox of Codex has a /dev of its own: set TMPDIR to a folder elsewhere")
    binding = {"adapter": name, "argv": [program(name)], "model": MODELS[name], "environment": list(KEYS[name])}
    settings = {"builder": "real", "bindings": {"real": {**binding, **of_binding}}, **(more or {})}
    project.configure(json.dumps(settings))


def configure_acp(project: Project, name: str = ACP, more: dict[str, Any] | None = None) -> None:
    """Return a configuration in which Claude Code builds everything over the Agent Client Protocol."""
    names = [*KEYS["claude"], "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
    binding = {"adapter": "acp", "argv": [program(name)], "model": MODELS["claude"], "environment": names}
    project.configure(json.dumps({"builder": "real", "bindings": {"real": binding}, **(more or {})}))


def alone(project: Project, name: str, rules: Sequence[str] | Path, *command: str) -> Ended:
    """Run an idumb command beside a scripted model, in a network that knows no other host.

    `rules` may be a script in Markdown, which `idumb fake-model` serves at 127.0.0.1:8901.
    """
    file = rules if isinstance(rules, Path) else project.folder.parent / "rules.json"
    if not isinstance(rules, Path):
        file.write_text(json.dumps(list(rules)), encoding="utf-8")
    inside = [sys.executable, "-m", "tests.agents.inside", str(project.folder), name, str(file), *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*_prefix(), *inside], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return Ended(**json.loads(done.stdout))


def _prefix() -> list[str]:
    tried = subprocess.run([*_LOOPBACK_ONLY, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("this user may not make a network of its own (unshare -n)")
    return _LOOPBACK_ONLY
