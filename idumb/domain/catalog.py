"""Every finding of plans, settings, workflows and scripts: one row for each code. docs/findings.md is made of it.

`{found}` is what the text says, `{field}` the name of its place, `{task}` the id of the task, `{free}` a free task id;
each code adds its own words. `check_rows.py` has the checks of a legal plan.
"""

from __future__ import annotations

import functools

from idumb.domain import check_rows
from idumb.domain.finding import WARNING, Row

_warning = functools.partial(Row, guided=WARNING, strict=WARNING)
_REMOVE = "remove it if it does not matter"
_YAML = "plain YAML keys and values, each key once"
_LEVELS = "at most 20 levels"
_FENCES = "yaml task, yaml steps, json steps, starting in the first column"
_HEADING = "### {free}: Title"
_TASK = "### {free}: Title, - [ ] {free} Title or - id: {free}"
_START = "start it in the first column"
_ONE = "one of them"
_PROOF = "— check: `command`, — keeps: `command`, — verify, — human or — opinion"
_CRITERION = "a text, or {id?, text, check | keeps | verify | human | opinion | changed}"

_SECOND = Row(
    "Duplicate section `{found}`, first used on line {first}", "move everything into one section", "one section"
)
_UNDECLARED = Row("`{found}` is not declared in the frontmatter", "declare it there", "none declared")
_STEP = "### step-id: Title, and a fence `yaml step` below it"

