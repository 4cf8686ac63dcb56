"""Each gate catches broken work and lets honest work pass; with the gate off, the broken work passes (R-GATE-1).

Plans, checkers, agreement and completion have no work of their own to judge: see `_ELSEWHERE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from idumb.domain.agent import AgentRequest
from idumb.domain.plans.plan import Condition, Invariant, Limits, NonGoal, SymbolClaim
from idumb.domain.proof import gate_table
from idumb.domain.settings import Binding, GateSettings, Settings
from tests.support.cases import every
from tests.support.engine_run import EngineRun, task

_ROOT = Path(__file__).parents[3]
_ELSEWHERE = {
    "plan": "tests/unit/domain/test_intake_gates.py",
    "test-intent": "tests/cli/test_negative_control.py",
    "types": "tests/adapters/gates/test_checkers.py",
    "lint": "tests/adapters/gates/test_checkers.py",
    "agreement": "tests/unit/domain/test_verification.py",
    "completion": "tests/unit/domain/test_verification.py",
}


class Work(NamedTuple):
    """A file before the task ("" if there is none) and after it."""

    path: str
    before: str
    after: str


class Case(NamedTuple):
    """`task` and `plan` are fields that ask for the gate; off, they have the values of `off`.

    A gate without `off` is turned off by level 0. `threshold` is a setting of the gate.
    """

    broken: tuple[Work, ...]
    honest: tuple[Work, ...]
    task: Mapping[str, Any] = {}
    plan: Mapping[str, Any] = {}
    off: Mapping[str, Any] | None = None
    threshold: int | None = None


PY, GO, JS = "def load(path: str) -> str:\n    return path\n", "package a\n\nfunc Load() {}\n", "f()\n"
OK = (Work("a.py", "", "# ok\n"), Work("a.go", "", "// ok\n"), Work("a.js", "", "// ok\n"))
NOT_OK = (Work("a.py", "", "# bad\n"), Work("a.go", "", "// bad\n"), Work("a.js", "", "// bad\n"))
ANY_OK = {"a.py": "grep -q ok a.py", "a.go": "grep -q ok a.go", "a.js": "grep -q ok a.js"}
INVARIANTS = (Invariant("INV-1", "it holds", "check"),)
CASES: dict[str, Case] = {
    "conditions": Case(
        (Work("bad.py", "", PY), Work("bad.go", "", GO), Work("bad.js", "", JS)),
        OK,
        task={"postconditions": tuple(Condition("file-absent", f"bad.{end}") for end in ("py", "go", "js"))},
        off={"postconditions": ()},
    ),
    "ledger": Case(
        (
            Work("a.py", "", PY + "\n\ndef other():\n    pass\n"),
            Work("b.py", PY, PY + "\n\nOTHER = 1\n"),
            Work("c.pyi", PY, PY + "\n\nclass Other: ...\n"),
        ),
        (
            Work("a.py", "", PY + "\n\ndef _other():\n    pass\n"),
            Work("b.py", "", PY + "\n\n_OTHER = 1\n"),
            Work("c.pyi", "", PY + "\n\nclass _Other: ...\n"),
        ),
        task={"symbols": (SymbolClaim("add", "[lL]oad"),)},
        off={"symbols": None},
    ),
    "criteria": Case(NOT_OK, OK, task={"verify": ("check",)}, off={"verify": ("true",)}),
    "invariants": Case(NOT_OK, OK, plan={"invariants": INVARIANTS}, off={"invariants": ()}),
    "non-goals": Case(
        (Work("a.py", PY, "\n" + PY + "\n"), Work("b/a.go", GO, GO + "\n"), Work("b/c.md", "", "# c\n")),
        (Work("c.py", PY, PY + "\n"), Work("b.go", GO, GO + "\n"), Work("c.md", "", "# c\n")),
        plan={"non_goals": (NonGoal("NG-1", "nothing else", paths=("a.py", "b")),)},
    ),
    "syntax": Case(
        (Work("a.py", "", "def (\n"), Work("a.json", "{}\n", "{\n"), Work("a.toml", "", "a = \n")),
        (Work("a.py", "", PY), Work("a.json", "{\n", "{{\n"), Work("a.toml", "", "a = 1\n")),
    ),
    "size": Case(
        (Work("a.py", "", PY), Work("a.go", "", GO), Work("a.md", "", "# a\n")),
        (Work("src/a.py", "", PY), Work("src/a.go", "", GO), Work("src/a.md", "", "# a\n")),
        task={"limits": Limits(paths=("src/**",))},
    ),
    "specification": Case(
        (
            Work("a.py", PY, PY.replace("path: str", "path")),
            Work("b.py", "", PY.replace(" -> str", "")),
            Work("c.py", "", "def save() -> None:\n    os.remove('a')\n"),
        ),
        (Work("a.py", "", PY), Work("b.py", "", PY), Work("a.go", "", GO)),
    ),
    "design": Case(
        (
            Work("a.py", "", "import b\n"),
            Work("c.py", "", "from d import one\n"),
            Work("e.py", PY, PY + "\n\ndef f():\n    if a and b or c:\n        for d in e:\n            pass\n"),
        ),
        (
            Work("a.py", "", "def late():\n    import b\n"),
            Work("c.py", "", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import d\n"),
            Work("e.py", PY, PY + "\n\ndef f():\n    load()  # if for case\n"),
        ),
        threshold=60,
    ),
    "change-class": Case(
        (
            Work("a.py", PY, PY.replace("load", "read")),
            Work("b.py", PY, PY + "\n\ndef other() -> None: ...\n"),
            Work("c.py", PY + "\n\nA = 1\n", PY + "\n\n_a = 1\n"),
        ),
        (
            Work("a.py", PY, PY.replace("return path", "return str(path)")),
            Work("b.py", PY, PY + "\n\ndef _other() -> None: ...\n"),
            Work("c.py", PY + "\n\nA = 1\n", PY + "\n\nA = 2\n"),
        ),
        task={"change": "preserving"},
    ),
}
OTHERS = {"b.py": b"import a\n", "d.py": b"import c\n"}
"""Files of the project beside the changed one."""


def _status(name: str, case: Case, work: Work, *, on: bool) -> str:
    """Run one task whose builder does `work`; return the status of the task."""

    def build(_: AgentRequest, files: dict[str, bytes]) -> None:
        files[work.path] = work.after.encode()

    check = ANY_OK.get(work.path, "true")
    off = {} if on or case.off is None else case.off
    fields = {key: off.get(key, _checked(value, check)) for key, value in case.task.items()}
    row = gate_table.of_name(name)
    assert row is not None
    level = 1 if on or case.off is not None else 0
    settings = Settings(
        builder="builder",
        bindings={"builder": Binding("builder", "scripted")},
        gates={row.name: GateSettings(level=level, threshold=case.threshold)},
    )
    plan = {key: off.get(key, _checked(value, check)) for key, value in case.plan.items()}
    run = EngineRun(task("T1-01", files=[work.path], **fields), work=build, settings=settings, plan=plan)
    run.repository.files.update(OTHERS)
    if work.before:
        run.repository.files[work.path] = work.before.encode()
    run.repository.commit_all("before")
    run.run(max_attempts=1)
    return run.status()["T1-01"]


def _checked(value: Any, check: str) -> Any:
    """Return the value of a field with the command of this example."""
    if value == ("check",):
        return (check,)
    return (replace(value[0], check=check),) if value == INVARIANTS else value


@every("name", CASES)
def test_a_gate_catches_broken_work_and_passes_honest_work_and_off_it_catches_nothing(name: str) -> None:
    case = CASES[name]
    for work in case.broken:
        assert _status(name, case, work, on=True) != "completed", work
        assert _status(name, case, work, on=False) == "completed", work
    for work in case.honest:
        assert _status(name, case, work, on=True) == "completed", work


def test_every_gate_has_three_broken_and_three_honest_examples() -> None:
    assert {row.name for row in gate_table.ROWS} == CASES.keys() | _ELSEWHERE.keys()
    assert [path for path in _ELSEWHERE.values() if not (_ROOT / path).is_file()] == []
    for name, case in CASES.items():
        for examples in (case.broken, case.honest):
            assert len(examples) >= 3, name
