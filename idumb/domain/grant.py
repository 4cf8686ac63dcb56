"""Consent as data: what a person must agree to, what was agreed to, and what is still missing.

Each part has a name and a digest. Nothing is agreed to as a whole: a need is met when each of its parts is covered by
something that a person said yes to while it was shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import asdict, replace

from idumb.domain import canonical_json, paths, wording
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.settings import Settings

LIVE, MISSING, EXPIRED, REVOKED, VOID = "live", "missing", "expired", "revoked", "void"

APPROVE = "approve"
"""How a grant was given that is valid only as long as none of its parts changes. Strict mode needs one."""

CONTRACT, PLANS, FILES, BASE, CHECKS = "contract", "plans", "files", "base", "checks"
AGENT, IRREVERSIBLE = "agent ", "irreversible "
"""The beginning of a part's name: a binding's program, an irreversible task. The latter is a part of no run's need."""

_DURATION = re.compile(r"(?:(\d{1,4})w)?(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?")
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
T = TypeVar("T")


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A readable JSON value and the SHA-256 of its canonical form."""

    digest: str
    value: Any


Parts = Mapping[str, Part]


def part(value: Any) -> Part:
    return Part(canonical_json.digest(value), value)


class Change(Struct, frozen=True):
    """A part that differs from what was agreed to; `was` is None if nobody agreed to any, `now` if there is none."""

    name: str
    was: Part | None
    now: Part | None

    @property
    def keys(self) -> tuple[str, ...]:
        """The places that differ; () if the values are not mappings."""
        return _keys(*self._values)

    @property
    def _values(self) -> tuple[Any, Any]:
        return self.was and self.was.value, self.now and self.now.value

    @property
    def words(self) -> str:
        """`files (tests/check.sh)`, `agent claude (program: was /a, is /b)`."""
        was, now = self._values
        if isinstance(was, str) and isinstance(now, str):
            return f"{self.name} (was {was[:16]}, is {now[:16]})"
        named = [f"program: was {was.get(key)}, is {now.get(key)}" if key == "program" else key for key in self.keys]
        return f"{self.name} ({wording.listed(named)})" if named else self.name

    @property
    def evidence(self) -> str:
        old = self.was.digest[:12] if self.was else "not bound"
        return f"{self.words}: was {old}, is {self.now.digest[:12] if self.now else 'absent'}"

    def as_dict(self) -> dict[str, Any]:
        was, now = (each.digest if each is not None else None for each in (self.was, self.now))
        return {"part": self.name, "keys": list(self.keys), "was": was, "is": now}


def _keys(was: Any, now: Any, depth: int = 2) -> tuple[str, ...]:
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return ()
    keys: list[str] = []
    for key in sorted({*was, *now}, key=str):
        if canonical_json.digest(was.get(key)) == canonical_json.digest(now.get(key)) and (key in was) == (key in now):
            continue
        below = _keys(was.get(key), now.get(key), depth - 1) if depth > 1 else ()
        keys += [f"{key}.{name}" for name in below] or [str(key)]
    return tuple(keys)


class Need(Struct, frozen=True):
    """What must be agreed to before something starts. `place` is the phase, or ROLES for agents of roles."""

    place: str
    parts: Parts

    @property
    def digest(self) -> str:
        """The one hash of the question, for `--approve`: of all parts, or the contract's if that is the only one."""
        if set(self.parts) == {CONTRACT}:
            return str(self.parts[CONTRACT].value)
        return canonical_json.digest({name: each.digest for name, each in self.parts.items()})


class Grant(Struct, frozen=True):
    """What a person agreed to. `how` is `approve`, `--approve`, `terminal`, `decide` or `amendment`.

    `need` is the digest of the question. `base_commit` is recorded; it must still be the base only if it is a part.
    `answers` are a person's answers to open questions of the self-check: question, answer, by and at of each.
    A signature covers everything but itself and the revocation.
    """

    place: str
    parts: Parts
    by: str
    at: str
    how: str
    nonce: str
    need: str = ""
    expires: str | None = None
    base_commit: str | None = None
    answers: tuple[Mapping[str, str], ...] = ()
    validator: str = ""
    signature: str | None = None
    revoked: Mapping[str, str] | None = None

    @property
    def contract_hash(self) -> str:
        return str(self.parts[CONTRACT].value) if CONTRACT in self.parts else ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """The irreversible tasks that it accepts."""
        return tuple(name.removeprefix(IRREVERSIBLE) for name in self.parts if name.startswith(IRREVERSIBLE))

    def as_dict(self) -> dict[str, Any]:
        """Return what a signature covers, as JSON has it."""
        return {name: value for name, value in to_builtins(self).items() if name not in {"signature", "revoked"}}

    def canonical(self) -> bytes:
        """Return the bytes that a signature covers."""
        return canonical_json.encode(self.as_dict())


