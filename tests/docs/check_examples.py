"""What each check of a plan means (docs/findings.md shows it), and the smallest plan that shows its finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from idumb.domain.intake.rule import StartState


@dataclass(frozen=True, slots=True)
class Example:
    """The meaning of a code, and a plan that shows it: Markdown below `## Tasks`, and `head`, lines of frontmatter.

    `policy` and `config` are the text of `.idumb/policy/tools.yaml` and `.idumb/config.yaml`; "" if there is none.
    `repositories` are folders of nested repositories, `links` are links and their targets.
    """

    means: str
    task: str
    head: str = ""
    policy: str = ""
    config: str = ""
    repositories: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    present: StartState | None = None


def task(
    title: str = "Greet",
    first: str = "",
    files: str = "create `hello.txt`",
    criteria: str = "It is there — check: `test -s hello.txt`",
    more: str = "",
    last: str = "",
    steps: str = "",
) -> str:
    """A task; `first`, `more` and `last` are fields before Files, before Acceptance and after it."""
    fence = f"\n```yaml steps\n{steps}\n```\n" if steps else ""
    return (
        f"### T1-01: {title}\n\n{first}- **Files:** {files}\n{more}- **Acceptance:**\n  - [ ] {criteria}\n{last}{fence}"
    )


def write(declared: str, written: str | None = None) -> str:
    """A task that declares a path, with a step that writes one."""
    arguments = f"  arguments: {{path: {written or declared}, content: hello}}"
    return task(
        files=f"create `{declared}`",
        criteria=f"It is there — check: `test -s {declared}`",
        steps=f"- tool: write_file\n  intent: write the greeting\n{arguments}",
    )


def run(intent: str, command: str) -> str:
    return task(steps=f"- tool: run\n  intent: {intent}\n  arguments: {{command: '{command}'}}")


def on_disk(declared: str, check: str = "test -s a.txt") -> str:
    return task(files=declared, criteria=f"It is there — check: `{check}`")


def handoff(receiver: str) -> str:
    step = "- {tool: write_file, intent: greet, arguments: {path: hello.txt, content: hello}}"
    return task(last=f"- **Handoff to:** {receiver}\n", steps=step)


AGENT = "builder: agent\nbindings:\n  agent: {adapter: command, argv: [my-agent]}\n"
CHECKED = "It is there — check: `test -s hello.txt`\n  - [ ] "
NEEDED = "requirements: {REQ-1: It greets, REQ-2: It says goodbye}\n"
SERVING = task(first="- **Requirements:** REQ-1\n")
INTERFACE = "- **Interfaces:**\n  - `greet`\n    - inputs: a name\n    - outputs: a text\n"
WHOLE = INTERFACE + "    - errors: none\n    - side effects: none\n"
A_FILE = frozenset({"a.txt"})

EXAMPLES: Mapping[str, Example] = {
    "task.no-builder": Example("Nothing can build the task: it has no steps, and nothing names a builder.", task()),
    "task.unknown-builder": Example(
        "The builder of a task is not defined under `bindings`.", task(more="- **Builder:** agnet\n"), config=AGENT
    ),
    "task.unknown-validator": Example(
        "The validator of a task is not defined under `bindings`.",
        task(more="- **Validator:** reviewer\n"),
        config=AGENT,
    ),
    "handoff.unknown-agent": Example(
        "The receiver of a task's work is no binding, role or `human`, so no handoff is made.",
        handoff("auditor"),
    ),
    "handoff.unknown-type": Example(
        "The type of a handoff is unknown, so no handoff is made.", handoff("human (review)")
    ),
    "task.unknown-replaced": Example(
        "A task replaces a check that no task before it has.",
        task(last="- **Replaces:** T1-07/AC-1\n"),
    ),
    "task.no-proof": Example(
        "Nothing proves the task: no check, Verify, test, human criterion or validator.",
        task(criteria="It is friendly"),
    ),
    "task.no-check": Example(
        "Only the opinion of a validator proves the task.",
        task(criteria="It is friendly — opinion", last="- **Validator:** critic\n"),
        config="bindings:\n  critic: {adapter: command, argv: [my-critic]}\n",
    ),
    "plan.history": Example(
        "Tasks were imported as done. In strict mode, only what idumb has proven counts.",
        task(last="- **x-source-done:** it is done\n- **x-source-digest:** 0123\n"),
    ),
    "criterion.unproven": Example(
        "Nothing proves a criterion. If Verify should prove it although other criteria are marked, add `— verify`.",
        task(criteria=CHECKED + "It is friendly"),
    ),
    "criterion.empty": Example(
        "A criterion that a person or a model judges names no observable result.",
        task(criteria=CHECKED + "Works as expected — human"),
    ),
    "task.no-artifact": Example(
        "The task writes no file and only a model judges it, so nothing shows that it was done.",
        "### T1-01: Think\n\n- **Validator:** critic\n- **Acceptance:**\n  - [ ] The idea is good — opinion\n",
        config="bindings:\n  critic: {adapter: command, argv: [my-critic]}\n",
    ),
    "path.outside-workspace": Example(
        "A task or step would write outside the workspace, or to an invalid path.", write("../hello.txt")
    ),
    "path.outside-scope": Example(
        "A task or step would write outside `scope.root`.",
        write("hello.txt"),
        head="scope: {root: src}\n",
    ),
    "path.protected": Example(
        "A task or step would write a protected path.",
        write("LICENSE"),
        head="scope: {protected: [LICENSE]}\n",
    ),
    "path.other-repository": Example(
        "A task or step would write in a submodule or nested repository.",
        write("lib/hello.txt"),
        repositories=("lib",),
    ),
    "path.non-goal": Example(
        "A task declares a path that a non-goal excludes.",
        task(),
        "non_goals: [{id: NG-1, text: no greeting, paths: [hello.txt]}]\n",
    ),
    "limit.exceeded": Example(
        "A task declares more files than its limits allow, or files outside the paths of its limits.",
        task(files="create `hello.txt`, create `bye.txt`", last="- **Limits:** files 1\n"),
    ),
    "change.contradiction": Example(
        "The Symbols of a task change more than its class of change says: added public names are `extending`, removed"
        " ones `breaking`.",
        task(
            first="- **Change:** preserving\n",
            files="create `hello.py`",
            more="- **Symbols:** add `greet`\n",
            criteria="It is there — check: `test -s hello.py`",
        ),
    ),
    "symbol.contradiction": Example(
        "A task declares an interface, and its Symbols remove the name.",
        task(first=WHOLE, more="- **Symbols:** remove `greet`\n"),
    ),
    "plan.bad-scope": Example(
        "`scope.root` cannot be a folder of the repository: it is absolute or leads out of it.",
        write("hello.txt"),
        head="scope: {root: /srv/app}\n",
    ),
    "step.undeclared-path": Example(
        "A step writes a path that its task does not declare under Files, so the run would stop after that step.",
        write("hello.txt", "greeting.txt"),
    ),
    "path.missing": Example(
        "A task would modify, delete or move a file that does not exist and that no earlier task creates.",
        on_disk("modify `a.txt`"),
        present=StartState(),
    ),
    "path.exists": Example(
        "A task would create a file that already exists, or that an earlier task creates.",
        on_disk("create `a.txt`"),
        present=StartState(base=A_FILE, on_disk=A_FILE),
    ),
    "path.through-link": Example(
        "A task or step would write a symbolic link, or a path behind one.",
        on_disk("modify `a.txt`"),
        links={"a.txt": "b.txt"},
        present=StartState(on_disk=A_FILE),
    ),
    "path.leaves-workspace": Example(
        "A command of a step names a path outside the workspace: above it, an absolute one that it writes, or"
        " `$IDUMB_REPOSITORY` in a task that is not irreversible. Or a declared file is a link that leads out.",
        run("make a note", "touch ../note.txt"),
    ),
    "check.no-program": Example(
        "A check starts a program that is not on PATH and that no task creates.",
        on_disk("create `a.txt`", "grpe -q hello a.txt"),
        present=StartState(no_programs=frozenset({"grpe"})),
    ),
    "command.placeholder": Example("A command is still to be written.", run("make a note", "TBD")),
    "check.cannot-fail": Example(
        "A check passes whatever the work is: `true`, `test -n x`, `grep -q ''`, `! grep` in a file that is missing.",
        task(criteria="It greets — check: `test -n hello`"),
    ),
    "check.of-other-task": Example(
        "The only checks of a task are those of earlier tasks, which pass before it begins.",
        task() + "\n\n" + task("Greet again", files="create `again.txt`").replace("T1-01", "T1-02"),
    ),
    "check.hidden-failure": Example(
        "A pipe, `|| true`, `;` or `&` hides the failure of a check's program.",
        task(criteria="The tests pass — check: `pytest 2>&1 | tee test.log`"),
    ),
    "check.own-files": Example(
        "Only a script, a file with targets (`Makefile`, `package.json`) or tests that the task may write itself prove"
        " it. That is common for tests.",
        task(files="create `hello.txt`, create `check.py`", criteria="It greets — check: `python check.py`"),
    ),
    "text.unfilled": Example(
        "The plan still contains template text.",
        on_disk("create `a.txt`"),
        head='requirements: {REQ-1: "What a user needs, in one sentence"}\n',
        present=StartState(),
    ),
    "step.tool-not-allowed": Example(
        "A step uses a tool that a policy does not allow.",
        run("greet from the shell", "echo hello > hello.txt"),
        policy="allow: [write_file, edit_file]\n",
    ),
    "step.vague-intent": Example(
        "The intent of a step only repeats its tool.",
        task(steps="- {tool: write_file, intent: write file, arguments: {path: hello.txt, content: hello}}"),
    ),
    "step.not-deterministic": Example(
        "The command of a step depends on chance, the clock or the network (as do `git pull`, `npm ci`, `docker pull`),"
        " and no assumption names the task and the program, such as"
        ' `assumptions: ["T1-01 uses date: the stamp is for people"]`.',
        run("write a greeting with a number", "echo hello $RANDOM > hello.txt"),
    ),
    "step.branch": Example(
        "The command of a step branches at run time, with `if`, `case` or `||`.",
        run(
            "greet in the language of the machine",
            'if test -n "$LANG"; then echo hello; else echo salve; fi > hello.txt',
        ),
    ),
    "requirement.no-task": Example("No task serves a requirement of the plan.", SERVING, head=NEEDED),
    "requirement.unlisted": Example(
        "The plan lists a requirement by its id alone, but REQUIREMENTS.md has no such id. In strict mode, confirm"
        " it with `idumb approve N --answer REQ-1=yes`.",
        SERVING,
        head="requirements: [REQ-1]\n",
        present=StartState(),
    ),
    "task.no-requirement": Example("The task serves none of the plan's requirements.", task(), head=NEEDED),
    "plan.no-requirements": Example("The plan does not name requirements.", task()),
    "plan.no-success-criteria": Example("The plan has no success criteria.", task()),
    "plan.no-non-goals": Example(
        "The plan does not declare its non-goals (`non_goals: []` if there are none).", task()
    ),
    "plan.no-invariants": Example("A task declares interfaces, and the plan no invariants.", task(first=WHOLE)),
    "task.no-change-class": Example("The task writes files and has no field Change.", task()),
    "interface.incomplete": Example(
        "A public name does not declare all of inputs, outputs, errors and side effects.", task(first=INTERFACE)
    ),
    "task.irreversible": Example(
        "The task cannot be rolled back. It runs only after a person accepts this task.",
        task(first="- **Rollback:** irreversible: it mails everybody\n"),
    ),
    "text.placeholder": Example(
        "The plan contains TBD, FIXME, TODO, `???`, “to be determined” or “to be decided” in its goal, or in a title,"
        " intent, description, requirement, criterion, invariant, non-goal, assumption, note or reason.",
        task(criteria="The greeting is TBD — check: `test -s hello.txt`"),
    ),
    "text.vague": Example(
        "The plan contains vague words, such as “etc.” or “and so on”; in a title, criterion or intent also “or"
        " similar”, “appropriate” or “somehow”.",
        task(criteria="It greets friends, family etc. — check: `test -s hello.txt`"),
    ),
    "text.conditional": Example(
        "The plan contains a condition that no one can check, such as “as needed”; in a title, criterion or intent"
        " also “if necessary”, “where possible”, “if time permits” or “optional”.",
        task("Greet, and wave if necessary", criteria="It greets — check: `test -s hello.txt`"),
    ),
    "task.large": Example(
        "The task is estimated at more than two hours, writes more than 8 files, or has more than 7 criteria.",
        task(criteria="It greets — check: `test -s hello.txt`", last="- **Estimate:** 3h\n"),
    ),
}
