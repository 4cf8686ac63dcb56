"""Faults that are put into idumb on purpose, only in a process of a case."""

from __future__ import annotations

from typing import Any

from idumb.git import git_program, refs, shadow, shadow_folder


def put(fault: str) -> None:
    if fault == "add all":
        _advance = refs.advance

        def careless(place: Any, *arguments: Any, **options: Any) -> Any:
            git_program.write(place.root, ["add", "--all"])
            return _advance(place, *arguments, **options)

        refs.advance = careless
    elif fault == "times only":
        _trust_times()
    else:
        assert not fault, fault


def _trust_times() -> None:
    """The scanner believes size and time of modification alone."""
    shadow_folder.SETTINGS = tuple(
        setting.replace("trustctime=true", "trustctime=false") for setting in shadow_folder.SETTINGS
    )
    shadow.Shadow._drop_young = lambda *_: None  # type: ignore[method-assign]
