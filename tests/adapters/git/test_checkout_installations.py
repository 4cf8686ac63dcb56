"""What the user provides and what is installed is in a checkout, and is no work (R-RUN-3)."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.adapters.git.conftest import Take
from tests.support import checkouts
from tests.support.checkouts import run, show, shown, tree
from tests.support.gitrepo import GitSandbox


def test_a_link_above_a_provided_path_leads_to_no_file_of_the_user(sandbox: GitSandbox, proof: Take) -> None:
    sandbox.commit_with({".gitignore": "node_modules\n", "web/node_modules/lib.js": "1"})
    user = sandbox.ledger()
    checkout = proof(provided=("node_modules",), limit=1 << 30)
    root = show(checkout, sandbox)
    shutil.rmtree(root / "web")
    (root / "web").symlink_to(sandbox.root / "web")
    checkout.renew()
    show(checkout, sandbox)
    assert shown(checkout)["web/node_modules/lib.js"] == b"1"
    assert not (root / "web").is_symlink()
    assert sandbox.ledger() == user


def test_programs_in_it_find_its_sources_instead_of_an_editable_install_of_the_user_s(
    sandbox: GitSandbox, proof: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "env/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "own.pth").write_text(f"{sandbox.root}/src\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/env/bin", prepend=os.pathsep)
    sandbox.write("src/own.py")
    sandbox.commit()
    checkout = proof()
    assert checkout.show(tree(sandbox), sandbox.head()) == {"PYTHONPATH": f"{checkout.top}/src"}


def test_provided_and_prepared_paths_are_there_and_no_work(sandbox: GitSandbox, proof: Take) -> None:
    """What is prepared is made once for the same lock file, also for the next command."""
    sandbox.write_all({"a.txt": "a\n", "package.json": "{}\n", "node_modules/x": "x\n", "made/y": "of the user\n"})
    sandbox.commit("without what is ignored", "a.txt", "package.json")
    sandbox.write(".git/info/exclude", "node_modules\n")
    runs, notes = list[str](), list[str]()
    for identity, count in (("npm ci", 1), ("npm ci", 1), ("npm i", 2)):
        checkout = proof(provided=("node_modules",), limit=1 << 30, note=notes.append)
        root = show(checkout, sandbox)

        def install(root: Path = root) -> None:
            runs.append("once")
            (root / "made").mkdir()
            (root / "made/y").write_text("y\n")

        checkout.prepare(identity, install)
        files = {"a.txt": b"a\n", "package.json": b"{}\n", "node_modules/x": b"x\n", "made/y": b"y\n"}
        assert (shown(checkout), len(runs)) == (files, count)
        assert (checkout.provided, checkout.prepared) == (("node_modules",), ("made",))
        assert (run("git status --porcelain", checkout), checkout.trees.scan()) == ("", tree(sandbox))
        for name in ("node_modules/x", "a.txt"):
            (root / name).write_text("by a check\n")
        (root / "left").write_text("by a check\n")
        assert checkout.restore() == ("a.txt",)
        checkout.renew()
        show(checkout, sandbox)
        assert shown(checkout) == files
        assert (run("git status --porcelain", checkout), checkout.trees.scan()) == ("", tree(sandbox))
        checkouts.close(checkout)
    assert [words.partition("with ")[2] for words in notes] == ["copies of your node_modules (0.0 MB)"]


@pytest.mark.parametrize("end", ["failed", "killed"])
def test_of_an_installation_that_did_not_end_nothing_stays_or_counts(
    sandbox: GitSandbox, proof: Take, end: str
) -> None:
    sandbox.commit_with({"package.json": "{}\n"})

    def install(name: str) -> None:
        (root / "made").mkdir()
        (root / "made" / name).touch()

    def begin() -> None:
        install("partial")
        if end == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise TimeoutError

    checkout = proof()
    root = show(checkout, sandbox)
    checkout.prepare("a", lambda: install("one"))
    checkouts.close(checkout)
    checkout = proof()
    show(checkout, sandbox)
    if end == "failed":
        with pytest.raises(TimeoutError):
            checkout.prepare("b", begin)
    elif (process := os.fork()) == 0:
        checkout.prepare("b", begin)
    else:
        os.waitpid(process, 0)  # a hook of another test may have left a process that ends now
    assert (root / "made/partial").exists()
    if end == "failed":
        show(checkout, sandbox)
        assert set(shown(checkout)) == {"package.json"}
    checkouts.close(checkout)
    checkout = proof()
    show(checkout, sandbox)
    assert set(shown(checkout)) == {"package.json"}
    checkout.prepare("b", lambda: install("two"))
    assert (checkout.prepared, set(shown(checkout))) == (("made",), {"package.json", "made/two"})
