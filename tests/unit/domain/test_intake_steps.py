"""Checks of steps: their commands, tools and paths."""

from __future__ import annotations

from msgspec.structs import replace

from idumb.domain.finding import ERROR
from idumb.domain.intake import writes
from idumb.domain.permissions import Policy
from idumb.domain.plans.plan import STRICT, Criterion, FileClaim, RollbackClass, Scope, Span
from idumb.domain.plans.workflow import Flow
from tests.support.cases import every
from tests.support.intake import SETTINGS, assembled, codes, findings_of, plan, step, steps, task


def test_an_intent_must_say_more_than_the_tool() -> None:
    """R-LOCK-7."""
    vague = ["run", "Do it", "write_file", "fix this", "the step", "...", "n/a", "see above"]
    enough = ["write the greeting", "fix imports", "make the folder of fixtures", "文件"]
    for intent in (*vague, *enough):
        found = [(f.code, f.line) for f in findings_of(steps(step(intent=intent, command="true")))]
        assert found == ([("step.vague-intent", 20)] if intent in vague else []), intent


def test_a_command_that_only_looks_like_it_is_accepted() -> None:
    cases = [
        "echo $RANDOMIZE", "pytest -p no:randomly", "npm run update", "shuf --random-source=seed words",
        "python -c 'import random; random.seed(1)'", "git log --date=iso", "echo '$RANDOM' '$(date)'", "sort words",
        "git log pull", "git submodule status", "git submodule", "git commit -m 'docker pull'", "npm run install",
        "npm test", "cargo build", "rsync -a src/ dst/", "grep -q urllib a.py", "pip --version",
    ]  # fmt: skip
    assert not [command for command in cases if codes(steps(step(command=command))) != set()]
    assert codes(steps(step("write_file", path="a.txt", content="echo $RANDOM"))) == set()


VARYING = (
    "echo $RANDOM > a", "sort -R words", "head -c 8 /dev/urandom", "uuidgen", "/usr/bin/date", "echo $(date) > a",
    "python -c 'import random; print(random.randint(1, 6))'", "node -e 'console.log(Math.random())'",
    "node -e 'console.log(Date.now())'", "awk 'BEGIN { print rand() }'", "mktemp -d", "curl -s http://localhost",
    "X=1 wget a", "git clone https://host/x", "git -C sub pull", "git submodule update --init", "conda install six",
    "npm ci", "yarn", "pip3.11 install six", "uvx ruff", "python -m pip install six", "cargo fetch --locked",
    "go mod download", "docker pull x", "npx cowsay", "gh pr list", "rsync -a host:src dst",
    "python3 -c 'import urllib.request as u; u.urlopen(1)'",
)  # fmt: skip


@every("command", VARYING)
def test_clock_chance_and_network_commands_are_refused_unless_an_assumption_names_task_and_program(
    command: str,
) -> None:
    """R-LOCK-7."""
    (finding,) = [
        f for f in findings_of(steps(step(command=command)), mode=STRICT) if f.code == "step.not-deterministic"
    ]
    assert (finding.severity, finding.line) == (ERROR, 20)
    assert finding.found in finding.fix
    assert codes(steps(step(argv=["sh", "-c", command]))) == {"step.not-deterministic"}

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


@every(
    "command, branches",
    [
        ("if test -e a; then echo b; else echo c; fi", ["if"]),
        ("if test -e a; then echo b; fi", ["if"]),
        ("case $X in a) echo b;; esac", ["case"]),
        ("test -e a || exit 1", ["||"]),
        ("sh -c 'make || true'", ["||"]),
        ("echo $(test -e a || echo b)", ["||"]),
        ("echo case else", []),
        ("grep -E 'a||b' a.txt", []),
        ("python3 - <<'EOF'\nif a: b\nEOF", []),
        ("make && make check # || true", []),
    ],
)
def test_a_command_with_alternatives_is_refused_in_strict_mode_only(command: str, branches: list[str]) -> None:
    """R-LOCK-7."""
    findings = [f for f in findings_of(steps(step(command=command)), mode=STRICT) if f.code == "step.branch"]
    assert [f.severity for f in findings] == [ERROR] * len(branches)
    assert [f.found.partition(" ")[0] for f in findings] == branches
    assert codes(steps(step(command=command))) == set()


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


@every(
    "command, path",
    [
        ("touch ../x", "../x"),
        ("cd a && cat b/../../../x", "b/../../../x"),
        ("cd /tmp && echo y > x", "/tmp/x"),
        ("cd sub && echo y > ~/x", "~/x"),
        ("cd sub && touch $HOME/x", "$HOME/x"),
        ("cd sub && (cd /tmp && cat x) && cat ../../y", "../../y"),
        ("make && ../tool.sh", "../tool.sh"),
        ("tar -xf a.tar --directory=../out", "../out"),
        ("echo x > ../log", "../log"),
        ("echo x > /var/log/x", "/var/log/x"),
        ("cp a.txt /srv/a.txt", "/srv/a.txt"),
        ('git -C "$IDUMB_REPOSITORY" tag v1', "$IDUMB_REPOSITORY"),
        ("touch a/../x", None),
        ("cd a && touch ../x", None),
        ("(cd /tmp && make) && touch x", None),
        ("cd /tmp && make; cd - && touch x", None),
        ('cd /tmp && cp x "$PWD/y"', None),
        ("git log HEAD..main", None),
        ("cp /etc/hosts hosts 2> /dev/null", None),
        ("ls /usr/bin", None),
        ("grep -q ../x a.txt", None),
        ("ln -s ../lib/x bin/x", None),
        ("echo ../x >> a.txt", None),
    ],
)
def test_a_command_that_names_a_path_outside_the_workspace_is_refused_in_strict_mode(
    command: str, path: str | None
) -> None:
    """R-LOCK-5, R-LOCK-7."""
    for mode, severity in ((None, "warning"), (STRICT, ERROR)):
        found = [f for f in findings_of(steps(step(command=command)), mode=mode) if f.code == "path.leaves-workspace"]
        assert [(f.found, f.severity, f.line) for f in found] == ([(path, severity, 20)] if path else [])


def test_an_irreversible_task_may_name_the_repository_of_the_user() -> None:
    """R-LOCK-5."""
    tag = step(command='git -C "$IDUMB_REPOSITORY" tag v1')
    release = task(steps=(tag,), rollback=RollbackClass("irreversible", reason="the tag is public"))
    assert codes(plan(release)) == {"task.irreversible"}


@every("command", ["TBD", " TODO: write it", "???", "COMMAND", "<the command>", "..."])
def test_a_command_that_is_still_to_be_written_is_an_error(command: str) -> None:
    """R-LOCK-7: in a step and in a check, in both modes."""
    check = (Criterion("AC-1", "it works", "check", command, span=Span(0, 1, 12)),)
    for one, line in ((steps(step(command=command)), 20), (plan(task(acceptance=check)), 12)):
        found = [f for f in findings_of(one) if f.code == "command.placeholder"]
        assert [(f.severity, f.line) for f in found] == [(ERROR, line)]
    assert "command.placeholder" not in codes(steps(step(command="TODO.sh && ./TBD")))


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


def test_the_folders_of_all_paths_are_checked_for_links() -> None:
    """R-LOCK-5."""
    files = (FileClaim("create", "a/b/c.txt"), FileClaim("modify", "d/*/e.txt"), FileClaim("delete", "f/"))
    own_steps = step("write_file", path="g/h", content=""), step("delete_file", path="../i")
    assert writes.folders(assembled(plan(task(files=files, steps=own_steps)))) == {"a/b", "d", "f", "g"}
