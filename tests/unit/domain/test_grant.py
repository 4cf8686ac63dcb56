"""What a person must agree to, what was agreed to, and when that is no longer valid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from idumb.domain import canonical_json, grant
from idumb.domain.contract import Contract
from idumb.domain.grant import APPROVE, Grant, Need, Part
from idumb.domain.plans import run_files
from idumb.domain.plans.plan import Limits, Plan, Scope
from idumb.domain.settings import Binding, RunSettings, Settings
from tests.support.cases import every
from tests.support.growth import assert_linear

NOW = "2026-01-02T03:04:05.000000Z"
ROOT = "/a/my repo"
LATER = "2026-01-09T03:04:05.000000Z"


def _contract(**plan: Any) -> Contract:
    fields = Plan(
        **{"path": "1/01-PLAN.md", "sha256": "a" * 64, "phase": "1", "plan": "01", "title": "", "goal": "", **plan}
    )
    return Contract("1", "1", (fields,), {}, (), {}, "c" * 64)


def _bound(
    contract: Contract | None = None,
    settings: Settings | None = None,
    argv: tuple[str, ...] = ("/bin/a", "x"),
    **more: Any,
) -> dict[str, Part]:
    given: dict[str, Any] = {"commands": ["make"], "files": {"t.sh": "f" * 64}, **more}
    return {
        "contract": grant.part(canonical_json.digest([repr(contract), repr(settings), repr(given.get("policy"))])),
        "agent a": grant.part({"program": argv[0], "arguments": list(argv[1:])}),
        **grant.strict_parts(contract or _contract(), settings or Settings(), **given),
    }


def _grant(**more: Any) -> Grant:
    fields: dict[str, Any] = {
        "place": "1",
        "parts": _bound(),
        "by": "pat",
        "at": NOW,
        "how": APPROVE,
        "nonce": "0" * 32,
        **more,
    }
    return Grant(**fields)


CHANGED: dict[str, tuple[dict[str, Part], set[str], str]] = {
    "a plan": (_bound(_contract(sha256="b" * 64)), {"plans"}, "plans (1/01-PLAN.md)"),
    "another plan": (_bound(_contract(path="1/02-PLAN.md")), {"plans", "protected", "scope"}, "1/02-PLAN.md"),
    "a command": (_bound(commands=["make "]), {"commands"}, "commands"),
    "an argument": (_bound(argv=("/bin/a", "y")), {"agent a"}, "agent a (arguments)"),
    "a program": (_bound(argv=("/bin/b", "x")), {"agent a"}, "agent a (program: was /bin/a, is /bin/b)"),
    "a file": (_bound(files={"t.sh": "e" * 64}), {"files"}, "files (t.sh)"),
    "a file more": (_bound(files={"t.sh": "f" * 64, "u.sh": "f" * 64}), {"files"}, "files (u.sh)"),
    "the policy": (_bound(policy={"tools": []}), {"policy"}, "policy"),
    "a plan's protected paths": (_bound(_contract(scope=Scope(None, ("x",)))), {"protected"}, "plans.1/01-PLAN.md"),
    "the scope": (_bound(_contract(scope=Scope("src"))), {"scope"}, "scope (1/01-PLAN.md)"),
    "a plan's limits": (_bound(_contract(limits=Limits(files=1))), {"limits"}, "limits (plans.1/01-PLAN.md)"),
    "a setting of runs": (
        _bound(settings=Settings(run=RunSettings(max_attempts=4))),
        {"limits", "configuration"},
        "run.max_attempts",
    ),
    "protected by configuration": (
        _bound(settings=Settings(protected=("x",))),
        {"protected", "configuration"},
        "protected (configuration)",
    ),
    "a binding": (
        _bound(settings=Settings(validator="a", bindings={"a": Binding("a", "command")})),
        {"configuration"},
        "bindings.a",
    ),
    "a base": (_bound(base="d" * 40), {"base"}, "base"),
}  # fmt: skip


@every("part", CHANGED)
def test_each_part_that_changed_is_named(part: str) -> None:
    """R-LOCK-4."""
    now, parts, words = CHANGED[part]
    changes = grant.changes(_bound(), now)
    assert {change.name for change in changes} == parts
    assert words in "; ".join(change.words for change in changes)


def test_the_order_of_keys_is_not_a_change() -> None:
    assert grant.changes(_bound(files={"a": "1", "b": "2"}), _bound(files={"b": "2", "a": "1"})) == ()


def test_the_first_changed_parts_are_named_and_the_rest_counted() -> None:
    """R-LOCK-4: a reader does not take five for all."""
    was = {"files": grant.part({f"{name}.sh": "0" for name in "abcdefg"})}
    now = {"files": grant.part({f"{name}.sh": "1" for name in "abcdefg"})}
    assert grant.changes(was, now)[0].words == "files (a.sh, b.sh, c.sh, d.sh, e.sh and 2 more)"


def test_a_missing_part_of_a_later_version_is_a_change() -> None:
    was = {**_bound(), "sandbox": grant.part("none")}
    assert [change.name for change in grant.changes(was, _bound())] == ["sandbox"]


@every(
    "kept, present, standing",
    [
        (_grant(), _bound(), grant.LIVE),
        (_grant(expires=LATER), _bound(), grant.LIVE),
        (_grant(expires=NOW), _bound(), grant.EXPIRED),
        (_grant(revoked={}), _bound(), grant.REVOKED),
        (_grant(expires=NOW, revoked={"by": "pat"}), _bound(), grant.REVOKED),
        (_grant(), _bound(commands=[]), grant.VOID),
        (_grant(how="--approve"), _bound(commands=[]), grant.LIVE),
    ],
)
def test_approval_status(kept: Grant, present: dict[str, Part], standing: str) -> None:
    """R-LOCK-3, R-LOCK-4."""
    assert grant.standing(kept, NOW, lambda: present) == standing


def test_parts_of_an_expired_approval_are_not_compared() -> None:
    def never() -> dict[str, Part]:
        raise AssertionError

    assert grant.standing(_grant(expires=NOW), LATER, never) == grant.EXPIRED


def test_a_grant_reads_back_as_it_was_written() -> None:
    """R-LOCK-3: by whom, when, how, and by which validator; its parts have the plans' hashes and the scope."""
    original = _grant(expires=LATER, base_commit="d" * 40, validator="idumb 0", answers=(_ANSWER,))
    written = json.loads(canonical_json.encode(original.as_dict()))
    read_back = grant.from_dict(written)
    assert read_back is not None
    assert read_back == replace(original, parts=read_back.parts)
    assert read_back.canonical() == original.canonical()


