"""What a repository can carry that would run a program, and how each of them is made to go off.

A payload plants its program in a repository and knows the innocent command that runs it. The program does one thing:
it makes the marker file.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.gitrepo import GitSandbox


@dataclass(frozen=True, slots=True)
class Scene:
    """A hostile repository; `marker` is the file that its program makes, outside of it."""

    repo: GitSandbox
    marker: Path

    @property
    def root(self) -> Path:
        return self.repo.root

    def script(self, path: str, after: str = "exit 0") -> Path:
        """A program in the repository that makes the marker and then does `after`."""
        return self.repo.write(path, f"#!/bin/sh\ntouch '{self.marker}'\n{after}\n", mode=0o755)

    def configure(self, **values: str) -> None:
        """Keys of git's configuration, with `__` for the dots and `_` for a dash."""
        for key, value in values.items():
            self.repo.git("config", key.replace("__", ".").replace("_", "-"), value)

    def shell(self, *argv: str, environment: Mapping[str, str] | None = None) -> None:
        """Run a command in the repository and ignore its result."""
        subprocess.run(
            argv,
            cwd=self.root,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=30,
        )

    def terminal(self, *argv: str) -> None:
        """The same on a terminal, where git pages."""
        pid, descriptor = pty.fork()
        if pid == 0:
            os.chdir(self.root)
            os.execvp(argv[0], argv)
        try:
            while os.read(descriptor, 4096):
                pass
        except OSError:
            pass
        os.waitpid(pid, 0)
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Payload:
    """`fire` shows that the program runs if a command is careless; without it, the repository harms otherwise.

    `alone` payloads hit a program while it starts, so commands run as separate processes, in `environment`.
    """

    name: str
    plant: Callable[[Scene], None]
    fire: Callable[[Scene], None] | None = None
    alone: bool = False
    environment: Callable[[Scene], Mapping[str, str]] = field(default=lambda _: {})


def _git(*arguments: str) -> Callable[[Scene], None]:
    return lambda scene: scene.shell("git", *arguments)


def _fsmonitor(scene: Scene) -> None:
    scene.configure(core__fsmonitor=str(scene.script("tools/watch.sh")))


def _included(scene: Scene) -> None:
    watch = scene.script("tools/watch.sh")
    scene.repo.write("team.gitconfig", f"[core]\n\tfsmonitor = {watch}\n")
    scene.configure(include__path="../team.gitconfig")


def _pager(scene: Scene) -> None:
    scene.configure(core__pager=f"touch '{scene.marker}'; cat")


def _hooks_path(scene: Scene) -> None:
    for hook in HOOKS:
        scene.script(f"tools/hooks/{hook}")
    scene.configure(core__hooksPath="tools/hooks")


def _hooks(scene: Scene) -> None:
    for hook in HOOKS:
        scene.script(f".git/hooks/{hook}")


HOOKS = (
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "post-commit",
    "post-checkout",
    "fsmonitor-watchman",
)


def _change_ref(scene: Scene) -> None:
    scene.shell("git", "update-ref", "refs/heads/other", "HEAD")


def _alias(scene: Scene) -> None:
    scene.configure(alias__st=f"!touch '{scene.marker}'")


def _filter(scene: Scene) -> None:
    scene.repo.write(".gitattributes", "* filter=evil\n")
    script = str(scene.script("tools/clean.sh", after="cat"))
    scene.configure(filter__evil__clean=script, filter__evil__smudge=script, filter__evil__required="true")


def _process_filter(scene: Scene) -> None:
    scene.repo.write(".git/info/attributes", "* filter=evil\n")
    scene.configure(filter__evil__process=str(scene.script("tools/process.sh", after="exit 1")))


def _touched(scene: Scene) -> None:
    """git reads a file again, and through the filter, if its time differs from the index."""
    os.utime(scene.root / "README.md", (1, 1))
    scene.shell("git", "status")
    scene.shell("git", "add", "--all")


