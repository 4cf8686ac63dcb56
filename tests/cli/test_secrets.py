"""Known secrets are in nothing that idumb stores, prints or notifies, and enter no commit unasked (R-LOG-3)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash import secrets
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, making, task, write

VALUE = "hunter-Zq81xWvT-2"
TOKEN = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"


def bound(project: Project, *files: tuple[str, str], commits: bool = False, more: str = "") -> None:
    """A builder `maker` that writes these files, with the secret in place of VALUE, and may commit each of them."""
    lines = []
    for path, text in files:
        place = f'"{path.replace("VALUE", "$API_TOKEN")}"'
        written = text.replace("VALUE", "$API_TOKEN")
        lines.append(f'mkdir -p "$(dirname {place})"')
        lines.append(f'printf %s "{written}" > {place}')
        lines += ["git add -A .", "git commit -q -m work"] if commits else []
    made_by(project, "\n".join(("set -e", *lines)), more)


def made_by(project: Project, script: str, more: str = "") -> None:
    """A builder `maker` that runs a shell script, with the secret in a variable."""
    argv = json.dumps(["sh", "-c", script])
    project.configure(f"{more}bindings:\n  maker: {{adapter: command, argv: {argv}, environment: [API_TOKEN]}}\n")


def built(id: str = "T1-01", files: str = "create `a.py`", check: str = "test -f a.py") -> str:
    return task(id, files=files, check=check, fields="- **Builder:** maker\n")


@pytest.fixture
def project(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A value of an agent's variable is a known secret for every builder."""
    monkeypatch.setenv("API_TOKEN", VALUE)
    return projects.create(sandbox)


def _asking(sandbox: GitSandbox) -> Project:
    """The run waits for an answer about a value in a file."""
    project = projects.create(sandbox)
    bound(project, ("a.py", "import os\n\nkey = 'VALUE'\n"))
    project.plan([built()])
    waits = run(project)
    assert waits.code == 5, waits.out
    assert VALUE not in waits.out + waits.err
    return project


@pytest.fixture
def asking(project: Project, prepared: Prepared) -> Project:
    return prepared.get(_asking)


def _named(sandbox: GitSandbox) -> Project:
    """The only attempt failed, because it left a file with the secret in its name."""
    project = projects.create(sandbox)
    bound(project, ("out/VALUE.txt", "x\n"))
    project.plan([built(files="create `out/*.txt`", check="true")])
    failed = run(project, "--max-attempts", "1", "--no-verify")
    assert failed.code == 1, failed.out
    assert "the names of files hold a known secret" in failed.out
    assert VALUE not in failed.out + failed.err
    return project


@pytest.fixture
def named(project: Project, prepared: Prepared) -> Project:
    return prepared.get(_named)


def shown(
    project: Project, *secret: str, answers: tuple[Answer, ...] = (), theirs: frozenset[bytes] = frozenset()
) -> list[str]:
    """Return the places that contain one of these secrets: all output, and everything that idumb stores."""
    theirs |= {path.read_bytes() for path in (project.folder / ".planning").rglob("*-PLAN.md")}
    sinks = {f"answer {number}": f"{one.out}\n{one.err}".encode() for number, one in enumerate(answers)}
    sinks |= dict(secrets.kept(project, theirs))
    return [name for name, data in sinks.items() if any(one.encode() in data for one in secret)]


def asked_of(project: Project) -> list[Answer]:
    """Return the output of every read-only command."""
    commands = ("show T1-01", "show T1-01 --json", "log", "status", "status --json", "next", "decisions", "dlq list",
                "check-plan 1", "show T1-01 --debug --facts-only", "show T1-01 --envelope", "graph 1",
                "audit verify")  # fmt: skip
    return [
        project.quick(*line.split())
        for line in (*commands, "log --json --limit 100000", "show 1 --usage", "show T1-01 --diff")
    ]


