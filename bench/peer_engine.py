"""Durable steps that do nothing, in one process of a peer's own Python: `peer_engine.py DBOS|LangGraph STEPS FOLDER`.

Prints the seconds a step, without the start, and the peak memory of the process in MiB.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import TypedDict


class Counted(TypedDict):
    number: int


def dbos(folder: str) -> Callable[[int], None]:
    from dbos import DBOS

    url = f"sqlite:///{folder}/dbos.sqlite"
    DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})

    @DBOS.step()
    def step(number: int) -> int:
        return number

    @DBOS.workflow()
    def workflow(steps: int) -> int:
        return sum(step(number) for number in range(steps))

    DBOS.launch()
    return workflow


def langgraph(folder: str) -> Callable[[int], None]:
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, StateGraph

    saver = SqliteSaver(sqlite3.connect(f"{folder}/langgraph.sqlite", check_same_thread=False))

    def run(steps: int) -> None:
        graph = StateGraph(Counted)
        graph.add_node("step", lambda state: {"number": state["number"] + 1})
        graph.set_entry_point("step")
        graph.add_conditional_edges("step", lambda state: END if state["number"] >= steps else "step")
        config = {"configurable": {"thread_id": str(steps)}, "recursion_limit": steps + 10}
        graph.compile(checkpointer=saver).invoke({"number": 0}, config, durability="sync")

    return run


def main(name: str, steps: int, folder: str) -> None:
    run = {"DBOS": dbos, "LangGraph": langgraph}[name](folder)
    run(3)
    start = time.perf_counter()
    run(steps)
    took = (time.perf_counter() - start) / steps
    with open("/proc/self/status", encoding="utf-8") as stream:
        peak = re.search(r"VmHWM:\s+(\d+)", stream.read())
    print(json.dumps({"seconds": took, "peak": int(peak[1]) / 1024 if peak else None}), flush=True)
    os._exit(0)  # some engines keep threads


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
