"""Output for builders that drive idumb: the task, the verdict on the work, and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from idumb.views import markup, phrases


def start(data: phrases.Data) -> str:
    """Return the prompt of the task that was opened, or the state of the run if none could be."""
    if "open" not in data:
        from idumb.views.answers import run

        return run.ended(data)
    task = data["task"]
    lines = [f"{task['id']} {markup.one_line(task['title'])}: attempt {task['attempt']} is open.", ""]
    return _ended([*lines, *phrases.visible_lines(task["prompt"]), "", *phrases.commands(data)])


def upcoming(data: phrases.Data) -> str:
    """Return the next task of a phase with its prompt, and why the others wait."""
    lines = []
    if data["open"]:
        attempt = data["open"]
        lines.append(f"{attempt['task']} has been open since {attempt['since']} for {markup.one_line(attempt['by'])}.")
    if data["task"] is None:
        lines.append(f"No task of phase {data['phase']} can run now.")
    else:
        task = data["task"]
        lines += [f"{task['id']} {markup.one_line(task['title'])}", "", *phrases.visible_lines(task["prompt"]), ""]
    if data["others"]:
        rows = [(t["id"], markup.one_line(t["title"]), _why(t)) for t in data["others"]]
        lines += ["Not yet:", *phrases.columns(rows), ""]
    ways = [markup.one_line(way) for item in data["blocked"] for way in item["actions"]]
    lines += ["To unblock tasks:", *(f"  {way}" for way in dict.fromkeys(ways)), ""] if ways else []
    questions = [f"Waiting for an answer: {item['id']}  {markup.one_line(item['what'])}" for item in data["decisions"]]
    lines += [*questions, ""] if questions else []
    return _ended([*lines, *phrases.commands(data)])


def _why(task: phrases.Data) -> str:
    return f"{task['status']}: {markup.one_line(task['why'])}" if task["why"] else str(task["status"])


def submit(data: phrases.Data) -> str:
    task = data["task"]
    words = "is accepted" if data["accepted"] else "is not accepted"
    lines = [f"{task['id']} {markup.one_line(task['title'])} {words} (attempt {data['attempt']})."]
    lines += [f"- Commit: {task['commit']}"] if data["accepted"] and task.get("commit") else []
    lines += [f"- {e['result']} " + markup.one_line(f"{e['subject']} {e['text']}") for e in data["evidence"]]
    if data["feedback"]:
        lines += ["", *(f"  {markup.visible(line)}" for line in data["feedback"].split("\n"))]
    if data["ended"] is not None:
        from idumb.views.answers import run

        return _ended([*lines, ""]) + run.ended({**data["ended"], "next": data["next"]})
    return _ended([*lines, "", *phrases.commands(data)])


def give_up(data: phrases.Data) -> str:
    lines = [f"{data['task']}: attempt {data['attempt']} is given up; its files are kept in {data['kept']}"]
    lines += [f"- restored: {markup.one_line(path)}" for path in data["put_back"][:20]]
    return _ended([*lines, "", *phrases.commands(data)])


def tools(data: phrases.Data) -> str:
    return _ended(phrases.columns([(tool["name"], tool["about"]) for tool in data["tools"]]))


def _ended(lines: Sequence[Any]) -> str:
    return "\n".join(lines) + "\n"


def serving(data: phrases.Data) -> str:
    """Return only the address, for scripts."""
    return f"{data['address']}\n"
