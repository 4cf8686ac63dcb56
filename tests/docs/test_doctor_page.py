"""docs/doctor.md lists the checks that the program makes, in no particular order."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

PAGE = (Path(__file__).resolve().parents[2] / "docs/doctor.md").read_text(encoding="utf-8")


def test_the_table_has_exactly_one_row_per_check(sandbox: GitSandbox) -> None:
    answer = Project(sandbox, sandbox.root).quick("doctor", "--json")
    codes = {check["code"] for check in json.loads(answer.out)["data"]["checks"]}
    assert set(re.findall(r"^\| `([a-z.-]+)` \|", PAGE, re.MULTILINE)) == codes
