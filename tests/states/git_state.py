"""States of git's own folder, its configuration and its history: F6 to F10, F13 to F18, F22, F23, F25."""

from __future__ import annotations

import os

from tests.states.state import Scene, state
from tests.support.gitrepo import GitSandbox


def _two_sides(repo: GitSandbox) -> None:
    """A branch `side` and `main` that both changed the same line of a file."""
    repo.git("switch", "--quiet", "-c", "side")
    repo.write("second.txt", "of the side\n")
    repo.git("commit", "--quiet", "-m", "side", "--", "second.txt")
    repo.git("switch", "--quiet", "main")
    repo.write("second.txt", "of main\n")
    repo.git("commit", "--quiet", "-m", "main", "--", "second.txt")


@state("F6", ends="refused:git.merge-in-progress")
def a_merge_with_conflicts(scene: Scene) -> None:
    _two_sides(scene.repo)
    scene.repo.try_git("merge", "side")


@state("F6", ends="refused:git.rebase-in-progress")
def a_rebase_with_conflicts(scene: Scene) -> None:
    _two_sides(scene.repo)
    scene.repo.try_git("rebase", "side")


@state("F6", ends="refused:git.cherry-pick-in-progress")
def a_cherry_pick_with_conflicts(scene: Scene) -> None:
    _two_sides(scene.repo)
    scene.repo.try_git("cherry-pick", "side")


@state("F6", ends="refused:git.revert-in-progress")
def a_revert_that_waits(scene: Scene) -> None:
    _two_sides(scene.repo)
    scene.repo.write("second.txt", "later\n")
    scene.repo.git("commit", "--quiet", "-m", "later", "--", "second.txt")
    scene.repo.try_git("revert", "--no-edit", "HEAD~1")


@state("F6", ends="refused:git.bisect-in-progress")
def a_bisect(scene: Scene) -> None:
    scene.repo.git("bisect", "start")
    scene.repo.git("bisect", "bad", "HEAD")


@state("F6", ends="refused:git.am-in-progress")
def patches_by_mail_that_do_not_fit(scene: Scene) -> None:
    _two_sides(scene.repo)
    patch = scene.repo.git("format-patch", "--stdout", "-1", "side")
    scene.repo.try_git("am", given=patch.encode() + b"\n")


@state("F6", ends="refused:git.unmerged")
def a_stash_that_was_applied_with_conflicts(scene: Scene) -> None:
    scene.repo.write("second.txt", "stashed\n")
    scene.repo.git("stash")
    scene.repo.write("second.txt", "committed\n")
    scene.repo.git("commit", "--quiet", "-m", "other", "--", "second.txt")
    scene.repo.try_git("stash", "apply")


@state("F7")
def a_detached_head(scene: Scene) -> None:
    scene.repo.git("switch", "--quiet", "--detach")


@state("F8", ends="refused:run.waiting")
def no_commits_yet(scene: Scene) -> None:
    scene.repo.git("update-ref", "-d", "HEAD")


@state("F9", environment={"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/nowhere/index"})
def variables_that_name_another_repository(scene: Scene) -> None:
    scene.repo.write("first.txt", "mine\n")


@state("F9", ends="refused:git.inside-git-folder", start=".git")
def started_inside_git_s_own_folder(scene: Scene) -> None:
    del scene


@state("F9", ends="refused:git.bare")
def a_repository_that_was_left_bare(scene: Scene) -> None:
    scene.repo.git("config", "core.bare", "true")


@state("F9", ends="refused:git.work-tree-elsewhere")
def a_work_tree_elsewhere(scene: Scene) -> None:
    scene.repo.git("config", "core.worktree", str(scene.outside))


@state("F10", elsewhere=True)
def a_linked_worktree(scene: Scene) -> GitSandbox:
    scene.repo.write("first.txt", "of the other worktree\n")
    scene.repo.git("worktree", "add", "--quiet", "-b", "linked", str(scene.case / "linked"))
    linked = GitSandbox(scene.case / "linked")
    linked.write("second.txt", "mine\n")
    return linked


@state("F10")
def beside_linked_worktrees(scene: Scene) -> None:
    for name in ("a", "b"):
        scene.repo.git("worktree", "add", "--quiet", "-b", name, str(scene.case / name))
        GitSandbox(scene.case / name).write("second.txt", "of the other worktree\n")
    scene.repo.git("config", "extensions.worktreeConfig", "true")


@state("F13", "F17")
def line_endings_by_attribute(scene: Scene) -> None:
    scene.repo.write(".gitattributes", "*.txt text eol=crlf\n")
    scene.repo.commit("attributes", ".gitattributes")
    names = [name for name in ("app.txt", "old.txt", "first.txt", "second.txt") if (scene.repo.root / name).exists()]
    for name in names:
        scene.repo.remove(name)
    scene.repo.git("checkout", "--quiet", "--", *names)
    scene.repo.write("second.txt", "mine\r\nwith one\nmixed\r\n")


