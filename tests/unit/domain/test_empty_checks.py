"""Checks that prove nothing: a program's failure is hidden, or no test ran (R-RUN-3)."""

from __future__ import annotations

from idumb.domain.plans import empty_checks
from idumb.domain.plans.empty_checks import Hidden

HIDING = (
    ("pytest | tee log", "pytest", "tee log"),
    ("pytest |& cat", "pytest", "cat"),
    ("timeout 60 bash -c 'pytest | cat'", "pytest", "cat"),
    ("""sh -c 'bash -c "pytest || true"'""", "pytest", "true"),
    ("eval 'pytest; echo done'", "pytest", "echo done"),
    ("./tool --self-test | tail -1", "./tool --self-test", "tail -1"),
    ("pytest -q | grep -q '3 passed'", "pytest -q", "grep -q 3 passed"),
    ("set -o pipefail -e; make; set +e; pytest; echo done", "pytest", "echo done"),
    ("set -- -e; pytest; echo done", "pytest", "echo done"),
    ("set -o pipefail; pytest | tee log", "pytest", "tee log"),
    ("python check.py | true", "python check.py", "true"),
    ("npm test || true", "npm test", "true"),
    ("python check.py || echo skipped", "python check.py", "echo skipped"),
    ("mkdir -p a; " * 40 + "pytest || true", "pytest", "true"),
    ("pytest; true", "pytest", "true"),
    ("true || pytest", "pytest", "true"),
    ("pytest; exit 0", "pytest", "exit 0"),
    ('pytest; echo "exit $?"', "pytest", "echo exit $?"),
    ("set -e; ! grep -q a x; true", "! grep -q a x", "true"),
    ("grep -q a x; grep -q b y", "grep -q a x", "grep -q b y"),
    ("node server.js & P=$!; curl -f localhost; kill $P", "curl -f localhost", "kill $P"),
    ("pytest &", "pytest", "&"),
    ("pytest &> log", "pytest", "&"),
    ("if pytest; then echo ok; fi", "pytest", "if"),
    ("if make test; then echo a; else echo b; fi", "make test", "echo b"),
    ("if cd a && pytest\nthen\n  exit 0\nfi\n", "pytest", "if"),
    ("pytest || { echo failed; exit 0; }", "pytest", "exit 0"),
    ("pytest || (echo x; true)", "pytest", "true"),
    ("( (pytest) || true ) && echo done", "pytest", "echo done"),
    ("{ pytest || true; } > log", "pytest", "true"),
    ("case $x in a) pytest || true;; esac", "pytest", "true"),
    ("(pytest; exit 0) && make test", "pytest", "make test"),
    ("for f in a b; do test -f $f; done", "test -f $f", "for"),
    ("set -e; { make; make test; } || exit 1", "make", "make test"),
    ("(set -e; make test); true", "make test", "true"),
)


def test_a_hidden_failure_is_reported() -> None:
    assert not [
        command for command, program, by in HIDING if empty_checks.hidden_failure(command) != Hidden(program, by)
    ]


JUDGING = (
    "bash -ec 'pytest; echo done'",
    "if pytest; then exit 0; else exit 1; fi",
    "if ! pytest; then exit 1; fi",
    "if test -f setup.cfg; then pytest; fi",
    "if pytest; then echo a; elif make test; then echo b; else exit 2; fi",
    "set -e; for f in a b; do pytest $f; done",
    "set -e; pytest; if grep -q TODO src/a.py; then exit 1; fi",
    "set -e; pytest; if a; then b; elif grep -q x y; then exit 1; fi",
    "set -e; if a; then pytest; fi; echo done",
    "set -e; { false; pytest; } || exit 1",
    "for f in a b; do pytest $f || exit 1; done",
    "while ! curl -sf localhost; do sleep 1; done",
    "case $x in a) pytest;; (b|c) make test;; esac",
    "pytest || (echo bad; exit 1)",
    "{ pytest; } | cat",
    "fi; pytest || true",
    "pytest || exit 1; echo done",
    "pytest",
    "set -o errexit; pytest; echo done",
    "bash -o pipefail -c 'pytest | tee log'",
    "pytest > log 2>&1; s=$?; cat log; exit $s",
    "pytest & wait $!",
    "node server.js & sleep 1; curl -sf localhost:3000 | grep -q ok",
    "node server.js & pytest",
    "node server.js || exit 1 & pytest",
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
    "f() { pytest || true; }; f",
    "trap 'rm x' EXIT; pytest; true",
    "diff <(pytest) want",
    "pytest || ",
    "(" * 5_000,
    "( " * 5_000 + ")" * 5_000,
    "eval " * 3_000 + "'pytest || true'",
    "(cd web && npm test) && (cd api && pytest)",
)