def _textconv(scene: Scene) -> None:
    scene.repo.write(".gitattributes", "* diff=evil\n")
    scene.configure(diff__evil__textconv=str(scene.script("tools/text.sh", after='cat "$1"')))


def _attribute_diff(scene: Scene) -> None:
    scene.repo.write(".git/info/attributes", "* diff=evil\n")
    scene.configure(diff__evil__command=str(scene.script("tools/diff.sh")))


def _external_diff(scene: Scene) -> None:
    scene.configure(diff__external=str(scene.script("tools/diff.sh")))


def _changed(scene: Scene) -> None:
    scene.repo.write("README.md", "# Changed\n")
    scene.shell("git", "diff", "HEAD")


def _merge_driver(scene: Scene) -> None:
    scene.repo.write(".git/info/attributes", "* merge=evil\n")
    scene.configure(merge__evil__driver=str(scene.script("tools/merge.sh")))


def _merged(scene: Scene) -> None:
    git = scene.repo.git
    git("checkout", "--quiet", "-b", "other")
    scene.repo.write("README.md", "other\n")
    scene.repo.commit("other", "README.md")
    git("checkout", "--quiet", "-")
    scene.repo.write("README.md", "ours\n")
    scene.repo.commit("ours", "README.md")
    scene.shell("git", "merge", "other")


def _ssh(scene: Scene) -> None:
    script = str(scene.script("tools/ssh.sh", after="exit 1"))
    scene.configure(core__sshCommand=script, remote__origin__url="ssh://host.invalid/x")


