"""Ids of step plans, the files that a step may change, and its required result."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain.plans import phase_ids, step_effects
from idumb.domain.plans.plan import FileClaim, Step
from idumb.domain.plans.step_effects import Expected, expected
from tests.support.cases import every

GIT = """\
diff --git a/src/x.py b/src/x.py
index 111..222 100644
--- a/src/x.py
+++ b/src/x.py
@@ -1,3 +1,3 @@
 same
--- a/not/a/header
+++ b/neither
 same
diff --git a/old name b/new
similarity index 100%
rename from old name
rename to new
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git "a/\\303\\251.txt" "b/\\303\\251.txt"
deleted file mode 100644
--- "a/\\303\\251.txt"
+++ /dev/null
"""


def step(tool: str, *, scope: tuple[str, ...] = (), **arguments: Any) -> Step:
    return Step(0, tool, "do it", {name.rstrip("_"): value for name, value in arguments.items()}, scope)


@every(
    "path, phase",
    [
        ("plan.yaml", "plan.yaml"),
        ("deploy/web.yml", "deploy+web.yml"),
        (".planning/steps/a.json", "@planning+steps+a.json"),
        ("a/.b/c-d.e_f.yaml", "a+@b+c-d.e_f.yaml"),
        ("größe.yaml", "größe.yaml"),
    ],
)
def test_an_id_is_derived_from_the_path_and_leads_back_to_it(path: str, phase: str) -> None:
    """R-PLAN-7."""
    assert phase_ids.step_plan_phase(path) == phase
    assert phase_ids.step_plan_path(phase) == path
    assert phase_ids.step_plan_of_reports(phase_ids.step_plan_reports(phase)) == path
    assert phase_ids.step_plan_of_task(phase_ids.step_task_id(phase, 7)) == phase
    assert phase_ids.step_task_id(phase, 7) == f"{phase}-07"


def test_a_path_that_is_not_valid_in_files_and_refs_is_not_a_step_plan() -> None:
    """R-PLAN-7."""
    cases: list[str] = [
        "plan.md",
        "a b.yaml",
        "a+b.yaml",
        "@a.yaml",
        "/a.yaml",
        "a//b.yaml",
        "../a.yaml",
        "a..b.yaml",
        "-a.yaml",
        "./a.yaml",
        ".yaml/",
        "a\n.yaml",
        "\u202ea.yaml",
        "x" * 300 + ".yaml",
    ]
    assert not [path for path in cases if phase_ids.step_plan_phase(path) is not None]


@every("phase", ["1", "06.2", "a/b.yaml", "+a.yaml", "a.yaml+", "@@a.yaml", "01-name"])
def test_a_phase_is_never_taken_for_a_step_plan(phase: str) -> None:
    """R-PLAN-7."""
    assert phase_ids.step_plan_path(phase) is None
    assert phase_ids.step_plan_of_reports(f".planning/phases/{phase}") is None


@every("task", ["T1-01", "plan.yaml", "plan.yaml-1", "plan.yaml-x1", "a b.yaml-01"])
def test_only_a_step_s_id_is_a_step_id(task: str) -> None:
    """R-PLAN-7."""
    assert phase_ids.step_plan_of_task(task) is None


@given(st.text(alphabet="ab.+@/-é ", max_size=12))
def test_two_paths_never_have_the_same_id(text: str) -> None:
    """R-PLAN-7."""
    path = f"{text}.yaml"
    phase = phase_ids.step_plan_phase(path)
    assert phase is None or phase_ids.step_plan_path(phase) == path


def test_the_paths_of_a_patch_come_from_its_headers_and_not_from_its_lines() -> None:
    """R-PLAN-7."""
    assert step_effects.patched(GIT) == ("src/x.py", "old name", "new", "run.sh", "é.txt")
    assert step_effects.patched('--- "a/\\9.txt"\n+++ "b/\\t9"\n') == ("9.txt", "\t9")


@every("patch", ["", "words", "@@ -1 +1 @@\n-a\n+b\n", "--- /dev/null\n+++ /dev/null\n"])
def test_a_patch_without_a_name_has_no_paths(patch: str) -> None:
    """R-PLAN-7."""
    assert step_effects.patched(patch) is None
    assert step_effects.claims(step("apply_patch", patch=patch)) is None


@given(st.text(alphabet='-+ab/ @"\\0129\n', max_size=60))
def test_every_patch_can_be_read(patch: str) -> None:
    """R-PLAN-7."""
    paths = step_effects.patched(patch)
    assert paths is None or all(paths)


def test_a_step_may_change_only_its_own_paths() -> None:
    """R-PLAN-7."""
    cases: list[tuple[Step, list[str]]] = [
        (step("write_file", path="a", content=""), ["a"]),
        (step("edit_file", path="a", find="x", replace="y"), ["a"]),
        (step("delete_file", path="a"), ["a"]),
        (step("move_file", from_="a", to="b"), ["a", "b"]),
        (step("make_directory", path="a"), []),
        (step("run", command="true"), []),
        (step("run", command="true", scope=("out/**", "b.txt")), ["out/**", "b.txt"]),
        (step("apply_patch", patch="--- a/x\n+++ b/x\n"), ["x"]),
    ]
    assert not [
        (action, paths)
        for action, paths in cases
        if step_effects.claims(action) != tuple(FileClaim("change", path) for path in paths)
    ]


def test_the_result_that_a_step_must_leave_follows_from_the_tree_before_it() -> None:
    """R-PLAN-7."""
    cases: list[tuple[Step, dict[str, Expected]]] = [
        (step("write_file", path="a", content="é\n"), {"a": Expected("é\n".encode())}),
        (step("write_file", path="a", content="", mode="755"), {"a": Expected(b"", executable=True)}),
        (step("write_file", path="a", content="", mode="644"), {"a": Expected(b"", executable=False)}),
        (
            step("write_file", path="a", content_base64=base64.encodebytes(b"\x00" * 80).decode()),
            {"a": Expected(b"\x00" * 80)},
        ),
        (step("edit_file", path="old", find="l", replace="r"), {"old": Expected(b"ord")}),
        (step("edit_file", path="gone", find="l", replace="r"), {"gone": Expected(None)}),
        (step("delete_file", path="old"), {"old": Expected(None)}),
        (step("move_file", from_="old", to="b"), {"old": Expected(None), "b": Expected(b"old")}),
        (step("move_file", from_="old", to="old"), {"old": Expected(b"old")}),
        (step("run", command="true"), {}),
        (step("make_directory", path="a"), {}),
    ]
    assert not [(action, result) for action, result in cases if expected(action, {"old": b"old"}.get) != result]