def test_a_check_that_fails_with_its_program_is_not_reported() -> None:
    """Nor is what cannot be read, such as functions."""
    assert not [command for command in JUDGING if empty_checks.hidden_failure(command) is not None]


PYTEST = "============================== {} in 0.02s ==============================\n"
NODE = "ℹ tests {}\nℹ suites {}\nℹ pass {}\nℹ fail 0\nℹ cancelled 0\nℹ skipped {}\nℹ todo {}\nℹ duration_ms 88.5\n"
TAP = NODE.replace("ℹ", "#")
UNITTEST = "{}\n----------------------------------------------------------------------\nRan {} in 0.001s\n\n{}\n"
JEST = "Test Suites: 1 skipped, 0 of 1 total\nTests:       {}\nSnapshots:   0 total\nTime:        0.324 s\n"
VITEST = " Test Files  1 skipped (1)\n      Tests  {}\n   Start at  22:24:50\n"
CARGO = "\nrunning {0} tests\n{3}\ntest result: ok. {1} passed; 0 failed; {2} ignored; 0 measured; 0 filtered out\n\n"
NO_CRATE_TESTS = CARGO.format(0, 0, 0, "")
UNIT = "     Running unittests src/lib.rs (/tmp/target/debug/deps/a-83d69e65c7120d7f)\n"
COLOURED = "\x1b[33m==== \x1b[33m\x1b[1m1 skipped\x1b[0m\x1b[33m in 0.02s\x1b[0m\x1b[33m ====\x1b[0m\n"
NO_GO = "?   \tex/d\t[no test files]\n"
GO = "ok  \tex/a\t0.004s\n"
GO_EMPTY = "ok  \tex/c\t(cached) [no tests to run]\n"