def test_a_check_and_a_title_with_a_secret_are_redacted_everywhere_and_the_run_continues(project: Project) -> None:
    """R-LOG-3: values that are compared later, plans and contract, are unchanged."""
    first = task("T1-01", files="create `a.txt`", check=f"test -f a.txt # {VALUE}", steps=[write("a.txt", "a\n")])
    check = f"echo {TOKEN} {VALUE} >&2; test -f ok.txt"
    second = task("T1-02", files="create `b.txt`", check=check, after="T1-01", steps=[write("b.txt", "b\n")])
    bound(project)
    plan = project.plan([first.replace("Task T1-01", f"Use {VALUE}"), second])
    failed = run(project, "--max-attempts", "1")
    assert failed.code == 1
    assert shown(project, VALUE, TOKEN, answers=(failed, *asked_of(project))) == []
    evidence = [event["payload"] for event in project.events("--kind", "evidence.recorded")]
    assert [one["result"] for one in evidence] == ["passed", "failed"]
    assert ["[redacted:value:" in one["command"] for one in evidence] == [True, True]
    assert "[redacted:github:" in evidence[1]["command"]
    project.repo.commit_with({"ok.txt": ""}, "ok", "ok.txt")
    resumed = project.quick("resume", "1", "--retry-failed", "--no-verify", "--json")
    assert resumed.code == 0, resumed.out
    assert any("Use [redacted:value:" in subject for subject in project.subjects())
    assert VALUE in plan.read_text()
    assert project.quick("doctor", "--fix", "--json").data["fixed"] == []  # documents match the log
    again = project.quick("rollback", "1", "--to", "T1-01", "--yes")
    assert again.code == 0, again.err
    assert shown(project, VALUE, TOKEN, answers=(resumed, again, *asked_of(project))) == []


def test_with_an_unreadable_configuration_variables_are_hidden_by_name(project: Project) -> None:
    """R-LOG-3: what cannot be read names no variables, so those count whose own names do."""
    Path(project.folder, ".idumb/config.yaml").write_text("bindings: [\n")
    answer = project.quick("show", VALUE)
    assert answer.code != 0
    assert VALUE not in answer.out + answer.err


def test_a_secret_in_a_file_waits_for_a_person_before_it_is_committed(asking: Project) -> None:
    """R-LOG-3: the question names file, line and variable; yes commits, and undo commits it again."""
    project = asking
    decisions = project.quick("decisions", "--json").data["decisions"]
    assert [(d["id"], d["kind"], d["evidence"]) for d in decisions] == [
        ("T1-01.secret.1", "secret", ["a.py:3: the value of API_TOKEN"])
    ]
    assert project.repo.git("log", "--format=%H", "--", "a.py") == ""
    theirs = frozenset([f"import os\n\nkey = '{VALUE}'\n".encode()])
    assert shown(project, VALUE, answers=tuple(asked_of(project)), theirs=theirs) == []
    assert not project.exists("a.py")
    assert project.quick("decide", "T1-01.secret.1", "yes").code == 0
    gone_on = project.quick("resume", "1", "--no-verify", "--json")
    assert gone_on.code == 0, gone_on.out
    assert VALUE in project.repo.git("show", "HEAD:a.py", "HEAD~1:a.py")
    assert VALUE not in gone_on.out + gone_on.err
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.quick(*project.undoing()).code == 0
    assert VALUE in project.repo.git("show", "HEAD:a.py")


@pytest.mark.nightly
def test_answering_no_fails_the_attempt_and_instructs_the_next_one(asking: Project) -> None:
    """R-LOG-3."""
    project = asking
    assert project.quick("decide", "T1-01.secret.1", "no", "--guidance", "it belongs to the vault").code == 0
    again = project.quick("resume", "1", "--max-attempts", "2", "--json")
    assert again.code == 5, again.out  # the second attempt left the same, and is asked about
    finished = next(e for e in project.events("--kind", "attempt.finished") if e["payload"]["outcome"] == "failed")
    assert "it belongs to the vault" in finished["payload"]["feedback"]
    assert "read it from the variable" in finished["payload"]["feedback"]
    assert "Task T1-01" not in project.subjects()


@pytest.mark.nightly
def test_a_secret_is_accepted_only_after_a_person_committed_it_himself(project: Project) -> None:
    """R-LOG-3."""
    bound(project, ("a.py", "VALUE\n"))
    project.plan([built(check="false")])
    assert run(project, "--max-attempts", "1", "--no-verify").code == 1
    refused = project.quick("accept", "T1-01", "--why", "good enough", "--json")
    assert (refused.code, refused.error["code"]) == (4, "accept.secret"), refused.out
    theirs = frozenset([f"{VALUE}\n".encode()])
    assert shown(project, VALUE, answers=(refused, *asked_of(project)), theirs=theirs) == []
    project.repo.commit_with({"a.py": f"{VALUE}\n"}, "mine", "a.py")
    accepted = project.quick("accept", "T1-01", "--why", "good enough", "--json")
    assert accepted.code == 0, accepted.out


