"""The proving tree has what the user provides, and no path leads back to the user's own files (R-RUN-3)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from tests.support.gitrepo import GitSandbox
from tests.support.proving import create, show, tree


def test_provided_paths_are_those_of_the_user(sandbox: GitSandbox) -> None:
    sandbox.write_all({"a.txt": "a\n", "packages/own/index.js": "committed\n", ".gitignore": "node_modules\ndata\n"})
    sandbox.commit()
    sandbox.write_all({"node_modules/lib/index.js": "lib\n", "node_modules/@s/lib/index.js": "s\n", "data/x": "x\n"})
    sandbox.link("node_modules/own", "../packages/own")
    sandbox.link("node_modules/@s/own", "../../packages/own")
    sandbox.link("node_modules/.bin/own", "../own/index.js")
    sandbox.write_all({"packages/own/index.js": "not committed\n"})
    proving = create(sandbox, rules=("node_modules", "data/", "missing"))
    root = show(proving, sandbox)
    assert (root / "node_modules/lib/index.js").read_text() == "lib\n"
    assert (root / "node_modules/@s/lib/index.js").read_text() == "s\n"
    assert (root / "node_modules/own/index.js").read_text() == "committed\n"
    assert (root / "node_modules/@s/own/index.js").read_text() == "committed\n"
    assert (root / "node_modules/.bin/own").read_text() == "committed\n"
    assert (root / "data/x").read_text() == "x\n"
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.git("commit", "-qm", "next", "a.txt")
    show(proving, sandbox)
    assert (root / "data/x").read_text() == "x\n"
    proving.close()
    assert sandbox.read("data/x") == "x\n"
    assert sandbox.read("node_modules/lib/index.js") == "lib\n"


def test_git_ignores_provided_paths_as_the_user_s_rules_do(sandbox: GitSandbox) -> None:
    """A rule for a folder matches no link."""
    sandbox.write_all({"a.txt": "a\n", ".gitignore": "node_modules/\nd[a]ta */\n"})
    sandbox.commit("one")
    sandbox.write_all({"node_modules/lib/index.js": "lib\n", "data */x": "x\n"})
    proving = create(sandbox, rules=("node_modules", "data *"))
    for _ in range(2):
        root = show(proving, sandbox)
        (root / "data x").write_text("not provided\n")
        status = subprocess.check_output(("git", "status", "-s"), cwd=root, text=True).splitlines()
        assert [line for line in status if line.startswith("?")] == ['?? "data x"']
        (root / ".git/info/exclude").write_text("*\n")
        proving.restore()
        proving.renew()
    proving.close()


def test_an_editable_install_leads_to_the_tree_not_to_the_user_s_folder(sandbox: GitSandbox) -> None:
    """A virtual environment of the project usually has one; the check would judge the folder again."""
    sandbox.write_all({"src/own/__init__.py": "", "flat.py": "", ".gitignore": ".venv\n"})
    sandbox.commit()
    site = ".venv/lib/python3.11/site-packages"
    finder = f"MAPPING: dict[str, str] = {{'own': {str(sandbox.root / 'src/own')!r}}}\n"
    sandbox.write_all(
        {
            ".venv/pyvenv.cfg": "",
            f"{site}/__editable__.own.pth": "import __editable___own_finder; __editable___own_finder.install()\n",
            f"{site}/__editable___own_finder.py": finder,
            f"{site}/flat.pth": f"{sandbox.root}\n/usr/lib\n",
        }
    )
    proving = create(sandbox, rules=(".venv",))
    variables = proving.show(tree(sandbox), None)
    assert variables["PYTHONPATH"].split(":") == [f"{proving.root}/src", f"{proving.root}/."]
    sandbox.write(f"{site}/odd.pth", f"import sys; sys.path.append({str(sandbox.root / 'src')!r})\n")
    with pytest.raises(Refusal, match=r"odd\.pth leads Python to your own folder"):
        proving.show(tree(sandbox), None)
    proving.close()


def test_links_of_the_tree_lead_no_provided_path_elsewhere(sandbox: GitSandbox, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    sandbox.write_all({"web/node_modules/pkg/index.js": "x\n", "other/data/x": "x\n"})
    sandbox.write(".gitignore", "node_modules\n/other/data\n")
    made = create(sandbox, rules=("web/node_modules", ".git/hooks", "other/data"))
    blob = sandbox.git("hash-object", "-w", "--stdin", given=os.fsencode(tmp_path / "elsewhere")).strip()
    sandbox.git("update-index", "--add", "--cacheinfo", f"120000,{blob},web")
    sandbox.git("add", ".gitignore")
    sandbox.git("commit", "-qm", "a link")
    root = show(made, sandbox)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (root / ".git/hooks").exists()
    assert (root / "other/data/x").read_text() == "x\n"
    made.close()
    assert sandbox.read("other/data/x") == "x\n"


def test_a_link_of_the_tree_in_place_of_a_scope_stays(sandbox: GitSandbox) -> None:
    sandbox.write(".gitignore", "node_modules/*\n!node_modules/@s\n")
    sandbox.link("node_modules/@s", "../missing")
    sandbox.git("add", "-A")
    sandbox.git("commit", "-qm", "a dangling link")
    sandbox.remove("node_modules/@s")
    sandbox.write("node_modules/@s/own/index.js", "own\n")
    proving = create(sandbox, rules=("node_modules",))
    assert os.readlink(show(proving, sandbox) / "node_modules/@s") == "../missing"
    proving.close()
