"""Output of `watch`, `metrics` and `debug`: how runs go and went."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from idumb.domain import outcome
from idumb.domain.runs import spending
from idumb.views import phrases
from idumb.views.answers import look, status

_MOST = 20
_LAST = (("last run    ", "last"), ("last success", "last_success"), ("last failure", "last_failure"))
_Sample = tuple[Mapping[str, str], float]


def watch(data: phrases.Data) -> phrases.Lines:
    done = sum(row["status"] in outcome.ENDED for row in data["tasks"])
    why = f": {data['reason']}" if data["reason"] else ""
    return [f"Phase {data['phase']}: the run is {data['state']}, {done} of {len(data['tasks'])} tasks done{why}"]


def everything(data: phrases.Data) -> phrases.Lines:
    return [
        *status.status(data["status"]).splitlines(),
        *phrases.table("Newest events:", look.events(data["events"])),
    ]


def metrics(data: phrases.Data) -> phrases.Lines:
    """Return the figures of all runs: tasks, agents, people."""
    ends = ", ".join(f"{number} {name}" for name, number in data["tasks"].items() if number) or "none has ended"
    done = data["first_pass"]
    lines = [f"Since {phrases.moment(data['since'])}"] if data["since"] else []
    runs = ", ".join(f"{number} {name}" for name, number in data["runs"].items() if number) or "none has ended"
    lines += [
        f"Runs: {runs}",
        f"Tasks: {ends}; {done['at_once']} of {done['completed']} completed with their first attempt",
    ]
    rows = [
        (
            row["adapter"] + (f" {row['model']}" if row["model"] else ""),
            phrases.counted(row["calls"], "call"),
            f"{row['success_rate']:.0%} completed",
            _used(row),
        )
        for row in data["agents"]
    ]
    lines += phrases.columns(rows, "  ") if rows else []
    lines.append(f"People were waited for: {phrases.duration(data['waiting_seconds'])}")
    for row in data["workflows"]:
        lines.append(
            f"Phase {row['phase']}: {phrases.counted(row['runs'], 'run')}, {row['completed']} completed,"
            f" {row['failed']} failed" + (f", {phrases.duration(row['seconds'])} each" if row["seconds"] else "")
        )
        lines += [f"  {words} {phrases.moment(row[key])}" for words, key in _LAST if row[key]]
    return lines


def prometheus(data: phrases.Data) -> str:
    """Return the text format of Prometheus. Names and labels stay as they are; new ones may follow."""
    agents, total = data["agents"], data["total"]
    families: list[tuple[str, str, str, Iterable[_Sample]]] = [
        ("idumb_runs_total", "counter", "Ends of runs.", _counts("state", data["runs"])),
        ("idumb_tasks_total", "counter", "Ends of tasks.", _counts("status", data["tasks"])),
        ("idumb_calls_total", "counter", "Calls to agents.", _outcomes(agents)),
        ("idumb_call_seconds_total", "counter", "Seconds that agents worked.", _figures(agents, "seconds")),
        ("idumb_tokens_total", "counter", "Tokens that agents reported.", _figures(agents, "tokens")),
        ("idumb_cost_usd_total", "counter", "Dollars that agents reported.", _figures(agents, "cost_usd")),
        ("idumb_calls_without_cost_total", "counter", "Calls whose cost is unknown.", [({}, total["unknown_cost"])]),
        ("idumb_waiting_seconds_total", "counter", "Seconds that questions waited.", [({}, data["waiting_seconds"])]),
        ("idumb_tasks_completed", "gauge", "Completed tasks.", [({}, data["first_pass"]["completed"])]),
        ("idumb_tasks_first_pass", "gauge", "Those with one attempt.", [({}, data["first_pass"]["at_once"])]),
    ]
    lines: list[str] = []
    for name, kind, words, samples in families:
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_in_braces(labels)} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _counts(label: str, counts: Mapping[str, int]) -> list[_Sample]:
    return [({label: name}, number) for name, number in counts.items()]


def _figures(agents: Iterable[Mapping[str, Any]], figure: str) -> list[_Sample]:
    return [({"adapter": row["adapter"], "model": row["model"]}, row[figure]) for row in agents]


def _outcomes(agents: Iterable[Mapping[str, Any]]) -> list[_Sample]:
    rows = ((row, name, number) for row in agents for name, number in row["outcomes"].items())
    return [({"adapter": row["adapter"], "model": row["model"], "outcome": name}, number) for row, name, number in rows]


def _in_braces(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def inspect(data: phrases.Data) -> phrases.Lines:
    event, contract = data["event"], data["contract"]
    why = f": {data['reason']}" if data["reason"] else ""
    about = f" {event['task']}" if event["task"] else ""
    lines = [f"Run {data['number']} of phase {data['phase']} ({data['run']}): {data['state']}{why}"]
    lines.append(f"  after event {event['seq']}, {event['kind']}{about}, {phrases.moment(event['at'])}")
    lines.append(f"  contract {contract['hash'][:12]}, version {contract['version']}, {data['mode']}")
    lines.append(f"  started on {data['branch'] or 'no branch'} at {phrases.short(data['base_commit'])}")
    lines += phrases.columns([(row["id"], *_of_task(row)) for row in data["tasks"]]) if data["tasks"] else []
    lines += [f"  waits for {row['id']}: {row['what']}" for row in data["waiting"]]
    lines += [f"  verification: {data['verification']}"] if data["verification"] else []
    return [*lines, f"Used: {_used(data['spent'])}"]


def _of_task(row: phrases.Data) -> tuple[str, ...]:
    number = row["attempt"]
    commit = f", commit {phrases.short(row['commit'])}" if row["commit"] else ""
    return (row["status"], f"attempt {number}" if number else "", (_used(row) + commit) if number else "")


def _used(row: phrases.Data) -> str:
    parts = [phrases.duration(row["seconds"])]
    parts += [f"{row['tokens']} tokens"] if row["tokens"] else []
    parts += [phrases.money(row["cost_usd"])] if row["cost_usd"] else []
    parts += [f"{phrases.counted(row['unknown_cost'], 'call')} of unknown cost"] if row["unknown_cost"] else []
    return ", ".join(parts)


def replay(data: phrases.Data) -> phrases.Lines:
    lines = [f"Run {data['run']}: {phrases.counted(data['events'], 'event')} replayed"]
    same = data["compared"] - len(data["differences"])
    lines.append(f"  {phrases.counted(same, 'recorded value')} as the events give")
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
    return tuple(phrases.clip(text, width) for text in texts)


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
        lines.append(f"  attempt {attempt['attempt']}, announced {phrases.moment(attempt['announced'])}")
        rows = [(s["name"], phrases.duration(s["seconds"]), _facts(s)) for s in attempt["stages"]]
        lines += phrases.columns(rows, "    ") if rows else []
    worked, waited = (phrases.duration(data[name]) for name in ("worked_seconds", "waited_seconds"))
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
    used += [phrases.money(spent.cost_usd)] if spent.cost_usd else []
    used += [f"commit {phrases.short(facts['commit'])}"] if facts.get("commit") else []
    return ", ".join(part for part in (who, phrases.clip(ended + why, 80), *used) if part)


def validate(data: phrases.Data) -> phrases.Lines:
    run, rows = data["run"], data["faults"]
    if not rows:
        events = phrases.counted(data["events"], "event")
        return [f"Run {run}: {events}, valid", "  chain, order, payloads, and what they name in git"]
    places = (f"event {row['event']}, {row['kind']}: " if row["event"] and row["kind"] else "" for row in rows)
    lines = [f"  {place}{row['why']}" for place, row in zip(places, rows[:_MOST], strict=False)]
    return [f"Run {run} is not valid:", *lines, *_more(rows)]


def export(data: phrases.Data) -> phrases.Lines:
    return [f"Run {data['run']}: {phrases.counted(data['spans'], 'span')} sent as trace {data['trace']}"]
