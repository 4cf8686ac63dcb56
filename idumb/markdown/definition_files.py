"""Find the definitions of workflows in the folders of the repository, the user and the program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property

from idumb.app.ports import DefinitionFile, ParsedPlan
from idumb.domain.errors import InputError
from idumb.domain.plans import workflow
from idumb.markdown.syntax.source import Source
from idumb.system import named_files, user_folders

_REPOSITORY, _USER, _PROGRAM = "repository", "user", "program"
_LARGEST = 1024 * 1024
_MOST = 1000


class DefinitionFolders:
    """Reads the definitions of workflows: of the repository at `root`, of the user, of the program."""

    def __init__(self, root: str) -> None:
        self._root = root

    def all(self) -> tuple[DefinitionFile, ...]:
        """Every definition by name; of one name, the repository's comes first, then the user's."""
        return self._all

    @cached_property
    def _all(self) -> tuple[DefinitionFile, ...]:
        found = [definition for origin, folder in self._folders() for definition in self._in(origin, folder)]
        return tuple(sorted(found, key=lambda definition: definition.name))

    def _folders(self) -> Iterator[tuple[str, str]]:
        yield _REPOSITORY, os.path.join(self._root, workflow.DEFINITIONS)
        yield _USER, os.path.join(user_folders.configuration(), "workflows")
        shipped = named_files.shipped_workflows()
        if shipped is not None:
            yield _PROGRAM, shipped

    def _in(self, origin: str, folder: str) -> Iterator[DefinitionFile]:
        try:
            names = sorted(os.listdir(folder))[:_MOST]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as problem:
            raise _unreadable(folder, problem) from problem
        for file in names:
            name = file.removesuffix(".md")
            if name == file or name.upper() == "README":
                continue
            path = os.path.join(folder, file)
            shown = f"{workflow.DEFINITIONS}/{file}" if origin == _REPOSITORY else path
            try:
                data = named_files.read(path, _LARGEST + 1)
                large = f"it is larger than {_LARGEST} bytes" if len(data) > _LARGEST else ""
                yield DefinitionFile(name, origin, shown, data, large)
            except OSError as problem:  # it still hides others of its name, so that nothing else runs in its place
                yield DefinitionFile(name, origin, shown, b"", problem.strerror or str(problem))

    def parse(self, definition: DefinitionFile) -> ParsedPlan:
        """Parse a definition as a plan of phase `W0` with the default inputs."""
        if definition.problem:
            source = Source("", definition.path)
            source.report("workflow.unreadable", 0, why=definition.problem)
            return ParsedPlan(None, source.sorted())
        from idumb.markdown.plans import workflow_parser

        return workflow_parser.parse(definition.data, definition.path, definition.name)


def _unreadable(path: str, problem: OSError) -> InputError:
    message = f"{path} cannot be read: {problem.strerror or problem}"
    return InputError("workflow.unreadable", message, hint=f"ls -ld {path}")
