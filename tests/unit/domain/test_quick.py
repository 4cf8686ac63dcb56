"""Names of quick plans, and the claims for the files that a person names."""

from __future__ import annotations

from idumb.domain.plans import new_task
from idumb.domain.plans.phase_ids import QUICK
from tests.support.cases import every


def test_the_phase_of_a_quick_plan_contains_its_number() -> None:
    cases: list[tuple[str, int | None]] = [
        ("Q1", 1),
        ("q1", 1),
        ("Q012", 12),
        ("Q0", None),
        ("1", None),
        ("Q1x", None),
        ("Q", None),
    ]
    assert not [(phase, number) for phase, number in cases if QUICK.number_of(phase) != number]


@every(
    "words, folder",
    [
        ("Fix the typo", "001-fix-the-typo"),
        ("Größe ändern!", "001-große-andern".replace("ß", "")),
        ("../../etc", "001-etc"),
        ("修正", "001"),
        ("a" * 90, "001-" + "a" * 40),
    ],
)
def test_a_folder_name_has_number_and_words(words: str, folder: str) -> None:
    assert new_task.quick_folder(1, words) == f".planning/quick/{folder}"
    assert QUICK.number_in(folder) == 1


def test_a_named_file_must_change_and_files_below_a_folder_may() -> None:
    named = new_task.named(["a.txt", "new.txt", "docs/", "a.txt"], {"a.txt"}.__contains__, str)
    assert [claim.written for claim in named] == [
        "modify `a.txt`", "create `new.txt`", "create `docs/`", "modify `docs/`", "delete `docs/`",
    ]  # fmt: skip


def test_a_named_file_may_have_a_verb_as_in_a_plan() -> None:
    """The grammar of `plan add-task`; a file whose name begins with a verb is that file."""
    named = new_task.named(["create x.txt, `b c.py`", "move a.txt to d.txt", "read me"], {"read me"}.__contains__, str)
    written = ["create `x.txt`", "create `b c.py`", "move `a.txt` to `d.txt`", "modify `read me`"]
    assert [claim.written for claim in named] == written


def test_a_comma_separates_named_files_except_in_braces_and_in_the_name_of_a_file() -> None:
    exists = {"a.txt", "c, d.txt"}.__contains__
    named = new_task.named(["a.txt, new.txt, create x.txt", "c, d.txt", "create src/{a,b}.py"], exists, str)
    written = ["modify `a.txt`", "create `new.txt`", "create `x.txt`", "modify `c, d.txt`", "create `src/{a,b}.py`"]
    assert [claim.written for claim in named] == written


def test_a_title_is_one_line_that_fits_into_a_heading() -> None:
    assert new_task.QuickRequest("Fix\n  it").title == "Fix it"
    assert len(new_task.QuickRequest("word " * 100).title) <= new_task.LONGEST_TITLE
