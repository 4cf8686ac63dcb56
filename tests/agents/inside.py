"""Runs one `idumb` command beside a scripted model: `python -m tests.agents.inside FOLDER AGENT RULES COMMAND...`.

RULES is a file of JSON, a list of rules in YAML; or a script in Markdown, which `idumb fake-model` then serves at PORT.
Prints one object: exit code, both outputs, what the model was asked, and how often something looked for another host.
It is started in a network of its own, so that nothing that it starts can reach one.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.adapters.agents.recorder import variables
from tests.support import gemini_protocol
from tests.support.fake_model import serving

PORT = 8901
ADDRESS = f"http://127.0.0.1:{PORT}"
"""Of each scripted model, and of none: consent to Codex names the address."""
_IDUMB = (sys.executable, "-m", "idumb")


def run(folder: str, agent: str, rules: str, command: list[str]) -> dict[str, object]:
    more = gemini_protocol.FORMATS if agent == "gemini" else {}
    with _served(Path(rules), more) as notes:
        environment = {**os.environ, **variables(agent, ADDRESS)}
        done = subprocess.run(
            [*_IDUMB, *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "asked": notes, "unrouted": _unrouted()}


@contextlib.contextmanager
def _served(rules: Path, more: Mapping[str, ModuleType]) -> Iterator[list[Mapping[str, Any]]]:
    """The requests of the model, complete after it has ended. Without a rule nobody listens."""
    if rules.suffix == ".md":
        with _program(rules) as notes:
            yield notes
    elif given := json.loads(rules.read_text(encoding="utf-8")):
        with serving(*given, port=PORT, more=more) as served:
            yield served.notes
    else:
        yield []


@contextlib.contextmanager
def _program(script: Path) -> Iterator[list[Mapping[str, Any]]]:
    notes: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        log = Path(place, "asked.jsonl")
        command = [*_IDUMB, "fake-model", "--script", str(script), "--port", str(PORT), "--log", str(log), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                assert json.loads(server.stdout.readline())["data"]["address"] == ADDRESS
                yield notes
            finally:
                server.terminate()
        notes += [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def _unrouted() -> int:
    """How many packets, names to be looked up among them, had no way out of this network."""
    lines = Path("/proc/net/snmp").read_text(encoding="utf-8").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Ip:"))
    return int(values[names.index("OutNoRoutes")])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])))
