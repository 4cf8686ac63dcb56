"""Size limits against what changed, and the table of gates (R-GATE-1, R-GATE-3)."""

from __future__ import annotations

from idumb.domain.plans.plan import Limits, NonGoal, Plan, Task
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.gate import Inputs
from idumb.domain.proof.ledger import CREATED, LINK, MODIFIED, Change
from idumb.gates import limits, registry
from tests.support import changes
from tests.support.cases import every

CHANGES = (Change("src/a.py", CREATED, None, None), Change("docs/b.md", MODIFIED, None, None))
COUNTS = {"src/a.py": (10, 0), "docs/b.md": (3, 2)}


@every(
    "declared, results, words",
    [
        (Limits(files=2), [evidence.PASSED], "2 files changed"),
        (Limits(files=1), [evidence.FAILED], "2 files changed"),
        (Limits(lines=15), [evidence.PASSED], "15 lines changed"),
        (Limits(lines=14), [evidence.FAILED], "15 lines changed"),
        (Limits(paths=("src/**", "docs/*.md")), [evidence.PASSED], "all 2 changed paths are allowed"),
        (Limits(paths=("src/**",)), [evidence.FAILED], "outside: docs/b.md"),
        (Limits(2, 3, ("src/**",)), [evidence.PASSED, evidence.FAILED, evidence.FAILED], ""),
        (Limits(), [], ""),
    ],
)
def test_changes_are_compared_with_each_limit(declared: Limits, results: list[str], words: str) -> None:
    """R-PLAN-3, R-RUN-3."""
    violations = limits.check(declared, CHANGES, COUNTS)
    assert [e.result for e in violations] == results
    assert words in "".join(e.output for e in violations)


def test_binary_files_count_as_files_and_not_as_lines() -> None:
    assert limits.changed_lines(CHANGES, {"src/a.py": (None, None)}) == 0


def judged(task: Task, plan: Plan) -> list[str]:
    inputs = Inputs(task, plan, CHANGES, lambda *_: None, lambda: COUNTS)
    return [proof.result for name, result in registry.StepGates().judge(inputs) for proof in result.proofs if name]


def test_the_task_s_limits_override_the_plan_s() -> None:
    plan = Plan("p", "", "1", "01", "", "", limits=Limits(files=1))
    assert judged(Task("T1-01", ""), plan) == [evidence.FAILED]
    assert judged(Task("T1-01", "", limits=Limits(files=2)), plan) == [evidence.PASSED]
    assert judged(Task("T1-01", ""), Plan("p", "", "1", "01", "", "")) == []


def test_the_gates_run_in_the_order_of_the_table() -> None:
    of_table = [row.name for row in gate_table.ROWS]
    places = [of_table.index(gate.name) for gate in registry.GATES]
    assert places == sorted(places)
    assert all(gate_table.ROWS[place].stage in (gate_table.STEP, gate_table.POST) for place in places)
    assert all(callable(gate.load()) for gate in registry.GATES)


PY = """\
import os


@cached
def login(user):
    return check(user)


class Session:
    def renew(self):
        return 1

    def end(self):
        return 2
"""
GO = """\
package web

func (s *Session) Renew(
\tid string,
) error {
\tif id == "" {
\t\treturn nil
\t}

\treturn s.end()
}

func Other() {
}
"""


def judge(goal: NonGoal, before: dict[str, str], after: dict[str, str]) -> evidence.Evidence:
    return changes.judge(changes.inputs(before, after, non_goals=(goal,)))["non-goals"]


def paths(*globs: str) -> NonGoal:
    return NonGoal("NG-1", "no change to authentication", globs)


def symbols(*names: str) -> NonGoal:
    return NonGoal("NG-1", "no change to authentication", (), names)


