"""Output of `debug`."""

from __future__ import annotations

import itertools
from typing import Any

from idumb.domain.runs import spending
from idumb.views import phrases, quantities

_MOST = 20


def inspect(data: phrases.Data) -> phrases.Lines:
    event, contract = data["event"], data["contract"]
    why = f": {data['reason']}" if data["reason"] else ""
    about = f" {event['task']}" if event["task"] else ""
    lines = [f"Run {data['number']} of phase {data['phase']} ({data['run']}): {data['state']}{why}"]
    lines.append(f"  after event {event['seq']}, {event['kind']}{about}, {quantities.moment(event['at'])}")
    lines.append(f"  contract {contract['hash'][:12]}, version {contract['version']}, {data['mode']}")
    lines.append(f"  started on {data['branch'] or 'no branch'} at {quantities.short(data['base_commit'])}")
    lines += phrases.columns([(row["id"], *_of_task(row)) for row in data["tasks"]]) if data["tasks"] else []
    lines += [f"  waits for {row['id']}: {row['what']}" for row in data["waiting"]]
    lines += [f"  verification: {data['verification']}"] if data["verification"] else []
    return [*lines, f"Used: {_used(data['spent'])}"]


def _of_task(row: phrases.Data) -> tuple[str, ...]:
    number = row["attempt"]
    commit = f", commit {quantities.short(row['commit'])}" if row["commit"] else ""
    return (row["status"], f"attempt {number}" if number else "", (_used(row) + commit) if number else "")


def _used(row: phrases.Data) -> str:
    parts = [quantities.duration(row["seconds"])]
    parts += [f"{row['tokens']} tokens"] if row["tokens"] else []
    parts += [quantities.money(row["cost_usd"])] if row["cost_usd"] else []
    parts += [f"{quantities.counted(row['unknown_cost'], 'call')} of unknown cost"] if row["unknown_cost"] else []
    return ", ".join(parts)


def replay(data: phrases.Data) -> phrases.Lines:
    lines = [f"Run {data['run']}: {quantities.counted(data['events'], 'event')} replayed"]
    same = data["compared"] - len(data["differences"])
    lines.append(f"  {quantities.counted(same, 'recorded value')} as the events give")
    for row in data["differences"][:_MOST]:
        lines.append(f"  event {row['event']}, {row['kind']}: {row['what']}")
        recorded, again = _apart(row["recorded"], row["rebuilt"], 72)
        lines += [f"    recorded: {recorded}", f"    rebuilt: {again}"]
    return [*lines, *_more(data["differences"])]


def _more(rows: list[Any]) -> list[str]:
    return [f"  and {len(rows) - _MOST} more; --json has them"] if len(rows) > _MOST else []


def _apart(first: Any, second: Any, width: int) -> tuple[str, ...]:
    """Return two values that differ. If one is too long, both are shown from shortly before their first difference."""
    texts = ["none" if value is None else str(value) for value in (first, second)]
    if texts[0] == texts[1]:
        texts = [repr(first), repr(second)]
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))
    start = len([*same]) - width // 2
    if start > 0 and max(map(len, texts)) > width:
        texts = [f"…{text[start:]}" for text in texts]
    return tuple(quantities.clip(text, width) for text in texts)


def compare(data: phrases.Data) -> phrases.Lines:
    pair = ("first", "second")
    lines = [
        f"{name}: run {row['number']} of phase {row['phase']} ({row['run']}), {row['state']}, {_used(row)}"
        for name, row in ((name.capitalize(), data[name]) for name in pair)
    ]
    cells = [
        (task["id"] if name == "first" else "", name, *(_of_task(task[name]) if task[name] else ("none", "", "")))
        for task in data["tasks"]
        for name in pair
    ]
    lines += phrases.columns(cells) if cells else []
    differ = [(row["name"], *_apart(row["first"], row["second"], 24)) for row in data["differences"]]
    return [*lines, *(["Different:", *phrases.columns(differ)] if differ else ["Nothing else differs."])]


def trace(data: phrases.Data) -> phrases.Lines:
    lines = [f"{data['task']} in run {data['run']} of phase {data['phase']}: {data['status']}"]
    for attempt in data["attempts"]:
        lines.append(f"  attempt {attempt['attempt']}, announced {quantities.moment(attempt['announced'])}")
        rows = [(s["name"], quantities.duration(s["seconds"]), _facts(s)) for s in attempt["stages"]]
        lines += phrases.columns(rows, "    ") if rows else []
    worked, waited = (quantities.duration(data[name]) for name in ("worked_seconds", "waited_seconds"))
    return [*lines, f"Worked {worked}, waited for people {waited}"]


def _facts(stage: phrases.Data) -> str:
    facts = stage["facts"]
    if facts.get("decision"):
        return f"{facts['decision']}: {facts['choice']}, by {facts['by']}"
    who = " ".join(str(facts[name]) for name in ("binding", "model") if facts.get(name))
    ended = "still open" if stage["is_open"] else str(facts.get("outcome") or "").replace("_", " ")
    why = f": {facts['reason']}" if facts.get("reason") and facts.get("outcome") != "completed" else ""
    spent = spending.spent_by_call(facts)
    used = [f"{spent.tokens} tokens"] if spent.tokens else []
    used += [quantities.money(spent.cost_usd)] if spent.cost_usd else []
    used += [f"commit {quantities.short(facts['commit'])}"] if facts.get("commit") else []
    return ", ".join(part for part in (who, quantities.clip(ended + why, 80), *used) if part)


def validate(data: phrases.Data) -> phrases.Lines:
    run, rows = data["run"], data["faults"]
    if not rows:
        events = quantities.counted(data["events"], "event")
        return [f"Run {run}: {events}, valid", "  chain, order, payloads, and what they name in git"]
    places = (f"event {row['event']}, {row['kind']}: " if row["event"] and row["kind"] else "" for row in rows)
    lines = [f"  {place}{row['why']}" for place, row in zip(places, rows[:_MOST], strict=False)]
    return [f"Run {run} is not valid:", *lines, *_more(rows)]


def export(data: phrases.Data) -> phrases.Lines:
    return [f"Run {data['run']}: {quantities.counted(data['spans'], 'span')} sent as trace {data['trace']}"]
