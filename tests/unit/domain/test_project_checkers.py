"""What type checkers and linters print, and what of that is new (R-GATE-3). The outputs are those of real programs."""

from __future__ import annotations

from idumb.domain.proof import project_checkers
from idumb.domain.proof.project_checkers import Finding
from tests.support.cases import every

MYPY = """\
m.py:2: error: Incompatible return value type (got "int", expected "str")  [return-value]
m.py:6: error: Name "f" already defined on line 1  [no-redef]
m.py:6: note: See https://mypy.rtfd.io
Found 2 errors in 1 file (checked 1 source file)
"""
PYRIGHT = """\
/src/m.py
  /src/m.py:2:12 - error: Type "int" is not assignable to return type "str"
    "int" is not assignable to "str" (reportReturnType)
  /src/m.py:9:1 - warning: Import "x" could not be resolved (reportMissingModuleSource)
1 error, 1 warning, 0 informations
"""
TSC = """\
src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.
src/a.ts(2,50): error TS2322: Type 'number' is not assignable to type 'string'.
"""
TSC_PRETTY = (
    "\x1b[96ma.ts\x1b[0m:\x1b[93m1\x1b[0m:\x1b[93m7\x1b[0m - \x1b[91merror\x1b[0m\x1b[90m TS2322: \x1b[0mType 'a'.\n"
    '\n\x1b[7m1\x1b[0m const x: number = "a";\n\x1b[7m \x1b[0m \x1b[91m      ~\x1b[0m\n'
)
GO = '# g\n./main.go:6:2: fmt.Printf format %d has arg "a" of wrong type string\n'  # fmt: skip
CARGO_SHORT = """\
src/main.rs:2:17: error[E0308]: mismatched types: expected `u8`, found `&str`
error: could not compile `r` (bin "r") due to 1 previous error
"""
CARGO = """\
error[E0308]: mismatched types
 --> src/main.rs:2:17
  |
2 |     let x: u8 = "a";
  |            --   ^^^ expected `u8`, found `&str`

For more information about this error, try `rustc --explain E0308`.
"""
RUFF = "m.py:4:1: I001 [*] Import block is un-sorted\nm.py:4:8: F401 [*] `os` imported but unused\nFound 2 errors.\n"
RUFF_FULL = """\
F401 [*] `os` imported but unused
 --> m.py:4:8
  |
4 | import os
  |        ^^
help: Remove unused import: `os`

Found 1 error.
"""
ESLINT = """\

/src/b.js
  1:7   error    'a' is assigned a value but never used  no-unused-vars
  3:1   warning  Unexpected console statement            no-console

/src/c.js
  2:1  error  Parsing error: Unexpected token

✖ 3 problems (2 errors, 1 warning)
"""
OUTPUTS = {
    "mypy": (MYPY, [("m.py", 2, "Incompatible return value type"), ("m.py", 6, 'Name "f" already defined on line [')]),
    "pyright": (PYRIGHT, [("/src/m.py", 2, 'error: Type "int" is not assignable to return type "str"')]),
    "tsc": (TSC, [("src/a.ts", 1, "TS2322: Type 'string'"), ("src/a.ts", 2, "TS2322: Type 'number'")]),
    "tsc, for people": (TSC_PRETTY, [("a.ts", 1, "error TS2322: Type 'a'.")]),
    "go vet": (GO, [("main.go", 6, "fmt.Printf format %d")]),
    "go vet, types": ("# g\nvet: ./b.go:3:29: undeclared name: y\n", [("b.go", 3, "undeclared name: y")]),
    "cargo check, short": (CARGO_SHORT, [("src/main.rs", 2, "error[E0308]: mismatched types")]),
    "cargo check": (CARGO, [("src/main.rs", 2, "error[E0308]: mismatched types")]),
    "ruff": (RUFF, [("m.py", 4, "I001 Import"), ("m.py", 4, "F401 `os` imported")]),
    "ruff, full": (RUFF_FULL, [("m.py", 4, "F401 `os` imported but unused")]),
    "eslint": (ESLINT, [("/src/b.js", 1, "error: 'a' is assigned"), ("/src/c.js", 2, "error: Parsing error")]),
    "only warnings": ("a.c:3:1: warning: unused\n", [("a.c", 3, "warning: unused")]),
    "nothing": ("make: *** [lint] Error 1\nsomething went wrong\n", []),
}


@every("output, expected", OUTPUTS.values())
def test_the_errors_of_a_checker_are_read(output: str, expected: list[tuple[str, int, str]]) -> None:
    found = project_checkers.findings(output)
    assert [(each.path, each.line) for each in found] == [(path, line) for path, line, _ in expected]
    assert all(words.removesuffix("[").strip() in each.words for each, (*_, words) in zip(found, expected, strict=True))


def test_lines_may_shift_and_what_occurs_more_often_is_new() -> None:
    before = project_checkers.findings(MYPY)
    shifted = project_checkers.findings(MYPY.replace("m.py:6", "m.py:60").replace("on line 1", "on line 9"))
    assert project_checkers.new_findings(before, shifted, {}) == []
    again = Finding("m.py", 70, before[0].words)
    assert project_checkers.new_findings(before, [*shifted, again], {}) == [again]
    assert project_checkers.new_findings(before, [before[1]], {}) == []


def test_a_file_that_moved_keeps_its_errors() -> None:
    before = project_checkers.findings(MYPY)
    moved = [each._replace(path="n.py") for each in before]
    assert project_checkers.new_findings(before, moved, {"n.py": "m.py"}) == []
    assert project_checkers.new_findings(before, moved, {}) == moved


def test_a_checker_says_if_an_error_stopped_it() -> None:
    assert project_checkers.stopped("n.py:1: error: x  [syntax]\nFound 1 error (errors prevented further checking)\n")
    assert project_checkers.stopped(CARGO_SHORT)
    assert project_checkers.stopped("# g\nvet: ./b.go:3:29: undeclared name: y\n")
    assert not any(project_checkers.stopped(output) for output in (MYPY, TSC, GO, RUFF, ESLINT))
