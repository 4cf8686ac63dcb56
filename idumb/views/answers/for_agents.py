"""Output for builders that drive idumb: the task, the verdict on the work, and the next step."""

from __future__ import annotations

from idumb.views import phrases


def start(data: phrases.Data) -> phrases.Lines:
    """Return the prompt of the task that was opened, or the state of the run if none could be."""
    if "open" not in data:
        from idumb.views.answers import run

        return run.ended(data)
    task = data["task"]
    lines = [f"{task['id']} {task['title']}: attempt {task['attempt']} is open.", ""]
    return [*lines, *phrases.lines_of(task["prompt"]), ""]


def upcoming(data: phrases.Data) -> phrases.Lines:
    """Return the next task of a phase with its prompt, and why the others wait."""
    lines = []
    if data["open"]:
        attempt = data["open"]
        lines.append(f"{attempt['task']} has been open since {attempt['since']} for {attempt['by']}.")
    if data["task"] is None:
        lines.append(f"No task of phase {data['phase']} can run now.")
    else:
        task = data["task"]
        lines += [f"{task['id']} {task['title']}", "", *phrases.lines_of(task["prompt"]), ""]
    if data["others"]:
        rows = [(t["id"], t["title"], phrases.why(t)) for t in data["others"]]
        lines += ["Not yet:", *phrases.columns(rows), ""]
    questions = [f"Waiting for an answer: {item['id']}  {item['what']}" for item in data["decisions"]]
    lines += [*questions, ""] if questions else []
    return lines


def submit(data: phrases.Data) -> phrases.Lines:
    task = data["task"]
    words = "is accepted" if data["accepted"] else "is not accepted"
    lines = [f"{task['id']} {task['title']} {words} (attempt {data['attempt']})."]
    lines += [f"- Commit: {task['commit']}"] if data["accepted"] and task.get("commit") else []
    lines += [f"- {e['result']} " + f"{e['subject']} {e['text']}" for e in data["evidence"]]
    if data["feedback"]:
        lines += ["", *(f"  {line}" for line in data["feedback"].split("\n"))]
    if data["ended"] is not None:
        from idumb.views.answers import run

        return phrases.whole([*lines, ""]) + run.ended({**data["ended"], "next": data["next"]})
    return [*lines, ""]


def give_up(data: phrases.Data) -> phrases.Lines:
    lines = [f"{data['task']}: attempt {data['attempt']} is given up; its files are kept in {data['kept']}"]
    lines += [f"- restored: {path}" for path in data["put_back"][:20]]
    return [*lines, ""]


def tools(data: phrases.Data) -> phrases.Lines:
    return phrases.columns([(tool["name"], tool["about"]) for tool in data["tools"]])


def serving(data: phrases.Data) -> phrases.Lines:
    """Return only the address, for scripts."""
    return [data["address"]]
