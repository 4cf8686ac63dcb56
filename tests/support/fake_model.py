"""The scripted model in this process, and requests to it over real sockets."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch
from urllib.error import HTTPError

from idumb.domain.model_script import Script
from idumb.fake_model import model
from idumb.fake_model.server import Server
from idumb.markdown import model_script


@dataclass(frozen=True, slots=True)
class Served:
    """`notes` is the content of the log, one entry per request."""

    address: str
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    def post(self, path: str, body: object, **headers: str) -> tuple[int, bytes]:
        """Status and body of the answer."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read()
        except HTTPError as problem:
            with problem:
                return problem.code, problem.read()

    def ask(self, path: str, body: object) -> Any:
        """The answer to a request that is answered as a whole."""
        status, data = self.post(path, body)
        assert status == 200, data
        return json.loads(data)

    def events(self, path: str, body: object) -> list[tuple[str | None, Any]]:
        """Name and data of each event of a stream."""
        status, data = self.post(path, body)
        assert status == 200, data
        return [event_of(part) for part in data.decode().split("\n\n") if part]


def event_of(text: str) -> tuple[str | None, Any]:
    lines = dict(line.split(": ", 1) for line in text.split("\n"))
    return lines.get("event"), lines["data"] if lines["data"] == "[DONE]" else json.loads(lines["data"])


def scripted(*rules: str) -> Script:
    """A script of rules that are given as YAML."""
    text = "\n".join(f"## Rule {number}\n\n```yaml model\n{rule}\n```\n" for number, rule in enumerate(rules, 1))
    return model_script.read(text.encode(), "script.md")


@contextlib.contextmanager
def serving(*rules: str, port: int = 0, more: Mapping[str, ModuleType] = {}) -> Iterator[Served]:
    """`more` are protocols beside the two that the scripted model speaks."""
    notes: list[Mapping[str, Any]] = []
    answers = scripted(*rules) if rules else Script()
    with patch.dict(model.FORMATS, more), Server(answers, port, notes.append) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Served(server.address, notes)
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
