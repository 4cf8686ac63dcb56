"""The states of repositories, each with the shell commands that bring one about: F1 to F23, F25, F41, F43.

A state begins with `# NAME | ROWS OF THE LIST OF FAULTS`, perhaps with more fields of `State`. Its commands run in the
repository; CASE is the folder of the case. `late` they run after the plan, so a path may be there or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class State:
    """`script` brings the repository into the state.

    `ends` is `runs`, `refused:CODE` (or a question, before anything is touched) or `fails:CODE` (git refuses a commit).
    `elsewhere` is the folder of the case with another repository, in which nothing was run: there the work is done.
    """

    name: str
    rows: tuple[str, ...] = ()
    script: str = ""
    ends: str = "runs"
    environment: Mapping[str, str] = field(default_factory=dict)
    start: str = "."
    elsewhere: str = ""

    @property
    def code(self) -> str:
        return self.ends.partition(":")[2]


KIT = r"""
w() { mkdir -p "$(dirname "$1")"; echo "$2" > "$1"; }
commit() { git add -- "$@"; git commit -q -m work -- "$@"; }
identify() { git -C "$1" config user.name 'Pat Tester'; git -C "$1" config user.email pat@example.invalid; }
create() { git init -q --template= -b main "$@"; for last; do :; done; identify "$last"; }
clone() { git -c protocol.file.allow=always clone -q "$@"; for last; do :; done; identify "$last"; }
inner() { create "$1"; (cd "$1"; w inner.txt inner; commit inner.txt); }
submodule() {
    inner "$CASE/inner"
    git -c protocol.file.allow=always submodule -q add "$CASE/inner" sub
    git commit -q -m 'a submodule' -- .gitmodules sub
}
two_sides() {
    git switch -q -c side; w second.txt 'of the side'; commit second.txt
    git switch -q main; w second.txt 'of main'; commit second.txt
}
locked() {
    w .gitattributes 'secret.* filter=lock'
    printf '\0locked\377' > secret.key; at 200101010000 secret.key
    commit .gitattributes secret.key
    for key in clean smudge; do git config filter.lock.$key no-such-program; done
    git config filter.lock.required true
}
hook() { mkdir -p .git/hooks; printf '#!/bin/sh\n%s\n' "$2" > ".git/hooks/$1"; chmod +x ".git/hooks/$1"; }
sized() { dd if=/dev/null of="$1" bs=1 seek="$2" 2>&1; }
at() { TZ=UTC touch -t "$1" "$2"; }
mkdir -p "$CASE/outside"
"""

_TEXT = r"""
# edits that are not committed | F1
w first.txt mine
rm second.txt
printf '#!/bin/sh\necho mine\n' > tool.sh

# edits in a file that a task edits | F1 | ends=refused:run.waiting
printf 'one\ntwo\nthree\nmine\n' > app.txt

# untracked files beside those of a task | F2
for path in mine.txt out/mine.txt out/deep/mine.txt; do w $path mine; done

# an untracked file where a task makes one | F2 | ends=refused:task.dirty-path
w out/one.txt mine

# ignored files | F3
for path in .secret run.log out/x.log; do w $path mine; done
mkdir build; sized build/big.bin 5000

# an ignored file where a task makes one | F3 | ends=refused:task.dirty-path
w .git/info/exclude out/
w out/one.txt mine

# ignore rules that are not committed | F4
printf '*.log\nbuild/\n.secret\ndata/\n' > .gitignore
w data/.gitignore '*'; w new/.gitignore x
sized data/model.bin 1000

# rules that ignore what tasks make | F4
w .git/info/exclude out/

# staged and edited again | F5
w first.txt staged; git add first.txt
w first.txt 'edited again'

# one hunk staged | F5
printf '%s\n' one 2 3 4 5 6 7 8 9 > first.txt; git add first.txt
printf '%s\n' one 2 3 4 5 6 7 8 nine > first.txt

# staged and then deleted | F5
w new.txt staged; git add new.txt; rm new.txt

