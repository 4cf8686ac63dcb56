"""Output of `dlq`."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities
from idumb.views.answers import run


def dlq(data: phrases.Data) -> str:
    """Return the list, one dead letter, or the outcome of a retry."""
    if "dead_letters" in data:
        return _list(data)
    return _one(data["dead_letter"]) if "dead_letter" in data else run.ended(data)


def _list(data: phrases.Data) -> str:
    if not data["dead_letters"]:
        return "There are no dead letters.\n"
    rows = [
        (
            one["id"] if one["task"] is None else one["task"],
            one["kind"],
            one["class"],
            one["state"],
            quantities.counted(one["attempts"], "attempt"),
            quantities.clip(markup.one_line(one["reason"]), 80),
        )
        for one in data["dead_letters"]
    ]
    return "\n".join([*phrases.columns(rows, ""), *phrases.commands({"next": ["idumb dlq show ID"]})]) + "\n"


def _one(one: phrases.Data) -> str:
    words = ("class", "state", "phase", "run", "task", "agent", "failure", "cause", "attempts", "at")
    lines = [f"{one['id']}: {markup.one_line(one['reason'])}"]
    lines += [f"  {name + ':':<10}{markup.one_line(str(one[name]))}" for name in words if one.get(name) is not None]
    lines += [f"  cannot be retried: {markup.one_line(one['why_not'])}"] if one["why_not"] else []
    lines += [f"  {quantities.moment(e['at'])} {e['kind']} {e['task'] or ''}".rstrip() for e in one.get("events", ())]
    return "\n".join([*lines, *phrases.commands(one)]) + "\n"
