"""A scripted agent that speaks the Agent Client Protocol: it does what its arguments say, one after the other.

`write PATH` asks and writes if it may, `run COMMAND` asks to run it, `say TEXT`, `stop REASON`, `ask METHOD` asks the
client for something, `error CODE TEXT`, `junk`, `die`, `hang`, `fork`, `protest TEXT` hangs until it is stopped, and
answers with an error then. With `options` the model is chosen as a setting of the session, with `listed` one of two,
with `fixed` not at all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

pending: dict[str, Any] = {"id": 100}
CHOICES = {
    "session/set_mode": "mode {modeId};",
    "session/set_model": "model {modelId};",
    "session/set_config_option": "{configId} is {value};",
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def update(**fields: Any) -> None:
    send(method="session/update", params={"sessionId": "s-1", "update": fields})


def ask(method: str, **params: Any) -> dict[str, Any]:
    pending["id"] += 1
    send(id=pending["id"], method=method, params={"sessionId": "s-1", **params})
    while (answer := receive()).get("id") != pending["id"]:
        pass
    return answer


def may(kind: str, title: str, **more: Any) -> bool:
    call = {"toolCallId": title, "title": title, "kind": kind, "status": "pending", **more}
    update(sessionUpdate="tool_call", **call)
    options = [
        {"optionId": "y", "name": "Allow", "kind": "allow_once"},
        {"optionId": "n", "name": "Reject", "kind": "reject_once"},
    ]
    answer = ask("session/request_permission", toolCall=call, options=options)
    granted = answer["result"]["outcome"]
    allowed: bool = granted == {"outcome": "selected", "optionId": "y"}
    update(sessionUpdate="tool_call_update", toolCallId=title, status="completed" if allowed else "failed")
    return allowed


def chunk(text: str) -> None:
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def written(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("made\n", encoding="utf-8")


def protest(text: str) -> None:
    def stopped(*_: object) -> None:
        raise LookupError(-32603, text)

    signal.signal(signal.SIGTERM, stopped)
    signal.pause()


def work(words: list[str], prompt: Any) -> str:  # noqa: C901, PLR0912 - one branch a word
    while words:
        word = words.pop(0)
        if word == "write":
            path = words.pop(0)
            if may("edit", f"Write {path}", locations=[{"path": os.path.abspath(path)}]):
                written(path)
        elif word == "run":
            command = words.pop(0)
            if may("execute", command, rawInput={"command": command}):
                subprocess.run(["sh", "-c", command], check=False)
        elif word == "say":
            chunk(words.pop(0))
        elif word == "prompt":
            chunk(prompt[0]["text"])
        elif word == "ask":
            chunk(json.dumps(ask(words.pop(0), path="a.txt").get("error")))
        elif word == "error":
            code, text = int(words.pop(0)), words.pop(0)
            raise LookupError(code, text)
        elif word == "junk":
            sys.stdout.write('no json\n[1]\n{"id": 77}\n\n')
        elif word == "die":
            sys.stderr.write("out of luck\n")
            sys.exit(3)
        elif word == "hang":
            subprocess.run(["sleep", "1000"], check=False)
        elif word == "protest":
            protest(words.pop(0))
        elif word == "fork":
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={})
            chunk(str(child.pid))
        elif word == "stop":
            return words.pop(0)
    return "end_turn"


def models(script: list[str]) -> dict[str, Any]:
    """The two ways in which agents let a model be chosen, and none."""
    if "fixed" in script:
        return {}
    if "options" in script:
        return {"configOptions": [{"id": "speed"}, {"id": "which", "category": "model"}]}
    if "listed" in script:
        listed = [{"value": "usual"}, {"group": "More", "options": [{"value": "other"}]}]
        return {"configOptions": [{"id": "which", "category": "model", "options": listed}]}
    return {"models": {"currentModelId": "usual", "availableModels": []}}


def main() -> None:
    script = sys.argv[1:]
    while True:
        message = receive()
        method = message.get("method")
        if method == "initialize":
            assert message["params"]["clientCapabilities"]["terminal"] is False
            version = 2 if "future" in script else 1
            info = {"name": "scripted", "version": "1"}
            send(id=message["id"], result={"protocolVersion": version, "agentInfo": info, "authMethods": []})
        elif method == "session/new" and "locked" in script:
            send(id=message["id"], error={"code": -32000, "message": "Authentication required"})
        elif method == "session/new":
            send(id=message["id"], result={"sessionId": "s-1", **models(script)})
        elif method in CHOICES:
            chunk(CHOICES[method].format(**message["params"]))
            send(id=message["id"], result={})
        elif method == "session/prompt":
            try:
                stop = work(script, message["params"]["prompt"])
            except LookupError as problem:
                send(id=message["id"], error={"code": problem.args[0], "message": problem.args[1]})
            else:
                usage = {"inputTokens": 12, "outputTokens": 3}
                send(id=message["id"], result={"stopReason": stop, "usage": usage})


if __name__ == "__main__":
    main()
