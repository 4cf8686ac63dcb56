"""Programs whose failure a check hides (R-RUN-3)."""

from __future__ import annotations

from idumb.domain.plans import empty_checks
from idumb.domain.plans.empty_checks import BACKGROUND, FALLBACK, PIPE, SEQUENCE

HIDING = (
    ("pytest | tee log", "pytest", PIPE),
    ("pytest |& cat", "pytest", PIPE),
    ("timeout 60 pytest | cat", "pytest", PIPE),
    ("./tool --self-test | tail -1", "./tool --self-test", PIPE),
    ("pytest -q | grep -q '3 passed'", "pytest -q", PIPE),
    ("set -o pipefail; pytest | tee log", "pytest", PIPE),
    ("python check.py | true", "python check.py", PIPE),
    ("npm test || true", "npm test", FALLBACK),
    ("python check.py || echo skipped", "python check.py", FALLBACK),
    ("pytest; true", "pytest", SEQUENCE),
    ("pytest; exit 0", "pytest", SEQUENCE),
    ('pytest; echo "exit $?"', "pytest", SEQUENCE),
    ("grep -q a x; grep -q b y", "grep -q a x", SEQUENCE),
    ("node server.js & P=$!; curl -f localhost; kill $P", "curl -f localhost", SEQUENCE),
    ("pytest &", "pytest", BACKGROUND),
    ("pytest &> log", "pytest", BACKGROUND),
)


def test_a_failure_is_hidden_once_errexit_is_off_again() -> None:
    (hidden,) = empty_checks.hidden_failures("set -o pipefail -e; make; set +e; pytest; echo done")
    assert hidden.command == "pytest"
    assert empty_checks.hidden_failures("set -- -e; pytest; echo done")


def test_a_hidden_failure_is_reported() -> None:
    assert not [
        (command, program, way)
        for command, program, way in HIDING
        if [(hidden.command, hidden.way) for hidden in empty_checks.hidden_failures(command)] != [(program, way)]
    ]


JUDGING = (
    "bash -c 'pytest | tee log'",
    "if pytest; then echo ok; fi",
    "pytest || exit 1; echo done",
    "pytest",
    "pytest || exit 1",
    "set -o errexit; pytest; echo done",
    "bash -o pipefail -c 'pytest | tee log'",
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
    "make -n test | grep -q pytest",
    "grep -c x f | awk '$1 < 2 {exit 1}'",
    "! grep -rq TODO src",
    "rm -f log || true; pytest",
    "case $x in a) pytest || true;; esac",
    "f() { pytest || true; }; f",
    "trap 'rm x' EXIT; pytest; true",
    "diff <(pytest) want",
    "pytest || ",
    "(" * 5_000,
)


def test_a_check_that_fails_with_its_program_is_not_reported() -> None:
    """Nor is what groups, branches, loops and nested scripts decide."""
    assert not [command for command in JUDGING if empty_checks.hidden_failures(command) != ()]