NONE = (
    ("pytest", PYTEST.format("no tests ran"), "pytest ran no test"),
    ("pytest -q tests/test_a.py", "no tests ran in 0.01s\n", "pytest ran no test"),
    ("pytest || true", PYTEST.format("no tests ran"), "pytest ran no test"),
    ("python -m pytest", PYTEST.format("1 skipped"), "pytest skipped the only test"),
    ("pytest -q", "ss   [100%]\n2 skipped in 0.00s\n", "pytest skipped all 2 tests"),
    ("pytest -n2", PYTEST.format("3 skipped, 1 warning"), "pytest skipped all 3 tests"),
    ("pytest", PYTEST.format("1 deselected"), "pytest ran no test"),
    ("pytest", PYTEST.format("1 test collected"), "pytest ran no test"),
    ("pytest", PYTEST.format("1/2 tests collected (1 deselected)"), "pytest ran no test"),
    ("pytest", PYTEST.format("2 skipped").replace("0.02s", "61.20s (0:01:01)"), "pytest skipped all 2 tests"),
    ("pytest --color=yes", COLOURED, "pytest skipped the only test"),
    ("pytest", "=== 1 skipped in 0.02 seconds ===\n", "pytest skipped"),
    ("uv run pytest", PYTEST.format("1 skipped"), "pytest skipped"),
    ("poetry run -- pytest -q", PYTEST.format("1 skipped"), "pytest skipped"),
    ("coverage run -m pytest", PYTEST.format("1 skipped"), "pytest skipped"),
    ("env CI=1 timeout 60 .venv/bin/pytest", PYTEST.format("1 skipped"), "pytest skipped"),
    ("bash -c 'cd api && pytest'", PYTEST.format("1 skipped"), "pytest skipped"),
    ("tox", PYTEST.format("1 skipped") + "  py: OK (1.48=setup[0.62]+cmd[0.86] seconds)\n", "pytest skipped"),
    ("tox -e py", PYTEST.format("1 skipped"), "pytest skipped"),
    ("make test", PYTEST.format("1 skipped"), "pytest skipped"),
    ("sh scripts/test.sh", PYTEST.format("1 skipped"), "pytest skipped"),
    ("./run-checks", PYTEST.format("1 skipped"), "pytest skipped"),
    ("python -m unittest", UNITTEST.format("", "0 tests", "OK"), "unittest ran no test"),
    ("python -m unittest", UNITTEST.format("", "0 tests", "OK (skipped=1)"), "unittest skipped the only test"),
    ("python -m unittest", UNITTEST.format("", "0 tests", "NO TESTS RAN (skipped=2)"), "unittest skipped all 2"),
    ("python -m unittest", UNITTEST.format("ss", "2 tests", "OK (skipped=2)"), "unittest skipped all 2 tests"),
    (
        "python -m unittest -v",
        UNITTEST.format("test_a (m.A.test_a) ... skipped 'x'\n", "1 test", "OK (skipped=1)"),
        "unittest skipped the only test",
    ),
    ("python3 tests/test_a.py", UNITTEST.format("", "0 tests", "OK"), "unittest ran no test"),
    ("python manage.py test", UNITTEST.format("Found 0 test(s).", "0 tests", "OK"), "unittest ran no test"),
    ("node --test", NODE.format(0, 0, 0, 0, 0), "the test program ran no test"),
    ("node --test", TAP.format(2, 0, 0, 2, 0), "the test program skipped all 2 tests"),
    ("node --test", TAP.format(1, 0, 0, 0, 1), "the test program skipped the only test"),
    ("node --test a.js", NODE.format(0, 1, 0, 0, 0), "the test program ran no test"),
    ("node test/a.test.js", TAP.format(2, 0, 0, 2, 0), "the test program skipped"),
    ("tape test.js", "TAP version 13\n\n1..0\n# tests 0\n# pass  0\n\n# ok\n", "the test program ran no test"),
    ("npx mocha", "\n\n  0 passing (1ms)\n\n", "mocha ran no test"),
    ("mocha", "\n  a\n    - b\n    - p\n\n\n  0 passing (2ms)\n  2 pending\n\n", "mocha skipped all 2 tests"),
    ("mocha -R tap", "ok 1 a b # SKIP -\n# tests 0\n# pass 0\n# fail 0\n1..1\n", "the test program ran no test"),
    ("npx jest", JEST.format("2 skipped, 2 total"), "jest skipped all 2 tests"),
    ("jest", JEST.format("1 skipped, 1 todo, 2 total"), "jest skipped all 2 tests"),
    ("npm test", "\n> jest --passWithNoTests\n\nNo tests found, exiting with code 0\n", "jest ran no test"),
    ("npx react-scripts test", JEST.format("1 skipped, 1 total"), "jest skipped"),
    ("npx craco test", JEST.format("1 skipped, 1 total"), "jest skipped"),
    ("pnpm --filter api test", JEST.format("1 skipped, 1 total"), "jest skipped"),
    ("npx vitest run", VITEST.format("1 skipped (1)"), "vitest skipped the only test"),
    ("vitest run", VITEST.format("no tests"), "vitest ran no test"),
    ("vitest run", VITEST.format("1 skipped | 1 todo (2)"), "vitest skipped all 2 tests"),
    ("yarn vitest", "No test files found, exiting with code 0\n", "vitest ran no test"),
    ("go test ./...", NO_GO + GO_EMPTY, "go test ran no test"),
    ("go test -cover ./...", "\tex/d\t\tcoverage: 0.0% of statements\n", "go test ran no test"),
    ("cargo test", f"{UNIT}{NO_CRATE_TESTS}   Doc-tests a\n{NO_CRATE_TESTS}", "cargo test ran no test"),
    ("cargo +nightly test", UNIT + CARGO.format(1, 0, 1, "test a ... ignored"), "cargo test skipped the only test"),
    ("cargo nextest run", "     Summary [   0.005s] 0 tests run: 0 passed, 2 skipped\n", "cargo test skipped all 2"),
)  # fmt: skip


