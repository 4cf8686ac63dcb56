"""The session of README.md does what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.meta import source

PAGE = (source.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_session_of_the_readme_can_be_pasted(tmp_path: Path) -> None:
    """R-RUN-1, R-PLAN-1: from an empty folder to a verified phase."""
    (pasted,) = re.findall(r"^````sh\n(.*?)^````$", PAGE, re.DOTALL | re.MULTILINE)
    program = tmp_path / "bin" / "idumb"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m idumb "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    who = "git config --global user.name Jo; git config --global user.email jo@example.org; set -e"
    shell = f"{who}; PATH={program.parent}:$PATH; export PYTHONPATH={source.ROOT}; cd {tmp_path}\n{pasted}"
    command = 'idumb execute-phase 1 --approve "$(idumb check-plan 1 | sed -n "s/^  contract //p")" --json'
    done = subprocess.run(["sh", "-c", f"{shell}\n{command}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.partition("asks)\n")[2])["data"]["verification"]["status"] == "passed"
    assert (tmp_path / "hello" / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
