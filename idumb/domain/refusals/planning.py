"""Refusals about plans, phases, configuration, consent and amendments."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import DOCTOR, HINT, LOOK, Row, row, way

_RUN = "Run the phase"
_READ = "Read the plan"
_AMEND = "Amend the plan"
_FIND = "Find the phase"
_CONFIGURATION = "Read the configuration"
_CORRECT = way("correct", "correct what is named", "then run the same command again")
_PERMIT = way("permit", "make the file readable", "then run the same command again")
_ROADMAP = way("list", "see the phases", LOOK, "idumb roadmap")
_HELP = way("help", "see what the command takes", LOOK, "idumb amend --help")
_CHECK = way("check", "see every error with its line", LOOK, "idumb check-plan {phase}")
_APPROVE = way(
    "approve",
    "approve the phase as it is now",
    "what will run is shown first; a strict run then goes by it",
    "idumb approve {phase}",
)
_DIFF = way("look", "see what changed", LOOK, "idumb plan-diff {phase}")
_FROM_FILE = way(
    "edit",
    "change the plan in an editor and let the run take it over",
    "the difference is shown, and the run goes on under the next version",
    "idumb amend {phase} --from-file",
)
_TAKE_BACK = way(
    "roll-back",
    "take done work back first",
    "files are as they were then, in a new commit; idumb undo brings the work again",
    "idumb rollback {phase} --to start",
)
_APPROVAL = row("Run the phase in strict mode", _CHECK, _APPROVE)
_FORBIDDEN = row(_AMEND, _DIFF, _TAKE_BACK)
_SIGNERS = row(
    "Trust a signature", way("list", "write the list of allowed signers outside the repository", "its keys can sign")
)

ROWS: Mapping[str, Row] = {
    "state.not-initialised": row(
        "Use idumb in this repository",
        way("init", "set idumb up here", "its files are written; nothing that is there is replaced", "idumb init"),
    ),
    "config.invalid": row(_CONFIGURATION, _CORRECT),
    "config.unreadable": row(_CONFIGURATION, _PERMIT),
    "policy.invalid": row("Read the policy", _CORRECT),
    "policy.unreadable": row("Read the policy", _PERMIT),
    "prompt.missing": row(
        "Read a prompt template", way("write", "write the template, or take its name out", "then run it again")
    ),
    "prompt.unreadable": row("Read a prompt template", _PERMIT),
    "phase.ambiguous": row(_FIND, way("rename", "rename or merge one of the folders", "the other one is found")),
    "phase.bad-name": row(_FIND, _ROADMAP),
    "phase.no-plan": row("Read the plan of the phase"),
    "phase.not-found": row(
        _FIND, _ROADMAP, way("add", "add a phase to the roadmap", "ROADMAP.md has it", "idumb roadmap --add TITLE")
    ),
    "phase.step-plan": row("Plan a phase", _ROADMAP),
    "phase.created": row(
        _RUN,
        _TAKE_BACK,
        way("force", "then run it again", "a new run of every task", "idumb execute-phase {phase} --force"),
    ),
    "phase.verified": row(_RUN),
    "mode.strict-plan": row(
        "Run a strict plan in guided mode",
        way("strict", "leave --mode out", "it runs once it is approved", "idumb approve {phase}"),
        way("guided", "change `mode` in the plan", "it is another contract, which needs your consent"),
    ),
    "plan.bad-name": row(
        "Run the step plan", way("rename", "rename the file or its folders", "then run it by its new path")
    ),
    "plan.done-changed": row(
        _RUN,
        way(
            "roll-back",
            "take the work back first",
            "in a new commit; idumb undo brings it again",
            "idumb rollback {phase} --to {to}",
        ),
        _DIFF,
    ),
    "plan.exists": row(
        "Write the plan",
        way("keep", "keep the plan that is there", LOOK, "idumb status"),
        way("compare", "compare the two and take over what you want", "no plan is replaced"),
    ),
    "plan.gaps-illegal": row(
        "Write the plan of the gaps",
        way("correct", "correct the draft that is kept, and put it in place", "it is checked like every plan"),
    ),
    "plan.not-legal": row(
        "Write the plan", way("correct", "correct what is named in the draft", "it is written once it is legal")
    ),
    "plan.invalid": row(
        _READ,
        way("correct", "correct the first error", "then check again"),
        _CHECK,
    ),
    "plan.kept-gone": row(
        "Read the locked plan",
        DOCTOR,
        way("find", "let git name commits that nothing refers to", LOOK, "git fsck --unreachable --no-reflogs"),
    ),
    "plan.link": row(
        "Write the plan", way("folder", "put a folder in the place of the link", "the plan is written there")
    ),
    "plan.no-gaps": row("Plan the gaps", way("next", "see what comes next", LOOK, "idumb next")),
    "plan.no-step-plan": row(
        "Run the step plan",
        way("phase", "run a phase by its number", "its plans run", "idumb roadmap"),
        way("rename", "name a step plan .yaml, .yml or .json", "then run it again"),
    ),
    "plan.no-verification": row(
        "Plan the gaps", way("verify", "verify the phase first", "VERIFICATION.md names the gaps", HINT)
    ),
    "plan.other-hash": row("Go on with that hash", _CHECK),
    "plan.outside-repository": row(
        "Run the step plan", way("copy", "copy it into the repository", "its history is known there")
    ),
    "plan.step-plan": row(
        "Plan the gaps of a step plan",
        way("edit", "change the step plan itself, then approve it", "it runs as one plan", "idumb approve {path}"),
    ),
    "plan.unknown": row(_AMEND, way("name", "name one of the plans that there are", "the change is written there")),
    "plan.unreadable": row(_READ, _PERMIT),
    "plan.objections": row(
        "Write the plan",
        way("take", "read the draft and take it as it is, or change it first", "it is written; nothing of it runs yet"),
    ),
    "plan-diff.not-kept": row("Compare with the locked plan", DOCTOR),
    "edit.outside": row(
        "Write into the plan", way("edit", "change the plan in an editor", "idumb replaces nothing of it")
    ),
    "edit.overlap": row(
        "Write into the plan", way("edit", "change the plan in an editor", "idumb replaces nothing of it")
    ),
    "research.empty": row("Keep the research", way("write", "write the report", "the planner reads it")),
    "research.own": row(
        "Replace the research",
        way("use", "plan with it as it is", "the planner reads your file", "idumb plan-phase {phase}"),
        way("rename", "give your file another name", "then it is researched"),
    ),
    "roadmap.no-title": row(
        "Add a phase", way("title", "give it a title", "ROADMAP.md has it", "idumb roadmap --add TITLE")
    ),
    "roadmap.no-number": row(
        "Insert a phase", way("look", "see the phases that have numbers", "nothing changes", "idumb roadmap")
    ),
    "quick.no-files": row(
        "Run the task", way("name", "name the files that it may change", "any other change stops it", "{again}")
    ),
    "setup.missing": row(
        _RUN, way("provide", "provide what is named, then run the same command again", "nothing was begun")
    ),
    "consent.missing": row(
        _RUN,
        _CHECK,
        way(
            "agree",
            "agree to just this contract",
            "it is recorded, and nothing is run",
            "idumb approve {phase} --hash {contract_hash}",
        ),
    ),
    "consent.other-agents": row(_RUN),
    "consent.other-contract": row(_RUN, _CHECK, _DIFF),
    "consent.other-program": row(
        _RUN, way("again", "look at what would be started now", "you are asked anew", "{again}")
    ),
    "consent.unsafe": row(
        "Trust what you agreed to", way("own", "make the folder yours alone (owner you, mode 0700)", "then agree again")
    ),
    "irreversible.not-accepted": row(_RUN),
    "approval.bad-signature": _APPROVAL,
    "approval.expired": _APPROVAL,
    "approval.missing": _APPROVAL,
    "approval.revoked": _APPROVAL,
    "approval.void": _APPROVAL,
    "approval.file-exists": row(
        "Write the approval", way("rename", "choose another name, or move it away", "nothing is replaced")
    ),
    "approval.no-signers": _SIGNERS,
    "approval.no-ssh-keygen": row(
        "Make or verify a signature", way("install", "install OpenSSH 8.2 or newer", "then run the same command again")
    ),
    "approval.none": row("Take the approval back", _CHECK),
    "approval.not-given": row("Approve the phase"),
    "approval.not-irreversible": row("Accept the task as irreversible", _CHECK),
    "approval.not-signed": row("Sign the approval", way("key", "name a key that can sign", "the approval is written")),
    "approval.answered-no": row("Approve the phase", _CHECK),
    "approval.unanswered": row("Approve the phase"),
    "approval.unknown-question": row("Answer the question", _CHECK),
    "approval.other-contract": row("Approve that contract", _CHECK, _DIFF),
    "approval.unreadable": row("Use the approval file", way("make", "approve it once more", "a new file is written")),
    **{f"amend.{name}": _FORBIDDEN for name in ("assumptions", "attempted", "mode", "phase", "plan")},
    "amend.bad-claim": row(_AMEND, _HELP),
    "amend.cannot-write": row(
        _AMEND,
        way("edit", "change the plan in an editor, then idumb amend --from-file", "the difference is shown first"),
    ),
    "amend.changed-meanwhile": row(_AMEND, _DIFF, _FROM_FILE),
    "amend.against-done": row(_AMEND, _DIFF, way("correct", "correct the added task", "nothing was written")),
    "amend.done": _FORBIDDEN,
    "amend.link": row(
        _AMEND,
        way(
            "edit",
            "change the file that the link leads to",
            "then the run takes it over",
            "idumb amend {phase} --from-file",
        ),
        way("replace", "put the file in place of the link", "idumb can write it"),
    ),
    "amend.no-dependency": row(_AMEND, way("look", "see what the task depends on", LOOK, "idumb show {task}")),
    "amend.no-deviation": row(_AMEND, way("look", "see what the task changed", LOOK, "idumb show {task}")),
    "amend.not-confirmed": row(_AMEND),
    "amend.nothing": row(_AMEND, _HELP),
    "amend.other-contract": row(_AMEND, way("look", "see what changes now", LOOK, "{command}")),
    "amend.plan-removed": _FORBIDDEN,
    "amend.several-plans": row(
        _AMEND, way("one", "amend one plan after the other", "each is a version of its own"), _FROM_FILE
    ),
    "amend.step-plan": row(
        _AMEND,
        way("edit", "change the step plan yourself, then approve it", "its run takes it over", "idumb approve {path}"),
    ),
    "amend.strict": row(
        _AMEND,
        way("approve", "change the plan in an editor, then approve it", "nothing is run yet", "idumb approve {phase}"),
        _FROM_FILE,
    ),
    "amend.task-invalid": row(_AMEND, _CORRECT),
    "amend.unreadable": row(_AMEND, _PERMIT, _HELP),
}
