"""What a repository can carry that would run a program, and how each of them is made to go off.

A payload begins with `# NAME`. Its shell commands plant a program in a repository; lines that begin with `>` are the
innocent commands that run it. The program does one thing: it makes the file MARKER.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.support.gitrepo import GitSandbox

KIT = r"""
HOOKS='post-index-change reference-transaction pre-commit post-commit post-checkout fsmonitor-watchman'
# A program in the repository that makes the marker and then does $2; its path is printed.
script() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\ntouch "%s"\n%s\n' "$MARKER" "${2:-exit 0}" > "$1"; chmod +x "$1"; echo "$PWD/$1"
}
create() {
    git init -q --template= -b main "$1"
    git -C "$1" config user.name 'Pat Tester'; git -C "$1" config user.email pat@example.invalid
}
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A hostile repository; `marker` is the file that its program makes, outside of it."""

    repo: GitSandbox
    marker: Path

    @property
    def root(self) -> Path:
        return self.repo.root

    def sh(self, script: str, *, check: bool = False) -> None:
        """Run shell commands in the repository; with `check`, they must succeed."""
        environment = {**os.environ, "MARKER": str(self.marker), "PYTHON": sys.executable}
        done = subprocess.run(
            ["sh", "-ec" if check else "-c", KIT + script],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=30,
        )
        assert not check or done.returncode == 0, done


@dataclass(frozen=True, slots=True)
class Payload:
    """`fire` shows that the program runs if a command is careless; without it, the repository harms otherwise.

    `alone` payloads hit a program while it starts, so commands run as separate processes, with the folders of `path`
    before PATH.
    """

    name: str
    plant: Callable[[Scene], None]
    fire: Callable[[Scene], None] | None = None
    alone: bool = False
    path: str = ""


def _payloads(text: str, *, alone: bool = False, path: str = "") -> Iterator[Payload]:
    for part in text.strip().split("\n\n"):
        head, *lines = part.split("\n")
        plant = "\n".join(line for line in lines if not line.startswith("> "))
        fire = "\n".join(line.removeprefix("> ") for line in lines if line.startswith("> "))
        planted, fired = partial(Scene.sh, script=plant, check=True), partial(Scene.sh, script=fire)
        yield Payload(head.removeprefix("# "), planted, fired, alone, path)


GIT = tuple(
    _payloads(r"""
# core.fsmonitor
git config core.fsmonitor "$(script tools/watch.sh)"
> git status

# an included configuration
printf '[core]\n\tfsmonitor = %s\n' "$(script tools/watch.sh)" > team.gitconfig
git config include.path ../team.gitconfig
> git status

# core.pager
git config core.pager "touch '$MARKER'; cat"
> "$PYTHON" -c 'import pty; pty.spawn(["git", "log"])'

# core.hooksPath
for hook in $HOOKS; do script tools/hooks/$hook; done
git config core.hooksPath tools/hooks
> git update-ref refs/heads/other HEAD

# hooks
for hook in $HOOKS; do script .git/hooks/$hook; done
> git update-ref refs/heads/other HEAD

# an alias
git config alias.st "!touch '$MARKER'"
> git st

# a filter
echo '* filter=evil' > .gitattributes
for key in clean smudge; do git config filter.evil.$key "$(script tools/clean.sh cat)"; done
git config filter.evil.required true
> touch -t 197001020000 README.md  # git reads a file again, and through the filter, if its time differs
> git status; git add --all

# a filter process
mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes
git config filter.evil.process "$(script tools/process.sh 'exit 1')"
> touch -t 197001020000 README.md
> git status; git add --all

# a textconv
echo '* diff=evil' > .gitattributes
git config diff.evil.textconv "$(script tools/text.sh 'cat "$1"')"
> echo changed > README.md; git diff HEAD

# a diff by attribute
mkdir -p .git/info; echo '* diff=evil' > .git/info/attributes
git config diff.evil.command "$(script tools/diff.sh)"
> echo changed > README.md; git diff HEAD

