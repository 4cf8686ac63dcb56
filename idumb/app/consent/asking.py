"""Asks a person to agree to what is missing of a need: by `--approve`, at the terminal, or later with `idumb decide`.

A question that nobody could answer waits in the user's state directory, with the parts that it is about. An answer
covers exactly these, and only while they are still the present ones. A binding is described with all of its settings.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict, replace

from idumb.app.consent import needs, phase_grants
from idumb.app.core import actions
from idumb.app.core.services import Services, same_command
from idumb.domain import grant as grants
from idumb.domain.action import CONSENT, Action, Choice, Decision
from idumb.domain.errors import AdapterError, Refusal, Waiting
from idumb.domain.grant import Change, Need, Part
from idumb.domain.settings import Binding

MARK = "consent."
YES = "run"
OPTION, TERMINAL, DECIDE = "--approve", "terminal", "decide"
"""How something was agreed to."""


class ConsentText(Struct, frozen=True):
    """What is asked, in words. `refused` is the message if nobody agrees."""

    what: str
    why: str
    evidence: tuple[str, ...]
    yes: str
    means: str
    refused: str
    details: Mapping[str, Any] = field(default_factory=dict)
    phase: str = ""
    waits: bool = True


def question(services: Services, need: Need, text: ConsentText) -> Decision:
    asked = Decision.confirmation(
        f"{MARK}{need.digest}",
        CONSENT,
        text.what,
        text.why,
        text.evidence,
        Choice(YES, text.yes, text.means, same_command(services, "--approve", need.digest)),
        "do not run it",
        "nothing happens",
    )
    return replace(asked, subject=need.digest)


def ask(services: Services, need: Need, missing: Sequence[Change], text: ConsentText, approve: Collection[str]) -> None:
    """Record consent to what is missing. Refusal on a no, `Waiting` without a terminal or an answer in time."""
    asked = question(services, need, text)
    parts = {change.name: need.parts[change.name] for change in missing}
    if need.digest in approve:
        phase_grants.record_consent(services, need.place, parts, how=OPTION, need=need.digest)
    elif not approve and asked.agreed(services.asker.ask(asked)):
        phase_grants.record_consent(services, need.place, parts, how=TERMINAL, need=need.digest)
    else:
        refused = refusal(need, missing, text, asked)
        refused.details["asked"] = services.asker.interactive and not approve
        if text.waits and not approve and not services.asker.interactive:
            refused = _stored(services, refused, asked, text, parts)
        raise refused


def refusal(need: Need, missing: Sequence[Change], text: ConsentText, asked: Decision) -> Refusal:
    changed = [change for change in missing if change.was is not None]
    details = actions.offer_of(asked, consent_hash=need.digest, decision=asked.id)
    details |= {**phase_grants.details_of(changed), **text.details}
    return Refusal("consent.missing", text.refused, hint=asked.choices[0].command, details=details)


def require_known(services: Services, need: Need, approve: Collection[str], *, agreed: bool) -> None:
    """Refuse a hash that is not the need's: it was of something else. Refusal `consent.other-hash`.

    If everything is `agreed` to, a hash that was agreed to earlier here changes nothing.
    """
    stored = services.consent.grants(need.place) if agreed else ()
    known = {need.digest, *(each for grant in stored for each in (grant.need, grant.contract_hash))}
    other = next((digest for digest in approve if digest not in known), None)
    if other is None:
        return
    earlier = [grant for place in dict.fromkeys((need.place, needs.ROLES)) for grant in services.consent.grants(place)]
    changed = [c for c in grants.missing(need.parts, (), earlier) if c.was is not None]
    differs = f": these changed since you agreed: {'; '.join(c.words for c in changed)}" if changed else ""
    raise Refusal(
        "consent.other-hash",
        f"--approve names {other[:16]}, but what this command would run now has the hash {need.digest}{differs}.",
        hint=same_command(services),
        details={"again": same_command(services), "expected": need.digest, **phase_grants.details_of(changed)},
    )


class Unanswered(Struct, frozen=True):
    """A question that waits. `phase` is "" if it is only about agents of roles. `command` continues afterwards."""

    question: Decision
    command: str
    phase: str
    worktree: str
    at: str
    parts: Mapping[str, Part]

    @property
    def subject(self) -> tuple[str, ...]:
        """A newer question about the same replaces it."""
        return (self.worktree, self.phase) if self.phase else (self.worktree, "", *sorted(self.parts))


def _stored(
    services: Services, refused: Refusal, asked: Decision, text: ConsentText, parts: Mapping[str, Part]
) -> Refusal:
    """Store a question. Return the refusal to raise, which names the question if it could be stored."""
    waiting = Unanswered(asked, str(same_command(services)), text.phase, services.worktree, services.clock.now(), parts)
    try:
        for earlier in unanswered(services):
            if earlier.subject == waiting.subject:
                services.consent.forget_question(earlier.question.id)
        record = {**asdict(waiting), "question": asked.row(), "parts": to_builtins(parts)}
        services.consent.keep_question(asked.id, record)
    except OSError:  # the state directory is not writable; the hint names the option that gives consent
        return refused
    later = Choice("later", "consent later", "nothing runs until then", Action.of("decide", asked.id, YES))
    choices = [*refused.details["choices"], later.row()]
    return Waiting(refused.code, refused.message, hint=refused.step, details={**refused.details, "choices": choices})


def unanswered(services: Services) -> tuple[Unanswered, ...]:
    """Return every stored question, oldest first. Damaged ones are ignored."""
    questions = (_read(name, record) for name, record in services.consent.questions())
    return tuple(sorted((q for q in questions if q is not None), key=lambda q: (q.at, q.question.id)))


def _read(name: str, record: Mapping[str, Any]) -> Unanswered | None:
    try:
        asked, parts = Decision.recorded(record["question"]), grants.parts_of(record["parts"])
        command, phase, worktree, at = (str(record[key]) for key in ("command", "phase", "worktree", "at"))
    except (KeyError, TypeError, ValueError):
        return None
    return None if parts is None or asked.id != name else Unanswered(asked, command, phase, worktree, at, parts)


def words_of_binding(
    services: Services, name: str, argv: Sequence[str] | None = None, *, models: Mapping[str, str | None]
) -> str:
    """`claude, starts /usr/bin/claude -p; environment: KEY; options: {"home": "user"}`, without known secrets.

    The line shows the whole configuration of the binding. `argv` is the resolved argument list; None asks the adapter,
    and the line says if the program is missing. `models` maps a role to its model; None is the agent's default.
    """
    binding = services.settings.bindings[name]
    starts = _starts(services, binding) if argv is None else _quoted(argv)
    return services.redactor.redact_output("; ".join([f"{binding.adapter}, {starts}", *_settings(binding, models)]))


def _starts(services: Services, binding: Binding) -> str:
    try:
        return _quoted(services.adapters.get(binding.name).describe())
    except AdapterError as problem:
        return f"{_quoted(binding.argv)} ({problem.message.rstrip('.')})"


def _quoted(argv: Sequence[str]) -> str:
    return f"starts {shlex.join(argv)}" if argv else "starts no program"


def _settings(binding: Binding, models: Mapping[str, str | None]) -> Iterator[str]:
    if binding.environment:
        yield f"environment: {', '.join(binding.environment)}"
    if binding.options:
        yield f"options: {json.dumps(dict(binding.options), sort_keys=True, ensure_ascii=False, default=str)}"
    if set(models.values()) == {binding.model}:
        yield from [f"model: {binding.model}"] if binding.model is not None else []
    else:
        instead = f", in place of {binding.model}"
        yield from (f"model as {r}: {m}{instead if binding.model not in {None, m} else ''}" for r, m in models.items())
    if binding.prompt != "stdin":
        yield f"prompt: {binding.prompt}"
    times = {"timeout": binding.timeout, "idle timeout": binding.idle_timeout}
    yield from (f"{name}: {seconds} s" for name, seconds in times.items() if seconds is not None)
    chosen = binding.limits.chosen() if binding.limits is not None else {}
    if chosen:
        yield f"limits: {', '.join(f'{name} {value}' for name, value in chosen.items())}"
