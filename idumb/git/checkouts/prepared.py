"""What `checkout.prepare` made in a checkout: it stays as long as it is intact and what it depends on is the same."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from urllib.parse import quote

from idumb.git.checkouts import relocated, untracked

_DONE = "prepared.json"


class Prepared:
    """`state` is a folder of idumb's outside the checkout.

    The record is read here, once: make this object before programs run that could write to it.
    """

    def __init__(self, state: str) -> None:
        self._done = os.path.join(state, _DONE)
        self._manifest = untracked.load(self._done)

    def ensure(
        self, root: str, key: str, others: Callable[[], set[str]], run: Callable[[], None], tree: str = ""
    ) -> tuple[str, ...]:
        """Run `run`, unless what it made for this `key` is intact; return the paths of what it made.

        Those are the paths of `others`, untracked ones, that are there afterwards and were not before. An environment
        that holds a copy of the project's sources belongs to one `tree`. If `run` fails or is killed, nothing counts,
        and the caller removes it.
        """
        made = self._manifest
        if made.key in {_key(key), _key(key, tree)}:
            there = untracked.present(root, made.paths)
            for path in (path for path in there if path not in made.copies):
                untracked.remove(root, path)
            if all(there.get(path) == facts for path, facts in made.copies.items()):
                return made.paths
        for path in made.paths:
            untracked.remove(root, path)
        self._manifest = untracked.Manifest()
        self._manifest.save(self._done)
        before = others()
        run()
        paths = tuple(sorted(path.rstrip("/") for path in others().difference(before)))
        own = _key(key, tree) if _installs_sources(root, paths) else _key(key)
        self._manifest = untracked.Manifest(paths, untracked.present(root, paths), key=own)
        self._manifest.save(self._done)
        return paths


def _key(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def _installs_sources(root: str, paths: Iterable[str]) -> bool:
    """Return whether an environment among `paths` holds an installed copy of sources below `root`."""
    for path in paths:
        for site in relocated.SITES:
            for place in glob.glob(f"{glob.escape(os.path.join(root, path))}/{site}/*.dist-info/direct_url.json"):
                with contextlib.suppress(OSError, ValueError, AttributeError), open(place, encoding="utf-8") as stream:
                    source = json.load(stream)
                    is_editable = source.get("dir_info", {}).get("editable", False)
                    if f"{source.get('url')}/".startswith(f"file://{quote(root)}/") and not is_editable:
                        return True
    return False