_ANSWER = {"question": "design", "answer": "yes", "by": "pat", "at": NOW}


def _whole(**change: Any) -> dict[str, Any]:
    return {**json.loads(canonical_json.encode(_grant().as_dict())), **change}


def test_a_damaged_grant_is_none() -> None:
    cases: list[object] = [
        None,
        [],
        {},
        {k: v for k, v in _whole().items() if k != "nonce"},
        _whole(more=1),
        _whole(place=1),
        _whole(expires=1),
        _whole(expires=0),
        _whole(parts=[]),
        _whole(parts={"plans": []}),
        _whole(parts={"plans": {"digest": "x"}}),
        _whole(parts={"plans": {"digest": "0" * 64, "value": {}}}),
        _whole(parts={"files": {"digest": canonical_json.digest(1.5), "value": 1.5}}),
        _whole(parts={"plans": {"digest": canonical_json.digest({}), "value": {}, "until": "2026"}}),
        _whole(answers="yes"),
        _whole(answers=["yes"]),
        {**_whole(), "\ud800": 1},
        _whole(parts={"plans": {"\ud800": 1}}),
    ]
    assert not [value for value in cases if grant.from_dict(value) is not None]


def _needed(contract: str = "a", **agents: str) -> dict[str, Part]:
    agents_parts = {grant.AGENT + name: grant.part({"program": path}) for name, path in agents.items()}
    return {"contract": grant.part(contract), **agents_parts}


def test_each_part_is_covered_by_what_agreed_to_it_and_the_rest_names_what_was_agreed_before() -> None:
    """R-LOCK-3."""
    first, second = _grant(how="terminal", parts=_needed("a", b="/1")), _grant(how="decide", parts=_needed("c"))
    agreed = (second, first)
    assert grant.missing(_needed("c", b="/1"), agreed, agreed) == ()
    (changed,) = grant.missing(_needed("c", b="/2"), agreed, agreed)
    assert changed.words == "agent b (program: was /1, is /2)"
    (never,) = grant.missing(_needed("c", x="/2"), agreed, agreed)
    assert (never.name, never.was) == ("agent x", None)
    assert [change.name for change in grant.missing(_needed("c", b="/1"), (), agreed)] == ["contract", "agent b"]