def test_a_task_that_declares_a_name_with_a_secret_fails_and_does_not_show_it(named: Project) -> None:
    """R-LOG-3."""
    project = named
    assert shown_in_records(project, VALUE, *asked_of(project)) == []
    tree = project.events("--kind", "attempt.finished")[0]["payload"]["left"]
    assert VALUE in project.repo.git("ls-tree", "-r", "--name-only", tree)


def shown_in_records(project: Project, secret: str, *answers: Answer) -> list[str]:
    """As `shown`, without snapshots and the checkout, where files have the names that the builder chose."""
    looks = [
        project.quick(*line.split())
        for line in ("show T1-01", "status", "log --json --limit 100000", "show T1-01 --diff")
    ]
    places = shown(project, secret, answers=(*answers, *looks))
    return [name for name in places if name != "objects of git" and "/idumb-checkouts/" not in name]


@pytest.mark.nightly
def test_an_undeclared_file_with_a_secret_name_halts_and_no_choice_accepts_it(project: Project) -> None:
    """R-LOG-3."""
    bound(project, ("a.py", "x\n"), ("VALUE.txt", "x\n"))
    project.plan([built()])
    halted = run(project, "--max-attempts", "1", "--no-verify")
    assert halted.code == 1, halted.out
    assert project.quick("decisions", "--json").data["decisions"] == []
    assert not {"accept", "amend"} & {c["id"] for c in halted.error["details"].get("choices", ())}
    accepted = project.quick("accept", "T1-01", "--why", "good enough", "--json")
    assert accepted.error["code"] == "accept.secret-name", accepted.out
    back = project.quick("rollback", "1", "--to", "start", "--yes")
    assert shown_in_records(project, VALUE, halted, accepted, back) == []


def built_by_hand(project: Project, files: str, written: dict[str, str]) -> None:
    """Let a person write these files for a task that fails, so that they stay."""
    bound(project)
    project.plan([task("T1-01", files=files, check="false", fields="- **Builder:** human\n- **On failure:** block\n")])
    assert run(project, "--no-verify").code == 5
    project.repo.write_all(written)
    assert project.json("decide", "T1-01.work.1", "done").code == 0
    assert project.resume("--no-verify").code == 1


@pytest.mark.nightly
def test_undo_commits_no_secret_that_was_not_committed_before(project: Project) -> None:
    """R-LOG-3, R-GIT-3: in a file that HEAD has too; a file with a secret in its name stays as it is."""
    project.repo.commit_with({"b.py": "b\n"}, "b")
    built_by_hand(project, "modify `b.py`, create `*.txt`", {"b.py": f"{VALUE}\n", f"{VALUE}.txt": "x\n"})
    before = project.repo.status()
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.read("b.py") == "b\n"
    assert project.read(f"{VALUE}.txt") == "x\n"
    assert project.quick(*project.undoing()).code == 0
    assert project.repo.status() == before
    assert VALUE not in project.repo.git("log", "-p", "--name-only", "--patch", "HEAD", "--", "*.py", "*.txt")


@pytest.mark.nightly
def test_a_rollback_commits_no_secret_that_only_the_uncommitted_base_of_the_work_had(project: Project) -> None:
    """R-LOG-3, R-GIT-3: the user's version of a file that HEAD has is back, but not in a commit; what HEAD had is."""
    project.repo.commit_with({"b.py": "b\n", "c.py": f"{VALUE}\n"}, "both")
    project.repo.write("b.py", f"{VALUE}\n")
    bound(project, ("b.py", "clean\n"), ("c.py", "clean\n"))
    project.plan([built(files="modify `b.py`, modify `c.py`", check="grep -q clean b.py")])
    assert run(project, "--no-verify").code == 5
    assert project.json("decide", "T1-01.base.1", "mine").code == 0
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert (project.read("b.py"), project.repo.status()) == (f"{VALUE}\n", [" M b.py"])
    assert VALUE not in project.repo.git("log", "-p", "--", "b.py")


