"""Start one job, wait for it, and leave nothing of it behind.

A job gets a session of its own. Launchers put their ranks into process groups of their own, but a
session is kept, so by its number all that is left of a job on this machine can be found.
"""
import os
import signal
import subprocess
import time

GRACE_S = 10.0  # from the request to end to the end by force
POLL_S = 0.05

REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Requests:
    """Requests to end, as they arrive: the handler only notes them, the waiting loop acts."""

    def __init__(self):
        self.seen = []
        self.old = {}

    def __enter__(self):
        for number in REQUESTS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                self.old[number] = signal.signal(number, lambda n, _frame: self.seen.append(n))
        return self

    def __exit__(self, *_):
        for number, handler in self.old.items():
            signal.signal(number, handler)


def session_members(session):
    """Processes of a session that have not ended."""
    members = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                state, _parent, _group, its = f.read().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has just ended
        if int(its) == session and state != "Z":
            members.append(int(name))
    return members


def kill_session(session):
    """End by force what is left of a job; how many processes that were."""
    members = session_members(session)
    for pid in members:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(members)


def ask_to_end(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def wait_for(process, requests, deadline):
    """(exit status, why it was ended: None, 'signal' or 'budget')."""
    why, force_at, asked = None, None, 0
    while True:
        try:
            return process.wait(timeout=POLL_S), why
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        if len(requests.seen) > asked:
            ask_to_end(process, requests.seen[-1])
            # Who asks twice does not want to wait.
            force_at = now if why == "signal" else now + GRACE_S
            why, asked = "signal", len(requests.seen)
        elif why is None and now >= deadline:
            ask_to_end(process, signal.SIGTERM)
            why, force_at = "budget", now + GRACE_S
        if force_at is not None and now >= force_at:
            kill_session(process.pid)


def run_job(command, out_path, err_path, requests, deadline):
    """
    Run `command` with its output in two files.

    Blocks until it ended; at `deadline` (monotonic seconds) or a request it is asked to end, and
    after GRACE_S, or a second request, it is ended by force. Returns (exit status, why it was
    ended early or None, how many of its processes had to be cleared away afterwards).
    OSError: it could not be started.
    """
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        status, why = wait_for(process, requests, deadline)
    return status, why, kill_session(process.pid)
