"""Output of `plan-phase`, `research` and `discuss`."""

from __future__ import annotations

from idumb.views import markup, phrases, quantities

_RULE = "-" * 72


def plan_phase(data: phrases.Data) -> str:
    """Return findings and objections to the last draft, and the path of the plan or the draft."""
    if data.get("prompt"):
        return _prompt(data)
    lines = [line for found in data["findings"] for line in phrases.finding(found)]
    lines += [f"plan-checker: {markup.one_line(text)}" for text in data["objections"]]
    lines += [""] if lines else []
    rounds = f" in {quantities.counted(data['rounds'], 'round')}" if data["rounds"] else ""
    if data["written"]:
        lines.append(f"Wrote {markup.one_line(data['path'])}: {phrases.tasks(data['tasks'])}{rounds}.")
    if data["kept"]:
        lines.append(f"The last draft is kept in {markup.one_line(data['kept'])}")
    said = "\n".join([*lines, *phrases.commands(data)]).rstrip("\n")
    return f"{said}\n" if said else ""


def _prompt(data: phrases.Data) -> str:
    """Return the prompt between rules."""
    shown = [markup.visible(line) for line in data["prompt"].rstrip("\n").split("\n")]
    return "\n".join(["Nothing was run or written.", _RULE, *shown, _RULE, *phrases.commands(data)]) + "\n"


def research(data: phrases.Data) -> str:
    if data.get("prompt"):
        return _prompt(data)
    path = markup.one_line(data["path"])
    if not data["written"]:
        said = f"{path} is current.\n" if data["standing"] == "current" else ""
        return said + "".join(f"{line}\n" for line in phrases.commands(data) if said)
    kept = [f"The previous file is kept in {markup.one_line(data['kept'])}"] if data["kept"] else []
    return "\n".join([f"Wrote {path}.", *kept, *phrases.commands(data)]) + "\n"


def discuss(data: phrases.Data) -> str:
    """Return the open questions and the number of answered ones."""
    lines = []
    for one in data["questions"]:
        if one["answer"] is None:
            lines.append(f"{one['id']}: {markup.one_line(one['text'])}")
            lines += [f"    {markup.one_line(one['why'])}"] if one["why"] else []
    done = len(data["questions"]) - len(data["open"])
    lines += [f"{done} of {quantities.counted(len(data['questions']), 'question')} answered."]
    lines += [f"The questions are in {markup.one_line(data['path'])}"] if data["path"] else []
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"
