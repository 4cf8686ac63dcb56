"""Input files for programs, outside the workspace, for as long as a program runs."""

from __future__ import annotations

import os
from typing import Self

from idumb.agents import state_file
from idumb.domain.agent import AgentRequest


class AgentInputs:
    """Create prompt, feedback and state file outside the workspace, readable by this user only.

    Delete them at the end.
    """

    def __init__(self, request: AgentRequest, place: str | None, *, as_file: bool) -> None:
        self._request = request
        self._place = place
        self._as_file = as_file
        self.folder = ""
        self.prompt = ""
        self.state = ""
        self.variables: dict[str, str] = {}

    def __enter__(self) -> Self:
        import tempfile

        if self._place is not None:
            os.makedirs(self._place, 0o700, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix="idumb-", dir=self._place)
        self.state = os.path.join(self.folder, "state.json")
        self.variables[state_file.VARIABLE] = self.state
        if self._as_file:
            self.prompt = self.write("prompt.md", self._request.prompt)
        if self._request.feedback:
            self.variables["IDUMB_FEEDBACK_FILE"] = self.write("feedback.md", self._request.feedback)
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        return path
