"""Output of `metrics`: a line for each agent call, then the sums."""

from __future__ import annotations

from idumb.domain.runs import spending
from idumb.views import markup, phrases, quantities


def metrics(data: phrases.Data) -> str:
    lines = [f"Run {data['run']} of phase {markup.one_line(data['phase'])}"]
    lines += [_call(row) for row in data["calls"]] or ["  no agent calls"]
    lines += [f"  {row['by']} {markup.one_line(row['name'])}: {_sum(row)}" for row in data["sums"]]
    return "\n".join([*lines, f"Total: {_sum(data['total'])}"]) + "\n"


def _call(row: phrases.Data) -> str:
    about = f"{row['task']} attempt {row['attempt']}" if row["task"] else f"the phase, round {row['attempt']}"
    named = [row[name] for name in ("binding", "model") if row[name]]
    who = f" ({', '.join(markup.one_line(name) for name in named)})" if named else ""
    took = quantities.duration(row["seconds"]) if row["seconds"] is not None else "an unknown time"
    ended = str(row["failure"] or row["outcome"]).replace("_", " ")
    used = "" if row["adapter"] in spending.FREE else f", {quantities.usage(row)}"
    return f"  {row['role']}{who} on {about}: {ended} in {took}{used}"


def _sum(row: phrases.Data) -> str:
    parts = [quantities.counted(row["calls"], "call"), quantities.duration(row["seconds"])]
    parts.append(f"tokens {quantities.sum_of(row['tokens'], row['unknown_tokens'], str(row['tokens']))}")
    parts.append(f"cost {quantities.sum_of(row['cost_usd'], row['unknown_cost'], quantities.money(row['cost_usd']))}")
    return ", ".join(parts)