NONE_OF_OTHERS = (
    ("bundle exec rspec", "No examples found.\n\n0 examples, 0 failures\n"),
    ("rspec spec", "Finished in 0.00019 seconds\n1 example, 0 failures, 1 pending\n"),
    ("rake test", "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n"),
    ("ruby -Itest test/a_test.rb", "1 runs, 0 assertions, 0 failures, 0 errors, 1 skips\n"),
    ("mix test", "Finished in 0.03 seconds\n1 test, 0 failures, 1 skipped\n"),
    ("vendor/bin/phpunit", "No tests executed!\n"),
    ("phpunit", "OK, but some tests were skipped!\nTests: 2, Assertions: 0, Warnings: 1, Skipped: 2, Risky: 1.\n"),
    ("mvn test", "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n[INFO] BUILD SUCCESS\n"),
    ("dotnet test", "Skipped!  - Failed:     0, Passed:     0, Skipped:     1, Total:     1, Duration: 5 ms - t.dll\n"),
    ("dotnet test --filter X", "No test matches the given testcase filter `X` in /w/t.dll\n"),
    ("swift test", "\t Executed 1 test, with 1 test skipped and 0 failures (0 unexpected) in 0.0 (0.0) seconds\n"),
    ("bats tests", "1..0\n"),
    ("prove -r t", "Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS\n"),
    ("ctest --test-dir build", "Test project /b\nNo tests were found!!!\n"),
    ("bun test", " 0 pass\n 1 skip\n 0 fail\nRan 1 tests across 1 files. [5.00ms]\n"),
    ("deno test", "x ... ignored (0ms)\n\nok | 0 passed | 0 failed | 1 ignored (5ms)\n"),
    ("npx playwright test", "Running 1 test using 1 worker\n\n  1 skipped\n"),
)


def test_a_check_without_a_test_is_recognised() -> None:
    others = [(command, output, "") for command, output in NONE_OF_OTHERS]
    for command, output, words in (*NONE, *others):
        found = empty_checks.ran_no_test(command, output)
        assert words in found, (command, output)
        assert "so the check proves nothing." in found


