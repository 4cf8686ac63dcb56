"""Output of `approve`."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities


def approve(data: phrases.Data) -> str:
    """Return what was approved, by whom and until when."""
    phase = markup.one_line(data["phase"])
    if data["status"] == "revoked":
        parts = [(data["revoked"], "approval"), (data["withdrawn"], "consent")]
        taken = " and ".join(quantities.counted(count, what) for count, what in parts if count)
        return "\n".join([f"Phase {phase}: {taken} withdrawn.", *phrases.commands(data)]) + "\n"
    lines = [] if data["asked"] else [markup.visible(line) for line in data["shown"]]
    until = f", until {data['expires']}" if data["expires"] else ""
    lines += ["", f"Phase {phase} approved by {markup.one_line(data['by'])}{until}."]
    lines.append(f"  phase hash {data['plan_hash']}")
    lines.append(f"  contract   {data['contract_hash']}")
    if data["accepted"]:
        lines.append(f"  accepted, although they cannot be undone: {', '.join(data['accepted'])}")
    if data.get("no_longer_accepted"):
        lines.append(f"  no longer accepted: {', '.join(data['no_longer_accepted'])}")
    if data["file"]:
        lines.append(f"  signed copy: {markup.one_line(data['file'])}")
    elif data["signed"]:
        lines.append("  signed")
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"
