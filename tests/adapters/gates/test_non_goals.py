"""The gate `non-goals`: broken and honest changes in several languages (R-GATE-3)."""

from __future__ import annotations

from idumb.domain.plans.plan import NonGoal
from idumb.domain.proof import evidence
from idumb.domain.proof.ledger import LINK
from tests.support import changes
from tests.support.cases import every

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
    words_only = changes.inputs({}, {"a.py": PY}, non_goals=(NonGoal("NG-1", "nothing else"),))
    assert "non-goals" not in changes.judge(words_only)