@state("F13")
def a_filter_that_rewrites_files(scene: Scene) -> None:
    scene.repo.git("config", "filter.turn.clean", "tr a-z n-za-m")
    scene.repo.git("config", "filter.turn.smudge", "tr a-z n-za-m")
    scene.repo.write(".gitattributes", "app.txt filter=turn\nfirst.txt filter=turn\nout/*.txt filter=turn\n")
    scene.repo.git("add", "--renormalize", "app.txt", "first.txt")
    scene.repo.git("add", ".gitattributes")
    scene.repo.git("commit", "--quiet", "-m", "filters", "--", ".gitattributes", "app.txt", "first.txt")
    scene.repo.write("first.txt", "mine\n")


@state("F13")
def large_files_kept_elsewhere(scene: Scene) -> None:
    """As large-file extensions do it: git holds a pointer, the filter the bytes; it also must succeed."""
    store = scene.case / "large"
    store.mkdir()
    clean = f"sh -c 'f=$(mktemp {store}/XXXXXX); cat >$f; h=$(git hash-object --no-filters $f);"
    clean += f" mv $f {store}/$h; echo pointer $h'"
    scene.repo.git("config", "filter.large.clean", clean)
    scene.repo.git("config", "filter.large.smudge", f"sh -c 'read w h; cat {store}/$h'")
    scene.repo.git("config", "filter.large.required", "true")
    scene.repo.write(".gitattributes", "app.txt filter=large -text\nout/*.txt filter=large -text\n*.bin filter=large\n")
    scene.repo.write("model.bin", bytes(range(256)) * 20)
    scene.repo.git("add", "--renormalize", "app.txt")
    scene.repo.git("add", ".gitattributes", "model.bin")
    scene.repo.git("commit", "--quiet", "-m", "large files", "--", ".gitattributes", "model.bin", "app.txt")
    scene.repo.write("model.bin", bytes(range(255)) * 20)


@state("F13")
def a_locked_filter_elsewhere(scene: Scene) -> None:
    """A required filter whose program is missing, on files that no task changes."""
    scene.repo.write(".gitattributes", "secret.* filter=lock\n")
    scene.repo.write("secret.key", b"\0locked\xff")
    # Else git could not tell from its times alone that it is unchanged, and would want to run the filter.
    os.utime(scene.repo.root / "secret.key", (1_000_000_000, 1_000_000_000))
    scene.repo.git("add", ".gitattributes", "secret.key")
    scene.repo.git("commit", "--quiet", "-m", "secrets", "--", ".gitattributes", "secret.key")
    scene.repo.git("config", "filter.lock.clean", "no-such-program")
    scene.repo.git("config", "filter.lock.smudge", "no-such-program")
    scene.repo.git("config", "filter.lock.required", "true")


@state("F13", ends="refused:git.failed")
def a_locked_filter_that_git_wants_to_run(scene: Scene) -> None:
    """Of a file that was written again since, git cannot tell whether it changed."""
    a_locked_filter_elsewhere(scene)
    os.utime(scene.repo.root / "secret.key", (1, 1))


@state("F13", "F17")
def encodings_and_idents_by_attribute(scene: Scene) -> None:
    scene.repo.write(".gitattributes", "wide.txt working-tree-encoding=UTF-16LE-BOM\nident.txt ident\n")
    scene.repo.write("wide.txt", "wide\n".encode("utf-16"))
    scene.repo.write("ident.txt", "$Id$\n")
    scene.repo.git("add", ".gitattributes", "wide.txt", "ident.txt")
    scene.repo.git("commit", "--quiet", "-m", "attributes", "--", ".gitattributes", "wide.txt", "ident.txt")
    scene.repo.remove("ident.txt")
    scene.repo.git("checkout", "--quiet", "--", "ident.txt")
    scene.repo.write("wide.txt", "wider\n".encode("utf-16"))


@state("F14")
def a_sparse_checkout(scene: Scene) -> None:
    scene.repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/docs/")
    scene.repo.write("first.txt", "mine\n")


@state("F14")
def a_sparse_checkout_that_leaves_out_what_tasks_make(scene: Scene) -> None:
    scene.repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/out/", "!/third.txt")


@state("F14")
def a_sparse_index(scene: Scene) -> None:
    scene.repo.git("sparse-checkout", "set", "--cone", "--sparse-index", ".planning", ".idumb", "out")


@state("F14", elsewhere=True)
def a_shallow_clone(scene: Scene) -> GitSandbox:
    shallow = scene.other("shallow", "--depth=1", f"file://{scene.repo.root}")
    shallow.write("first.txt", "mine\n")
    return shallow


@state("F14", elsewhere=True)
def a_partial_clone(scene: Scene) -> GitSandbox:
    scene.repo.git("config", "uploadpack.allowFilter", "true")
    scene.repo.write("first.txt", "older\n")
    scene.repo.git("commit", "--quiet", "-m", "older", "--", "first.txt")
    scene.repo.write("first.txt", "newer\n")
    scene.repo.git("commit", "--quiet", "-m", "newer", "--", "first.txt")
    partial = scene.other("partial", "--filter=blob:none", f"file://{scene.repo.root}")
    partial.git("remote", "set-url", "origin", str(scene.case / "nowhere"))
    return partial


