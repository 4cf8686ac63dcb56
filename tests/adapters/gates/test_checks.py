"""Checks: the project's own commands and conditions, run for real (R-GATE-3, R-RUN-3)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from idumb.domain.plans.plan import Condition
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import USER_HOME, CheckoutSettings, Settings
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from idumb.gates.controls import Controls
from idumb.gates.shell_command import Hints
from idumb.system import process_tree
from tests.support import programs
from tests.support.cases import every
from tests.support.ended import has_ended
from tests.support.patience import patient
from tests.support.shell_checks import Proving, shell_checks

ALLOWED = ("PATH", "HOME")


def redact(text: str) -> str:
    return text.replace("s3cret", "[redacted]")


def checks(root: Path, run_id: str = "run-1", **more: Any) -> ShellChecks:
    return shell_checks(root, ALLOWED, redact, run_id=run_id, **more)


def command(root: Path, text: str, timeout: float = 30) -> Evidence:
    return checks(root).command("AC-1", "it holds", text, timeout=timeout, tree="t" * 40)


def condition(root: Path, kind: str, subject: str, text: str | None = None, path: str | None = None) -> Evidence:
    return checks(root).condition("precondition 1", Condition(kind, subject, text, path), tree="t" * 40)


def test_exit_code_zero_is_evidence(tmp_path: Path) -> None:
    record, printed = command(tmp_path, "echo fine; pwd -P"), f"fine\n{os.path.realpath(tmp_path)}\n"
    assert record.passed
    assert (record.subject, record.text, record.command) == ("AC-1", "it holds", "echo fine; pwd -P")
    assert record.argv == ("/bin/sh", "-c", "echo fine; pwd -P")
    assert (record.exit_code, record.tree, record.output) == (0, "t" * 40, "fine\n.\n")
    assert record.output_sha256 == hashlib.sha256(printed.encode()).hexdigest()


@every(
    "text, result, words",
    [
        ("exit 1", evidence.FAILED, ""),
        ("echo why; exit 125", evidence.FAILED, "why"),
        ("no-such-program-here", evidence.ERRORED, "exit 127: the shell could not find a program"),
        ("exit 126", evidence.ERRORED, "exit 126: the shell could not execute a program"),
        ("kill -9 $$", evidence.FAILED, "ended by signal 9"),
        ("if", evidence.FAILED, "yntax error"),
        ("a\0b", evidence.ERRORED, "NUL"),
        ("echo s3cret; false", evidence.FAILED, "[redacted]"),
    ],
)
def test_only_exit_code_zero_passes(tmp_path: Path, text: str, result: str, words: str) -> None:
    record = command(tmp_path, text)
    assert record.result == result
    assert words in record.output
    assert "s3cret" not in record.output


def test_a_timed_out_check_proves_nothing(tmp_path: Path) -> None:
    began = lambda record: record.output.startswith("began")  # noqa: E731
    record = patient(lambda seconds: command(tmp_path, "echo began; sleep 1000", timeout=seconds), began, 0.3)
    assert (record.result, record.exit_code) == (evidence.TIMED_OUT, None)
    assert re.match(r"began\n\[stopped after [\d.]+ s \(", record.output)


def test_a_check_in_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    record = command(tmp_path / "gone", "true")
    assert record.result == evidence.ERRORED
    assert "could not be started" in record.output


def test_checks_see_the_allowed_variables_and_the_run_s_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S5: the builder's keys never reach a check."""
    monkeypatch.setenv("API_KEY", "leaked")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    record = command(tmp_path, f"exec {sys.executable} -I -c 'import os; print(*sorted(os.environ))'")
    ours = {"IDUMB_PLACE", "IDUMB_PROCESS", "IDUMB_RUN", "PYTHONDONTWRITEBYTECODE", "TMPDIR"}
    assert set(record.output.split()) - {"LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"} == {"HOME", "PATH", *ours}


def test_the_output_of_a_check_is_bounded(tmp_path: Path) -> None:
    record = command(tmp_path, "head -c 5000000 /dev/zero | tr '\\0' x")
    assert record.truncated
    assert len(record.output) < 50_000
    assert record.output_sha256 == hashlib.sha256(b"x" * 5_000_000).hexdigest()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("\ufeffimport os\n\nclass Slug:\n    size: int = 1\n\n    def make(self): ...\n")
    (root / "src/b.js").write_text("export function slugify(a) { bonbon(a) }\n")
    (tmp_path / "outside").write_text("secret", encoding="utf-8")
    (root / "link").symlink_to("../outside")
    (root / "folder").symlink_to("..")
    return root


