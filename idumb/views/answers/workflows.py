"""Output of the command `workflow`: definitions, findings, and the runs of workflows."""

from __future__ import annotations

from idumb.domain.plans import workflow as workflows
from idumb.views import forms, phrases

FORMS = {
    "list_workflows": """
workflows* {name} | {version} | {origin} | [{errors:+error} (idumb workflow check {name}) ]\
[{hidden:?hidden by the definition above: }][{description:70}]
else There are no workflows.
Next: idumb workflow show NAME
""",
    "check": """
{findings:findings}
{path}: {findings:#finding}[, {errors:+error} among them]
""",
}
_DEFINITION = """
{name}[ {version}]: {description}
  {path} ({origin})
hides*   It hides {path} ({origin})
{inputs:?Inputs:}
inputs*   {name} ({choices or type}, {given})[: {description}]
phases* {title}:
* steps*   {step} ({kind}[, {rollback}]): {title}
* *     if {if}: [{then}][{then:!nothing}][, else {else}]
* * outputs*     gives {name}
Next: idumb workflow run {name}[ {required:words}]
"""
_RUNS = """
runs* {phase} {name}[ {version}][ ({given:80})]: {state}[{pinned}]
* steps*   {task}[ {step}]: {status}[: {reason:100}]
* * outputs*     {name} =[ {value:100}]
else No workflow has run here.
{runs:!Next: idumb workflow list}
"""
_PINNED = {"same": "", "changed": ", the definition changed since", "gone": ", the definition is gone"}


def show(data: phrases.Data) -> phrases.Lines:
    def given(value: phrases.Data) -> str:
        return f"default {workflows.shown(value['default']) or 'empty'}" if "default" in value else "required"

    inputs = [{**value, "given": given(value)} for value in data["inputs"]]
    required = [f"--input {value['name']}=VALUE" for value in data["inputs"] if "default" not in value]
    return forms.fill(_DEFINITION, {**data, "inputs": inputs, "required": required})


def status(data: phrases.Data) -> phrases.Lines:
    """Return a line for each run; of a single one, also its steps."""
    is_single = len(data["runs"]) == 1
    runs = [
        {
            **row,
            "given": ", ".join(f"{name}={workflows.shown(value)}" for name, value in row["inputs"].items()),
            "pinned": _PINNED[row["definition"]],
            "steps": [{**step, "outputs": _texts(step["outputs"])} for step in row["steps"] if is_single],
        }
        for row in data["runs"]
    ]
    return forms.fill(_RUNS, {"runs": runs})


def _texts(outputs: phrases.Data) -> phrases.Data:
    return {name: workflows.shown(value) for name, value in outputs.items()}
