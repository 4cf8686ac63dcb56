"""Findings about the commands that prove tasks (R-LOCK-1, R-RUN-3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from idumb.domain.intake.rule import StartState
from idumb.domain.plans.plan import Criterion, FileClaim, Invariant, Span
from idumb.domain.settings import GateSettings
from tests.support.cases import every
from tests.support.intake import SETTINGS, findings_of, plan, step, task

CODE = "check.hidden-failure"


def proven_by(command: str) -> tuple[Criterion, ...]:
    return (Criterion("AC-1", "the tests pass", "check", command, span=Span(0, 1, 12)),)


def test_a_check_that_hides_a_failure_is_named_with_what_decides() -> None:
    (finding,) = findings_of(plan(task(acceptance=proven_by("pytest 2>&1 | tee log"))))
    assert (finding.code, finding.severity, finding.line, finding.field) == (CODE, "warning", 12, "acceptance")
    assert finding.message == "T1-01: a check passes even if `pytest` fails: `tee log` decides."


def test_a_task_that_only_the_checks_of_earlier_tasks_prove_is_named_once_for_its_plan() -> None:
    suite, own = proven_by("make test"), proven_by("test -s c.txt")
    kept = (replace(own[0], keeps=True), *suite)
    tasks = [task("T1-01", acceptance=suite), task("T1-02", acceptance=suite), task("T1-03", acceptance=(*suite, *own))]
    tasks += [task("T1-04", acceptance=kept), task("T1-05", kind="human-verify", acceptance=suite)]
    for mode, severity in ((None, "warning"), ("strict", "error")):
        (found,) = [f for f in findings_of(plan(*tasks), mode=mode) if f.code == "check.of-other-task"]
        assert (found.severity, found.found) == (severity, "T1-02: make test; T1-04: make test")
        assert found.message == "Only checks of earlier tasks prove T1-02, T1-04: they pass before the work."
    judged = findings_of(plan(tasks[0], replace(tasks[1], validator="human")))
    assert "check.of-other-task" not in {f.code for f in judged}


@every(
    "command",
    [
        "true", ":", "exit 0", "echo done", "test -n x", "[ -n x ]", "test x", "test a = a", "grep -q '' a.txt",
        "grep -q -e '' a.txt", "make; true", "sort a.txt | wc -l", "! false", "! grep -q x missing",
        "env A=b true", "test 1 -eq 1 && [ x ]", "(true)", "(make; true)", "{ make || true; }", "(make) || true",
        "sh -c '(make; true)'", "python3 -c pass", "node -e ''", "python -c 'import sys; sys.exit(0)'",
        "grep -q ^ a.txt", "python -c 'print(\"ok\")'", "git status --porcelain", "git diff --stat",
        "find . -name '*.py'", "ls",
        "if make; then echo ok; fi", "make || { echo failed; exit 0; }", "case x in a) true;; esac", "(ls) > /dev/null",
    ],
)  # fmt: skip
def test_a_check_that_cannot_fail_is_named_and_in_strict_mode_an_error(command: str) -> None:
    one = plan(task(acceptance=proven_by(command)))
    for mode, severity in ((None, "warning"), ("strict", "error")):
        found = [f for f in findings_of(one, mode=mode, present=StartState()) if f.code in (CODE, "check.cannot-fail")]
        assert [(f.severity, f.line) for f in found] == [(severity, 12)]


@every("command", ["grep -q '' a.txt", "! false"])
def test_the_command_that_decides_is_shown_as_it_is_written(command: str) -> None:
    (found,) = [f for f in findings_of(plan(task(acceptance=proven_by(command)))) if f.code == "check.cannot-fail"]
    assert f"`{command}` decides" in found.message


@every(
    "command",
    [
        "false", 'test -n "$A"', "test -s a.txt", "[ -f a.txt ]", "grep -q x a.txt", "grep -vq '' a.txt",
        "! grep -q x a.txt", "! grep -q -e x -e y a.txt", "! grep -q x present", "make", "make && true",
        "true && make", "make; exit", "test", "! grep -q x /etc/none", "! grep -q x $F",
        "set -e; make; true", "test 1 -eq $(cat a.txt)",
        "if true; then make; fi", "a=$(make)", "echo x > b.txt", "! grep -q '' a.txt", "make || exit 1", "cat a.txt",
        "cd src && true", "bash -o pipefail -c 'make | cat'", "(make)", "{ make; }",
        "(cd src && make) && (cd b && make)", "(make; exit 0) && make b", "make || (echo bad; exit 1)", "((1))",
        "! (grep -q x a.txt)",
        "python -c 'import a'", "python -c 'print(a)'", "node -e 'require(\"./a\")'", "git diff --exit-code",
        "git diff --check", "ls a.txt",
        'test -z "$(git status --porcelain)"', "find . -name '*.py' | grep -q a", "find ./src -name '*.py'",
    ],
)  # fmt: skip
def test_a_check_that_may_fail_is_not_said_to_pass_always(command: str) -> None:
    """`a.txt` is what the task creates."""
    one, present = plan(task(acceptance=proven_by(command))), StartState(on_disk=frozenset({"present"}))
    assert "check.cannot-fail" not in {f.code for f in findings_of(one, present=present)}


def test_every_command_that_proves_something_is_read() -> None:
    hiding = "npm test || true"
    plans = (
        plan(task(acceptance=(), verify=(hiding,))),
        plan(invariants=(Invariant("INV-1", "it works", hiding),)),
        plan(success_criteria=proven_by(hiding)),
    )
    fields = {finding.field for one in plans for finding in findings_of(one, mode="strict") if finding.code == CODE}
    assert fields == {"verify", "invariants", "success_criteria"}


def test_the_commands_of_the_projects_own_gates_are_read_unless_they_only_inform() -> None:
    commands = {"licence": "pytest || true", "todo": "true", "size-of-wheel": "TODO"}
    gates = {name: GateSettings(run=(command,)) for name, command in commands.items()}
    gates["note"] = GateSettings(level=0, run=("true",))
    listed = findings_of(plan(), settings=replace(SETTINGS, gates=gates))
    found = [(f.code, f.path, f.field) for f in listed if f.field.startswith("gates.")]
    codes = {"command.placeholder": "size-of-wheel", CODE: "licence", "check.cannot-fail": "todo"}
    assert found == [(code, ".idumb/config.yaml", f"gates.{name}") for code, name in codes.items()]
    assert any(f.message.startswith("gates.licence: a check passes even if `pytest` fails") for f in listed)


CODE_OF_OWN = "check.own-files"


def own(*commands: str, files: Sequence[str], **more: Any) -> list[str]:
    """Return what the findings about files that a task owns and its checks run have found."""
    criteria = tuple(
        Criterion(f"AC-{n}", "it works", "check", command, span=Span(0, 1, 11 + n))
        for n, command in enumerate(commands, 1)
    )
    claims = tuple(FileClaim("change", path) for path in files)
    one = plan(task(files=claims, acceptance=criteria, **more))
    return [each.found for each in findings_of(one) if each.code == CODE_OF_OWN]


@every(
    "command, files, path",
    [
        ("python check.py", ["check.py"], "check.py"),
        ("python3 -u scripts/check.py --fast", ["scripts/**"], "scripts/check.py"),
        ("./check.sh", ["a.txt", "check.sh"], "check.sh"),
        ("bash -c 'sh scripts/smoke.sh'", ["**"], "scripts/smoke.sh"),
        ("cd api && timeout 60 ./verify", ["api/verify"], "api/verify"),
        ("uv run python checks/run.py", ["checks/*.py"], "checks/run.py"),
        ("python -m app.check", ["app/*"], "app/check.py"),
        ("make test", ["src/a.c", "Makefile"], "Makefile"),
        ("make -C lib check", ["lib/Makefile"], "lib/Makefile"),
        ("npm test", ["package.json", "src/a.js"], "package.json"),
        ("npm ci && npm run -s lint", ["package.json"], "package.json"),
        ("cd web && yarn test", ["web/package.json"], "web/package.json"),
        ("tox -e py", ["tox.ini"], "tox.ini"),
    ],
)
def test_a_task_that_writes_the_program_of_its_check_is_named(command: str, files: list[str], path: str) -> None:
    assert own(command, files=files) == [f"T1-01: {path}"]


@every(
    "command, files",
    [
        ("pytest tests/test_a.py", ["src/a.py", "tests/test_a.py"]),
        ("python -m pytest -q tests/test_a.py::test_x", ["tests/**"]),
        ("pytest", ["src/a.py", "tests/**"]),
        ("pytest tests", ["tests/conftest.py"]),
        ("pytest tests/unit/", ["src/a.py", "tests/unit/**"]),
        ("pytest ./tests", ["tests/**"]),
        ("python -m unittest tests.test_a", ["tests/test_a.py"]),
        ("python tests/test_a.py", ["tests/test_a.py"]),
        ("node --test test/a.test.js", ["a.js", "test/a.test.js"]),
        ("npx vitest run src/a.test.ts", ["src/a.ts", "src/a.test.ts"]),
        ("cargo test --test cli", ["src/main.rs", "tests/cli.rs"]),
        ("go test ./slug", ["slug/slug.go", "slug/slug_test.go"]),
        ("test -f tests/test_a.py && pytest tests/test_a.py", ["tests/test_a.py"]),
    ],
)
def test_a_task_that_only_its_own_tests_prove_is_named(command: str, files: list[str]) -> None:
    assert len(own(command, files=files)) == 1


def test_a_check_that_the_task_does_not_own_is_not_named() -> None:
    cases: list[tuple[tuple[str, ...], list[str]]] = [
        (("python check.py",), ["a.py"]),
        (("python check.py", 'test "$(python a.py)" = 3'), ["a.py", "check.py"]),
        (("python check.py", "python a.py | grep -q 3"), ["a.py", "check.py"]),
        (("pytest tests/test_a.py", "pytest tests/test_b.py"), ["a.py", "tests/test_a.py"]),
        (("pytest tests/test_a.py tests/test_b.py",), ["a.py", "tests/test_a.py"]),
        (("pytest",), ["a.py", "tests/test_a.py"]),
        (("go test ./...",), ["slug/slug.go", "slug/slug_test.go"]),
        (("npm ci", "npx tsc --noEmit"), ["package.json", "a.ts"]),
        (("npm ls left-pad",), ["package.json"]),
        (("grep -q pytest tests/test_a.py",), ["tests/test_a.py"]),
        (("python -c 'import check; check.run()'",), ["check.py"]),
        (("../check.sh",), ["**"]),
        (("make test",), ["src/**"]),
        (("ruff check .",), ["**"]),
    ]  # fmt: skip
    assert not [(commands, files) for commands, files in cases if own(*commands, files=files) != []]


def test_a_check_that_only_finds_a_file_is_no_proof_of_its_own() -> None:
    assert own("python check.py", "test -s check.py", files=["check.py"]) == ["T1-01: check.py"]


def test_a_person_a_validator_or_written_steps_prove_the_task_as_well() -> None:
    command, files = "python check.py", ["check.py"]
    assert own(command, files=files) != []
    assert own(command, files=files, validator="critic") == []
    assert own(command, files=files, kind="human-verify") == []
    assert own(command, files=files, steps=(step("write_file", path="check.py", content=""),)) == []
    by_a_person = (*proven_by(command), Criterion("AC-2", "it looks right", "human"))
    assert findings_of(plan(task(files=(FileClaim("change", "check.py"),), acceptance=by_a_person))) == []


def test_an_invariant_that_runs_something_else_is_a_proof_as_well() -> None:
    one = task(files=(FileClaim("change", "check.py"),), acceptance=proven_by("python check.py"))
    assert {f.code for f in findings_of(plan(one))} == {CODE_OF_OWN}
    assert findings_of(plan(one, invariants=(Invariant("INV-1", "it builds", "python -m compileall -q src"),))) == []


def test_tasks_that_write_their_tests_are_named_together() -> None:
    """Tests that a task is asked to write are common, so a plan gets one warning, not one for each task."""
    files = ("tests/test_1.py", "tests/test_2.py")
    tasks = [
        task(f"T1-0{n}", files=(FileClaim("create", file),), acceptance=proven_by(f"pytest {file}"))
        for n, file in enumerate(files, 1)
    ]
    (finding,) = findings_of(plan(*tasks))
    assert finding.message.startswith("T1-01, T1-02 may write the files that alone prove the work")
    assert finding.found == "T1-01: tests/test_1.py, T1-02: tests/test_2.py"
