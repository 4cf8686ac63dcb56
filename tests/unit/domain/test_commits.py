"""A builder's commits, as data: linear, declared and safe to show (R-GIT-6)."""

from __future__ import annotations

import pytest

from idumb.domain.plans.plan import FileClaim
from idumb.domain.proof import builder_commits, ledger
from idumb.domain.proof.builder_commits import Commit
from idumb.domain.proof.ledger import Change, Entry

BASE = "b" * 40
TREE = "e" * 40
WHO = "Ann Agent <ann@example.invalid> 1700000000 +0100"
FILE = Entry(0o100644, "1" * 40)


def raw(*, parents: tuple[str, ...] = (BASE,), who: str = WHO, message: str = "Add a\n", more: str = "") -> bytes:
    lines = [f"tree {TREE}", *(f"parent {one}" for one in parents), f"author {who}", f"committer {WHO}"]
    return ("\n".join(lines) + more + "\n\n" + message).encode("utf-8", "surrogateescape")


def name(number: int) -> str:
    return f"{number:040x}"


def chain(length: int, *, base: str | None = BASE) -> list[Commit]:
    commits: list[Commit] = []
    before = base
    for number in range(1, length + 1):
        commits.append(builder_commits.parse(name(number), raw(parents=() if before is None else (before,))))
        before = name(number)
    return commits


def touching(path: str, mode: int = 0o100644) -> Commit:
    change = Change(path, ledger.CREATED, None, Entry(mode, "1" * 40))
    return builder_commits.parse(name(1), raw()).with_changes((change,))


def test_a_commit_is_parsed_from_its_bytes() -> None:
    signed = "\ngpgsig -----BEGIN SSH SIGNATURE-----\n abc\n -----END SSH SIGNATURE-----"
    commit = builder_commits.parse(
        name(1), raw(message="Add a\u00a0file \U0001f469\u200d\U0001f4bb\n\nWhy.\n", more=signed)
    )
    assert (commit.wrong, commit.parents, commit.tree) == ("", (BASE,), TREE)
    assert (commit.author, commit.committer) == ("Ann Agent <ann@example.invalid>",) * 2
    assert commit.subject.startswith("Add a")


@pytest.mark.parametrize("length", [1, 2, builder_commits.MOST])
@pytest.mark.parametrize("base", [BASE, None])
def test_a_linear_series_of_commits_on_the_base_is_accepted(length: int, base: str | None) -> None:
    assert builder_commits.problem(chain(length, base=base), base) == ""


def test_no_commit_is_not_a_problem() -> None:
    assert builder_commits.problem((), BASE) == ""


def test_any_other_history_is_refused() -> None:
    cases: list[tuple[list[Commit], str]] = [
        (chain(builder_commits.MOST + 1), "more than 100 commits"),
        (chain(3)[1:], "history was rewritten"),
        (chain(2, base="c" * 40), "history was rewritten"),
        (chain(1, base=None), "history was rewritten"),
        ([builder_commits.parse(name(1), raw(parents=(BASE, "c" * 40)))], "merges 2 commits"),
        ([touching("lib", 0o160000)], "submodule"),
        ([touching("a", 0o100666)], "mode 100666"),
    ]
    assert not [(commits, words) for commits, words in cases if words not in builder_commits.problem(commits, BASE)]


def test_bytes_that_cannot_be_kept_or_shown_are_named() -> None:
    cases = [
        (raw(message="a\0b"), "NUL"),
        (raw(message="a\udcff"), "not UTF-8"),
        (raw(message=" \n"), "no message"),
        (raw(message="x" * builder_commits.MOST_BYTES), "bytes of message"),
        (raw(message="a\x1b[31m"), "control characters"),
        (raw(message="a\x9b31m"), "control characters"),
        (raw(message="a\n\nidumb-run: 1\n"), "Idumb-"),
        (raw(who=" <> 1 +0000"), "no name"),
        (raw(who="Ann <> 1 +0000"), "no name"),
        (raw(who="Ann <a@b> soon"), "no name"),
        (raw(who="A" * 201 + " <a@b> 1 +0000"), "longer than 200"),
        (raw(who="A\x1b[2J <a@b> 1 +0000"), "control characters"),
        (raw(more="\nencoding latin1"), "'encoding'"),
        (raw(more="\nmergetag x"), "'mergetag'"),
        (raw(more=f"\ntree {TREE}"), "exactly one"),
        (raw(parents=("main",)), "not an object id"),
        (b"", "header ''"),
        (b"\xff\xfe", "header"),
    ]
    for data, words in cases:
        commit = builder_commits.parse(name(1), data)
        assert words in commit.wrong
        assert commit.subject.isprintable() or not commit.subject
        assert commit.author.isprintable() or not commit.author


def test_a_file_added_by_one_commit_and_removed_by_the_next_is_detected() -> None:
    declared = (FileClaim("create", "a.txt"),)
    gone = Change("secret.env", ledger.DELETED, FILE, None)
    line = [touching("a.txt"), touching("secret.env"), builder_commits.parse(name(3), raw()).with_changes((gone,))]
    assert builder_commits.undeclared(line[:1], declared, (), ()) == ""
    assert "secret.env" in builder_commits.undeclared(line, declared, (), ())
    assert builder_commits.undeclared(line, declared, (), ("secret.env",)) == ""


def test_a_protected_file_is_detected_in_every_commit_whatever_is_declared() -> None:
    declared = (FileClaim("change", "**"),)
    assert "vault/key" in builder_commits.undeclared([touching("vault/key")], declared, ("vault/**",), ())
    assert ".idumb/config.yaml" in builder_commits.undeclared([touching(".idumb/config.yaml")], declared, (), ())
