"""Output of `handoff`."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities

_ID = 8


def handoff(data: phrases.Data) -> str:
    """Return the list, one handoff, or the statistics."""
    if "stats" in data:
        return _stats(data["stats"])
    return _one(data["handoff"]) if "handoff" in data else _list(data)


def _list(data: phrases.Data) -> str:
    rows = [
        (
            one["handoff_id"][:_ID],
            one["task"],
            f"{markup.one_line(one['from_agent'])} to {markup.one_line(one['to_agent'])}",
            one["status"].replace("_", " "),
            one["priority"],
            quantities.clip(markup.one_line(one["title"]), 60),
        )
        for one in data["handoffs"]
    ]
    failed = [
        f"Not handed off: {one['task']} to {markup.one_line(one['to_agent'])}: {markup.one_line(one['reason'])}"
        for one in data.get("failed", ())
    ]
    return "\n".join([*(phrases.columns(rows, "") if rows else ["No handoffs match."]), *failed]) + "\n"


def _one(one: phrases.Data) -> str:
    words = ("status", "handoff_type", "priority", "from_agent", "to_agent", "timestamp", "request_id", "run", "path")
    lines = [f"{one['handoff_id']}: {one['task']} {markup.one_line(one['title'])}"]
    lines += [f"  {name.replace('_', ' ') + ':':<14}{markup.one_line(str(one[name]))}" for name in words]
    for name in ("deliverables", "acceptance_criteria"):
        lines += [f"  {name.replace('_', ' ')}:"] if one[name] else []
        lines += [f"    - {markup.one_line(text)}" for text in one[name]]
    for name in ("summary", "next_steps"):
        lines += [f"  {name.replace('_', ' ')}:"] if one[name] else []
        lines += [f"    | {line}" for line in markup.visible(one[name]).splitlines()]
    for said in one["said"]:
        why = f": {markup.one_line(said['reason'])}" if said["reason"] else ""
        lines.append(f"  {quantities.moment(said['at'])} {markup.one_line(said['by'])}: {said['status']}{why}")
    return "\n".join(lines) + "\n"


def _stats(found: phrases.Data) -> str:
    lines = [quantities.counted(found["total"], "handoff")]
    for name in ("by_status", "by_type", "by_agent", "by_phase"):
        counts = ", ".join(f"{markup.one_line(k).replace('_', ' ')} {v}" for k, v in found[name].items() if v)
        lines += [f"  {name.replace('_', ' ')}: {counts}"] if counts else []
    return "\n".join(lines) + "\n"
