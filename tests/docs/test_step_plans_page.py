"""The example of `docs/step-plans.md` runs as the page says."""

from __future__ import annotations

import re

from idumb.markdown.plans import plan_parser, steps
from tests.meta import source
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox

PAGE = (source.ROOT / "docs/step-plans.md").read_text(encoding="utf-8")


def keys(table: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)


def test_the_example_can_be_approved_and_run_with_the_documented_result(sandbox: GitSandbox) -> None:
    """R-PLAN-7."""
    project = projects.create(sandbox)
    block = re.search(r"```yaml\n# (\S+)\n(.*?)```", PAGE, flags=re.DOTALL)
    assert block is not None
    path, text = block[1], block[2]
    (project.folder / path).parent.mkdir()
    (project.folder / path).write_text(text, encoding="utf-8")
    assert project.json(*project.approving(path)).code == 0
    done = project.json("execute", path)
    assert done.code == 0, done.out
    assert project.read("site/index.html") == "<h1>Hello, world</h1>\n"
    assert project.read("site/size.txt").strip() == "15"
    assert any("page.yaml-03" in words for words in done.object["warnings"])


def test_the_page_names_every_key_and_every_tool() -> None:
    """R-PLAN-7."""
    table = PAGE.split("## Format")[1].partition("## Execution")[0]
    assert sorted(keys(table)) == sorted(steps.KEYS)
    assert all(f"`{tool}`" in table for tool in steps.TOOLS)
    assert all(f"`{key}`" in table for key in plan_parser.STEP_KEYS)
