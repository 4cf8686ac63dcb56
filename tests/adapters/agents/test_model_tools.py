"""The tools of models: what they show, what the model may not write back, and their size limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from idumb.agents import model_tools, workspace_files
from idumb.domain.agent import BUILDER, AgentRequest
from idumb.domain.plans import plan
from idumb.system.redaction import MARK, Redactor
from tests.support.cases import every

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
SECRET = f'{{"token": "{TOKEN}", "debug": false}}\n'
NAMES = ("conf.json", "new.txt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "conf.json").write_text(SECRET, encoding="utf-8")
    return tmp_path


def request(root: Path) -> AgentRequest:
    task = plan.Task(
        "T1-01", "Work", files=(plan.FileClaim("modify", "conf.json"), plan.FileClaim("create", "new.txt"))
    )
    return AgentRequest(BUILDER, task, "the prompt", str(root), NAMES)


def at_work(root: Path, **more: Any) -> model_tools.ModelTools:
    return model_tools.ModelTools(request(root), Redactor().redact, apply_patch=lambda *_: (True, "applied"), **more)


@pytest.fixture
def work(root: Path) -> Iterator[model_tools.ModelTools]:
    tools = at_work(root)
    yield tools
    tools.close()


def test_a_redaction_mark_is_not_written_back_as_content(root: Path, work: model_tools.ModelTools) -> None:
    """R-ADAPT-2."""
    _, seen = work.call("read_file", {"path": "conf.json"})
    assert TOKEN not in seen
    mark = MARK.findall(seen)[0]
    edits: list[tuple[str, dict[str, str]]] = [
        ("write_file", {"path": "conf.json", "content": seen.replace("false", "true")}),
        ("write_file", {"path": "new.txt", "content": seen}),
        ("edit_file", {"path": "conf.json", "find": "false", "replace": f'"{mark}"'}),
        ("apply_patch", {"patch": f"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+{mark}\n"}),
    ]
    for name, arguments in edits:
        succeeded, words = work.call(name, arguments)
        assert (succeeded, "use edit_file" in words) == (False, True), name
    assert (root / "conf.json").read_text(encoding="utf-8") == SECRET
    assert not (root / "new.txt").exists()
    assert work.call("edit_file", {"path": "conf.json", "find": "false", "replace": "true"})[0]
    assert (root / "conf.json").read_text(encoding="utf-8") == SECRET.replace("false", "true")


def test_declared_files_are_shown_without_secrets(root: Path) -> None:
    """R-ADAPT-2."""
    shown = model_tools.declared_files(request(root), Redactor().redact)
    assert "[redacted:github:" in shown
    assert TOKEN not in shown


@pytest.mark.parametrize("before", [-20, 0, 20_000])
def test_truncation_never_shows_part_of_a_secret(root: Path, work: model_tools.ModelTools, before: int) -> None:
    """R-ADAPT-2."""
    for at in (model_tools.MOST_READ, model_tools.MOST_READ + 32 * 1024):
        text = "x " * ((at + before - 20) // 2) + f" {TOKEN} " + "y" * 100_000
        (root / "conf.json").write_text(text, encoding="utf-8")
        assert "ghp_" not in work.call("read_file", {"path": "conf.json"})[1]


def test_only_the_start_of_a_large_file_is_read(
    root: Path, work: model_tools.ModelTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-2."""
    with (root / "conf.json").open("wb") as file:
        file.truncate(1 << 40)
    _, seen = work.call("read_file", {"path": "conf.json"})
    assert len(seen) < 300_000
    assert seen.endswith(f"[only the beginning of {1 << 40} bytes is shown]")
    monkeypatch.setattr(workspace_files, "LARGEST", 1000)
    succeeded, words = work.call("edit_file", {"path": "conf.json", "find": "a", "replace": "b"})
    assert (succeeded, "larger than 1000 bytes" in words) == (False, True)


@pytest.mark.parametrize(
    "old", [b"caf\xe9\n", b"x" * 300_000, b"\x89PNG\r\n\x1a\n\x00"], ids=["latin-1", "large", "image"]
)
def test_a_file_that_was_shown_altered_is_not_overwritten_as_a_whole(
    root: Path, work: model_tools.ModelTools, old: bytes
) -> None:
    """R-ADAPT-2: content that the model did not see would be lost."""
    (root / "conf.json").write_bytes(old)
    _, seen = work.call("read_file", {"path": "conf.json"})
    succeeded, words = work.call("write_file", {"path": "conf.json", "content": seen, "intent": "more"})
    assert not succeeded
    assert "edit_file" in words
    assert (root / "conf.json").read_bytes() == old


def test_part_of_an_altered_file_can_be_edited_and_the_rest_keeps_its_bytes(
    root: Path, work: model_tools.ModelTools
) -> None:
    """R-ADAPT-2."""
    (root / "conf.json").write_bytes(b"caf\xe9 is old\n")
    assert work.call("edit_file", {"path": "conf.json", "find": "old", "replace": "new", "intent": "x"})[0]
    assert (root / "conf.json").read_bytes() == b"caf\xe9 is new\n"


def test_an_altered_file_can_be_written_if_it_was_deleted_or_made_by_the_model(
    root: Path, work: model_tools.ModelTools
) -> None:
    """R-ADAPT-2."""
    (root / "conf.json").write_bytes(b"\xff\xfe")
    assert work.call("delete_file", {"path": "conf.json", "intent": "make it anew"})[0]
    assert work.call("write_file", {"path": "conf.json", "content": "{}\n", "intent": "anew"})[0]
    for text in ("a" * 300_000, "b"):
        assert work.call("write_file", {"path": "new.txt", "content": text, "intent": "mine"})[0]