# diff.external
git config diff.external "$(script tools/diff.sh)"
> echo changed > README.md; git diff HEAD

# a merge driver
mkdir -p .git/info; echo '* merge=evil' > .git/info/attributes
git config merge.evil.driver "$(script tools/merge.sh)"
> git checkout -q -b other; echo other > README.md; git commit -qm other README.md
> git checkout -q -; echo ours > README.md; git commit -qm ours README.md
> git merge other

# core.sshCommand
git config core.sshCommand "$(script tools/ssh.sh 'exit 1')"; git config remote.origin.url ssh://host.invalid/x
> git ls-remote origin

# a promisor remote
# git fetches missing objects with a program that the remote chooses
git config core.sshCommand "$(script tools/ssh.sh 'exit 1')"; git config remote.origin.url ssh://host.invalid/x
git config remote.origin.promisor true; git config remote.origin.partialclonefilter blob:none
git config extensions.partialClone origin; git config core.repositoryformatversion 1
blob=$(git rev-parse HEAD:README.md); rest=${blob#??}
rm -f .git/objects/${blob%$rest}/$rest
> git cat-file -p HEAD:README.md

# a credential helper
git config credential.helper "!touch '$MARKER'"
> printf 'url=https://host.invalid\n\n' | git credential fill

# gpg.program
# a commit with a signature that `git log` verifies by the program which the configuration names
git config gpg.program "$(script tools/gpg.sh 'exit 1')"; git config log.showSignature true
signature='gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----'
git cat-file commit HEAD | awk "/^\$/ && !done { print \"$signature\"; done = 1 } { print }" > ../commit
git update-ref HEAD "$(git hash-object -t commit -w ../commit)"; rm ../commit
> git log -1

# gpg.ssh.program
git config gpg.format ssh; git config gpg.ssh.program "$(script tools/keygen.sh 'exit 1')"
git config user.signingKey 'key::ssh-ed25519 AAAA'; git config commit.gpgSign true; git config tag.gpgSign true
> git commit --allow-empty -m signed

# core.editor
git config core.editor "$(script tools/editor.sh 'exit 1')"
> git commit --allow-empty --amend

# a trailer's command
git config trailer.run.command "touch '$MARKER'"; git config trailer.run.key Idumb-Run
> git interpret-trailers --trailer run=x README.md

# a submodule
# it is checked out and has a configuration of its own; `git status` starts git in there
create lib; (cd lib; echo 'x = 1' > code.py; git add code.py; git commit -qm inner)
printf '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n' > .gitmodules
git config submodule.lib.update "!touch '$MARKER'"
git update-index --add --cacheinfo "160000,$(git -C lib rev-parse HEAD),lib"; git commit -qm submodule
git -C lib config core.fsmonitor "$(script tools/watch.sh)"; touch lib/new.py
> git status

# a nested repository
# in a folder that was never added
create nested; git -C nested config core.fsmonitor "$(script tools/watch.sh)"
script nested/.git/hooks/post-index-change
> git -C nested status
""")
)
PROGRAMS = (
    *_payloads(
        r"""
# programs called git and sh
for name in git sh ssh-keygen python3 uname less env; do
    for folder in . bin; do script $folder/$name "exec /usr/bin/$name \"\$@\""; done
done
> PATH=".:bin::$PATH"; git status
""",
        alone=True,
        path=".:bin::",
    ),
    *_payloads(
        r"""
# modules of Python
for name in sitecustomize usercustomize click pygit2 ruamel idumb json conftest; do
    mkdir $name
    for file in $name.py $name/__init__.py; do echo "open('$MARKER', 'w').close()" > $file; done
done
printf '[project.entry-points."idumb.agents"]\nevil = "sitecustomize"\n' > pyproject.toml
> "$PYTHON" -c 'import click'

# an environment file
for name in .env .envrc .bashrc .profile; do
    printf 'touch "%s"\nexport IDUMB_TOOL_POLICY=/dev/null GIT_DIR=/nonexistent\n' "$MARKER" > $name
done
> . ./.env
""",
        alone=True,
    ),
)