def from_dict(value: object, signature: object = None, revoked: object = None) -> Grant | None:
    """Return the grant that `as_dict` wrote; None for anything else. A revocation that cannot be read revokes too."""
    grant = _read(value, Grant) if isinstance(value, Mapping) and parts_of(value.get("parts")) is not None else None
    if grant is None or not isinstance(value, Mapping) or grant.as_dict().keys() != value.keys():
        return None
    return replace(
        grant,
        signature=signature if isinstance(signature, str) else None,
        revoked=revoked if isinstance(revoked, Mapping) or revoked is None else {},
    )


def parts_of(value: object) -> dict[str, Part] | None:
    """Return the parts if their digests match their values. Parts that this version does not know are binding too."""
    parts = _read(value, dict[str, Part])
    if parts is None or any(canonical_json.digest(each.value) != each.digest for each in parts.values()):
        return None
    return parts if FILES not in parts or isinstance(parts[FILES].value, Mapping) else None


def _read(value: object, form: type[T]) -> T | None:
    try:
        return convert(value, form)
    except (ValidationError, UnicodeEncodeError):  # a key with a lone surrogate
        return None


def missing(parts: Parts, valid: Sequence[Grant], earlier: Sequence[Grant]) -> tuple[Change, ...]:
    """Return the parts that no valid grant covers, with what the newest of the `earlier` grants agreed to instead."""
    covered = {(name, each.digest) for grant in valid for name, each in grant.parts.items()}
    before = {name: each for grant in reversed(earlier) for name, each in grant.parts.items()}
    open_parts = [(name, before.get(name), now) for name, now in parts.items() if (name, now.digest) not in covered]
    return tuple(Change(name, was if was and was.digest != now.digest else None, now) for name, was, now in open_parts)


def strict_parts(
    contract: Contract,
    settings: Settings,
    *,
    commands: Sequence[str],
    files: Mapping[str, str],
    policy: Any = None,
    base: str | None = None,
) -> dict[str, Part]:
    """Return what an approval binds besides contract and agents. `files` are SHA-256 by path.

    `policy` is any JSON value, `base` the commit that the contract is pinned to.
    """
    plans = contract.plans
    deciding = contracts.governing_settings(plans, settings).deciding()
    values: dict[str, Any] = {
        PLANS: {p.path: p.sha256 for p in plans},
        "commands": list(commands),
        FILES: dict(files),
        "policy": policy,
        "protected": {
            "always": list(paths.ALWAYS_PROTECTED),
            "unless_declared": list(paths.PROTECTED_UNLESS_DECLARED),
            "configuration": list(settings.protected),
            "plans": {p.path: list(p.scope.protected) for p in plans},
        },
        "scope": {p.path: p.scope.root or "." for p in plans},
        "limits": {
            "plans": {p.path: asdict(p.limits) for p in plans if p.limits is not None},
            "processes": deciding["limits"],
            "run": deciding["run"],
        },
        "configuration": deciding,
    } | ({} if base is None else {BASE: base})
    return {name: part(value) for name, value in values.items()}


def changes(was: Parts, now: Parts) -> tuple[Change, ...]:
    """Return the parts that differ; a part that only one side has differs.

    The contract is named only if nothing else says what changed in it.
    """
    differing = [
        Change(name, was.get(name), now.get(name))
        for name in dict.fromkeys((*was, *now))
        if name not in was or name not in now or was[name].digest != now[name].digest
    ]
    return tuple(change for change in differing if change.name != CONTRACT or len(differing) == 1)


def has_ended(grant: Grant, now: str) -> bool:
    return grant.revoked is not None or (grant.expires is not None and grant.expires <= now)


def standing(grant: Grant, now: str, present: Callable[[], Parts]) -> str:
    """Return LIVE, REVOKED, EXPIRED or VOID. `now` is the clock's time, `present` returns the current parts."""
    if has_ended(grant, now):
        return EXPIRED if grant.revoked is None else REVOKED
    return VOID if grant.how == APPROVE and changes(grant.parts, present()) else LIVE


def expires_at(text: str, now: str) -> str:
    """Return the expiry for `90m`, `12h`, `7d`, `2w3d`, a date (its start, UTC) or a time.

    Raises ValueError, with words, if it is none of these or not after `now`.
    """
    begun = datetime.strptime(now, _TIME).replace(tzinfo=UTC)
    ends = _ends(text.strip(), begun)
    if ends <= begun:
        raise ValueError(f"{text!r} is not in the future")
    return ends.strftime(_TIME)


def _ends(text: str, begun: datetime) -> datetime:
    match = _DURATION.fullmatch(text)
    try:
        if match is not None and text:
            weeks, days, hours, minutes = (int(number or 0) for number in match.groups())
            return begun + timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
        end = datetime.fromisoformat(text)
        return end.replace(tzinfo=UTC) if end.tzinfo is None else end.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no duration (90m, 12h, 7d, 2w) and no date (2030-01-31)") from None
