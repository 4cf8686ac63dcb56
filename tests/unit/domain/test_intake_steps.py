"""Checks of steps: their commands, tools and paths."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from idumb.domain.finding import ERROR
from idumb.domain.intake import writes
from idumb.domain.permissions import Policy
from idumb.domain.plans.plan import Criterion, FileClaim, RollbackClass, Scope, Span
from idumb.domain.plans.workflow import Flow
from idumb.domain.settings import Settings
from idumb.markdown.plans import plan_parser
from tests.support import example_files
from tests.support.cases import every
from tests.support.intake import SETTINGS, assembled, codes, findings_of, plan, step, steps, task

COMMANDS = Path(__file__).parents[2] / "format" / "cases" / "commands"


@every("place", sorted(COMMANDS.glob("*.yaml")))
def test_the_commands_and_intents_of_a_step_plan_have_the_findings_beside_it(place: Path) -> None:
    """R-LOCK-5, R-LOCK-7: each is at the line of its step."""
    read = plan_parser.parse_steps(place.read_bytes(), place.name).plan
    assert read is not None
    found = [f"{f.severity} {f.code} {f.line}: {f.found}\n" for f in findings_of(read, settings=Settings())]
    example_files.compare(place.with_suffix(".txt"), "".join(found))


def test_a_command_is_judged_more_mildly_in_guided_mode_or_not_at_all() -> None:
    """R-LOCK-5, R-LOCK-7: but one that is still to be written is an error, also in a check."""
    for command, severities in (("date", ["warning"]), ("touch ../x", ["warning"]), ("a || b", []), ("TBD", [ERROR])):
        assert [finding.severity for finding in findings_of(steps(step(command=command)))] == severities
    check = (Criterion("AC-1", "it works", "check", "TBD", span=Span(0, 1, 12)),)
    assert [(f.code, f.line) for f in findings_of(plan(task(acceptance=check)))] == [("command.placeholder", 12)]


@every("command", ["curl -s http://localhost", "pip3.11 install six", "busybox wget http://localhost", "echo $RANDOM"])
def test_an_assumption_that_names_task_and_program_allows_a_command_that_varies(command: str) -> None:
    """R-LOCK-7."""
    (finding,) = findings_of(steps(step(command=command)))
    assert finding.found in finding.fix

    def assuming(text: str) -> set[str]:
        return codes(plan(task(steps=(step(command=command),)), assumptions=(text,)))

    assert assuming(f"T1-01 uses {finding.found}: its output is not kept") == set()
    for other in (
        f"T1-011 uses {finding.found}",
        f"T1-01 uses {finding.found}fs",
        "T1-01 is fast",
        f"{finding.found} is there",
    ):
        assert assuming(other) == {"step.not-deterministic"}


def test_an_assumption_of_a_workflow_names_the_step_as_the_definition_does() -> None:
    fetching = task(steps=(step(command="git fetch"),), flow=Flow("fetch", "script", "Build"))
    assert codes(plan(fetching, assumptions=("fetch uses git: the mirror is on this machine",))) == set()
    assert codes(plan(fetching, assumptions=("prefetch uses git",))) == {"step.not-deterministic"}


def test_each_step_must_use_a_tool_that_the_policy_allows() -> None:
    """R-LOCK-5."""
    policy = Policy(frozenset({"write_file"}), (("etc/tools.yaml", "0" * 64),))
    one = plan(task(steps=(step("write_file", path="a.txt", content=""), step(command="true"))))
    (finding,) = findings_of(one, policy=policy)
    assert (finding.code, finding.severity, finding.found, finding.line) == ("step.tool-not-allowed", ERROR, "run", 20)
    assert "etc/tools.yaml" in finding.message
    nothing = findings_of(one, policy=replace(policy, tools=frozenset()))
    assert [f.accepted for f in nothing] == ["no tool"] * 2


def test_a_step_must_stay_within_its_task_s_declaration() -> None:
    """R-LOCK-6."""
    declared = (FileClaim("create", "src/**"), FileClaim("move", "a", "b"))
    own_steps = (
        step("write_file", path="src/x/y.py", content=""),
        step("move_file", **{"from": "a", "to": "b"}),
        step("make_directory", path="anywhere"),
        step(command="touch z"),
    )
    assert codes(plan(task(files=declared, steps=own_steps))) == set()
    (finding,) = findings_of(plan(task(files=declared, steps=(step("delete_file", path="c"),))))
    assert (finding.code, finding.found, finding.severity) == ("step.undeclared-path", "c", "warning")


PATCH = "--- a/one.txt\n+++ b/two.txt\n@@ -1 +1 @@\n-a\n+b\n"


def test_the_paths_of_a_patch_count_as_paths_of_the_step() -> None:
    """R-LOCK-5."""
    inside = (FileClaim("modify", "one.txt"), FileClaim("modify", "two.txt"))
    assert codes(plan(task(files=inside, steps=(step("apply_patch", patch=PATCH),)))) == set()
    assert codes(plan(task(steps=(step("apply_patch", patch=PATCH),)))) == {"step.undeclared-path"}
    escaping = step("apply_patch", patch=PATCH.replace("one.txt", "../one.txt"))
    assert "path.outside-workspace" in codes(plan(task(files=inside, steps=(escaping,))))


@every(
    "path, protected, code",
    [
        ("sub/.git/config", (), "path.protected"),
        (".github/workflows/x.yml", (), None),  # a task may declare it by name
        (".GIT/config", (), "path.protected"),
        ("lock.toml", ("*.toml",), "path.protected"),
        ("deep/lock.toml", ("*.toml",), None),
        ("Migrations/1.sql", ("migrations/**",), "path.protected"),
        ("schlüssel/a", ("SCHLÜSSEL",), "path.protected"),
        ("ordinary/a", ("SCHLÜSSEL",), None),
        (".idumb/x", (), "path.protected"),
        ("../x", (), "path.outside-workspace"),
        ("/x", (), "path.outside-workspace"),
    ],
)
def test_each_rule_of_plan_and_configuration_protects(path: str, protected: tuple[str, ...], code: str | None) -> None:
    """R-LOCK-5, R-PLAN-4."""
    by_claim, by_step = (
        task(files=(FileClaim("create", path),)),
        task(files=None, steps=(step("write_file", path=path, content=""),)),
    )
    expected = {code} if code else set()
    assert codes(plan(by_claim, scope=Scope(None, protected))) == expected
    assert expected <= codes(plan(by_step, scope=Scope(None, protected)))
    configured = findings_of(plan(by_claim), settings=replace(SETTINGS, protected=protected))
    assert {found.code for found in configured} == expected


def test_an_irreversible_task_may_name_the_repository_of_the_user() -> None:
    """R-LOCK-5."""
    tag = step(command='git -C "$IDUMB_REPOSITORY" tag v1')
    release = task(steps=(tag,), rollback=RollbackClass("irreversible", reason="the tag is public"))
    assert codes(plan(release)) == {"task.irreversible"}


def test_the_scope_of_a_step_must_be_inside_the_workspace_too() -> None:
    """R-LOCK-5."""
    outside = replace(step(command="true"), scope=("../**",))
    assert codes(steps(outside)) == {"path.outside-workspace"}


@every("root, code", [("/srv", "plan.bad-scope"), ("../x", "plan.bad-scope"), (".", None)])
def test_the_root_of_a_plan_must_be_a_folder_of_the_repository(root: str, code: str | None) -> None:
    """R-LOCK-5."""
    codes_of_plan = codes(plan(scope=Scope(root)))
    assert (code in codes_of_plan) if code else codes_of_plan == set()


@every(
    "path, leads_to, code",
    [
        ("out/a.txt", "/srv/data", "path.outside-workspace"),
        ("out/**", "/srv/data", "path.outside-workspace"),
        ("out/", "/srv/data", "path.outside-workspace"),
        ("out/hooks", ".git", "path.protected"),
        ("out/config.yaml", ".idumb", "path.protected"),
        ("out/a.txt", "elsewhere", None),
        ("out/a.txt", "", None),
        ("outside/a.txt", "/srv/data", None),
    ],
)
def test_a_path_is_judged_by_the_target_of_its_links(path: str, leads_to: str, code: str | None) -> None:
    """R-LOCK-5."""
    findings = findings_of(plan(task(files=(FileClaim("create", path),))), links={"out": leads_to})
    assert {f.code for f in findings} == ({code} if code else set())


def test_all_paths_and_their_folders_are_checked_for_links() -> None:
    """R-LOCK-5."""
    files = (FileClaim("create", "a/b/c.txt"), FileClaim("modify", "d/*/e.txt"), FileClaim("delete", "f/"))
    own_steps = step("write_file", path="g/h", content=""), step("delete_file", path="../i")
    contract = assembled(plan(task(files=files, steps=own_steps)))
    assert writes.places(contract) == {"a/b", "a/b/c.txt", "d", "f", "g", "g/h"}
