#!/usr/bin/env python3
"""A bad cable between two network namespaces, where the kernel has no netem.

    slow_cable.py PID:NAME PID:NAME [--delay-ms D] [--loss P] [--reorder P] [--rate-mbit R]

Makes an interface NAME (a TAP device) in the network namespace of each process,
brings both up, says "ready" on stdout, and carries frames between them until
SIGTERM; then says how many were carried, lost and overtaken. In each direction:

    --delay-ms   every frame arrives so much later
    --loss       so many of a hundred frames never arrive
    --reorder    so many of a hundred frames arrive at once and overtake the delayed
    --rate-mbit  frames leave no faster; those that would wait 50 ms are lost

Which frames are hit is drawn from a fixed seed. Needs root; standard library only.
"""

import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import signal
import socket
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
FRAME_BYTES = 65536
BACKLOG_S = 0.05
BURST = 64  # frames read before others are written


def enter(path):
    """Make the namespace at `path` that of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns {path}")
    os.close(fd)


def bring_up(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14x", name.encode(), 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(s, SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), flags | IFF_UP))


def open_tap(where):
    """The descriptor of a new TAP device; it stays in the namespace that it was made in."""
    pid, name = where.split(":")
    enter(f"/proc/{int(pid)}/ns/net")
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    bring_up(name)
    return fd


class Direction:
    """From one device to the other: frames on their way, in the order in which they arrive."""

    def __init__(self, source, sink, how, seed):
        self.source, self.sink, self.how = source, sink, how
        self.chance = random.Random(seed)
        self.flying = []
        self.free_at = 0.0  # when the line can take the next frame
        self.number = self.lost = self.overtaken = 0

    def hit(self, percent):
        return percent > 0 and self.chance.random() * 100 < percent

    def leave_at(self, now, size):
        """When a frame has left, if the line is not faster than its rate; None: it is lost."""
        if self.how.rate_mbit == 0:
            return now
        if self.free_at - now > BACKLOG_S:
            return None
        self.free_at = max(self.free_at, now) + size * 8 / (self.how.rate_mbit * 1e6)
        return self.free_at

    def take(self, now):
        for _ in range(BURST):
            try:
                frame = os.read(self.source, FRAME_BYTES)
            except BlockingIOError:
                return
            self.number += 1
            at = self.leave_at(now, len(frame))
            if at is None or self.hit(self.how.loss):
                self.lost += 1
                continue
            if self.hit(self.how.reorder):
                self.overtaken += len(self.flying) > 0
            else:
                at += self.how.delay_ms / 1000
            heapq.heappush(self.flying, (at, self.number, frame))

    def give(self, now):
        while self.flying and self.flying[0][0] <= now:
            frame = heapq.heappop(self.flying)[2]
            try:
                os.write(self.sink, frame)
            except (BlockingIOError, OSError):
                self.lost += 1  # the device is down, or takes no more

    def wait(self, now):
        """Seconds until something is due."""
        return max(self.flying[0][0] - now, 0) if self.flying else 1.0


def carry(ways, stop):
    while not stop:
        now = time.monotonic()
        patience = min(way.wait(now) for way in ways)
        ready, _, _ = select.select([way.source for way in ways], [], [], patience)
        now = time.monotonic()
        for way in ways:
            if way.source in ready:
                way.take(now)
            way.give(time.monotonic())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ends", nargs=2, metavar="PID:NAME")
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--reorder", type=float, default=0)
    parser.add_argument("--rate-mbit", type=float, default=0)
    how = parser.parse_args()

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    a, b = (open_tap(end) for end in how.ends)
    ways = [Direction(a, b, how, 1), Direction(b, a, how, 2)]
    print("ready", flush=True)
    carry(ways, stop)
    total = [sum(getattr(w, what) for w in ways) for what in ("number", "lost", "overtaken")]
    print("carried {} lost {} overtaken {}".format(*total), flush=True)


if __name__ == "__main__":
    sys.exit(main())
