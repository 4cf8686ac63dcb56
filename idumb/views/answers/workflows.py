"""Output of the command `workflow`: definitions, findings, and the runs of workflows."""

from __future__ import annotations

from idumb.domain.plans import workflow as workflows
from idumb.views import phrases


def list_workflows(data: phrases.Data) -> phrases.Lines:
    rows = [
        (row["name"], (row["version"] or ""), row["origin"], _note(row) or phrases.clip(row["description"], 70))
        for row in data["workflows"]
    ]
    lines = phrases.columns(rows, "") if rows else ["There are no workflows."]
    return [*lines, "Next: idumb workflow show NAME"]


def _note(row: phrases.Data) -> str:
    if row["errors"]:
        return f"{phrases.counted(row['errors'], 'error')}: idumb workflow check {row['name']}"
    return "hidden by the definition above" if row["hidden"] else ""


def show(data: phrases.Data) -> phrases.Lines:
    lines = [f"{data['name']} {data['version']}: {data['description']}"]
    lines += [f"  {data['path']} ({data['origin']})"]
    lines += [f"  It hides {other['path']} ({other['origin']})" for other in data["hides"]]
    lines += ["", "Inputs:"] if data["inputs"] else []
    lines += [f"  {_input(value)}" for value in data["inputs"]]
    for phase in data["phases"]:
        lines += ["", f"{phase['title']}:"]
        lines += [line for step in phase["steps"] for line in _step(step)]
    required = [f"--input {v['name']}=VALUE" for v in data["inputs"] if "default" not in v]
    return [*lines, " ".join(["Next: idumb workflow run", data["name"], *required])]


def _input(value: phrases.Data) -> str:
    kind = " or ".join(value["choices"]) if value.get("choices") else value["type"]
    default = f", default {workflows.shown(value['default']) or 'empty'}" if "default" in value else ", required"
    about = f": {value['description']}" if value["description"] else ""
    return f"{value['name']} ({kind}{default}){about}"


def _step(step: phrases.Data) -> list[str]:
    special = f", {step['rollback']}" if "rollback" in step else ""
    lines = [f"  {step['step']} ({step['kind']}{special}): {step['title']}"]
    if "if" in step:
        others = f", else {', '.join(step['else'])}" if step["else"] else ""
        lines.append(f"    if {step['if']}: {', '.join(step['then'])}{others}")
    if step["outputs"]:
        lines.append(f"    gives {', '.join(value['name'] for value in step['outputs'])}")
    return lines


def check(data: phrases.Data) -> phrases.Lines:
    warnings = len(data["findings"]) - data["errors"]
    counts = f"{phrases.counted(data['errors'], 'error')}, {phrases.counted(warnings, 'warning')}"
    return [*phrases.findings(data["findings"]), f"{data['path']}: {counts}"]


def status(data: phrases.Data) -> phrases.Lines:
    if not data["runs"]:
        return ["No workflow has run here.", "Next: idumb workflow list"]
    lines: list[str] = []
    for row in data["runs"]:
        pinned = {"same": "", "changed": ", the definition changed since", "gone": ", the definition is gone"}
        inputs = ", ".join(f"{name}={workflows.shown(value)}" for name, value in row["inputs"].items())
        about = f" ({phrases.clip(inputs, 80)})" if inputs else ""
        version = f" {row['version']}" if row["version"] else ""
        head = f"{row['phase']} {row['name']}{version}{about}: {row['state']}"
        lines.append(head + pinned[row["definition"]])
        if len(data["runs"]) == 1:
            lines += [line for step in row["steps"] for line in _step_state(step)]
    return lines


def _step_state(step: phrases.Data) -> list[str]:
    reason = f": {phrases.clip(step['reason'], 100)}" if step["reason"] else ""
    lines = [f"  {step['task']} {step['step']}: {step['status']}{reason}"]
    for name, value in step["outputs"].items():
        lines.append(f"    {name} = {phrases.clip(workflows.shown(value), 100)}")
    return lines