MAVEN = "[INFO] Tests run: {}, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in a.B\n"
HONEST = (
    ("pytest", PYTEST.format("1 passed, 3 skipped")),
    ("pytest", PYTEST.format("1 xfailed, 3 skipped")),
    ("pytest", PYTEST.format("1 xpassed")),
    ("pytest", PYTEST.format("3 subtests passed")),
    ("pytest -qq", "s.                                       [100%]\n"),
    ("pytest -qq", "sss [ 50%]\n..s [100%]\n"),
    ("pytest -p no:terminal", ""),
    ("pytest", "Results (0.03s):\n       1 passed\n"),
    ("pytest --collect-only -q", "test_a.py::test_a\n\n1 test collected in 0.00s\n"),
    ("pytest --co tests | grep test_a", PYTEST.format("1 test collected")),
    ("pytest --fixtures", PYTEST.format("no tests ran")),
    ("pytest a && pytest b", PYTEST.format("2 passed") + PYTEST.format("1 skipped")),
    ("pytest a; python -m unittest", PYTEST.format("1 skipped") + UNITTEST.format(".", "1 test", "OK")),
    ("make test", NO_GO + JEST.format("4 passed, 4 total")),
    ("make test", "All checks passed!\n3 files already formatted\n"),
    ("make", "cc -o a a.c\n"),
    ("python -m unittest", UNITTEST.format("..s", "3 tests", "OK (skipped=1)")),
    ("python -m unittest", UNITTEST.format("..ss", "2 tests", "OK (skipped=2)")),
    ("python -m unittest -q", UNITTEST.format("", "2 tests", "OK (skipped=2)")),
    ("python -m unittest", UNITTEST.format("x", "1 test", "OK (expected failures=1)")),
    ("python -m unittest -v", UNITTEST.format("a ... ok\nb ... skipped 'x'\n", "1 test", "OK (skipped=1)")),
    ("node --test", TAP.format(4, 0, 2, 2, 0)),
    ("node --test plain.js", "hi\n" + NODE.format(1, 0, 1, 0, 0)),
    ("node --test --test-reporter=dot", "..\n"),
    ("npm test", "  0 passing (1ms)\n\n  3 passing (1s)\n"),
    ("npm run build", "\n> x@1.0.0 build\n> vite build\n\n✓ built in 1.02s\n"),
    ("jest", JEST.format("1 skipped, 1 passed, 2 total")),
    ("jest --listTests", "/a/b.test.js\n"),
    ("vitest run", VITEST.format("1 passed | 1 skipped (2)")),
    ("go test ./...", NO_GO + GO + GO_EMPTY),
    ("go test -v ./...", "--- PASS: TestA (0.00s)\nPASS\n" + GO + "--- SKIP: TestB (0.00s)\nPASS\n" + GO),
    ("go test -run '^$' ./...", GO_EMPTY),
    ("go test -list . ./a", "TestA\n" + GO_EMPTY),
    ("go test -bench .", "BenchmarkA-2   \t1000000\t 1000 ns/op\nPASS\n" + GO),
    ("go build ./... && go vet ./...", ""),
    ("cargo test", NO_CRATE_TESTS + CARGO.format(1, 1, 0, "test t::a ... ok") + NO_CRATE_TESTS),
    ("cargo test", f"     Running tests/own.rs (x)\n12 scenarios\n{UNIT}{NO_CRATE_TESTS}"),
    ("cargo test -q", f"{NO_CRATE_TESTS}12 scenarios\n{NO_CRATE_TESTS}"),
    ("cargo test --no-run", "  Executable unittests src/lib.rs (x)\n"),
    ("cargo bench", "test result: ok. 0 passed; 0 failed; 0 ignored; 3 measured; 0 filtered out\n"),
    ("rspec", "3 examples, 0 failures, 1 pending\n"),
    ("rake test", "2 runs, 0 assertions, 0 failures, 0 errors, 1 skips\n"),
    ("mix test", "2 tests, 0 failures, 1 excluded\n"),
    ("phpunit a && phpunit b", "OK (1 test, 1 assertion)\nTests: 1, Assertions: 0, Skipped: 1.\n"),
    ("mvn test", MAVEN.format(0) + MAVEN.format(1)),
    ("dotnet test", "Passed!  - Failed:     0, Passed:     1, Skipped:     1, Total:     2, Duration: 5 ms - t.dll\n"),
    ("swift test", "\t Executed 0 tests, with 0 failures (0 unexpected)\n✔ Test run with 1 test in 1 suite passed.\n"),
    ("bun test", " 2 pass\n 1 skip\n 0 fail\n"),
    ("deno test", "ok | 1 passed (2 steps) | 0 failed | 1 ignored (5ms)\n"),
    ("npx playwright test", "  1 skipped\n  2 passed (2.0s)\n"),
    ("npx playwright test", "  1 flaky\n    [chromium] › a.spec.ts:3:1 › it works\n  1 skipped\n"),
    ("npx playwright test", "  1 skipped\n  1 did not run\n  2 passed (2.0s)\n"),
    ("prove -v t", "t/a.t .. \n1..0 # SKIP no server\nskipped: no server\nt/b.t .. \nok 1\n1..1\nok\nResult: PASS\n"),
    ("dotnet test -v n", "No test is available in /x/Core.dll. Make sure\nTest Run Successful.\nTotal tests: 3\n"),
    # text of other programs
    ("cat last.log", PYTEST.format("no tests ran")),
    ("grep -r pytest docs", "docs/faq.md:\n" + PYTEST.format("no tests ran")),
    ("echo 'pytest skipped'; cat log | tail -n 3", PYTEST.format("1 skipped")),
    ("# pytest\nsed -n 1,5p log", PYTEST.format("1 skipped")),
    ("diff <(pytest --version) x", PYTEST.format("1 skipped")),
    ("bash -c 'cat tests/last.log'", PYTEST.format("1 skipped")),
    ("node -e 'require(\"./test/log.js\")'", NODE.format(0, 0, 0, 0, 0)),
    ("sh tools/report.sh", PYTEST.format("1 skipped")),
    ("ruff check tests", PYTEST.format("1 skipped")),
    ("cat tests/test_a.py", UNITTEST.format("", "0 tests", "OK")),
    ("python manage.py migrate", UNITTEST.format("", "0 tests", "OK")),
    ("cat test/log.js", NODE.format(0, 0, 0, 0, 0)),
    ("cargo run", NO_CRATE_TESTS),
    ("python tool.py report", UNITTEST.format("", "0 tests", "OK")),
    ("./bin/report", "  0 passing (1ms)\n"),
    ("pytest", "the words '1 skipped in 0.02s' inside a line\n" + PYTEST.format("1 passed")),
    ("", ""),
)  # fmt: skip


def test_an_honest_check_is_not_refused() -> None:
    assert not [(command, output) for command, output in HONEST if empty_checks.ran_no_test(command, output)]
