"""`idumb install` writes slash commands to a host's folder and changes nothing else of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.domain import hosts
from idumb.system import shipped
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

COUNT = len(shipped.commands())


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return Project(sandbox, sandbox.root)


def install(project: Project, *arguments: str, code: int = 0) -> Answer:
    answer = project.quick("install", *arguments, "--json")
    assert answer.code == code, answer.out
    return answer


def actions(answer: Answer) -> dict[str, str]:
    return {row["path"]: row["action"] for row in answer.data["files"]}


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and ".git/" not in str(p)
    }


def test_install_and_uninstall_write_and_remove_all_files_of_each_host(project: Project) -> None:
    """R-OPS-6."""
    for host in hosts.HOSTS:
        installed = actions(install(project, "--host", host.name))
        assert len(installed) == COUNT * len(host.places)
        assert set(installed.values()) == {"create"}
        files = tree(project.folder)
        assert set(files) == set(installed)
        assert {f"{place.project}/{hosts.path(place, 'execute-phase')}" for place in host.places} <= set(installed)
        assert all(len(data) < 12_000 for data in files.values())  # Windsurf reads no more
        install(project, "--host", host.name, "--remove")
        assert [p.name for p in project.folder.iterdir()] == [".git"], host.name


def test_copilot_gets_files_for_the_editor_and_the_command_line(project: Project, home: Path) -> None:
    """R-OPS-6: the command line reads skills, the editor reads prompts; only the former have a fixed user folder."""
    both = install(project, "--host", "copilot").data
    assert both["folders"] == [".github/prompts", ".agents/skills"]
    assert (project.folder / ".github/prompts/idumb-next.prompt.md").is_file()
    assert (project.folder / ".agents/skills/idumb-next/SKILL.md").read_text(encoding="utf-8").startswith("---\nname:")
    assert set(actions(install(project, "--host", "codex")).values()) == {"current"}
    install(project, "--host", "copilot", "--remove")
    assert sorted(p.name for p in project.folder.iterdir()) == [".git"]
    assert install(project, "--host", "copilot", "--user").data["folders"] == [".agents/skills"]
    assert (home / ".agents/skills/idumb-next/SKILL.md").is_file()


def test_an_older_version_is_replaced_and_its_obsolete_files_are_removed(project: Project) -> None:
    install(project, "--host", "claude")
    folder, host = project.folder / ".claude/commands", hosts.BY_NAME["claude"]
    old = hosts.Command("gone", "An older one", "", "", "Do.\n")
    (folder / "idumb-gone.md").write_text(hosts.installed(host, old, "0.0.1"), encoding="utf-8")
    (folder / "idumb-next.md").write_text(hosts.installed(host, old, "0.0.1"), encoding="utf-8")

    done = actions(install(project, "--host", "claude"))

    assert done[".claude/commands/idumb-next.md"] == "update"
    assert done[".claude/commands/idumb-gone.md"] == "remove"
    assert not (folder / "idumb-gone.md").exists()
    assert set(actions(install(project, "--host", "claude")).values()) == {"current"}


def test_files_written_or_changed_by_a_person_are_kept_and_named(project: Project) -> None:
    folder = project.folder / ".claude/commands"
    folder.mkdir(parents=True)
    (folder / "idumb-status.md").write_text("mine\n", encoding="utf-8")
    (folder / "other.md").write_text("theirs\n", encoding="utf-8")
    install(project, "--host", "claude")
    with (folder / "idumb-next.md").open("a", encoding="utf-8") as stream:
        stream.write("And be brief.\n")
    before = {name: (folder / name).read_bytes() for name in ("idumb-next.md", "idumb-status.md", "other.md")}

    again = install(project, "--host", "claude")

    assert actions(again)[".claude/commands/idumb-next.md"] == "edited"
    assert actions(again)[".claude/commands/idumb-status.md"] == "foreign"
    assert len(again.object["warnings"]) == 2
    assert "move it away" in again.object["warnings"][0]
    install(project, "--host", "claude", "--remove")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_files_whose_line_ends_git_changed_are_still_those_of_idumb(project: Project) -> None:
    install(project, "--host", "claude")
    for place in (project.folder / ".claude/commands").iterdir():
        place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    assert set(actions(install(project, "--host", "claude")).values()) == {"current"}
    install(project, "--host", "claude", "--remove")
    assert [p.name for p in project.folder.iterdir()] == [".git"]


def test_links_are_not_followed(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "commands").mkdir(parents=True)
    (project.folder / ".claude").symlink_to(outside)
    refused = install(project, "--host", "claude", code=4)
    assert refused.error["code"] == "install.refused"
    assert "were written" not in refused.error["message"]
    assert "report" not in refused.error["message"]
    assert ".claude" in refused.error["message"]
    assert list((outside / "commands").iterdir()) == []
    (outside / "commands/idumb-next.md").write_text("theirs\n", encoding="utf-8")
    assert install(project, "--host", "claude", "--remove").data["files"] == []
    assert tree(outside) == {"commands/idumb-next.md": b"theirs\n"}


def test_a_user_wide_installation_works_in_and_outside_every_repository(
    project: Project, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = Project(project.repo, tmp_path)
    install(apart, "--host", "gemini", "--user")
    assert (home / ".gemini/commands/idumb-next.toml").is_file()
    install(apart, "--host", "opencode", "--user")
    assert (home / "config/opencode/commands/idumb-next.md").is_file()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    install(apart, "--host", "claude", "--user")
    assert (tmp_path / "commands/idumb-next.md").is_file()
    assert f"unchanged: {tmp_path}/commands/idumb-next.md" in project.quick("install", "--host", "claude", "--user").out
    assert tree(project.folder) == {}
    assert install(apart, "--host", "claude", code=4).error["hint"]