@state("F15", ends="refused:git.unsupported-format", elsewhere=True)
def sha_256(scene: Scene) -> GitSandbox:
    modern = GitSandbox.create(scene.case / "modern", options=("--object-format=sha256",))
    modern.write_all({".idumb/config.yaml": (scene.repo.root / ".idumb/config.yaml").read_bytes(), "app.txt": "x\n"})
    plan = next((scene.repo.root / ".planning").rglob("*PLAN.md"))
    modern.write(str(plan.relative_to(scene.repo.root)), plan.read_bytes())
    modern.commit("first")
    return modern


@state("F15", ends="refused:git.unsupported-format")
def an_extension_nobody_knows(scene: Scene) -> None:
    scene.repo.git("config", "core.repositoryFormatVersion", "1")
    scene.repo.git("config", "extensions.tomorrow", "true")


@state("F17")
def automatic_line_endings(scene: Scene) -> None:
    scene.repo.git("config", "core.autocrlf", "true")
    scene.repo.git("config", "core.safecrlf", "false")
    scene.repo.write("first.txt", "mine\r\n")
    scene.repo.write("bom.txt", b"\xef\xbb\xbfbom\r\nmixed\n")


@state("F18")
def names_that_differ_by_case(scene: Scene) -> None:
    scene.repo.git("config", "core.ignoreCase", "true")
    scene.repo.write_all({"App.TXT": "mine\n", "OUTER/one.txt": "mine\n", ".Git-like": "mine\n"})


@state("F22")
def hooks_that_count(scene: Scene) -> None:
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change", "post-checkout"):
        _hook(scene, name, f"echo {name} >> {scene.case}/hooks-ran\n")


@state("F22", ends="fails:git.commit-refused")
def a_hook_that_refuses(scene: Scene) -> None:
    _hook(scene, "pre-commit", "echo no >&2\nexit 1\n")


@state("F22", ends="fails:git.commit-refused")
def a_hook_that_refuses_refs(scene: Scene) -> None:
    _hook(scene, "reference-transaction", 'test "$1" != prepared || { echo no >&2; exit 1; }\n')


def _hook(scene: Scene, name: str, text: str) -> None:
    place = scene.repo.git_dir / "hooks" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{text}", encoding="ascii")
    place.chmod(0o755)


@state("F23", ends="fails:git.commit-refused")
def signing_without_a_key(scene: Scene) -> None:
    scene.repo.git("config", "commit.gpgSign", "true")
    scene.repo.git("config", "gpg.program", str(scene.case / "no-such-signer"))


@state("F23", ends="refused:git.no-identity")
def no_identity(scene: Scene) -> None:
    scene.repo.git("config", "--unset", "user.name")
    scene.repo.git("config", "--unset", "user.email")
    scene.repo.git("config", "user.useConfigOnly", "true")


@state("F23")
def settings_that_change_commits(scene: Scene) -> None:
    scene.case.joinpath("template").write_text("A template\n", encoding="ascii")
    for name, value in (
        ("commit.template", str(scene.case / "template")),
        ("commit.cleanup", "scissors"),
        ("commit.verbose", "2"),
        ("commit.status", "true"),
        ("i18n.commitEncoding", "ISO-8859-1"),
        ("core.logAllRefUpdates", "false"),
        ("core.preloadIndex", "false"),
        ("status.showUntrackedFiles", "no"),
        ("core.fileMode", "false"),
        ("diff.external", "false"),
        ("core.abbrev", "4"),
        ("trailer.separators", "="),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
        ("index.skipHash", "true"),
        ("format.pretty", "oneline"),
    ):
        scene.repo.git("config", name, value)
    scene.repo.write("first.txt", "mine\n")
    scene.repo.write("mine.txt", "mine\n")


@state("F25", ends="refused:git.ownership")
def a_repository_of_another_owner(scene: Scene) -> None:
    """Only root can create one; elsewhere git is told that the folder belongs to another user."""
    if os.geteuid() != 0:
        return
    os.chown(scene.repo.root, 65534, 65534)
    os.chown(scene.repo.root / ".git", 65534, 65534)


@state("F41", ends="refused:git.index-locked")
def an_index_that_a_killed_git_left_locked(scene: Scene) -> None:
    scene.repo.git_dir.joinpath("index.lock").touch()


@state("F43", ends="refused:git.failed")
def a_damaged_index(scene: Scene) -> None:
    scene.repo.git_dir.joinpath("index").write_bytes(b"DIRC\0\0\0\2\0\0\0\x09 no index at all")


@state("F10")
def packed_and_replaced(scene: Scene) -> None:
    """Everything packed, loose files gone, a replaced commit, a branch with an odd name."""
    scene.repo.git("switch", "--quiet", "-c", "feature/ünï-😀/a.b")
    first = scene.repo.git("rev-list", "--max-parents=0", "HEAD")
    other = scene.repo.git("commit-tree", f"{first}^{{tree}}", "-m", "replaced")
    scene.repo.git("replace", first, other)
    scene.repo.git("gc", "--quiet", "--prune=now")
    scene.repo.git("pack-refs", "--all")