# removed from the index and kept | F5
git rm -q --cached second.txt

# a staged rename | F5
git mv second.txt docs/renamed.txt

# intent to add | F5
w later.txt later; git add --intent-to-add later.txt

# edits under assume unchanged | F5
git update-index --assume-unchanged first.txt
w first.txt 'hidden from git'

# edits under skip worktree | F5
git update-index --skip-worktree first.txt
w first.txt 'hidden from git'

# a split index | F5
git update-index --split-index
w first.txt staged; git add first.txt

# a dirty submodule | F11
submodule
git config submodule.recurse true
w sub/inner.txt mine; w sub/new.txt mine

# a submodule on another commit | F11
submodule
identify sub; cd sub; w inner.txt next; commit inner.txt

# a repository inside | F12
inner nested; w nested/mine.txt mine

# odd names | F16
python3 - <<'END'
import os, subprocess
names = [b"na\xff", b"new\nline", b"-rf", b":(top)x", b"dot.", b"space ", b"x" * 255, b"*"]
names += [name.encode() for name in ("na\u00efve", "nai\u0308ve")]
def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(text)
for name in names:
    write(b"odd", name, b"kept\n")
write(b"odd/:!x", b"--help", b"kept\n")
subprocess.run(["git", "add", "--", "odd"], check=True)
subprocess.run(["git", "commit", "-q", "-m", "odd names", "--", "odd"], check=True)
for name in names:
    write(b"odd", name, name + b" mine\n")
    write(b"new", name, name + b" mine too\n")
END

# links of every kind | F19
w "$CASE/outside/file" outside
mkdir links
ln -s "$CASE/outside/file" links/outside; ln -s "$CASE/outside" links/folder
ln -s nowhere links/dangling; ln -s loop links/loop; ln -s ../docs links/inside
commit links
rm links/dangling links/inside
ln -s elsewhere links/dangling; w links/inside 'a file now'

# a link where a task makes a folder | F19 | ends=refused:plan.invalid
if [ -e out ]; then mv out "$CASE/moved"; fi
ln -s "$CASE/outside" out

# modes that git does not know | F20
w setuid x; chmod 4755 setuid
# not old.txt: a file that a task deletes comes back as git makes it
chmod 600 first.txt app.txt; chmod 640 second.txt; chmod 700 tool.sh docs; chmod 444 third.txt

# empty folders | F20
mkdir -p empty/deep/er

# hard links and sparse files | F20
w one-name shared; ln one-name other-name
ln first.txt "$CASE/outside/first.txt"
sized holes 3145728

# old and future times | F20
for path in first.txt second.txt mine.txt; do w $path mine; done
at 197001010000.01 first.txt; at 209610020706.40 second.txt; at 197001010000.00 mine.txt

# pipes and sockets | F21
mkfifo pipe
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'

# deep folders and many files | F21
w "$(printf 'd/%.0s' $(seq 200))deep.txt" deep
mkdir -p many/0 many/1 many/2 many/3 many/4 many/5 many/6
for n in $(seq 400); do echo $n > many/$((n % 7))/$n.txt; done

# a file of five gigabytes | F21
sized huge.bin 5368709120

# a merge with conflicts | F6 | ends=refused:git.merge-in-progress
two_sides; git merge side || :

# a rebase with conflicts | F6 | ends=refused:git.rebase-in-progress
two_sides; git rebase side || :

# a cherry pick with conflicts | F6 | ends=refused:git.cherry-pick-in-progress
two_sides; git cherry-pick side || :

# a revert that waits | F6 | ends=refused:git.revert-in-progress
two_sides
w second.txt later; commit second.txt
git revert --no-edit HEAD~1 || :

# a bisect | F6 | ends=refused:git.bisect-in-progress
git bisect start; git bisect bad HEAD

# patches by mail that do not fit | F6 | ends=refused:git.am-in-progress
two_sides; git format-patch --stdout -1 side | git am || :

