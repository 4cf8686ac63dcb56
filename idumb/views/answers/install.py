"""Output of `install`."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities

_DONE = {"create": "created", "update": "updated", "remove": "removed", "current": "unchanged"}
_MEANT = {"create": "would create", "update": "would update", "remove": "would remove", "current": "would not change"}
_KEPT = {"edited": "kept, changed by you", "foreign": "kept, not created by idumb"}


def install(data: phrases.Data) -> str:
    """Return each file with its action; for `--list`, each location with its files."""
    if "installed" in data:
        return _list(data)
    words = {**(_MEANT if data["dry_run"] else _DONE), **_KEPT}
    lines = [f"{words[row['action']]}: {markup.one_line(row['path'])}" for row in data["files"]]
    if not lines:
        lines = [f"idumb has no files in {markup.one_line(' or '.join(data['folders']))}."]
    elif data["next"] and not data["dry_run"]:
        lines.append(f"In {data['host']}, type {markup.one_line(data['typed'])} and so on.")
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _list(data: phrases.Data) -> str:
    if not data["installed"]:
        return "No idumb slash commands are installed here.\n"
    return "".join(_place(row) for row in data["installed"])


def _place(row: phrases.Data) -> str:
    flag = " --user" if row["scope"] == "user" else ""
    head = (
        f"{row['host']} ({row['scope']}, {markup.one_line(row['folder'])}): {quantities.counted(row['files'], 'file')}"
    )
    lines = [f"{head}, version {', '.join(map(markup.one_line, row['versions'])) or 'unknown'}"]
    parts = ((key, row[key]) for key in ("outdated", "missing", "edited") if row[key])
    lines += [f"  {key}: {', '.join(map(markup.one_line, files))}" for key, files in parts]
    if row["outdated"] or row["missing"]:
        lines.append(f"  next: idumb install --host {row['host']}{flag}")
    return "\n".join(lines) + "\n"
