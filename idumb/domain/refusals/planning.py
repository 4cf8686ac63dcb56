"""Refusals about plans, phases, configuration, consent and amendments."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import DOCTOR, HINT, Row, look, row, way

_RUN = "Run the phase"
_READ = "Read the plan"
_AMEND = "Amend the plan"
_IMPORT = "Import a plan"
_FIND = "Find the phase"
_CONFIGURATION = "Read the configuration"
_CORRECT = way("correct", "correct the errors")
_PERMIT = way("permit", "make the file readable")
_ROADMAP = look("list the phases", "idumb roadmap", "list")
_HELP = look("see the arguments and options of the command", "idumb amend --help", "help")
_CHECK = look("see every error with its line", "idumb check-plan {phase}", "check")
_APPROVE = way(
    "approve",
    "approve the phase as it is now",
    "you see first what will run; strict runs follow this approval",
    "idumb approve {phase}",
)
_DIFF = look("see what changed", "idumb plan-diff {phase}")
_FROM_FILE = way(
    "edit",
    "change the plan in an editor, then amend the run from the file",
    "you see the difference first; the run continues under the next version",
    "idumb amend {phase} --from-file",
)
_TAKE_BACK = way(
    "roll-back",
    "roll back the completed work first",
    "a new commit restores the files; idumb undo brings the work back",
    "idumb rollback {phase} --to start",
)
_APPROVAL = row("Run the phase in strict mode", _CHECK, _APPROVE)
_FORBIDDEN = row(_AMEND, _DIFF, _TAKE_BACK)
_SIGNERS = row(
    "Trust a signature",
    way("list", "create the allowed-signers file outside the repository", "the keys in it can sign"),
)

_WORKFLOW = "Find the workflow"
_WORKFLOWS = look("list the workflows", "idumb workflow list", "list")
_INPUTS = look("see its inputs", "idumb workflow show {workflow}", "show")

ROWS: Mapping[str, Row] = {
    "state.not-initialised": row(
        "Use idumb in this repository",
        way("init", "set up idumb here", "idumb writes its files and replaces nothing", "idumb init"),
    ),
    "init.nested": row(
        "Set up one project inside another",
        way("use", "use the project that exists", "`scope` limits a plan to a folder"),
        way("beside", "set up folders beside each other", "each is a project of its own", "idumb init --here"),
    ),
    "init.folder": row(
        "Set up idumb in this folder",
        way("other", "set up another folder", "its plans and settings are there", "idumb init --here"),
    ),
    "init.not-confirmed": row(
        "Set up idumb",
        way("here", "set up this folder", "it is a project of its own", "idumb init --here"),
        way("top", "run idumb init at the top of the repository", "idumb writes its files and replaces nothing"),
    ),
    "project.nested": row(
        "Use a project inside another one",
        way("move", "move the configuration of one of the two away", "the other is the only project; its runs go on"),
    ),
    "project.elsewhere": row(
        "Use idumb in this folder",
        way("go", "go to the folder of a project", "then run the command again", HINT),
        way("here", "set up another folder beside them", "it is a project of its own", "idumb init --here"),
    ),
    "project.folder-name": row(
        "Use this folder as a project", way("rename", "rename the folder", "then run the command again")
    ),
    "config.invalid": row(_CONFIGURATION, _CORRECT),
    "config.unreadable": row(_CONFIGURATION, _PERMIT),
    "policy.invalid": row("Read the policy", _CORRECT),
    "policy.unreadable": row("Read the policy", _PERMIT),
    "prompt.missing": row(
        "Read a prompt template", way("write", "write the template, or remove its name from the configuration")
    ),
    "prompt.unreadable": row("Read a prompt template", _PERMIT),
    "phase.ambiguous": row(
        _FIND, way("rename", "rename one of the folders, or merge them", "the phase is then unambiguous")
    ),
    "phase.bad-name": row(_FIND, _ROADMAP),
    "phase.no-plan": row("Read the plan of the phase"),
    "phase.not-found": row(
        _FIND,
        _ROADMAP,
        way("add", "add a phase to the roadmap", "it is written to ROADMAP.md", "idumb roadmap --add TITLE"),
    ),
    "phase.step-plan": row("Plan a phase", _ROADMAP),
    "phase.created": row(
        _RUN,
        _TAKE_BACK,
        way(
            "force", "then run the phase again", "a new run executes every task", "idumb execute-phase {phase} --force"
        ),
    ),
    "phase.verified": row(_RUN),
    "mode.strict-plan": row(
        "Run a strict plan in guided mode",
        way("strict", "omit --mode", "it runs after you approve it", "idumb approve {phase}"),
        way("guided", "change `mode` in the plan", "this changes the contract, so it needs your consent"),
    ),
    "plan.bad-name": row(
        "Run the step plan", way("rename", "rename the file or its folders", "then run it with its new path")
    ),
    "plan.done-changed": row(
        _RUN,
        way(
            "roll-back",
            "roll back the work first",
            "a new commit restores the files; idumb undo brings the work back",
            "idumb rollback {phase} --to {to}",
        ),
        _DIFF,
    ),
    "plan.bad-task": row(
        "Write the task", way("correct", "correct its title or command", "it is then part of the plan")
    ),
    "plan.incomplete": row(
        "Write the plan",
        way("flags", "give goal and tasks as options", "the plan is written once it is valid", "{command}"),
        way("answer", "run idumb plan new at a terminal", "it asks for what is missing"),
    ),
    "plan.approved": row(
        "Add a task to an approved phase",
        way("add", "add it, then approve the phase again", "the present approval ends", "{command}"),
        look("keep the approval", "idumb check-plan {phase}", "keep"),
    ),
    "plan.exists": row(
        "Write the plan",
        look("keep the existing plan", "idumb status", "keep"),
        way("compare", "compare the two and merge them by hand", "no plan is replaced"),
    ),
    "plan.gaps-illegal": row(
        "Write the plan of the gaps",
        way("correct", "correct the saved draft and move it into place", "it is checked like every plan"),
    ),
    "plan.not-legal": row(
        "Write the plan",
        way("correct", "correct the errors in the draft", "the plan is written when the draft is valid"),
    ),
    "plan.invalid": row(_READ, way("correct", "correct the first error", "then check the plan again"), _CHECK),
    "plan.not-judged": row(_READ, way("split", "split the phase into smaller ones")),
    "plan.kept-gone": row(
        "Read the locked plan",
        DOCTOR,
        look("list the commits that no ref reaches", "git fsck --unreachable --no-reflogs", "find"),
    ),
    "plan.unknown-digest": row(
        "Find the plan of a commit",
        look("see the plans of commits", "git log --format='%h %s %(trailers:key=Idumb-Plan)'", "log"),
    ),
    "plan.link": row("Write the plan", way("folder", "replace the link with a folder", "the plan is written there")),
    "plan.no-gaps": row("Plan the gaps", look("see the next step", "idumb next", "next")),
    "plan.no-step-plan": row(
        "Run the step plan",
        way("phase", "run a phase by its number", "its plans run", "idumb roadmap"),
        way("rename", "rename the step plan to end in .yaml, .yml or .json"),
    ),
    "plan.no-verification": row(
        "Plan the gaps", way("verify", "verify the phase first", "VERIFICATION.md lists the gaps", HINT)
    ),
    "plan.other-hash": row("Continue with that hash", _CHECK),
    "plan.outside-repository": row(
        "Run the step plan", way("copy", "copy it into the repository", "git can then keep its history")
    ),
    "plan.step-plan": row(
        "Plan the gaps of a step plan",
        way("edit", "change the step plan itself, then approve it", "it runs as one plan", "idumb approve {path}"),
    ),
    "plan.unknown": row(_AMEND, way("name", "name an existing plan", "the change is written to it")),
    "plan.unreadable": row(_READ, _PERMIT),
    "import.unknown-format": row(
        _IMPORT,
        look("see the formats that idumb imports", "idumb help other-formats", "formats"),
        way("path", "name the file that holds the tasks"),
    ),
    "import.unreadable": row(_IMPORT, way("correct", "correct the file in its own tool")),
    "import.cannot-write": row(_IMPORT, _CORRECT),
    "import.no-path": row(_IMPORT, way("path", "name the file that holds the tasks")),
    "import.other-format": row(
        _IMPORT, way("same", "omit --from", "the plan that was imported before is updated", HINT)
    ),
    "import.elsewhere": row(_IMPORT, way("same", "omit --to", "the plan that was imported before is updated")),
    "import.not-confirmed": row(_IMPORT, way("yes", "agree to the change", "the plan changes as shown", "{command}")),
    "import.changed": row(
        "Adopt the changed source", way("again", "look at the change again", "nothing was written", "{command}")
    ),
    "plan.objections": row(
        "Write the plan",
        way("take", "read the draft, change it if needed, and accept it", "the plan is written; nothing runs yet"),
    ),
    "plan-diff.not-kept": row("Compare with the locked plan", DOCTOR),
    "edit.outside": row("Write into the plan", way("edit", "change the plan in an editor", "idumb does not touch it")),
    "edit.overlap": row("Write into the plan", way("edit", "change the plan in an editor", "idumb does not touch it")),
    "research.empty": row("Keep the research", way("write", "write the report", "the planner reads it")),
    "research.own": row(
        "Replace the research",
        way("use", "plan with your file", "the planner reads it", "idumb plan-phase {phase}"),
        way("rename", "rename your file", "the researcher then writes a new one"),
    ),
    "template.unknown": row(
        "Use a template of plans",
        way("own", "write the template to .idumb/templates/", "it is used by its name"),
    ),
    "roadmap.no-title": row(
        "Add a phase",
        way("title", "give it a title", "the phase is written to ROADMAP.md", "idumb roadmap --add TITLE"),
    ),
    "roadmap.no-number": row(
        "Insert a phase", way("look", "see which phases have numbers", "nothing changes", "idumb roadmap")
    ),
    "quick.no-files": row(
        "Run the task", way("name", "name the files that the task may change", "any other change stops it", "{again}")
    ),
    "quick.number-taken": row(
        "Run the task", way("again", "run the command again", "its plan gets the next free number")
    ),
    "setup.missing": row(
        _RUN, way("provide", "provide what the plan requires, then run the command again", "nothing has started")
    ),
    "consent.missing": row(
        _RUN,
        _CHECK,
        way(
            "agree",
            "consent to exactly this contract",
            "your consent is recorded; nothing runs",
            "idumb approve {phase} --hash {contract_hash}",
        ),
    ),
    "consent.other-hash": row(_RUN, way("again", "review what would run now", "you are asked for consent", "{again}")),
    "consent.unsafe": row(
        "Trust your recorded consent",
        way("own", "make the folder private (owned by you, mode 0700)", "then consent again"),
    ),
    "irreversible.not-accepted": row(_RUN),
    "approval.bad-signature": _APPROVAL,
    "approval.expired": _APPROVAL,
    "approval.missing": _APPROVAL,
    "approval.revoked": _APPROVAL,
    "approval.void": _APPROVAL,
    "approval.file-exists": row(
        "Write the approval", way("rename", "choose another name, or move the file away", "nothing is replaced")
    ),
    "approval.no-signers": _SIGNERS,
    "approval.no-ssh-keygen": row("Make or verify a signature", way("install", "install OpenSSH 8.2 or newer")),
    "approval.none": row("Revoke the approval", _CHECK),
    "approval.not-given": row("Approve the phase"),
    "approval.not-irreversible": row("Accept the task as irreversible", _CHECK),
    "approval.not-signed": row("Sign the approval", way("key", "name a key that can sign", "the approval is written")),
    "approval.answered-no": row("Approve the phase", _CHECK),
    "approval.unanswered": row("Approve the phase"),
    "approval.unknown-question": row("Answer the question", _CHECK),
    "approval.other-contract": row("Approve that contract", _CHECK, _DIFF),
    "approval.unreadable": row(
        "Use the approval file", way("make", "approve the phase again", "a new file is written")
    ),
    **{f"amend.{name}": _FORBIDDEN for name in ("assumptions", "attempted", "mode", "phase", "plan")},
    "amend.bad-claim": row(_AMEND, _HELP),
    "amend.cannot-write": row(
        _AMEND,
        way("edit", "change the plan in an editor, then idumb amend --from-file", "you see the difference first"),
    ),
    "amend.changed-meanwhile": row(_AMEND, _DIFF, _FROM_FILE),
    "amend.against-done": row(_AMEND, _DIFF, way("correct", "correct the added task", "nothing has been written")),
    "amend.done": _FORBIDDEN,
    "amend.link": row(
        _AMEND,
        way(
            "edit",
            "change the file that the link points to",
            "the run then adopts the change",
            "idumb amend {phase} --from-file",
        ),
        way("replace", "replace the link with the file", "idumb can then write it"),
    ),
    "amend.foreign-plan": row(_AMEND, _FROM_FILE),
    "amend.no-dependency": row(_AMEND, look("see what the task depends on", "idumb show {task}")),
    "amend.no-deviation": row(_AMEND, look("see what the task changed", "idumb show {task}")),
    "amend.not-confirmed": row(_AMEND),
    "amend.nothing": row(_AMEND, _HELP),
    "amend.other-contract": row(_AMEND, look("see what changes now", "{command}")),
    "amend.plan-removed": _FORBIDDEN,
    "amend.several-plans": row(
        _AMEND, way("one", "amend one plan at a time", "each amendment makes a new version"), _FROM_FILE
    ),
    "amend.workflow": row(
        _AMEND,
        way("again", "change the definition, then start the workflow again", "a new run follows the new definition"),
    ),
    "workflow.unknown": row(_WORKFLOW, _WORKFLOWS),
    "workflow.unreadable": row(_WORKFLOW, _PERMIT),
    "workflow.invalid": row("Run the workflow", _CORRECT, look("see every error with its line", HINT, "check")),
    "workflow.no-run": row("Show the runs of a workflow", _WORKFLOWS),
    "workflow.unknown-input": row("Start the workflow", _INPUTS),
    "workflow.bad-input": row("Start the workflow", _INPUTS),
    "workflow.missing-input": row("Start the workflow", _INPUTS),
    "workflow.other-handoff": row("Take up the handoff", look("list the handoffs", "idumb handoff list", "list")),
    "workflow.handoff-over": row(
        "Take up the handoff",
        look("see the handoff", "idumb handoff show {handoff}"),
        way("reopen", "make it pending again", "it can be taken up", "idumb handoff update {handoff} pending"),
    ),
    "workflow.handoff-stale": row("Take up the handoff", look("list newer handoffs", "idumb handoff list", "list")),
    "amend.step-plan": row(
        _AMEND,
        way(
            "edit",
            "change the step plan yourself, then approve it",
            "its run adopts the change",
            "idumb approve {path}",
        ),
    ),
    "amend.strict": row(
        _AMEND,
        way("approve", "change the plan in an editor, then approve it", "nothing runs yet", "idumb approve {phase}"),
        _FROM_FILE,
    ),
    "amend.task-invalid": row(_AMEND, _CORRECT),
    "amend.unreadable": row(_AMEND, _PERMIT, _HELP),
}