@pytest.mark.nightly
def test_a_name_that_holds_a_secret_since_it_was_recorded_is_not_restored(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-3, R-GIT-3: rollback and undo refuse before anything changes, and show no name."""
    monkeypatch.setenv("API_TOKEN", "another-value-9")
    name = f"out/{VALUE}.txt"
    built_by_hand(project, "create `out/*.txt`", {name: "x\n"})
    for command in ("rollback", "undo"):
        words = ("rollback", "1", "--to", "start", "--yes") if command == "rollback" else project.undoing()
        before = project.repo.ledger()
        monkeypatch.setenv("API_TOKEN", VALUE)
        refused = project.quick(*words, "--json")
        assert (refused.code, refused.error["code"]) == (4, "secret.in-name"), refused.out
        assert VALUE not in refused.out
        assert project.repo.ledger() == before
        monkeypatch.setenv("API_TOKEN", "another-value-9")
        assert project.quick(*words, "--json").code == 0
    assert project.read(name) == "x\n"


def notify(home: Path, text: str) -> Path:
    place = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "idumb" / "config.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"notify: {text}\n", encoding="utf-8")
    return place


def test_a_command_of_the_user_gets_a_notice_of_a_question_and_none_of_the_halt_after_it(
    project: Project, home: Path
) -> None:
    door = home / "door"
    os.mkfifo(door)
    notify(home, f'{{command: [sh, -c, "cat > {door}"]}}')
    project.plan([task("T1-01", files="create `a.txt`", criteria="  - [ ] it reads well — human\n", check="test -s a")])
    project.configure("builder: b\nbindings: {b: {adapter: command, argv: [sh, -c, 'echo a > a.txt']}}\n")
    assert run(project).code == 5
    (question,) = project.json("decisions").data["decisions"]
    told = json.loads(door.read_text(encoding="utf-8"))
    assert (told["kind"], told["words"], told["next"]) == ("decision", question["what"], "idumb decisions")
    assert told["repository"] == str(project.folder)


def test_a_run_does_not_wait_for_a_webhook_that_never_answers_and_tells_it_no_secret(
    project: Project, home: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("API_TOKEN", VALUE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        notify(home, f"{{webhook: 'http://127.0.0.1:{server.getsockname()[1]}/', on: [failed]}}")
        made_by(project, "echo a > a.py; echo b > $API_TOKEN.txt")
        project.plan([built()])
        assert run(project, "--on-deviation", "stop").code != 0
        connection, _ = server.accept()
        with connection:
            received = connection.recv(1 << 16)
            while b"}" not in received:
                received += connection.recv(1 << 16)
    assert b"POST / HTTP/1.1" in received
    assert VALUE.encode() not in received


def test_a_notice_that_is_still_being_sent_is_no_warning_when_a_run_ends(tmp_path: Path) -> None:
    words = "notices.send({}, {'command': ['sleep', '1'], 'desktop': False, 'webhook': ''})"
    code = f"from idumb.system import notices; {words}"
    ended = subprocess.run([sys.executable, "-Wdefault", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == ""


def test_a_notice_on_the_desktop_runs_no_code_of_the_repository(tmp_path: Path) -> None:
    """A folder `idumb` in it is not the program."""
    door, programs = tmp_path / "door", tmp_path / "programs"
    programs.mkdir()
    os.mkfifo(door)
    (tmp_path / "idumb").mkdir()
    hostile = f"open({str(door)!r}, 'w').write('code of the repository')\nraise SystemExit\n"
    (tmp_path / "idumb/__init__.py").write_text(hostile, encoding="utf-8")
    for name in ("notify-send", "osascript"):
        (programs / name).write_text(f'#!/bin/sh\necho "$*" > {door}\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    words = "notices.send({'words': 'a task waits'}, {'command': [], 'desktop': True, 'webhook': ''})"
    code = f"from idumb.system import notices; {words}"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with subprocess.Popen([sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment):
        assert door.read_text(encoding="utf-8").endswith(" a task waits\n")


def test_a_mistake_in_the_user_s_file_is_named_before_anything_runs(project: Project, home: Path) -> None:
    place = notify(home, "{webhok: 'https://example.org/'}")
    project.plan([making("T1-01", "a.txt")])
    refused = run(project)
    assert (refused.code, refused.error["code"]) == (3, "config.invalid")
    assert f"{place}:1" in refused.error["message"]
    assert not project.exists("a.txt")


def test_a_repository_cannot_set_what_is_the_user_s(project: Project) -> None:
    project.configure("notify: {command: [sh, -c, 'touch /tmp/x']}\n")
    project.plan([making("T1-01", "a.txt")])
    assert project.json("check-plan", "1").error["code"] == "config.invalid"
