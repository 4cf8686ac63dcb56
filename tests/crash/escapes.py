"""More than thirty ways to leave a process behind, all at once. Run `python escapes.py` in a workspace.

Files in the folder that the variable CASE names report progress: each process adds a line `NAME PID START` to `pids`.
The named pipe `door` receives a word when all processes have started. `main` says what this program does next: wait,
deaf, stopped or exit. If the program is started again for the same case, it writes `a.txt` and exits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

HERE = os.environ.get("CASE", "")
PYTHON = sys.executable
_LONGEST = 40.0
MOVING = "moves from process to process"
UNKNOWN = "elsewhere, deaf, no environment"

# $N records the name and the id of the shell that runs it.
SHELL = {
    "background job": "sh -c '$N; exec sleep 1000' &",
    "job of a subshell": "(sh -c '$N; exec sleep 1000' &)",
    "nohup": "nohup sh -c '$N; exec sleep 1000' > /dev/null 2>&1 &",
    "session of its own": "setsid sh -c '$N; exec sleep 1000' &",
    "double fork": "(setsid sh -c '$N; exec sleep 1000' &)",
    "no environment": "env -i $E setsid sh -c '$N; exec sleep 1000' &",
    "no environment, double fork": "(env -i $E setsid sh -c '$N; exec sleep 1000' &)",
    "no environment, no session": "(env -i $E sh -c '$N; exec sleep 1000' &)",
    "deaf": "setsid sh -c 'trap \"\" TERM HUP INT QUIT; $N; while :; do sleep 1000; done' &",
    "stopped": "setsid sh -c '$N; kill -STOP $$' &",
    "closed streams": "setsid sh -c '$N; exec sleep 1000' <&- >&- 2>&- &",
    "output of its own": "setsid sh -c '$N; exec sleep 1000' > /dev/null 2>&1 < /dev/null &",
    "elsewhere": "cd / && setsid sh -c '$N; exec sleep 1000' &",
    "elsewhere, deaf, no environment": (
        "cd / && (env -i $E setsid sh -c 'trap \"\" TERM HUP INT; $N; while :; do sleep 1000; done' &)"
    ),
    "another name": 'setsid $P -c \'import os; os.execv("/bin/sleep", ["innocent", "1000"])\' & $M',
    "starts another when told to end": (
        "setsid sh -c 'trap \"setsid sleep 1001 & exit\" TERM; $N; while :; do sleep 1000 & wait; done' &"
    ),
    "starts another when it ends": "setsid sh -c 'trap \"setsid sleep 1002 &\" EXIT; $N; sleep 1000' &",
    "many jobs": "setsid sh -c 'i=0; while [ $i -lt 12 ]; do sleep 1000 & i=$((i+1)); done; $N; wait' &",
    "pipeline": "setsid sh -c '$N; sleep 1000 | cat | cat' &",
    "waits for a pipe to be opened": "mkfifo $D/never; setsid sh -c '$N; cat < $D/never' &",
    "group of its own": "bash -mc '$N; sleep 1000 & wait' &",
    "low priority": "nice -n 19 setsid sh -c '$N; exec sleep 1000' &",
    "under a timer": "timeout 1000 sh -c '$N; exec sleep 1000' &",
    "chain of shells": "sh -c '$N; sh -c \"sh -c true; sleep 1000; :\"; :' &",
}
PYTHON_WAYS = {
    "daemon as in the books": "fork(); os.setsid(); fork(); os.chdir('/'); os.closerange(0, 64); note(); stay()",
    "reaper of its own": "reap(); os.setsid(); child(lambda: (os.setsid(), stay())); note(); stay()",
    "all signals blocked": "import signal as s; s.pthread_sigmask(0, s.valid_signals()); os.setsid(); note(); stay()",
    "parent of zombies": "[child(lambda: None) for _ in range(10)]; os.setsid(); note(); stay()",
    "holds a lock": "import fcntl; f = open(D + '/lock', 'w'); fcntl.flock(f, 2); os.setsid(); note(); stay()",
    "terminal of its own": "import pty; pid = pty.fork()[0]; note(); stay()",
    "main thread gone": (
        "import ctypes, threading; os.setsid(); note(); threading.Thread(target=stay).start();"
        " ctypes.CDLL(None).pthread_exit(None)"
    ),
    MOVING: "os.setsid(); note(); hop()",
    "restarts what was ended": "os.setsid(); note(); watch()",
}
PRELUDE = """
import os, sys, time
NAME, D = sys.argv[1:3]
def note():
    began = open('/proc/self/stat').read().split()[21]
    with open(D + '/pids', 'a') as f: f.write(' '.join((NAME, str(os.getpid()), began)) + chr(10))
def fork():
    if os.fork(): os._exit(0)
def child(work):
    if os.fork() == 0:
        work(); os._exit(0)
def stay():
    while True: time.sleep(1000)
def reap():
    import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
def hop():
    while True:
        time.sleep(0.005); fork()
def watch():
    while True:
        pid = os.fork()
        if pid == 0: stay()
        os.waitpid(pid, 0)
"""
NAMES = (*SHELL, *PYTHON_WAYS)


def command(name: str) -> list[str]:
    if name in PYTHON_WAYS:
        return [PYTHON, "-I", "-c", PRELUDE + PYTHON_WAYS[name], name, HERE]
    text = SHELL[name]
    noted = f"set -- $(cat /proc/$$/stat); echo {name} $$ ${{22}} >> {HERE}/pids"
    text = text.replace("$M", noted.replace("$$", "$!")).replace("$N", noted)
    return ["sh", "-c", text.replace("$D", HERE).replace("$E", f"PATH={os.environ['PATH']}").replace("$P", PYTHON)]


def started() -> set[str]:
    try:
        with open(f"{HERE}/pids", encoding="utf-8") as file:
            return {line.rsplit(" ", 2)[0] for line in file}
    except FileNotFoundError:
        return set()


def main() -> None:
    if os.path.exists(f"{HERE}/begun"):
        with open("a.txt", "w", encoding="utf-8") as file:
            file.write("made\n")
        return
    with open(f"{HERE}/begun", "w", encoding="utf-8"), open(f"{HERE}/main", encoding="utf-8") as instruction:
        how = instruction.read().strip()
    if how == "deaf":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    for name in NAMES:
        subprocess.Popen(command(name), stdin=subprocess.DEVNULL)
    late = time.monotonic() + _LONGEST
    while not started() >= set(NAMES):
        if time.monotonic() > late:
            sys.exit(f"not started: {set(NAMES) - started()}")
    with open(f"{HERE}/door", "w", encoding="utf-8") as door:
        door.write("open\n")
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    while how != "exit":
        signal.pause()
    with open("a.txt", "w", encoding="utf-8") as file:
        file.write("made\n")


if __name__ == "__main__":
    main()
