"""Programs whose failure a check hides (R-RUN-3)."""

from __future__ import annotations

from idumb.domain.plans import exit_code
from idumb.domain.plans.exit_code import Hidden
from idumb.domain.plans.exit_status import BACKGROUND, CONDITION, FALLBACK, LOOP, PIPE, SEQUENCE

HIDING = (
    ("pytest | tee log", "pytest", PIPE),
    ("pytest 2>&1 | tee log", "pytest", PIPE),
    ("pytest |& cat", "pytest", PIPE),
    ("pytest -n 2 | tail -n 5", "pytest -n 2", PIPE),
    ("make test | tail -n 5", "make test", PIPE),
    ("npm run build && npm test | tail -20", "npm test", PIPE),
    ("timeout 60 pytest | cat", "pytest", PIPE),
    ("{ pytest; } | tee log", "pytest", PIPE),
    ("./tool --self-test | tail -1", "./tool --self-test", PIPE),
    ("pytest -q | grep -q '3 passed'", "pytest -q", PIPE),
    ("bash -c 'pytest | tee log'", "pytest", PIPE),
    ("set -o pipefail; pytest | tee log", "pytest", PIPE),
    ("grep -q a f | cat", "grep -q a f", PIPE),
    ("python check.py | true", "python check.py", PIPE),
    ("npm test || true", "npm test", FALLBACK),
    ("npm test || (true && true)", "npm test", FALLBACK),
    ("npm test || { sleep 9 & }", "npm test", FALLBACK),
    ("npm test || :", "npm test", FALLBACK),
    ("pytest && echo ok || echo failed", "pytest", FALLBACK),
    ("pytest || { echo failed; exit 0; }", "pytest", FALLBACK),
    ("python check.py || echo skipped", "python check.py", FALLBACK),
    ("pytest; true", "pytest", SEQUENCE),
    ("pytest\ntrue", "pytest", SEQUENCE),
    ("pytest; exit 0", "pytest", SEQUENCE),
    ('pytest; echo "exit $?"', "pytest", SEQUENCE),
    ("pytest; rm -rf tmp", "pytest", SEQUENCE),
    ("(pytest; echo done)", "pytest", SEQUENCE),
    ("mypy src; pytest", "mypy src", SEQUENCE),
    ("grep -q a x; grep -q b y", "grep -q a x", SEQUENCE),
    ("pytest || (echo no; exit 1); echo done", "pytest", SEQUENCE),
    ("node server.js & P=$!; curl -f localhost; kill $P", "curl -f localhost", SEQUENCE),
    ("set -e; set +e; pytest; echo done", "pytest", SEQUENCE),
    ("pytest &", "pytest", BACKGROUND),
    ("pytest & wait", "pytest", BACKGROUND),
    ("pytest &> log", "pytest", BACKGROUND),
    ("if pytest; then echo ok; fi", "pytest", CONDITION),
    ("for f in a b; do test -f $f; done", "test -f $f", LOOP),
)


def test_a_hidden_failure_is_reported() -> None:
    assert not [
        (command, program, way)
        for command, program, way in HIDING
        if [(hidden.command, hidden.way) for hidden in exit_code.hidden_failures(command)] != [(program, way)]
    ]


def test_each_failure_that_a_nested_script_hides_is_reported() -> None:
    """A failure that another one of the script repeats is not hidden."""
    scripts = {
        "make check || (pytest || true)": [("pytest", FALLBACK), ("make check", FALLBACK)],
        "pytest a || (pytest b && true); true": [("pytest a", SEQUENCE), ("pytest b", SEQUENCE)],
        "pytest a || (pytest b && false); true": [("pytest a", SEQUENCE)],
        "if pytest; then make check; else exit 1; fi; true": [("make check", SEQUENCE)],
    }
    found = {script: [(each.command, each.way) for each in exit_code.hidden_failures(script)] for script in scripts}
    assert found == scripts


JUDGING = (
    "pytest",
    "pytest -q > log 2>&1",
    "pytest || exit 1",
    "pytest || { echo failed; exit 1; }",
    "pytest || { echo failed; false; }",
    "(pytest || exit 1) && echo done",
    "pytest && echo ok",
    "cd src; pytest",
    "cd src && pytest && cd ..",
    "set -e; pytest; echo done",
    "set -eu\npytest\necho done",
    "set -o errexit; pytest; echo done",
    "sh -ec 'pytest; echo done'",
    "bash -o pipefail -c 'pytest | tee log'",
    "bash -c 'set -o pipefail; pytest | tee log'",
    "bash -euo pipefail -c 'pytest | tee log; echo done'",
    "pytest > log 2>&1; s=$?; cat log; exit $s",
    "pytest & wait $!",
    "node server.js & sleep 1; curl -sf localhost:3000 | grep -q ok",
    "node server.js & pytest",
    "grep -q '|| true' run.sh",
    'echo "a | tee b"; test -f x  # pytest || true',
    "cat <<E | python -\npytest | tee log\npytest || true\nE",
    'test "$(pytest --co -q | wc -l)" -eq 3',
    "[ $(grep -c x f | tail -1) = 3 ]",
    "python app.py | grep -q hello",
    "./gen.sh | sort > out; diff out want",
    "pytest --co -q | grep -q test_a",
    "npm ls --json | jq -e .dependencies.x",
    "make -n test | grep -q pytest",
    "grep -c x f | awk '$1 < 2 {exit 1}'",
    "grep -q a f || grep -q b f",
    "test ! -f x || pytest",
    "! grep -rq TODO src",
    "rm -f log || true; pytest",
    "docker rm -f db || true; docker run --rm image",
    "for f in a b; do test -f $f || exit 1; done",
    "while ! curl -sf localhost; do sleep 1; done; pytest",
    "if pytest; then echo ok; else exit 1; fi",
    "if ! grep -q x f; then exit 1; fi",
    "if [ -f x ]; then pytest; fi",
    "case $x in a) pytest || true;; esac",
    "f() { pytest || true; }; f",
    "trap 'rm x' EXIT; pytest; true",
    "diff <(pytest) want",
    "make data | python check.py",
    "pytest || (false && true)",
    "pytest && exit 0; exit 1",
    "exit 1; pytest; true",
    "if pytest; then exit 0; fi; exit 1",
    "if pytest; then exit 0; else echo no; fi; exit 1",
    "pytest || ",
    "| pytest",
    "",
    "(" * 5_000,
)


def test_a_check_that_fails_with_its_program_is_not_reported() -> None:
    assert not [command for command in JUDGING if exit_code.hidden_failures(command) != ()]


def test_pipefail_is_trusted_only_in_a_shell_that_has_it() -> None:
    assert exit_code.hidden_failures("set -o pipefail; pytest | tee log") == (
        Hidden("pytest", PIPE, "tee log", pipefail=True),
    )