def _lazy(scene: Scene) -> None:
    """A promisor remote: git fetches missing objects with a program that the remote chooses."""
    _ssh(scene)
    scene.configure(
        remote__origin__promisor="true",
        remote__origin__partialclonefilter="blob:none",
        extensions__partialClone="origin",
        core__repositoryformatversion="1",
    )
    blob = scene.repo.git("rev-parse", "HEAD:README.md")
    (scene.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def _credentials(scene: Scene) -> None:
    scene.configure(credential__helper=f"!touch '{scene.marker}'")


def _asked_for_credentials(scene: Scene) -> None:
    subprocess.run(
        ["git", "credential", "fill"],
        cwd=scene.root,
        input=b"url=https://host.invalid\n\n",
        capture_output=True,
        check=False,
    )


def _signature(scene: Scene) -> None:
    """A commit with a signature that `git log` verifies by the program which the configuration names."""
    scene.configure(gpg__program=str(scene.script("tools/gpg.sh", after="exit 1")), log__showSignature="true")
    head = scene.repo.git("cat-file", "commit", "HEAD")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----"
    top, _, words = head.partition("\n\n")
    commit_id = scene.repo.git(
        "hash-object", "-t", "commit", "-w", "--stdin", given=f"{top}\n{signature}\n\n{words}\n".encode()
    )
    scene.repo.git("update-ref", "HEAD", commit_id)


def _ssh_signature(scene: Scene) -> None:
    scene.configure(gpg__format="ssh", gpg__ssh__program=str(scene.script("tools/keygen.sh", after="exit 1")))
    scene.configure(user__signingKey="key::ssh-ed25519 AAAA", commit__gpgSign="true", tag__gpgSign="true")


def _editor(scene: Scene) -> None:
    scene.configure(core__editor=str(scene.script("tools/editor.sh", after="exit 1")))


def _trailer(scene: Scene) -> None:
    scene.configure(trailer__run__command=f"touch '{scene.marker}'", trailer__run__key="Idumb-Run")


def _submodule(scene: Scene) -> None:
    """A checked-out submodule with a configuration of its own; `git status` starts git in there."""
    inner = GitSandbox.create(scene.root / "lib")
    inner.write("code.py", "x = 1\n")
    inner.commit("inner")
    oid = inner.head()
    scene.repo.write(".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n')
    scene.configure(submodule__lib__update=f"!touch '{scene.marker}'")
    scene.repo.git("update-index", "--add", "--cacheinfo", f"160000,{oid},lib")
    scene.repo.git("commit", "--quiet", "-m", "submodule")
    inner.git("config", "core.fsmonitor", str(scene.script("tools/watch.sh")))
    (scene.root / "lib" / "new.py").touch()


def _nested(scene: Scene) -> None:
    """A repository in a folder, which was never added."""
    inner = GitSandbox.create(scene.root / "nested")
    inner.git("config", "core.fsmonitor", str(scene.script("tools/watch.sh")))
    scene.script("nested/.git/hooks/post-index-change")


def _shims(scene: Scene) -> None:
    for name in ("git", "sh", "ssh-keygen", "python3", "uname", "less", "env"):
        for folder in ("", "bin/"):
            scene.script(f"{folder}{name}", after=f'exec /usr/bin/{name} "$@"')


def _careless_path(_: Scene) -> Mapping[str, str]:
    return {"PATH": f".:bin::{os.environ['PATH']}"}


def _by_name(scene: Scene) -> None:
    scene.shell("/bin/sh", "-c", "git status", environment=_careless_path(scene))


PYTHON = ("sitecustomize", "usercustomize", "click", "pygit2", "ruamel", "idumb", "json", "conftest")


def _modules(scene: Scene) -> None:
    code = f"open({str(scene.marker)!r}, 'w').close()\n"
    for name in PYTHON:
        scene.repo.write(f"{name}.py", code)
        scene.repo.write(f"{name}/__init__.py", code)
    scene.repo.write("pyproject.toml", '[project.entry-points."idumb.agents"]\nevil = "sitecustomize"\n')


def _imported(scene: Scene) -> None:
    scene.shell(sys.executable, "-c", "import click")


def _shell_files(scene: Scene) -> None:
    text = f"touch '{scene.marker}'\nexport IDUMB_TOOL_POLICY=/dev/null GIT_DIR=/nonexistent\n"
    for name in (".env", ".envrc", ".bashrc", ".profile"):
        scene.repo.write(name, text)


GIT = (
    Payload("core.fsmonitor", _fsmonitor, _git("status")),
    Payload("an included configuration", _included, _git("status")),
    Payload("core.pager", _pager, lambda scene: scene.terminal("git", "log")),
    Payload("core.hooksPath", _hooks_path, _change_ref),
    Payload("hooks", _hooks, _change_ref),
    Payload("an alias", _alias, _git("st")),
    Payload("a filter", _filter, _touched),
    Payload("a filter process", _process_filter, _touched),
    Payload("a textconv", _textconv, _changed),
    Payload("a diff by attribute", _attribute_diff, _changed),
    Payload("diff.external", _external_diff, _changed),
    Payload("a merge driver", _merge_driver, _merged),
    Payload("core.sshCommand", _ssh, _git("ls-remote", "origin")),
    Payload("a promisor remote", _lazy, _git("cat-file", "-p", "HEAD:README.md")),
    Payload("a credential helper", _credentials, _asked_for_credentials),
    Payload("gpg.program", _signature, _git("log", "-1")),
    Payload("gpg.ssh.program", _ssh_signature, _git("commit", "--allow-empty", "-m", "signed")),
    Payload("core.editor", _editor, _git("commit", "--allow-empty", "--amend")),
    Payload("a trailer's command", _trailer, _git("interpret-trailers", "--trailer", "run=x", "README.md")),
    Payload("a submodule", _submodule, _git("status")),
    Payload("a nested repository", _nested, _git("-C", "nested", "status")),
)
PROGRAMS = (
    Payload("programs called git and sh", _shims, _by_name, alone=True, environment=_careless_path),
    Payload("modules of Python", _modules, _imported, alone=True),
    Payload("an environment file", _shell_files, lambda scene: scene.shell("/bin/sh", "./.env"), alone=True),
)