@every(
    "asked, result",
    [
        (("file-exists", "src/a.py"), evidence.PASSED),
        (("file-exists", "src/"), evidence.PASSED),
        (("file-exists", "src/c.py"), evidence.FAILED),
        (("file-exists", "none/c.py"), evidence.FAILED),
        (("file-exists", "src/a.py/x"), evidence.FAILED),
        (("file-exists", "folder/outside"), evidence.FAILED),
        (("file-exists", "../outside"), evidence.ERRORED),
        (("file-exists", "/etc/passwd"), evidence.ERRORED),
        (("file-absent", "src/c.py"), evidence.PASSED),
        (("file-absent", "src/a.py"), evidence.FAILED),
        (("file-contains", "src/a.py", "class Slug"), evidence.PASSED),
        (("file-contains", "src/a.py", "class Slag"), evidence.FAILED),
        (("file-contains", "link", "secret"), evidence.FAILED),
        (("file-contains", "folder/outside", "secret"), evidence.FAILED),
        (("file-contains", "src", "a"), evidence.FAILED),
        (("symbol", "Slug", None, "src/a.py"), evidence.PASSED),
        (("symbol", "Slug.make", None, "src/a.py"), evidence.PASSED),
        (("symbol", "make", None, "src/a.py"), evidence.FAILED),
        (("symbol", "slugify", None, "src/b.js"), evidence.PASSED),
        (("symbol", "slug", None, "src/b.js"), evidence.FAILED),
        (("symbol", "bon", None, "src/b.js"), evidence.FAILED),
        (("symbol", "slug", None, "src/c.py"), evidence.FAILED),
        (("env", "IDUMB_TEST_GIVEN"), evidence.PASSED),
        (("env", "IDUMB_TEST_EMPTY"), evidence.FAILED),
        (("env", "IDUMB_TEST_ABSENT"), evidence.FAILED),
        (("context", "src"), evidence.PASSED),
        (("context", "wiki.md"), evidence.FAILED),
        (("command", "test -d src"), evidence.PASSED),
        (("command", "test -d src/x"), evidence.FAILED),
    ],
)
def test_conditions_hold_or_fail(
    tree: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[Any, ...], result: str
) -> None:
    """R-RUN-14."""
    monkeypatch.setenv("IDUMB_TEST_GIVEN", "s3cret")
    monkeypatch.setenv("IDUMB_TEST_EMPTY", "")
    record = condition(tree, *asked)
    assert record.result == result
    assert "s3cret" not in repr(record)


def test_a_condition_reports_the_actual_state(tree: Path) -> None:
    record = condition(tree, "file-contains", "src/a.py", "class Slag")
    assert record.text == 'file contains src/a.py "class Slag"'
    assert record.output == "src/a.py does not contain 'class Slag'"
    assert condition(tree, "file-absent", "src").output == "src is a folder"
    assert condition(tree, "symbol", "x", path="src/a.py").text == "symbol x in src/a.py"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the environment of other processes")
@every("clone, is_ended", [("", True), ("other", False)])
def test_orphaned_processes_of_a_killed_executor_are_ended_but_not_those_of_another_clone(
    tmp_path: Path, clone: str, *, is_ended: bool
) -> None:
    name = f"run-{os.urandom(8).hex()}"  # the same tests may run elsewhere on this machine
    environment = {"PATH": os.environ["PATH"], "IDUMB_RUN": name, "IDUMB_PLACE": f"{name}@{tmp_path / clone}"}
    with subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True) as orphan:
        while not process_tree.variable(orphan.pid, b"PATH"):
            pass  # a program that has only just been executed shows no environment for a moment
        assert checks(tmp_path, name).end_processes() == ((orphan.pid,) if is_ended else ())
        assert has_ended(orphan.pid) if is_ended else process_tree.is_alive(orphan.pid)
        orphan.kill()
    assert checks(tmp_path, name).end_processes() == ()


SKIPPED = "import unittest\n@unittest.skip('later')\nclass A(unittest.TestCase):\n    def test_a(self): self.fail()\n"


@every(
    "text, program",
    [
        (SKIPPED, "-m unittest test_a"),
        ("", "-m unittest test_a"),
        ("import pytest\n@pytest.mark.skip\ndef test_a(): assert False\n", "-m pytest -q test_a.py"),
    ],
)
def test_a_check_that_runs_no_test_fails(tmp_path: Path, text: str, program: str) -> None:
    """R-RUN-3. Python 3.12 and later exit with 5 in some of these cases."""
    (tmp_path / "test_a.py").write_text(text)
    record = command(tmp_path, f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} {program}")
    assert record.result == evidence.FAILED
    if record.exit_code == 0:
        assert record.output.endswith("]")
        assert "so the check proves nothing" in record.output


