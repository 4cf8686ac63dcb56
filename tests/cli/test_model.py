"""Models behind servers: a builder that is one, and `idumb fake-model` (R-ADAPT-1, R-ADAPT-2)."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from idumb.cli import main
from tests.adapters.agents.fake_model.conversations import ALL
from tests.support import project as projects
from tests.support import seed
from tests.support.fake_model import Served, serving
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import task
from tests.support.schemas import validator


def by_model(address: str, model: str) -> str:
    options = f"options: {{base_url: '{address}/v1'}}"
    return f"builder: one\nbindings: {{one: {{adapter: model, model: 'openai:{model}', {options}}}}}\n"


def test_an_unknown_model_costs_no_attempt_and_the_run_continues_after_the_fix(
    sandbox: GitSandbox,
) -> None:
    """R-ADAPT-1, R-ADAPT-2."""
    project = projects.create(sandbox)
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q made a.txt")])
    with serving("answers: [{fault: unknown-model}]") as refusing:
        project.configure(by_model(refusing.address, "nonsense"))
        answer = run(project)
    assert (answer.code, answer.error["details"]["failure"]) == (1, "unknown-model")
    assert "Correct or omit `model` in .idumb/config.yaml, then idumb execute-phase 1" in answer.error["message"]
    assert answer.error["hint"] == "idumb execute-phase 1"
    wants = "when: T1-01\ntools: true\nanswers: [{write: {path: a.txt, content: made}}, {say: Done.}]"
    with serving(wants) as served:
        project.configure(by_model(served.address, "fake-model"))
        again = run(project, "--no-verify")
        assert again.code == 0, again
    assert project.read("a.txt") == "made"


SCRIPT = "# Hello\n\n```yaml model\nanswers: [{say: hello}]\n```\n"


@pytest.mark.parametrize("number", seed.one_on_a_push([signal.SIGTERM, signal.SIGINT], "a signal"))
def test_fake_model_prints_its_address_serves_and_stops_on_request(tmp_path: Path, number: int) -> None:
    (tmp_path / "hello.md").write_text(SCRIPT, encoding="utf-8")
    program = [sys.executable, "-m", "idumb", "fake-model", "--script", "hello.md", "--log", "log.jsonl", "--json"]
    process = subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    answer = json.loads(process.stdout.readline())
    validator("fake-model").validate(answer["data"])
    address = answer["data"]["address"]
    assert ALL[0].text(Served(address).ask("/v1/messages", ALL[0].body("hi", 0))) == "hello"
    process.send_signal(number)
    assert process.communicate(timeout=20)[0] == ""
    assert process.returncode == 0
    [entry] = map(json.loads, (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines())
    assert (entry["path"], entry["rule"]) == ("/v1/messages", "Hello")
    assert stat.S_IMODE((tmp_path / "log.jsonl").stat().st_mode) == 0o600


def test_fake_model_reports_what_it_cannot_start_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.md").write_text("```yaml model\nanswer: x\n```\n", encoding="utf-8")
    for arguments, code, says in (
        (["--script", "none.md"], 3, "script.unreadable"),
        (["--script", "bad.md"], 3, "bad.md:2: "),
        (["--log", "none/log"], 4, "fake-model.log"),
    ):
        assert main.run(["fake-model", *arguments]) == code
        assert says in capsys.readouterr().err
