"""A Python environment of a checkout works there, and leads to no file of the user's working tree (R-RUN-3)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover
from idumb.git.checkouts import relocated
from idumb.git.checkouts.provided import Provided
from tests.support.cases import every
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox

_LIB = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
_SITE = f".venv/{_LIB}"
_FINDER = """\
import sys
from importlib.machinery import PathFinder
MAPPING: dict[str, str] = {mapping!r}


class _EditableFinder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return PathFinder.find_spec(name, [MAPPING[name].rpartition("/")[0]]) if name in MAPPING else None


def install():
    sys.meta_path.append(_EditableFinder)
"""


class Checkout:
    """A repository with the package `pkg` in `src`, and a checkout that has another version of it."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.user, above = sandbox, sandbox.root.parent
        self.root, self.state = above / "state/repo-proof-1", above / "state/files"
        sandbox.write_all({".gitignore": ".venv\n", "src/pkg/__init__.py": "user = True\n"})
        (self.root / "src/pkg").mkdir(parents=True)
        (self.root / "src/pkg/__init__.py").write_text("user = False\n")
        self.search_path = ""
        self.variables: dict[str, str] = {}
        self.rules = [".venv"]

    @property
    def provided(self) -> Provided:
        repository = discover.find(str(self.user.root))
        place, given = str(self.state), self.variables
        return Provided(repository, self.rules, 1 << 30, place, self.search_path, variables=given)

    def bring(self) -> None:
        self.provided.bring(str(self.root), ())

    def make_environment(self) -> None:
        """Make a real one, with a program as pip installs it, that has not been used yet."""
        argv = (sys.executable, "-m", "venv", "--without-pip", "--symlinks", self.user.root / ".venv")
        subprocess.run(argv, check=True, timeout=60)
        program = f"#!{self.user.root}/.venv/bin/python\nimport sys, pkg\nprint(sys.prefix, pkg.__file__)\n"
        self.user.write(".venv/bin/tool", program, mode=0o755)

    def run(self, program: str, *arguments: str, place: Path | None = None) -> str:
        argv = (str((place or self.root) / program), *arguments)
        return subprocess.run(argv, cwd="/", capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@pytest.fixture
def checkout(sandbox: GitSandbox) -> Checkout:
    return Checkout(sandbox)


def _path_line(user: GitSandbox) -> None:
    user.write(f"{_SITE}/pkg.pth", f"{user.root}/src\n")


def _finder(user: GitSandbox) -> None:
    user.write(f"{_SITE}/__editable__.pkg.pth", "import __editable___pkg_finder; __editable___pkg_finder.install()\n")
    user.write(f"{_SITE}/__editable___pkg_finder.py", _FINDER.format(mapping={"pkg": f"{user.root}/src/pkg"}))


@pytest.mark.parametrize("install", [_path_line, _finder])
def test_programs_of_a_copied_environment_use_the_checkout(
    checkout: Checkout, install: Callable[[GitSandbox], None]
) -> None:
    """A copied environment named the user's, so checks judged the user's sources and installed into it."""
    checkout.make_environment()
    install(checkout.user)
    assert checkout.run(".venv/bin/tool", place=checkout.user.root).split()[1].startswith(str(checkout.user.root))
    before = checkout.user.ledger()
    checkout.bring()
    pkg = str(checkout.root / "src/pkg/__init__.py")
    assert checkout.run(".venv/bin/python", "-c", "import pkg; print(pkg.__file__)") == pkg
    assert checkout.run(".venv/bin/tool").split() == [str(checkout.root / ".venv"), pkg]
    assert checkout.provided.variables(str(checkout.root)) == {}
    installs = "import sysconfig, pathlib; pathlib.Path(sysconfig.get_path('purelib'), 'six.py').write_text('six')"
    checkout.run(".venv/bin/python", "-c", installs)
    assert (checkout.root / _SITE / "six.py").read_text() == "six"
    assert checkout.user.ledger() == before


def test_no_startup_file_names_the_working_tree(checkout: Checkout, tmp_path: Path) -> None:
    """By whichever of its names."""
    user, other = str(checkout.user.root), f"{tmp_path}/alias"
    Path(other).symlink_to(user)
    texts = {
        "pyvenv.cfg": f"home = /usr/bin\ncommand = /usr/bin/python3 -m venv {user}/.venv\n",
        "bin/activate": f'VIRTUAL_ENV="{user}/.venv"\nOTHER={user}-2/.venv:/mnt{user}/.venv:x{user}\n'
        f"ALIAS={other}/.venv\n",
        "bin/tool": f"#!{other}/.venv/bin/python\n",
        f"{_LIB}/own-1.dist-info/direct_url.json": json.dumps(
            {"url": f"file://{user}", "dir_info": {"editable": True}}
        ),
        f"{_LIB}/own.egg-link": f"{user}/src\n.",
        "share/jupyter/kernels/python3/kernel.json": json.dumps({"argv": [f"{user}/.venv/bin/python", "-m", "x"]}),
    }
    checkout.user.write_all({f".venv/{path}": text for path, text in texts.items()})
    checkout.user.link(".venv/bin/python", "/usr/bin/python3")
    checkout.bring()
    copies = {path: (checkout.root / ".venv" / path).read_text() for path in texts}
    root = str(checkout.root)

    def moved(text: str) -> str:
        for number, stays in enumerate((f"{user}-2", f"/mnt{user}", f"x{user}")):
            text = text.replace(stays, f"\0{number}")
        text = text.replace(user, root).replace(other, root)
        return text.replace("\x000", f"{user}-2").replace("\x001", f"/mnt{user}").replace("\x002", f"x{user}")

    assert copies == {path: moved(text) for path, text in texts.items()}


@every("folder", ["with space", "ünïcode", "long" * 40])
def test_programs_start_in_a_folder_with_an_unusual_name(checkout: Checkout, folder: str) -> None:
    """The system cannot read every path in the first line of a script."""
    if not (checkout.user.root / ".venv").exists():
        checkout.make_environment()
    root = checkout.root.parent / folder
    root.mkdir()
    shutil.rmtree(checkout.state, ignore_errors=True)
    checkout.user.write(".venv/bin/tool", f"#!{checkout.user.root}/.venv/bin/python\nprint('ran')\n", mode=0o755)
    checkout.provided.bring(str(root), ())
    assert checkout.run(".venv/bin/tool", place=root) == "ran"


@every(
    "user, copy, before, after",
    [
        ("/home/my repo", "/state/a b", '"url": "file:///home/my%20repo/x"', '"url": "file:///state/a%20b/x"'),
        ("/home/x", "/home/x/y", "#!/home/x/.venv/tool", "#!/home/x/y/.venv/tool"),
    ],
)
def test_a_place_is_found_in_a_url_and_led_to_once(user: str, copy: str, before: str, after: str) -> None:
    """HOME can be a repository that ignores idumb's folder."""
    assert relocated.relocate(before.encode(), user, copy, "") == after.encode()


def test_a_setting_that_is_provided_leads_to_the_checkout_and_other_files_are_copied_as_they_are(
    checkout: Checkout,
) -> None:
    user, other = os.fsencode(checkout.user.root), b"\0"
    names = {".env": b"DB=sqlite:///%b/dev.db\n" % user, "dev.db": other + user, "data/log": user}
    names |= {"node_modules/a/build/CMakeCache.txt": user, ".pnp.cjs": b'"packageLocation": "./.yarn/ms.zip/",'}
    checkout.rules = [".env", "dev.db", "data", "node_modules", ".pnp.cjs"]
    checkout.user.write_all({".gitignore": "\n".join(checkout.rules), **names})
    checkout.bring()
    copies = {name: (checkout.root / name).read_bytes() for name in names}
    assert copies == {**names, ".env": b"DB=sqlite:///%b/dev.db\n" % os.fsencode(checkout.root)}


def test_bytecode_of_a_changed_file_is_not_copied(checkout: Checkout) -> None:
    """It would be used in place of the changed file if both have the same size and time."""
    _finder(checkout.user)
    cache = f"{_SITE}/__pycache__"
    checkout.user.write_all(
        {".venv/pyvenv.cfg": "", f"{cache}/__editable___pkg_finder.x.pyc": "", f"{cache}/six.x.pyc": ""}
    )
    checkout.bring()
    assert os.listdir(checkout.root / cache) == ["six.x.pyc"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".venv/bin/tool", b"\x7fELF\0{user}/src\0"),
        (".venv/conda-meta/history", b""),
        ("build/CMakeCache.txt", b""),
        ("build/meson-private/coredata.dat", b""),
        (".pnp.cjs", b'"packageLocation": "../../.yarn/berry/cache/ms.zip/node_modules/ms/",'),
    ],
)
def test_what_leads_back_and_cannot_be_changed_is_refused(checkout: Checkout, path: str, text: bytes) -> None:
    checkout.rules = [path.partition("/")[0]]
    checkout.user.write_all({".gitignore": "".join(checkout.rules), ".venv/pyvenv.cfg": ""})
    checkout.user.write(path, text.replace(b"{user}", os.fsencode(checkout.user.root)))
    with refusing("checkout.leads-back", rf"{path} leads programs .* back into your working tree") as refused:
        checkout.bring()
    assert "checkout.prepare" in str(refused.value.hint)