# fmt: off
ROWS: dict[str, Row] = {
    # The file and its blocks
    "plan.too-large": Row("The file is larger than {most} MiB", "shorten or split it", "a smaller file"),
    "plan.not-utf-8": Row("The file is not UTF-8: unexpected byte {byte}", "save the file as UTF-8", "UTF-8"),
    "plan.nul": Row("The file contains a NUL character", "remove it", "text"),
    "plan.conflict": Row("A merge conflict is not resolved", "decide what stays, and remove or indent the marks",
        "no line that starts with <<<<<<< or >>>>>>>"),
    "plan.line-too-long": Row("The line is longer than 64 KiB", "break the line, or move the text into a file",
        "at most 64 KiB, except in step fences"),
    "fence.never-closed": Row("This fence is never closed",
        "close it with {accepted} on a separate line, indented by at most three spaces"),
    "fence.near-miss": Row("`{found}` looks like `{meant}`", "write {meant}, or use another word for an example",
        _FENCES),
    "fence.misplaced": Row("This fence is indented or nested", "start it in the first column", _FENCES),
    "fence.unread": Row("This fence looks like `{meant}` but would be ignored",
        "write {mark}{meant} in the first column, or {mark}yaml example for an example", _FENCES),
    "comment.never-closed": Row("This comment is never closed", "write --> at the end of a line", "-->"),
    "comment.inside-line": Row("This comment starts inside a line and does not end on it",
        "start the comment on a new line", "a comment on one line, or at the start of a line"),
    "comment.text-after": Row("Text after a comment that starts a line is not rendered as Markdown",
        "move the text to a new line", "nothing after the comment"),
    "plan.too-deep": Row("This is nested more than 20 levels deep", "nest less", _LEVELS),
    "yaml.unreadable": Row("Invalid YAML: {why}",
        "check the indentation, and quote values that contain a colon, a hash or a bracket", _YAML),
    "yaml.duplicate-key": Row("Duplicate key `{found}`, first used on line {first}", "keep one of them", _YAML),
    "yaml.alias": Row("YAML aliases are not allowed", "write it out", _YAML),
    "yaml.anchor": Row("YAML anchors are not allowed", "remove it", _YAML),
    "yaml.tag": Row("YAML tags are not allowed", "remove it", _YAML),
    "yaml.key": Row("A key must be a plain text", "use a text as the key", _YAML),
    "yaml.merge": Row("YAML merge keys are not allowed", "write it out", _YAML),
    "yaml.second-document": Row("A second YAML document starts here", "remove it", _YAML),
    "json.unreadable": Row("Invalid JSON: {why}", "check quotes, commas and brackets",
        "a list of objects, or one object per line"),
    # Frontmatter
    "plan.no-frontmatter": Row("The file does not start with frontmatter",
        "start the file with ---, type: {type}, {keys} and ---", "---"),
    "plan.frontmatter-never-closed": Row("The frontmatter is never closed",
        "close it with --- on a separate line, with no tab or spaces before it", "---"),
    "plan.frontmatter-too-large": Row("The frontmatter is larger than 64 KiB",
        "move long texts into the body", "at most 64 KiB"),
    "plan.wrong-type": Row("The type of a plan must be `plan`"),
    "plan.duplicate-id": Row("Duplicate id `{found}` in `{field}`{first}", "give one of them another id"),
    # Sections and tasks
    "plan.no-tasks": Row("The plan has no tasks", "write a task", "### {free}: Title in a section ## Tasks"),
    "plan.too-many-tasks": Row("The plan has {count} tasks", "split it"),
    "plan.second-tasks-section": _SECOND,
    "plan.second-criteria": _SECOND,
    "plan.criteria-twice": Row("Success criteria are given twice: in the frontmatter and in a section",
        "keep one of them", _ONE),
    "task.bad-id": Row("`{found}` looks like a task but has no valid id", "write {form}", _HEADING),
    "task.duplicate-id": Row("Duplicate id {found}, first used {first}", "give one of them the id {free}",
        "unique ids"),
    "task.no-id": Row("This YAML task has no `id`", "add id: {free}", "id: and a text"),
    "task.no-title": Row("{found} has no title", "write a title after the id", "a title"),
    "task.no-colon": Row("A task heading needs a colon or a dash after the id", accepted=_HEADING),
    "task.indented": Row("This task heading is indented", _START, _HEADING),
    "task.nested": Row("This task is inside a list or a quote", _START, _HEADING),
    "task.heading-level": Row("A task heading must have level 3 to 6", "write ### {found}", _HEADING),
    "task.not-a-heading": Row("This looks like a task heading but is not a Markdown heading",
        "start it in the first column, with one space after the #", _HEADING),
    "task.outside-section": Row("This task is outside the section `## Tasks`, or nested",
        "move it into the section ## Tasks, whose heading has no tab or spaces before it", _HEADING),
    "task.not-a-mapping": Row("A YAML task must be a mapping", "write id: and title:",
        "a mapping with id, title and fields, or a list of such mappings"),
    "task.yaml-item-without-id": Row("Each item in a YAML list of tasks must start with its id", "write id first",
        "- id: {free}"),
    "task.heading-without-id": Row("This heading has no task id, so the fields below it belong to no task",
        "write {marks} {free}: and the title in ## Tasks, or make the fields text", _HEADING),
    "task.unread": Row("`{found}` looks like a task but is not one",
        "write the marker of a task before it, or put it in a fence `example`", _TASK),
    "task.foreign-tag": Row("This task is in the tag format of GSD, which idumb does not read",
        "write it as ### {free}: and the title, with its fields below", _HEADING),
    "task.ticked": _warning("This task is ticked, but plans do not record status", "write [ ]"),
    "task.no-acceptance": Row("{id} has no acceptance criterion",
        "add - **Acceptance:** and - [ ] what must be true — check: and a command in backticks",
        "- **Acceptance:** with checkboxes below it"),
    "task.box-without-id": Row("This checkbox in `## Tasks` has no task id",
        "write - [ ] {free} and the title, or indent the checkbox below Acceptance", "- [ ] {free} Title"),
    "box.malformed": Row("This looks like a checkbox but is not one",
        "write - [ ] with one space inside the brackets and one after them", "- [ ] text"),
    "box.numbered": Row("A checkbox must be in a bullet, not in a numbered list", "write - [ ]", "- [ ] text"),
    "box.unexpected": Row("This checkbox is outside a task and would be ignored",
        "make it a criterion, a task in the first column, or a bullet without a checkbox",
        "checkboxes of tasks in the first column, checkboxes of criteria under Acceptance or ## Success criteria"),
    # Fields
    "task.unknown-label": Row("Unknown label `{found}`",
        "indent it if it is a value of the field above it, or rename it to x-…"),
    "task.not-a-field": Row("`{found}` is not a field, but is among the fields of a task",
        "indent it if it is a value of the field above it, or write a line of text before it"),
    "task.duplicate-label": Row("Duplicate field {found} in {id}, first used on line {first}", "merge the two",
        "each field once"),
    "field.no-colon": Row("{found} has no colon after it", "write - **{found}:**", "- **Label:** value"),
    "field.no-bullet": Row("{field} is bold but not in a bullet", "write - before it", "- **Label:** value"),
    "field.numbered": Row("{field} is in a numbered list", "write - **{field}:** in a bullet", "- **Label:** value"),
    "field.misplaced": Row("{found} belongs to no task", "indent it below its task",
        "bullets below the checkbox of a task, or keys of a YAML task"),
    "field.no-task": Row("{label} is in `## Tasks` but belongs to no task",
        "write the heading of the task above this field", _HEADING),
    # Values of fields
    "field.one-value": Row("{field} takes one value", "keep one of them", "one value"),
    "field.bad-value": Row("`{found}` is not a valid value of {field}"),
    "field.empty-item": Row("{field} has an empty item, or a verb without a path",
        "remove the comma, or write the missing item", "items between commas"),
    "field.bare-blank": Row("`{found}` contains a space",
        "for one path, write it in backticks; for several, separate them with commas",
        "paths separated by commas; paths with spaces in backticks"),
    "field.semicolon": Row("Separate items with commas, not with semicolons", "write commas",
        "items separated by commas"),
    "field.no-verb": Row("`{found}` stands where a verb belongs", "write one of these verbs there, before the path"),
    "field.unexpected-content": Row("{field} cannot hold this content",
        "write it as bullets, or move it into the description of the task", "a value on the line, or bullets below it"),
    "field.not-text": Row("{field} must be {accepted}"),
    "field.empty": Row("{field} has no value", "indent its value below it, or write none", "a value, or none"),
    "field.two-places": Row("{field} has both a value on its line and bullets below it",
        "move everything into the bullets", "one of them"),
    "files.move": Row("A move must be written `move A to B`", accepted="move A to B"),
    "command.bare": Row("`{found}` is not one command in backticks",
        "put the whole command in backticks; if it contains backticks, use double ones", "commands in backticks"),
    "command.empty": Row("The command is empty", "write a command", "commands in backticks"),
    "command.fence": Row("A command of several lines must be in a fence `sh`",
        "write sh after the opening backticks, and the command inside the fence", "```sh"),
    "task.unknown-requirement": _UNDECLARED,
    "task.unknown-invariant": _UNDECLARED,
    "task.bad-dependency": Row("`{found}` is not a task id of phase {phase}",
        "name tasks; to depend on another plan, write depends_on in the frontmatter", "ids of tasks, or none"),
    "test.malformed": Row("`{found}` is not a test", accepted="`command` — fails before, passes after: intent"),
    "condition.malformed": Row("`{found}` is not a condition",
        accepted='file exists PATH, file absent PATH, file contains PATH "TEXT", symbol NAME in PATH, env NAME, '
        "context PATH, command and a command"),
    "interface.malformed": Row("`{found}` is not a public name with its properties",
        accepted="one public name per bullet, in backticks, with its properties in nested bullets"),
    "interface.bad-property": Row("`{found}` is not a property of an interface, or it is empty or given twice"),
    "limits.malformed": Row("`{found}` is not a valid limit", accepted="files N, lines N, paths GLOB"),
    "rollback.malformed": Row("`{found}` is not a valid value of Rollback",
        accepted="reversible, compensatable with commands in nested bullets, or irreversible: reason"),
    "option.malformed": Row("`{found}` is not an option", accepted="bullets `id: text` with unique ids"),
    "handoff.malformed": Row("`{found}` is not a receiver", accepted="agent (type); several in bullets"),
    # Criteria
    "criterion.no-text": Row("This criterion has no text", "write what must be true", "- [ ] text — proof"),
    "criterion.not-text": Row("A criterion must be a text or a mapping", accepted=_CRITERION),
    "criterion.unknown-key": Row("Unknown key `{found}` in a criterion", "remove it"),
    "criterion.box-in-yaml": Row("A criterion in YAML must not have a checkbox", accepted=_CRITERION),
    "criterion.bad-id": Row("`{found}` is not a criterion id",
        "write AC-, a number and a colon, without bold or brackets", "AC-1: text"),
    "criterion.duplicate-id": Row("Duplicate id {found}, first used on line {first}", "give it another number",
        "unique ids"),
    "criterion.bad-proof": Row("`{found}` looks like a proof but is not one",
        "write the proof exactly as shown, or put the word in backticks", _PROOF),
    "criterion.bad-keeps": Row("`{found}` looks like a property that must stay true, but is not written as one",
        "write — keeps: and the whole command in backticks", "— keeps: `command`"),
    "criterion.two-proofs": Row("This criterion has two proofs",
        "split it into two criteria, or join the commands with &&", "one proof"),
    "criterion.nested-box": Row("This checkbox is below a criterion and would be ignored",
        "make it a separate criterion, or remove its checkbox", "bullets without a checkbox"),
    "criterion.nothing-to-verify": Row("This criterion is proven by Verify, but the task has no Verify",
        "add - **Verify:** and a command", "a field Verify with commands"),
    "criterion.no-box": _warning("This criterion has no checkbox", "write - [ ] before it"),
    "criterion.ticked": _warning("This criterion is ticked, but plans do not record status", "write [ ]"),
    # Steps
    "steps.no-task": Row("These steps are outside a task", "move them into a task", "a task"),
    "steps.two-fences": Row("{id} has two step fences, the first on line {first}", "merge the two",
        "one step fence per task"),
    "steps.empty": Row("There are no steps", "add one", "a list of steps"),
    "steps.not-a-list": Row("Steps must be a list", "start each step with -", "- tool: …"),
    "step.not-a-mapping": Row("{subject} must be a mapping", accepted="tool, intent, arguments"),
    "step.unknown-tool": Row("Unknown tool `{found}`", "use a tool from the list"),
    "step.missing-argument": Row("{owner} needs the argument `{key}`", "add {key}:"),
    "step.unknown-argument": Row("Unknown argument `{found}` of {owner}", "remove it"),
    "step.unreadable-patch": Row("The patch does not name a file", "keep the lines that start with --- and +++",
        "a patch in the format of `git diff`"),
    # Step plans
    "plan.bad-name": Row("'{found}' is not a valid path of a step plan", "rename the file",
        "a path of letters, digits, `.`, `_` and `-`, ending in .yaml, .yml or .json"),
    "plan.no-steps": Row("A step plan must be a mapping with the key `steps`", "put the list under `steps:`",
        "steps: a list of steps"),
    # Workflows
    "workflow.unreadable": Row("The file cannot be read: {why}", "make it readable, or remove it", "a readable file"),
    "workflow.other-name": Row("The workflow is named `{found}`, and its file {file}", "rename one of them"),
    "workflow.no-steps": Row("The workflow has no steps", "write a step", _STEP),
    "workflow.no-phase": Row("The step is in no phase", "write a heading of level 2 above it, such as ## Build", _STEP),
    "workflow.bad-heading": Row("The heading of a step needs an id and a title",
        "write ### and an id of lower-case letters, digits and `-`, a colon and a title", _STEP),
    "workflow.step-without-fence": Row("The step `{id}` has no fence `yaml step`",
        "add the fence, or change the heading if it is only text", _STEP),
    "workflow.step-without-heading": Row("{why}", accepted=_STEP),
    "workflow.fence-near-miss": Row("This fence looks like that of a step",
        "write ```yaml step in the first column, or add the word example", _STEP),
    "workflow.empty-step": Row("The fence is empty", accepted="kind: and other keys"),
    "workflow.duplicate-step": Row("Duplicate step id `{found}`, first used on line {first}", "rename one of them",
        "unique ids"),
    "workflow.bad-kind": Row("The step `{id}` has no known `kind`",
        "write kind: and one of these words; there are no kinds for loops or parallel steps"),
    "workflow.no-script": Row("The script step `{id}` needs either `run` or `steps`",
        accepted="run: COMMAND, or steps: a list of tool calls"),
    "workflow.no-options": Row("A decision needs `options`, and only a decision has them",
        accepted="options: {id: text} with ask: decision"),
    "workflow.no-condition": Row("The condition step `{id}` has no `{key}`"),
    "workflow.bad-condition": Row("{why}", "correct it; idumb help workflow-format has the grammar"),
    "workflow.two-branches": Row("`{found}` is in two branches",
        "nest the conditions, so that each step is in one branch", "one branch for each step"),
    "workflow.unknown-step": Row("There is no step `{found}`", "name a step of this workflow"),
    "workflow.unknown-output": Row("There is no output `{found}`", "declare it under `outputs` of that step"),
    "workflow.unknown-input": Row("There is no input `{found}`", "declare it in the frontmatter, or remove it"),
    "workflow.bad-path": Row("`{path}` becomes `{shown}`, which {problem}",
        accepted="an input that makes a path in the repository"),
    "workflow.bad-name": Row("`{found}` cannot be a name here"),
    "workflow.bad-type": Row("`{found}` is not a type", "write one of them"),
    "workflow.bad-choices": Row("`{name}` needs other `choices`",
        accepted="`choices: [a, b]` for the type `choice`, and only for it, each once"),
    "workflow.bad-file": Row("{why}", accepted="one path in the repository"),
    "workflow.bad-default": Row("The default of `{name}` is not {accepted}"),
    "workflow.bad-run": Row("{why}", "start the workflow again with idumb workflow run",
        "a fence `yaml run` with mappings, at the end of a run's plan"),
    "workflow.bad-input": Row("The input `{name}` is {why}"),
    # Settings
    "script.empty": Row("The script has no rules", "idumb help fake-model shows one", "a fence `yaml model`"),
    "script.empty-rule": Row("The rule is empty", "add answers:", "answers"),
    # Plans of other tools, read as they are
    "dialect.never-closed": Row("`{found}` is never closed", "write {accepted} where it ends"),
    "dialect.unknown-tag": _warning("idumb does not know the tag `{found}` and {then}", "use {accepted}"),
    "dialect.unknown-attribute": _warning("idumb does not know the attribute `{found}` of a task", _REMOVE),
    "dialect.unknown-type": _warning("idumb reads the unknown task type `{found}` as {kind}", "use {accepted}"),
    "dialect.unknown-key": _warning("idumb does not read the key `{found}`", _REMOVE),
    "dialect.stray-text": _warning("This text belongs to no task", "move it into a task, or give it an id such as T01"),
    "dialect.unread-path": _warning(
        "{task}: `{path}` {why}, so the task does not declare it", "separate paths by commas"
    ),
    "dialect.unread-dependency": _warning("`{found}` names no {what}, so idumb does not wait for it", "name a {what}"),
    "dialect.other-phase": _warning(
        "The plan says phase {found}; by its folder, it is of phase {phase}", "correct `phase`"
    ),
    "dialect.bad-value": _warning("`{field}` is no whole number, so it orders nothing", "write {field}: 1"),
    "dialect.done": _warning(
        "The plan has `{found}`; idumb does its tasks all the same", "move it elsewhere if nobody is to do them"
    ),
    "task.unknown-dependency": Row("{task} depends on {found}, which is not a task of this phase",
        "write the id of a task of this phase, or `none`", "a task id of this phase", field="depends_on"),
    "plan.foreign-format": Row(
        "This file is in the format of {tool}, which idumb does not read",
        "idumb import PATH writes it as a plan of idumb",
        "an idumb plan: type: plan, phase, plan, title, goal, and tasks",
    ),
    # The plans of a phase together
    "phase.too-many-tasks": Row("The phase has {found} tasks, and can have {accepted}.", "Split the phase."),
    "plan.other-folder": Row("{path} is a plan of phase {found}, but {folder} belongs to another phase.",
        "Correct `phase`, or move the plan.", "the phase of the plan's folder", field="phase"),
    "plan.other-phase": Row("{path} has phase {found}, but {first} in the same folder has {accepted}.",
        "Use the same `phase` in all plans of a folder.", field="phase"),
    "plan.other-name": Row("The plan states `{field}: {found}`, but its place requires {accepted}.",
        'Write {field}: "{accepted}".'),
    "plan.note": _warning("{path} has no frontmatter, so it is no plan; idumb leaves it alone.",
        "Start it with --- if it is a plan."),
    "plan.misnamed": _warning("{path} looks like a plan, but its name does not end in PLAN.md; idumb leaves it alone.",
        "Rename it, such as to 01-PLAN.md."),
    "plan.cycle": Row("Dependency cycle{of}: {found}.", "Remove one of these dependencies.",
        "dependencies without a cycle", field="depends_on"),
    "plan.unknown-dependency": Row("Plan {plan} depends on {what}.", "Correct `depends_on`.",
        "the id of another plan of this phase", field="depends_on"),
    "task.self-dependency": Row("{task} depends on itself.", "Remove the id from `Depends on`.", "another task's id",
        field="depends_on"),
    "task.unreachable": Row("{task} can never start: it depends on {found}, which can never complete.",
        "Fix the task that blocks it, or remove that task from `Depends on`.", "dependencies that can complete",
        field="depends_on"),
}
# fmt: on

OF_MAPPINGS = {
    "unknown-key": Row("Unknown key `{found}` in {owner}", "remove it"),
    "bad-value": Row("`{name}` must be {accepted}"),
    "missing-key": Row("There is no `{key}` in {owner}", "add {key}:"),
    "empty-value": Row("`{name}` has no value", "write a value, or remove it"),
}
"""What every mapping reports, with the kind of document before it."""
_NEVER = {"policy": "missing-key", "config": "empty-value", "step": "empty-value"}
ROWS |= check_rows.ROWS | {
    f"{kind}.{code}": row
    for kind in ("plan", "config", "policy", "workflow", "script", "step")
    for code, row in OF_MAPPINGS.items()
    if _NEVER.get(kind) != code
}