# a stash that was applied with conflicts | F6 | ends=refused:git.unmerged
w second.txt stashed; git stash
w second.txt committed; commit second.txt
git stash apply || :

# a detached head | F7
git switch -q --detach

# no commits yet | F8 | ends=refused:run.waiting
git update-ref -d HEAD

# variables that name another repository | F9 | environment=GIT_DIR=/nowhere GIT_WORK_TREE=/ GIT_INDEX_FILE=/nowhere
w first.txt mine

# started inside git s own folder | F9 | ends=refused:git.inside-git-folder | start=.git

# a repository that was left bare | F9 | ends=refused:git.bare
git config core.bare true

# a work tree elsewhere | F9 | ends=refused:git.work-tree-elsewhere
git config core.worktree "$CASE/outside"

# a linked worktree | F10 | elsewhere=linked
w first.txt 'of the other worktree'
git worktree add -q -b linked "$CASE/linked"
w "$CASE/linked/second.txt" mine

# beside linked worktrees | F10
for name in a b; do git worktree add -q -b $name "$CASE/$name"; w "$CASE/$name/second.txt" "of $name"; done
git config extensions.worktreeConfig true

# line endings by attribute | F13 F17
w .gitattributes '*.txt text eol=crlf'; commit .gitattributes
for name in app.txt old.txt first.txt second.txt; do
    if [ -e $name ]; then rm $name; git checkout -q -- $name; fi
done
printf 'mine\r\nwith one\nmixed\r\n' > second.txt

# a filter that rewrites files | F13
git config filter.turn.clean 'tr a-z n-za-m'; git config filter.turn.smudge 'tr a-z n-za-m'
printf '%s filter=turn\n' app.txt first.txt 'out/*.txt' > .gitattributes
git add --renormalize app.txt first.txt
commit .gitattributes app.txt first.txt
w first.txt mine

# large files kept elsewhere | F13
# As large-file extensions do it: git holds a pointer, the filter the bytes; it also must succeed.
large="$CASE/large"; mkdir "$large"
keep="f=\$(mktemp $large/XXXXXX); cat >\$f; h=\$(git hash-object --no-filters \$f); mv \$f $large/\$h; echo pointer \$h"
git config filter.large.clean "sh -c '$keep'"
git config filter.large.smudge "sh -c 'read w h; cat $large/\$h'"
git config filter.large.required true
printf '%s filter=large -text\n' app.txt 'out/*.txt' '*.bin' > .gitattributes
sized model.bin 5000
git add --renormalize app.txt
commit .gitattributes model.bin app.txt
w model.bin mine

# a locked filter elsewhere | F13
# A required filter whose program is missing, on files that no task changes. By an old time, git can tell that the file
# is unchanged; else it would want to run the filter.
locked

# a locked filter that git wants to run | F13 | ends=refused:git.failed
# Of a file that was written again since, git cannot tell whether it changed.
locked
at 197001010000.01 secret.key

# encodings and idents by attribute | F13 F17
printf 'wide.txt working-tree-encoding=UTF-16LE-BOM\nident.txt ident\n' > .gitattributes
printf '\377\376w\0\n\0' > wide.txt
w ident.txt '$Id$'
commit .gitattributes wide.txt ident.txt
rm ident.txt; git checkout -q -- ident.txt
printf '\377\376w\0w\0\n\0' > wide.txt

# a sparse checkout | F14
git sparse-checkout set --no-cone '/*' '!/docs/'
w first.txt mine

# a sparse checkout that leaves out what tasks make | F14
git sparse-checkout set --no-cone '/*' '!/out/' '!/third.txt'

# a sparse index | F14
git sparse-checkout set --cone --sparse-index .planning .idumb out

# a shallow clone | F14 | elsewhere=shallow
clone --depth=1 "file://$PWD" "$CASE/shallow"
w "$CASE/shallow/first.txt" mine