@every(
    "subject, result",
    [
        ("AC-1", evidence.FAILED),
        ("verify 1", evidence.FAILED),
        ("test 1 before", evidence.FAILED),
        ("invariant INV-1", evidence.UNPROVEN),
        ("plan 02 invariant INV-1", evidence.UNPROVEN),
        ("precondition 1", evidence.PASSED),
        ("setup", evidence.PASSED),
        ("rollback of T1-01", evidence.PASSED),
    ],
)
def test_a_command_without_a_test_fails_where_it_proves_the_work(tmp_path: Path, subject: str, result: str) -> None:
    programs.script(tmp_path / "test.sh", "echo '==== no tests ran in 0.01s ===='")
    record = checks(tmp_path).command(subject, "it holds", "./test.sh", timeout=30, tree="t")
    assert (record.result, record.exit_code) == (result, 0)


def test_output_names_paths_as_in_the_user_s_own_tree(tmp_path: Path) -> None:
    tree = tmp_path / "1" / "work"
    tree.mkdir(parents=True)
    judge = checks(tmp_path, proof=Proving(tree))
    command = "pwd; echo $PWD/a.txt; echo $PWD-x; dirname $PWD; echo ${PWD%/*}/lib"
    record = judge.command("AC-1", "", command, timeout=30, tree="t" * 40)
    assert record.output.split("\n")[:-1] == [".", "a.txt", "../work-x", f"{tmp_path}/1", "../lib"]


def test_evidence_names_what_the_tree_had_besides_and_a_failure_what_is_missing(tmp_path: Path) -> None:
    proving = Proving(tmp_path)
    proving.provided, proving.prepared, proving.cached = (".env",), ("node_modules",), ("target",)
    proving.missing = ("submodule lib: fetch it",)
    judge = checks(tmp_path, proof=proving, hints=Hints())
    passed, failed = (judge.command("AC-1", "it holds", text, timeout=30, tree="t" * 40) for text in ("true", "false"))
    assert passed.weaker == (
        "may use .env, which the commit does not hold (checkout.provide)",
        "may use target, which checks of earlier tasks left (checkout.cache)",
    )
    assert passed.locations == ("node_modules <- checkout.prepare",)
    assert (passed.output, failed.output) == ("", "[it may need submodule lib: fetch it]")


@every(
    "command, line",
    [
        ("cat ~/.netrc", "checks: {home: user}"),
        ('test -s "$HOME/.netrc"', "checks: {home: user}"),
        ("python3 -c \"import os; open(os.environ['HO' + 'ME'] + '/x')\"", "checks: {home: user}"),
        ("sh -c 'printenv HO'ME", ""),
        ("cat data.log", "checkout: {provide: [data.log]}"),
        ("cat build/x", "checkout: {provide: [lib/build]}"),
        ("node_modules/.bin/jest", "checkout: {provide: [node_modules]}"),
        ("jest", "checkout: {provide: [.devenv, node_modules]}"),
        ("echo \"Cannot find module '@o/other'\"", "checkout: {provide: [node_modules]}"),
        ("cat out.log", ""),
        ("cat mydata.log other", ""),
        ("cat x/__pycache__/y", ""),
        ("cat ../web/dist/x", "checkout: {provide: [web/dist]}"),
        ("python3 -c \"import os; os.environ['API' + '_URL']\"", "checkout: {provide: [.env]}"),
        ("echo SECRET_NAME", ""),
        ("echo \"cannot open '$(echo DISPLAY)'\"", "DISPLAY, which checks do not see: add what they need to `environm"),
        ("echo DISPLAY ModuleNotFoundError", ""),
        ("echo ${TMPDIR%t}h/.yarn/cache", ""),
        ("echo $(dirname $(dirname $(dirname $TMPDIR)))/7/1/h/.yarn/cache", "checks: {home: user}"),
    ],
)
def test_a_failed_check_names_the_line_that_gives_it_what_it_names(
    tmp_path: Path, home: Path, command: str, line: str
) -> None:
    """`out.log` is in the tree too."""
    tree = tmp_path / "proof" / "tree"
    tree.mkdir(parents=True)
    (tree / "out.log").touch()
    ignored = (
        ".devenv/",
        "data.log",
        "lib/build/",
        "node_modules/",
        "out.log",
        "x/__pycache__/",
        "../web/dist/",
        ".env",
    )
    path = f"/usr/bin:{tmp_path}/.devenv/profile/bin"
    user = dict.fromkeys(("DISPLAY", "EDITOR"), "") | {"PATH": path}
    (tmp_path / ".env").write_text("# SECRET_NAME=\nexport API_URL=x\n")
    hints = Hints(root=str(tmp_path), ignored=lambda **_: ignored, variables=lambda: user)
    with contextlib.closing(CheckEnvironment(Inputs({"PATH": "/usr/bin:/bin"}, ALLOWED, str(home), ()))) as private:
        judge = checks(tmp_path, private=private, proof=Proving(tree), hints=hints)
        failed, passed = (
            judge.command("AC-1", "", text, timeout=30, tree="t" * 40)
            for text in (f"{command} && false", f"true {command}")
        )
    assert line in failed.output
    assert ("(it may need " in failed.words, line in failed.words) == (bool(line), True)
    assert passed.output == ""


