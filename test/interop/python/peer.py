"""Uses kazoo's locks as the Go tests tell it to.

The protocol is that of java/Peer.java: one line for each command on standard input,
"ID THREAD VERB ARGUMENT...", and one line of answer, "ID ok VALUE..." or "ID failed
EXCEPTION". The commands of one thread are done one after the other, those of different
threads at the same time. It ends with its standard input.
"""

import os
import queue
import sys
import threading
import traceback

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, WriteLock


class CuratorLock(Lock):
    """A kazoo lock whose znodes Curator counts, and zk.Lock too."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


KINDS = {
    "lock": lambda client, path: Lock(client, path, extra_lock_patterns=["-lock-"]),
    "curatorlock": CuratorLock,
    "writelock": lambda client, path: WriteLock(
        client, path, extra_lock_patterns=["__WRIT__", "__READ__"]
    ),
}


class Commands:
    def __init__(self):
        self.made = {}

    def open(self, name, servers, millis):
        client = KazooClient(hosts=servers, timeout=int(millis) / 1000)
        client.start(timeout=30)
        self.made[name] = client
        return [str(client.client_id[0])]

    def close(self, name):
        client = self.made[name]
        client.stop()
        client.close()

    def make(self, name, kind, client, path):
        self.made[name] = KINDS[kind](self.made[client], path)

    def acquire(self, lock):
        if not self.made[lock].acquire():
            raise RuntimeError("not acquired")

    def try_(self, lock):
        return ["true" if self.made[lock].acquire(blocking=False) else "false"]

    def release(self, lock):
        if not self.made[lock].release():
            raise RuntimeError("it was not held")

    def increment(self, lock, client, times, *paths):
        """Adds one to each of the numbers, without a look at the version."""
        for _ in range(int(times)):
            with self.made[lock]:
                for path in paths:
                    data, _ = self.made[client].get(path)
                    self.made[client].set(path, str(int(data) + 1).encode())


class Peer:
    def __init__(self):
        self.commands = Commands()
        self.threads = {}
        self.telling = threading.Lock()

    def serve(self):
        for line in sys.stdin:
            words = line.split()
            if words[1] not in self.threads:
                self.threads[words[1]] = queue.Queue()
                args = (self.threads[words[1]],)
                threading.Thread(target=self.work, args=args, daemon=True).start()
            self.threads[words[1]].put(words)

    def work(self, commands):
        while True:
            number, _, verb, *arguments = commands.get()
            answer = self.answer(verb, arguments)
            with self.telling:
                print(number, answer, flush=True)

    def answer(self, verb, arguments):
        try:
            do = getattr(self.commands, "try_" if verb == "try" else verb)
            return " ".join(["ok", *(do(*arguments) or [])])
        except BaseException as e:  # the test decides what it means
            traceback.print_exc()
            return " ".join(f"failed {e!r}".split())


Peer().serve()
os._exit(0)  # threads may wait for locks
