"""Runs one `idumb` command beside a scripted model: `python -m tests.agents.inside FOLDER AGENT RULES COMMAND...`.

RULES is a file of JSON, a list of rules in YAML. Prints one object: exit code, both outputs, and what the model was
asked. It is started in a network of its own, so that nothing that it starts can reach another host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.adapters.agents.recorder import variables
from tests.support.fake_model import serving

CLOSED = "closed-port"
NOWHERE = "http://127.0.0.1:9"


def run(folder: str, agent: str, rules: str, command: list[str]) -> dict[str, object]:
    given = json.loads(Path(rules).read_text(encoding="utf-8"))
    with serving(*(given or ["answers: [{say: nobody asks}]"])) as served:
        address = served.address if given else NOWHERE
        program = [sys.executable, "-m", "idumb", *command]
        environment = {**os.environ, **variables(agent, address)}
        done = subprocess.run(
            program, cwd=folder, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "asked": list(served.notes)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])))