# a partial clone | F14 | elsewhere=partial
git config uploadpack.allowFilter true
for text in older newer; do w first.txt $text; commit first.txt; done
clone --filter=blob:none "file://$PWD" "$CASE/partial"
git -C "$CASE/partial" remote set-url origin "$CASE/nowhere"

# a sparse partial clone | F14 | elsewhere=sparse
git config uploadpack.allowFilter true
clone --filter=blob:none --sparse "file://$PWD" "$CASE/sparse"
git -C "$CASE/sparse" sparse-checkout set .planning .idumb out
git -C "$CASE/sparse" remote set-url origin "$CASE/nowhere"

# sha 256 | F15 | ends=refused:git.unsupported-format | elsewhere=modern
create --object-format=sha256 "$CASE/modern"
cp -R .planning .idumb app.txt "$CASE/modern"
cd "$CASE/modern"; commit .

# an extension nobody knows | F15 | ends=refused:git.unsupported-format
git config core.repositoryFormatVersion 1; git config extensions.tomorrow true

# automatic line endings | F17
git config core.autocrlf true; git config core.safecrlf false
printf 'mine\r\n' > first.txt; printf '\357\273\277bom\r\nmixed\n' > bom.txt

# names that differ by case | F18
git config core.ignoreCase true
for path in App.TXT OUTER/one.txt .Git-like; do w $path mine; done

# hooks that count | F22
for name in pre-commit post-commit reference-transaction post-index-change post-checkout; do
    hook $name "echo $name >> $CASE/hooks-ran"
done

# a hook that refuses | F22 | ends=fails:git.commit-refused
hook pre-commit 'echo no >&2; exit 1'

# a hook that refuses refs | F22 | ends=fails:git.commit-refused
hook reference-transaction 'test "$1" != prepared || { echo no >&2; exit 1; }'

# signing without a key | F23 | ends=fails:git.commit-refused
git config commit.gpgSign true; git config gpg.program "$CASE/no-such-signer"

# no identity | F23 | ends=refused:git.no-identity
git config --unset user.name; git config --unset user.email; git config user.useConfigOnly true

# settings that change commits | F23
w "$CASE/template" 'A template'
git config commit.template "$CASE/template"; git config commit.cleanup scissors
git config commit.verbose 2; git config commit.status true
git config i18n.commitEncoding ISO-8859-1; git config core.logAllRefUpdates false
git config core.preloadIndex false; git config status.showUntrackedFiles no
git config core.fileMode false; git config diff.external false
git config core.abbrev 4; git config trailer.separators =
git config core.quotePath true; git config color.ui always
git config index.skipHash true; git config format.pretty oneline
w first.txt mine; w mine.txt mine

# a repository of another owner | F25 | ends=refused:git.ownership
# Only root can create one; elsewhere it is a repository like any other.
if [ "$(id -u)" = 0 ]; then chown 65534:65534 . .git; fi

# an index that a killed git left locked | F41 | ends=refused:git.index-locked
touch .git/index.lock

# a damaged index | F43 | ends=refused:git.failed
printf 'DIRC\0\0\0\2\0\0\0\11 no index at all' > .git/index

# packed and replaced | F10
# Everything packed, loose files gone, a replaced commit, a branch with an odd name.
git switch -q -c feature/ünï-😀/a.b
first=$(git rev-list --max-parents=0 HEAD)
git replace "$first" "$(git commit-tree "$first^{tree}" -m replaced)"
git gc -q --prune=now; git pack-refs --all
"""


def _states() -> Iterator[State]:
    for text in _TEXT.strip().split("\n\n"):
        head, _, script = text.partition("\n")
        name, rows, *more = head.removeprefix("# ").split(" | ")
        options: dict[str, str] = dict(option.split("=", 1) for option in more)
        environment = dict(variable.split("=", 1) for variable in options.pop("environment", "").split())
        yield State(name, tuple(rows.split()), script, environment=environment, **options)


ALL = {state.name: state for state in _states()}
if os.geteuid() != 0:
    ALL |= {name: replace(state, ends="runs") for name, state in ALL.items() if state.code == "git.ownership"}