def test_the_hash_of_a_need_covers_each_part_and_is_the_contract_s_if_that_is_all() -> None:
    """R-LOCK-2."""
    assert Need("1", _needed("f" * 64)).digest == "f" * 64
    digests = [
        Need("1", _needed("f" * 64, **{name: path})).digest for name, path in (("b", "/1"), ("b", "/2"), ("c", "/1"))
    ]
    assert len({"f" * 64, *digests}) == 4


def test_an_expiry_is_a_duration_or_a_date() -> None:
    cases: list[tuple[str, str]] = [
        ("90m", "2026-01-02T04:34:05.000000Z"),
        ("12h", "2026-01-02T15:04:05.000000Z"),
        ("7d", LATER),
        ("1w", LATER),
        ("1w1d1h1m", "2026-01-10T04:05:05.000000Z"),
        ("2026-02-01", "2026-02-01T00:00:00.000000Z"),
        ("2026-02-01T10:00", "2026-02-01T10:00:00.000000Z"),
        ("2026-02-01T10:00:00+02:00", "2026-02-01T08:00:00.000000Z"),
    ]
    assert not [(text, ends) for text, ends in cases if grant.expires_at(text, NOW) != ends]


@every("text", ["", "soon", "0m", "-1d", "2026-01-02", "2020-01-01", "2026-13-01", "9999w9999w", "9999-12-31T23:59-01"])
def test_an_invalid_or_past_expiry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no duration|not in the future"):
        grant.expires_at(text, NOW)


def test_commands_name_files() -> None:
    """R-LOCK-4: however a shell lets one write it."""
    cases: list[tuple[str, str]] = [
        ("sh tests/check.sh", "tests/check.sh"),
        ("./tests/check.sh && true", "tests/check.sh"),
        ("sh -c 'cd . ; tests/check.sh;true'", "tests/check.sh"),
        ("pytest tests/test_a.py::test_one", "tests/test_a.py"),
        ("tool --config=conf/x.ini", "conf/x.ini"),
        ("cat <data.txt|wc", "data.txt"),
        ("python3 -m unittest tests.test_a", "tests/test_a.py"),
        ("/usr/bin/make test", "Makefile"),
        ("npm test", "package.json"),
        ("sh /a/my repo/tests/check.sh", "tests/check.sh"),
        ("sh '/a/my repo'/tests/check.sh", "tests/check.sh"),
        ("sh //a/./my repo//tests/check.sh", "tests/check.sh"),
        ('sh "$PWD/tests/check.sh"', "tests/check.sh"),
        ('sh "$PWD"/tests/check.sh', "tests/check.sh"),
        ("sh ${PWD}/tests/check.sh", "tests/check.sh"),
        ("sh $(pwd)/tests/check.sh", "tests/check.sh"),
        ("sh 'tests'/check.sh", "tests/check.sh"),
        ("sh tests//check.sh", "tests/check.sh"),
        ("sh ././tests/././check.sh", "tests/check.sh"),
        ("sh tests/../tests/check.sh", "tests/check.sh"),
        ("cd tests && ./check.sh", "tests/check.sh"),
        ("cd -- tests/; sh $PWD/check.sh", "tests/check.sh"),
        ("(cd a && ./x); (cd tests && ./check.sh)", "tests/check.sh"),
        ("cd a && cd tests && ./check.sh", "a/tests/check.sh"),
        ("cd a && sh ../tests/check.sh", "tests/check.sh"),
        ('cd "/a/my repo/tests" && ./check.sh', "tests/check.sh"),
        ("cd tests && sh one/check.sh && ../check.sh", "check.sh"),
        ("python3 -m mypkg", "mypkg.py"),
        ("python3 -m mypkg", "mypkg/__main__.py"),
        ("python3 -mmypkg --fast", "mypkg/__init__.py"),
        ("python3 -m mypkg.sub", "mypkg/sub/__main__.py"),
        ("python3 -m mypkg.sub", "mypkg/__init__.py"),
        ("cd lib && python3 -m mypkg", "lib/mypkg/__main__.py"),
    ]
    assert not [(command, path) for command, path in cases if path not in run_files.named_files([command], [], ROOT)]


def test_a_command_with_very_many_folders_is_read_in_linear_time() -> None:
    assert_linear(
        lambda command: run_files.named_files([command], [], ROOT),
        lambda count: " && ".join(f"cd d{n} && ./a.sh" for n in range(count)),
    )


def test_files_outside_and_files_that_the_plan_itself_writes_are_not_bound() -> None:
    named = run_files.named_files(
        ["cat /etc/x ../y ~/z /a/other/f_sh/f_sh a/b.sh a/c.sh d_sh e_sh"], ["a/**", "d_sh"], ROOT
    )
    assert named == ("cat", "e_sh")