def test_an_interpreter_of_the_working_tree_must_be_provided_too(checkout: Checkout) -> None:
    checkout.user.write_all({".gitignore": ".venv\n.python\n", ".python/bin/python": "", ".venv/pyvenv.cfg": ""})
    checkout.user.link(".venv/bin/python", f"{checkout.user.root}/.python/bin/python")
    checkout.user.link(".venv/bin/python3", "python")
    with pytest.raises(Refusal, match=r"\.venv/bin/python leads programs"):
        checkout.bring()
    checkout.rules = [".venv", ".python"]
    checkout.bring()
    assert os.readlink(checkout.root / ".venv/bin/python") == "../../.python/bin/python"
    assert os.readlink(checkout.root / ".venv/bin/python3") == "python"


def test_a_program_that_is_not_text_is_copied_as_it_is(checkout: Checkout) -> None:
    checkout.user.write_all({".venv/pyvenv.cfg": "", ".venv/bin/python": b"\x7fELF\0/usr/lib\0\xff"})
    checkout.bring()
    assert (checkout.root / ".venv/bin/python").read_bytes() == b"\x7fELF\0/usr/lib\0\xff"


def test_editable_installs_of_other_environments_lead_to_the_checkout(checkout: Checkout, tmp_path: Path) -> None:
    """An environment outside of the working tree is used where it is."""
    site, user = tmp_path / "venv/lib/python3.11/site-packages", checkout.user.root
    shims = tmp_path / "pyenv/versions/3.12/lib/python3.12/site-packages"
    for folder in (site, shims, user / "flat", user / "lib/a", user / "shimmed", user / _SITE):
        folder.mkdir(parents=True)
    mapping = {"pkg": f"{user}/src/pkg", "one": f"{user}/one.py", "a.b": f"{user}/lib/a/b", "other": "/usr/lib/other"}
    (site / "__editable___pkg_finder.py").write_text(_FINDER.format(mapping=mapping))
    (site / "__editable__.pkg.pth").write_text("import __editable___pkg_finder; __editable___pkg_finder.install()\n")
    (site / "flat.pth").write_text(f"{user}/flat\n/usr/lib\n{user}-other\n")
    (shims / "src.pth").write_text(f"{user}/shimmed\n")
    (user / _SITE / "own.pth").write_text(f"{user}/lib/a\n")
    (user / ".venv/pyvenv.cfg").touch()
    checkout.bring()
    checkout.search_path = f"{tmp_path}/venv/bin:{tmp_path}/pyenv/shims:{user}/.venv/bin"
    folders = ["src", "", "lib", "flat", "shimmed"]
    assert checkout.provided.variables(str(checkout.root)) == {
        "PYTHONPATH": ":".join(str(checkout.root / folder) for folder in folders)
    }


