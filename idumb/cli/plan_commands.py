"""The commands of the group Plan: write, check, compare and change plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from idumb.app.core.services import Result
from idumb.cli import arguments, options
from idumb.system import shipped, user_folders

if TYPE_CHECKING:
    from idumb.app.core.services import Services

plan_command = options.Group(
    "plan",
    help="""Write a plan, add a task to one, or prepare planning.

    Each task depends on the one before it. FILES is written as in a plan, such as 'create a.py, modify b.py'; a path
    without a verb is modified if it exists, else created.

    A file .idumb/templates/NAME.md is a template of your own, or replaces the one of that name.
    """,
)


def _new_tasks(_context: click.Context, _option: click.Parameter, rows: tuple[tuple[str, str, str], ...]) -> Any:
    from idumb.domain.plans.new_task import NewTask

    if not options.is_text(rows):
        raise click.BadParameter("it is not UTF-8.")
    return tuple(NewTask(*row) for row in rows)


_of_new_tasks = options.together(
    click.option("--builder", metavar="NAME", help="Who builds the tasks; by default as in the plan, else you."),
    options.many(
        "--task",
        "TITLE FILES COMMAND",
        "A task, the files it may change, and the command that proves it.",
        "tasks",
        type=(str, str, str),
        callback=_new_tasks,
    ),
    click.option(
        "--template",
        default="feature",
        show_default=True,
        help="feature, bugfix, refactor, migration, docs, spike or yours.",
    ),
)


def _question_reader(services: Services) -> Any:
    """Return the function that asks a person for words; None without a terminal."""
    from idumb.views.terminal import ask

    asker = services.asker
    return asker.words if isinstance(asker, ask.Terminal) else None


def _shipped(name: str) -> str:
    return shipped.template(f"plans/{name}.md")


@options.command("new", group=plan_command, opens=options.WRITES)
@options.phase
@click.option("--goal", default="", help="What is true when the phase is done.")
@click.option("--requirement", default="", help="The text of REQ-1; by default the goal.")
@_of_new_tasks
def new_command(services: options.Container, phase: str, **given: Any) -> Result:
    """Write a new plan from a template.

    At a terminal, asks for what the options leave out. Only a plan without errors is written, and none is overwritten.
    """
    from idumb.app.planning import new_tasks

    return new_tasks.create(services, new_tasks.NewPlan(phase, **given), _shipped, _question_reader(services))


@options.command("add-task", group=plan_command, person=True, view="new", opens=options.WRITES)
@options.phase
@click.option("--requirement", metavar="ID", help="The requirement that the task serves.")
@_of_new_tasks
@click.option("--plan", metavar="ID", help="The plan that receives it; the last one by default.")
@click.option("--depends-on", multiple=True, metavar="ID", help="A dependency, or none; by default the last task.")
@click.option("--why", metavar="REASON", default="", help="The reason, which is recorded.")
@click.option("--hash", "agreed", metavar="HASH", help="Agree to the amended contract with this hash.")
@options.yes
def add_task_command(services: options.Container, phase: str, depends_on: tuple[str, ...], **given: Any) -> Result:
    """Add a task behind the last one.

    Changes no other byte of the plan. If the phase has a run, the change is an amendment, as with
    `idumb amend --add-task`.
    """
    from idumb.app.planning import new_tasks

    needed = tuple(id for id in depends_on if id != "none") if depends_on else None
    request = new_tasks.Addition(arguments.phase_id(phase, services.root), depends_on=needed, **given)
    return new_tasks.add(services, request, _shipped, _question_reader(services), user_folders.user_name())


@options.command("plan-phase")
@options.phase
@click.option("--template", "from_template", is_flag=True, help="Write a plan for you to fill in; ask no agent.")
@click.option("--from", "source", metavar="FILE", help="Use this plan if it is valid; - reads standard input.")
@click.option("--gaps", is_flag=True, help="Write one more plan, for what verify-work found missing.")
@click.option("--ask", is_flag=True, help="Print the planner's prompt; run nothing.")
@options.negative("--no-research", "research", "Do not update the research.")
@options.approve("Consent to these agents.")
def plan_phase_command(phase: str, *, source: str | None, from_template: bool, **flags: Any) -> Result:
    """Write the plan of a phase.

    The planner receives the roadmap, the project, your answers and the research, which is updated first if it is
    missing or stale. Findings of check-plan and objections of the plan-checker go back to the planner, for three rounds
    at most. Only a valid plan is written, and none is overwritten.

    With --ask, give the prompt to any agent, and its answer to --from.
    """
    from idumb.app.planning import plan_phase

    if sum((from_template, flags["ask"], source is not None)) > 1:
        raise click.UsageError("Use only one of --template, --from and --ask.")
    if flags["gaps"] and from_template:
        raise click.UsageError("--gaps needs a planner or --from; a template cannot fill gaps.")
    request = plan_phase.Request(
        phase,
        template=shipped.template("phase-plan.md") if from_template else None,
        offered=None if source is None else arguments.read_text(source, "plan-phase"),
        **flags,
    )
    with options.services(writes=True, progress=True) as services:
        return plan_phase.plan_phase(services, request, options.progress_writer())


@options.command("check-plan")
@options.phase
@click.option("--hash", "expected", metavar="HASH", help="Fail unless the phase, contract or only plan has this hash.")
@click.option("--mode", type=click.Choice(["guided", "strict"]), help="Check as for this mode; strict plans stay so.")
@click.option("--run-checks", is_flag=True, help="Also run unfinished tasks' checks on a copy of HEAD. Needs consent.")
@options.view("verbose", "Also print hashes, the self-check and the next free id.")
@options.view("diff", "Print only how the plans differ from those that the newest run locked.")
def check_plan_command(
    phase: str, expected: str | None, mode: str | None, run_checks: bool, view: str | None
) -> Result:
    """Check the plans of a phase and print every finding.

    Instead of a phase, name a plan file to see only its findings, also a plan of GSD or of the first iDumb.

    Without errors, prints the contract hash and the next command, and names plans and settings that are not committed.
    Writes nothing. Runs nothing, except with --run-checks, which finds checks that pass before the work. With --json,
    data.consent_hash is the hash for --approve.
    """
    if view == "diff" and (expected or mode or run_checks):
        raise click.UsageError("--diff compares the plans; it takes none of --hash, --mode and --run-checks.")
    with options.services(initialised=False) as services:
        if view == "diff":
            from idumb.app.contract import changed_contract

            return changed_contract.difference(services, arguments.phase_id(phase, services.root))
        import gc

        if not run_checks:
            gc.disable()
        from idumb.app.review import check_plan

        path = arguments.plan_file(phase, services.root)
        if path is not None and arguments.phase_of_file(path) is None:
            return check_plan.check_file(services, path, expected=expected, mode=mode)
        phase = arguments.phase_id(phase, services.root)
        return check_plan.check(services, phase, expected=expected, mode=mode, run_checks=run_checks, only=path)


@options.command("discuss", group=plan_command)
@options.phase
@options.many("--answer", "ID=TEXT", "Answer a question.", "answers", callback=options.people_only_option)
@click.option("--more", is_flag=True, help="Ask for more questions, even if some are already there.")
@click.option("--usual", is_flag=True, help="Use the standard questions instead of asking an agent for better ones.")
@options.approve("Consent to this agent.")
def discuss_command(phase: str, answers: tuple[str, ...], **flags: Any) -> Result:
    """Answer the questions that planning a phase depends on.

    The answers are saved in the context file of the phase. If an agent is bound to the researcher role, it asks the
    questions. At a terminal you answer them one by one; otherwise they wait in the file, where you can answer them too.
    """
    from idumb.app.planning import phase_research

    if answers and (flags["more"] or flags["usual"]):
        raise click.UsageError("--answer answers questions; --more and --usual ask them. Choose one.")
    answer_by_id = arguments.pairs("--answer", answers)
    with options.services(progress=True) as services:
        words = _question_reader(services)
        read = None if words is None else lambda question: words(question.text, question.why)
        return phase_research.discuss(services, phase, answer_by_id, read, **flags)


@options.command("research", group=plan_command)
@options.phase
@click.option("--again", is_flag=True, help="Research again even if nothing changed.")
@click.option("--from", "source", metavar="FILE", help="Use this report; - reads standard input.")
@click.option("--ask", is_flag=True, help="Print the researcher's prompt; run nothing.")
@options.approve("Consent to this agent.")
def research_command(phase: str, source: str | None, **flags: Any) -> Result:
    """Research a phase before it is planned.

    Does nothing if roadmap, project and context have not changed since the last research.
    """
    from idumb.app.planning import phase_research

    if sum((flags["again"], flags["ask"], source is not None)) > 1:
        raise click.UsageError("Use only one of --again, --from and --ask.")
    offered = None if source is None else arguments.read_text(source, "plan research")
    with options.services(writes=True, progress=True) as services:
        return phase_research.research(services, phase, options.progress_writer(), offered=offered, **flags)


_PAIR = (str, str)


@options.command("amend", person=True)
@options.phase
@options.many("--add-task", "FILE", "Add the tasks in FILE, written as in a plan; - reads standard input.", "tasks")
@options.many("--widen", "TASK CLAIM", "Allow a task more files, such as T1-03 'modify a.py'.", type=_PAIR)
@options.many("--accept-deviation", "TASK PATH", "Declare a file that the task changed.", "deviations", type=_PAIR)
@options.many(
    "--drop-dependency", "TASK TASK", "Remove the dependency of the first task on the second.", "drops", type=_PAIR
)
@options.many("--decision", "TEXT", "Add a line to the decisions of the plan.", "decisions")
@click.option("--from-file", is_flag=True, help="Adopt the changes that you made to the plan files.")
@click.option("--plan", metavar="ID", help="The plan that receives tasks and decisions; the last one by default.")
@click.option("--why", metavar="REASON", default="", help="The reason, which is recorded.")
@click.option("--hash", "agreed", metavar="HASH", help="Agree to the amended contract with this hash.")
@options.yes
def amend_command(
    phase: str,
    *,
    tasks: tuple[str, ...],
    widen: tuple[tuple[str, str], ...],
    drops: tuple[tuple[str, str], ...],
    decisions: tuple[str, ...],
    **flags: Any,
) -> Result:
    """Change a locked plan; its run continues under it.

    Shows the difference, checks everything again and asks before anything is written. Completed tasks, and what they
    relied on, cannot change. Only the amended lines of the plan are rewritten.
    """
    from idumb.app.review import amend
    from idumb.domain.amendment import ADD, DECIDE, DROP, WIDEN, Amendment
    from idumb.domain.plans.new_task import parse_claim

    amendments = [Amendment(WIDEN, task, claim=parse_claim(text)) for task, text in widen]
    amendments += [Amendment(DROP, task, other) for task, other in drops]
    amendments += [Amendment(ADD, None, arguments.read_text(name, "amend")) for name in tasks]
    amendments += [Amendment(DECIDE, None, text) for text in decisions]
    if not all(text.strip() for text in decisions):
        raise click.UsageError("--decision needs a text.")
    if flags["from_file"] and (amendments or flags["deviations"]):
        raise click.UsageError("--from-file adopts the plan as it is; the other amendments write to it. Choose one.")
    with options.services(writes=True) as services:
        request = amend.Request(arguments.phase_id(phase, services.root), tuple(amendments), **flags)
        return amend.amend(services, request, user_folders.user_name())


@options.command("graph", opens=options.ANYWHERE)
@options.phase
@click.option(
    "--format", type=click.Choice(["text", "mermaid"]), default="text", show_default=True, help="Output format."
)
def graph_command(services: options.Container, phase: str, format: str) -> Result:
    """Show the tasks of a phase in the order they run.

    Tasks in the same wave do not depend on each other.
    """
    from idumb.app.review import check_plan
    from idumb.views import graph as views

    return check_plan.show_graph(services, arguments.phase_id(phase, services.root), getattr(views, format))


@options.command("import", view="import_plan", opens=options.WRITES)
@click.argument("path")
@click.option("--from", "kind", metavar="KIND", help="The format; by default idumb recognizes it.")
@click.option(
    "--to",
    "phase",
    metavar="PHASE",
    help="The phase that receives the plan; by default the first one if it is empty, else a new one.",
)
@click.option("--tag", metavar="TAG", default="", help="The list of tasks in a file of task-master; master by default.")
@options.yes
def import_command(services: options.Container, path: str, kind: str | None, **flags: Any) -> Result:
    """Import the plan of another tool.

    Keeps ids and marks of the source, names what it inferred, and lists what you must add before check-plan passes.
    Never changes the source. Import the same path again after its source changed: it shows the difference and asks;
    your files and checks stay.

    KIND is one of spec-kit, openspec, task-master, backlog, spec-kitty, gsd, claude, cursor and checklist.
    """
    from idumb.app.planning import import_plan

    place = arguments.source_path(path, services)
    return import_plan.run(services, import_plan.Request(place, kind, **flags), user_folders.user_name())
