# SPDX-License-Identifier: MIT
"""Redis servers that can be killed, stopped, emptied and given a wrong time of day."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import crowd
import proxy  # which finds the next one
from servers import Peer

START_LIMIT = 60


class Direct(Peer):
    """A connection to a node that no proxy is in the way of."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        super().__init__(self.socket.makefile("rb"), self.socket.makefile("wb"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in (self.reader, self.writer, self.socket):
            end.close()


class Clock:
    """How wrong a time of day is, for those that were started with clock.c before them."""

    def __init__(self, path):
        self.path = path
        self.set(0)

    def set(self, seconds):
        self.seconds = seconds
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("q", int(seconds * 1e6)))


class Troubled:
    """What the history and the faults know of a server."""

    def __init__(self, name, history):
        self.name, self.history = name, history
        self.troubles, self.lock = 0, threading.Lock()

    def trouble(self, change):
        """The node may be out of reach of somebody from now on, or is so no more."""
        with self.lock:
            self.troubles += change
            if self.troubles == max(change, 0):  # the first one, or none any more
                self.history.say(self.name, "trouble" if change > 0 else "well")


class Node(Troubled):
    """A Redis.  It keeps its data when it is killed and started again, unless it is emptied."""

    def __init__(self, name, folder, shift, history):
        super().__init__(name, history)
        self.folder = folder
        self.path = f"{folder}/s"
        self.shift = shift  # the library that makes its clock wrong, or None
        self.clock = Clock(f"{folder}.clock")
        self.process = None
        self.busy = threading.Lock()  # held by a fault of the server itself, since there is one at a time

    def jump(self, seconds):
        """Its time of day: locks may end early or late, and what it knew of fences too."""
        self.history.say(self.name, f"lost all (clock {seconds:+g} s)")
        self.clock.set(self.clock.seconds + seconds)

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        environment = dict(os.environ, FAULT_CLOCK=self.clock.path)
        if self.shift:
            environment["LD_PRELOAD"] = self.shift
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen(
                [os.environ.get("REDIS_SERVER") or "redis-server", "--port", "0", "--unixsocket", self.path,
                 "--dir", self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "no"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True)
        end = time.monotonic() + START_LIMIT
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} does not start, see {self.folder}.log")
            time.sleep(0.01)

    def answers(self):
        try:
            with Direct(self.path) as direct:
                return direct.ask("PING") == "+PONG"
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def empty(self, guarded):
        """Between kill() and start(): it loses all data.  Guarded, it then grants nothing for a while."""
        self.history.say(self.name, "lost metadata (emptied)" if guarded else "lost all (emptied)")
        shutil.rmtree(self.folder)

    def send(self, sent):
        self.process.send_signal(sent)

    def delete(self, keys):
        """As an operator would, by DEL."""
        try:
            with Direct(self.path) as direct:
                self.history.say(self.name, "lost key (DEL)")
                direct.ask("DEL", *keys)
        except OSError:
            pass  # it is down

    def left(self):
        """Name, type and PTTL of every key, but for those that end during the look."""
        with Direct(self.path) as direct:
            names = sorted(direct.ask("KEYS", "*"))
            found = [(name, direct.ask("TYPE", name)[1:], direct.ask("PTTL", name)) for name in names]
            return [key for key in found if key[2] != -2]

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.send_signal(signal.SIGCONT)
            self.process.wait()


class World:
    """Redis servers n1 to nN, and the network before them."""

    def __init__(self, scenario, folder, shift, history, act):
        self.scenario, self.folder, self.history = scenario, folder, history
        self.nodes = {f"n{i + 1}": Node(f"n{i + 1}", f"{folder}/n{i + 1}", shift, history)
                      for i in range(scenario.nodes)}
        self.network = proxy.Network(act)

    def start(self, _crowd):
        for name, node in self.nodes.items():
            node.start()
            for side in "ab":
                self.network.add(name + side, f"{self.folder}/{name}{side}", node.path)

    def address(self, side):
        """What contenders of that side have as DLOCK_NODES."""
        return " ".join(f"{self.folder}/{name}{side}" for name in self.nodes)

    def direct(self):
        """The same with no proxy between."""
        return " ".join(node.path for node in self.nodes.values())

    def inflict(self, event, _holder):
        """A fault of servers."""
        if event.what == "jump node":
            for name in event.nodes:
                self.nodes[name].jump(event.seconds)
            return
        chosen = [self.nodes[name] for name in event.nodes if self.nodes[name].busy.acquire(blocking=False)]
        for node in chosen:
            node.trouble(1)
            if event.what == "hang node":
                node.send(signal.SIGSTOP)
            else:
                node.kill()
        time.sleep(event.seconds)
        for node in chosen:
            if event.what == "hang node":
                node.send(signal.SIGCONT)
            else:
                if event.what == "empty node":
                    node.empty(self.scenario.guard)
                node.start()
            node.trouble(-1)
            node.busy.release()

    def delete(self, names):
        for name in names:
            self.nodes[name].delete(crowd.locks(self.scenario))

    def left(self):
        """Node, name, type and PTTL of every key."""
        return [(node, *key) for node in self.nodes.values() for key in node.left()]

    def end(self):
        self.network.stop()
        for node in self.nodes.values():
            node.end()