def test_no_variable_leads_into_the_working_tree(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, root, link = checkout.user.root, str(checkout.root), tmp_path / "link"
    link.symlink_to(user)
    checkout.user.link(".profile", "/usr")
    places = f"{user}:{user}-other:/usr/lib:{link}/data:sqlite:///{user}/dev.db:{user}/.profile/bin"
    moved = f"{root}:{user}-other:/usr/lib:{root}/data:sqlite:///{root}/dev.db:{user}/.profile/bin"
    checkout.variables = {"PYTHONPATH": f"{user}/lib", "PLACES": places, "OTHER": "/usr/lib"}
    assert checkout.provided.variables(root) == {"PYTHONPATH": f"{root}/lib", "PLACES": moved}
    site = tmp_path / "venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "pkg.pth").write_text(f"{user}/src\n")
    checkout.search_path = f"{tmp_path}/venv/bin"
    assert checkout.provided.variables(root)["PYTHONPATH"] == f"{root}/src:{root}/lib"
    monkeypatch.setenv("HOME", str(user / "home"))
    assert checkout.provided.variables(root) == {"PYTHONPATH": f"{root}/src"}


@every(
    "text",
    ["import sys; sys.path.append('{user}/src')", "import finder", "import __editable___renamed_finder; install()"],
)
def test_an_install_of_another_environment_that_cannot_be_redirected_is_refused(
    checkout: Checkout, tmp_path: Path, text: str
) -> None:
    site, user = tmp_path / "venv/lib/python3.11/site-packages", str(checkout.user.root)
    site.mkdir(parents=True)
    (site / "finder.py").write_text(f"path = '{user}/build'\n")
    (site / "__editable___renamed_finder.py").write_text(_FINDER.format(mapping={"pkg": f"{user}/src/renamed"}))
    (site / "odd.pth").write_text(text.replace("{user}", user) + "\n")
    checkout.search_path = f"{tmp_path}/venv/bin"
    with pytest.raises(Refusal, match=r"odd\.pth leads programs"):
        checkout.provided.variables(str(checkout.root))


def test_a_path_file_that_changed_is_read_again(tmp_path: Path) -> None:
    user, site = tmp_path / "user", tmp_path / "site"
    site.mkdir()
    for name in ("a", "longer"):
        (user / name).mkdir(parents=True)
        (site / "lib.pth").write_text(f"{user / name}\n")
        assert relocated.python_path(str(user), "/copy", [str(site)], ()) == (f"/copy/{name}",)
    (site / "more.pth").write_text(f"{user / 'a'}\n")
    assert relocated.python_path(str(user), "/copy", [str(site)], ()) == ("/copy/longer", "/copy/a")