@every(
    "output, files, settings, line",
    [
        ("No module named 'six'", {"requirements.txt": "six\n"}, {}, "prepare: [python3 -m venv .venv, "),
        ("sh: 1: jest: not found", {"package.json": '"devDependencies": {"jest": "1"}'}, {}, "npm ci"),
        ("No module named 'mine'", {"requirements.txt": "six\n"}, {}, ""),
        ("No module named 'six'", {"requirements.txt": "six\n"}, {"prepare": ("make",)}, ""),
        ("No module named 'serde'", {"Cargo.toml": "dependencies serde", "Cargo.lock": ""}, {}, ""),
    ],
)
def test_a_failed_check_names_what_installs_what_a_manifest_names(
    tmp_path: Path, output: str, files: dict[str, str], settings: dict[str, Any], line: str
) -> None:
    for name, text in ({"package-lock.json": "{}", **files} if "package.json" in files else files).items():
        (tmp_path / name).write_text(text)
    hints = Hints(Settings(checkout=CheckoutSettings(**settings)), str(tmp_path))
    judge = checks(tmp_path, proof=Proving(tmp_path), hints=hints)
    failed = judge.command("AC-1", "", f'echo "{output}"; false', timeout=30, tree="t" * 40)
    assert (line in failed.may_need, bool(failed.may_need)) == (True, bool(line))


@every(
    "output, there",
    [
        ("jest: not found", ".venv/bin/jest"),
        ("own: not found", "bin/own"),
        ("No module named 'six'", ".venv/bin/python"),
        ("Error: not found", ""),
    ],
)
def test_a_failed_check_names_the_program_that_is_installed_but_not_on_its_path(
    tmp_path: Path, output: str, there: str
) -> None:
    proving = Proving(tmp_path)
    proving.prepared = (".venv",)
    for name in (".venv/bin/jest", ".venv/bin/python", "bin/own"):
        programs.script(tmp_path / name, "true")
    command = f'echo "{output}"; false'
    failed = checks(tmp_path, proof=proving, hints=Hints()).command("AC-1", "", command, timeout=30, tree="t" * 40)
    assert (f"{there}, which is not" in failed.may_need) == bool(failed.may_need) == bool(there)
    path = f"{tmp_path}/.venv/bin:{tmp_path}/bin:/usr/bin:/bin"
    present = CheckEnvironment(Inputs({"PATH": path}, ALLOWED, "/home/pat", ()))
    with contextlib.closing(present) as private:
        judge = checks(tmp_path, private=private, proof=proving, hints=Hints())
        assert judge.command("AC-1", "", command, timeout=30, tree="t" * 40).may_need == ""


def test_a_control_that_a_signal_ended_says_nothing_about_the_work() -> None:
    killed: Any = Namespace(command=lambda *_, **__: Evidence("AC-1", "", evidence.FAILED))
    controls = Controls()
    controls.start(lambda _: killed, {"test": "AC-1"}, tree="t", environment="e")
    assert controls.end(limit=30) == {"test": f"{evidence.NOT_RUN}: a signal ended it"}


def test_a_check_with_the_user_s_home_is_not_told_that_it_is_private(tmp_path: Path, home: Path) -> None:
    inputs = Inputs({"PATH": "/usr/bin:/bin", "HOME": str(home)}, ALLOWED, str(home), (), home_of_checks=USER_HOME)
    with contextlib.closing(CheckEnvironment(inputs)) as private:
        judge = checks(tmp_path, private=private, proof=Proving(tmp_path), hints=Hints())
        record = judge.command("AC-1", "", "cat ~/.netrc", timeout=30, tree="t" * 40)
    assert record.words == "AC-1 failed"