def test_reads_and_edits_of_one_request_are_bounded(
    root: Path, work: model_tools.ModelTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-2."""
    monkeypatch.setattr(model_tools, "MOST_TOLD", 100)
    monkeypatch.setattr(model_tools, "MOST_EDITS", 2)
    reads = [work.call("read_file", {"path": "conf.json"})[0] for _ in range(5)]
    assert reads[0]
    assert not reads[-1]
    edits = [work.call("write_file", {"path": "new.txt", "content": "x"})[0] for _ in range(3)]
    assert edits == [True, True, False]
    assert (root / "new.txt").read_text(encoding="utf-8") == "x"


def test_no_call_is_made_after_the_deadline(root: Path) -> None:
    """R-ADAPT-2."""
    work = at_work(root, until=time.monotonic())
    assert work.call("write_file", {"path": "new.txt", "content": "x"}) == (
        False,
        "the time limit of this task expired",
    )
    work.close()
    assert not (root / "new.txt").exists()


SECRETS = (
    ".env",
    "api/.env.local",
    "settings.env",
    ".envrc",
    ".netrc",
    ".npmrc",
    "web/.YARNRC.yml",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".aws/config",
    ".docker/config.json",
    "credentials",
    "credentials.json",
    "client_secret_1.json",
    "config/secrets.yml",
    "gcp-service-account.json",
    "config/master.key",
    "store.p12",
    "prod.tfvars",
    "terraform.tfstate.backup",
    "id_ecdsa",
)
HARMLESS = ("conf.json", "src/secrets.py", "lib/credentials/model.py", "environment.md", "keys.py", "token_counter.py")


def planted(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("what is in it", encoding="utf-8")


def test_files_that_usually_contain_secrets_are_neither_listed_nor_read(
    root: Path, work: model_tools.ModelTools
) -> None:
    """R-ADAPT-2: of the names that well-known tools give them; source code of such a name is shown."""
    planted(root, *SECRETS, *HARMLESS)
    assert work.call("list_files", {})[1].splitlines() == sorted(HARMLESS, key=lambda name: ("/" in name, name))
    assert [name for name in SECRETS if work.call("read_file", {"path": name})[0]] == []
    assert [name for name in HARMLESS if not work.call("read_file", {"path": name})[0]] == []


@every(
    "name, arguments, word",
    [
        ("write_file", {"path": "../a.txt", "content": "x"}, "not a file of this task"),
        ("move_file", {"from": "src/b.txt", "to": "new.txt"}, "not a file of this task"),
        ("delete_file", {"path": ".git/HEAD"}, "not a file of this task"),
        ("read_file", {"path": ".env"}, "may contain secrets"),
        ("read_file", {"path": "src/../.git/config"}, ".."),
        ("read_file", {"path": "outside"}, "symbolic link"),
        ("edit_file", {"path": "conf.json", "find": "absent", "replace": "x"}, "found 0 matches"),
    ],
)
def test_a_call_out_of_scope_is_refused_with_the_reason(
    root: Path, work: model_tools.ModelTools, name: str, arguments: dict[str, str], word: str
) -> None:
    planted(root, "src/b.txt", ".env")
    if not (root / "outside").is_symlink():
        (root / "outside").symlink_to("/etc/passwd")
    succeeded, words = work.call(name, arguments)
    assert (succeeded, word in words) == (False, True), words
    assert sorted(path.name for path in root.rglob("*")) == [".env", "b.txt", "conf.json", "outside", "src"]


def test_ignored_files_are_shown_only_if_the_task_names_them(root: Path) -> None:
    """R-ADAPT-2."""
    planted(root, "own/key", "own/named", "own/read", "a.log", "src/a.py")
    claims = (
        plan.FileClaim("modify", "own/**"),
        plan.FileClaim("modify", "own/named"),
        plan.FileClaim("read", "own/read"),
    )
    request = AgentRequest(
        BUILDER, plan.Task("T1-01", "Work", files=claims), "", str(root), ("own/**", "own/named"),
        ignored=("own/", "a.log"),
    )  # fmt: skip
    work = model_tools.ModelTools(request, str)
    assert work.call("list_files", {})[1].splitlines() == ["conf.json", "own/named", "own/read", "src/a.py"]
    assert "ignored by git" in work.call("read_file", {"path": "own/key"})[1]
    assert work.call("write_file", {"path": "own/new", "content": "x"})[0]
    assert work.call("read_file", {"path": "own/new"}) == (True, "x")
    assert "own/named" in model_tools.declared_files(request, str)
    work.close()
    assert (root / "own/key").read_text(encoding="utf-8") == "what is in it"


def test_a_secret_cannot_be_moved_to_a_name_that_is_shown(root: Path) -> None:
    """R-ADAPT-2."""
    planted(root, ".env")
    claims = tuple(plan.FileClaim("modify", name) for name in (".env", "moved.txt"))
    names = tuple(claim.path for claim in claims)
    work = model_tools.ModelTools(
        AgentRequest(BUILDER, plan.Task("T1-01", "Work", files=claims), "", str(root), names), str
    )
    assert "cannot be moved" in work.call("move_file", {"from": ".env", "to": "moved.txt"})[1]
    work.close()
