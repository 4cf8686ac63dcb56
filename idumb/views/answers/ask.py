"""Output of `execute-phase --ask`."""

from __future__ import annotations

from idumb.views import markup, phrases

_RULE = "-" * 72


def prepared(data: phrases.Data) -> str:
    """Return each agent and its prompt, or the names of the prompt files."""
    if not data["prepared"]:
        return "\n".join([f"No task of phase {data['phase']} can run now.", *phrases.commands(data)]) + "\n"
    written = data.get("written")
    lines = ["Nothing was run or recorded.", ""]
    for task in data["prepared"]:
        lines += _task(task, shown=written is None)
    lines += [f"written: {markup.one_line(path)}" for path in written or ()]
    return "\n".join([*lines, *phrases.commands(data)]) + "\n"


def _task(task: phrases.Data, *, shown: bool) -> list[str]:
    agent = task["agent"]
    named = markup.one_line(agent["binding"] or "nobody")
    model = f", model {markup.one_line(agent['model'])}" if agent["model"] else ""
    head = [f"{task['id']} {markup.one_line(task['title'])} ({task['status']}, attempt {task['attempt']})"]
    head.append(f"  builder: {named}{model}")
    head += [f"  starts:  {markup.one_line(' '.join(agent['argv']))}"] if agent["argv"] else []
    head += [f"  problem: {markup.one_line(agent['problem'])}"] if agent["problem"] else []
    head += [f"  writes:  {markup.one_line(', '.join(task['allowed']) or 'nothing')}"]
    if not task["prompt"]:
        return [*head, "  It receives no prompt.", ""]
    if not shown:
        return [*head, ""]
    return [*head, _RULE, *(markup.visible(line) for line in task["prompt"].rstrip("\n").split("\n")), _RULE, ""]
