"""Output of `envelope`: the parts of one attempt, or the difference between two."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities

_NAMES = {"adapter_version": "adapter version"}
_LINES = 12


def envelope(data: phrases.Data) -> str:
    return _shown(data) if data["action"] == "show" else _compared(data)


def _shown(data: phrases.Data) -> str:
    lines = [f"{_head(data)}, envelope {data['digest']}"]
    for part in data["parts"]:
        lines.append(f"  {_name(part['name']) + ':':<17}{_value(part)}")
        lines += _source(part)
    return "\n".join(lines) + "\n"


def _head(attempt: phrases.Data) -> str:
    by = markup.one_line(attempt["builder"])
    return f"{attempt['task']} attempt {attempt['attempt']} of run {attempt['run']} by {by}"


def _name(part: str) -> str:
    return _NAMES.get(part, part)


def _value(part: phrases.Data) -> str:
    value = part["value"]
    if value is None:
        return "unknown"
    if part["absent"]:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{markup.one_line(name)} {markup.one_line(text)}" for name, text in sorted(value.items()))
    return markup.one_line(value)


def _source(part: phrases.Data) -> list[str]:
    if not part["source"]:
        return []
    kept = markup.visible(part["source"].rstrip("\n")).split("\n")
    more = (
        [f"    | ({quantities.counted(len(kept) - _LINES, 'line')} more; --json has them)"]
        if len(kept) > _LINES
        else []
    )
    return [*(f"    | {line}" for line in kept[:_LINES]), *more]


def _compared(data: phrases.Data) -> str:
    one, other = data["attempts"]
    lines = [f"- {_head(one)}", f"+ {_head(other)}"]
    for part in data["differences"]:
        lines.append(f"{_name(part['name'])} differs:")
        for sign, side in zip("-+", part["values"], strict=True):
            lines += [f"  {sign} {_value(side)}", *_source(side)]
    if not data["differences"]:
        lines.append("All known parts are the same.")
    if data["unknown"]:
        lines.append(f"Unknown, so not compared: {', '.join(map(_name, data['unknown']))}")
    return "\n".join(lines) + "\n"