BROKEN = {
    "a file below a folder": (paths("src/auth"), {}, {"src/auth/new.py": "x = 1\n"}, "src/auth/new.py: created"),
    "a formatting change": (paths("src/auth/**"), {"src/auth/a.js": "f()"}, {"src/auth/a.js": "f()\n"}, "modified"),
    "a deleted file": (paths("auth.go"), {"auth.go": GO}, {}, "auth.go: deleted"),
    "the body of a Python function": (
        symbols("login"), {"a.py": PY}, {"a.py": PY.replace("check(user)", "True")}, "a.py: login changed",
    ),
    "a decorator": (symbols("login"), {"a.py": PY}, {"a.py": PY.replace("@cached\n", "")}, "login changed"),
    "a Python method": (
        symbols("Session.renew"), {"a.py": PY}, {"a.py": PY.replace("return 1", "return 10")}, "Session.renew changed",
    ),
    "only spaces": (symbols("login"), {"a.py": PY}, {"a.py": PY.replace("(user)", "( user )", 1)}, "login changed"),
    "a function that moved away": (
        symbols("login"), {"a.py": PY}, {"a.py": "import os\n", "b.py": PY}, "a.py: login was removed",
    ),
    "a function in a named file": (
        symbols("login in src/*.py"), {"src/a.py": PY}, {"src/a.py": PY.replace("check(user)", "1")}, "login changed",
    ),
    "a new name in a named file": (
        symbols("log* in src/a.py"), {"src/a.py": PY}, {"src/a.py": PY + "\ndef logout(): ...\n"}, "logout was added",
    ),
    "a file that cannot be read any more": (
        symbols("login"), {"a.py": PY}, {"a.py": PY + "def (\n"}, "login cannot be read any more",
    ),
}  # fmt: skip

HONEST = {
    "a file beside the folder": (paths("src/auth"), {}, {"src/author.py": "x = 1\n"}),
    "another file": (paths("src/auth/**", "auth.go"), {"src/web.go": "package a\n"}, {"src/web.go": GO}),
    "another Python function": (symbols("login"), {"a.py": PY}, {"a.py": PY.replace("return 2", "return 3")}),
    "lines before it": (symbols("login", "Session.*"), {"a.py": PY}, {"a.py": PY.replace("os\n", "os\nimport re\n")}),
    "another method": (symbols("Session.renew"), {"a.py": PY}, {"a.py": PY.replace("return 2", "return 3")}),
    "the same name in another file": (symbols("login in a.py"), {"b.py": PY}, {"b.py": PY.replace("check", "test")}),
    "a new function of that name elsewhere": (symbols("login"), {"b.py": "f()\n"}, {"b.py": PY}),
    "line endings": (symbols("login"), {"a.py": PY}, {"a.py": PY.replace("\n", "\r\n")}),
    "a language without parser": (symbols("login"), {"a.rb": "def login\nend\n"}, {"a.rb": "def login\n  1\nend\n"}),
}  # fmt: skip


@every("goal, before, after, words", BROKEN.values())
def test_a_change_of_a_non_goal_is_named(
    goal: NonGoal, before: dict[str, str], after: dict[str, str], words: str
) -> None:
    proof = judge(goal, before, after)
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert "which the non-goal NG-1 excludes: no change to authentication" in proof.words


@every("goal, before, after", HONEST.values())
def test_an_honest_change_passes(goal: NonGoal, before: dict[str, str], after: dict[str, str]) -> None:
    assert judge(goal, before, after).result == evidence.PASSED


def test_the_evidence_names_what_was_not_judged() -> None:
    proof = judge(symbols("login"), {"a.rb": "def login\nend\n"}, {"a.rb": "x\n"})
    assert "symbols not judged, because the language is unknown: a.rb" in proof.output


def test_links_and_plans_without_places_are_not_read() -> None:
    link = changes.inputs({"a.py": PY}, {"a.py": "b.py"}, mode=LINK, non_goals=(symbols("login"),))
    assert changes.judge(link)["non-goals"].passed
    words_only = NonGoal("NG-2", "nothing else")
    assert "non-goals" not in changes.judge(changes.inputs({}, {"a.py": PY}, non_goals=(words_only,)))
    both = changes.judge(changes.inputs({}, {"a.py": PY}, non_goals=(paths("b.py"), words_only)))
    assert both["non-goals"].output == "NG-1: unchanged"
