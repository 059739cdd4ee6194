# SPDX-License-Identifier: MIT
"""The world of ZooKeeper: three servers (tests/lib/ensemble.py), the network before them, and their faults.

It has the same parts as that of Redis: nodes that can be killed and stopped (nodes.py), and a network between them and
the contenders that can be broken and that knows the points of the protocol (proxy.py).
"""

import asyncio
import os
import random
import signal
import threading
import time

import crowd
import nodes
import proxy  # which finds the next three
import zk_schedule
import zkwire
from ensemble import Ensemble
from zkproxy import Cut

READY_LIMIT = 60


def socket_inodes():
    """The inode of the socket at each local port."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.read().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16): row[9] for row in rows}


def has_socket(pid, inode):
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]" for fd in fds)
    except OSError:
        return False


class Gate(proxy.Gate):
    """The way to a server of ZooKeeper, as zkproxy.py asks for it."""

    async def on_request(self, _link, _kind, _size):
        await self.open.wait()
        if self.happens("before"):
            raise Cut
        return 0

    def on_sent(self, link, kind):
        self.network.reached(f"{kind}-sent", link)

    async def on_reply(self, link, kind, _number):
        if self.delay:
            await asyncio.sleep(self.delay)
        await self.open.wait()
        what = self.network.reached(f"{kind}-reply", link)
        if what == "cut" or self.happens("cut"):
            raise Cut
        return what == "lose" or self.happens("lose")


class Network(proxy.Faults):
    """As proxy.Network, for gates before the servers of an ensemble."""

    def __init__(self, act):
        super().__init__(act)
        self.inner = None
        self.ports = {}
        self.pids = lambda: []

    def add(self, inner, name, port):
        self.inner, self.loop = inner, inner.loop
        self.links[name] = Gate(self)
        self.ports[name] = inner.before(port, self.links[name], name)

    def reached(self, point, link):
        for armed in self.points:
            if armed[0] != point:
                continue
            if callable(armed[1]):
                self.points.remove(armed)
                armed[1]()
                return None
            inode = socket_inodes().get(link.port)
            pid = next((pid for pid in self.pids() if has_socket(pid, inode)), None)
            if pid is None:
                return None
            return self.take(armed, pid)
        return None

    def place_of(self, pid):
        """The server that the process has a connection to, the last one of them; or None."""
        inodes = socket_inodes()
        links = [link for link in list(self.inner.links) if has_socket(pid, inodes.get(link.port))]
        return max(links, key=lambda link: link.number).place[:2] if links else None

    def stop(self):
        self.points = []


class World:
    """The servers n1 to n3."""

    names = ("n1", "n2", "n3")

    def __init__(self, scenario, folder, _shift, history, act):
        self.scenario, self.history = scenario, history
        self.nodes = {name: nodes.Troubled(name, history) for name in self.names}
        self.ensemble = Ensemble(f"{folder}/zk", zk_schedule.TICK_MS, zk_schedule.SYNC_TICKS)
        self.network = Network(act)
        self.led_by = None
        self.busy = threading.Lock()  # held by a fault of the servers, since there is one at a time

    def start(self, contenders):
        self.network.pids = contenders.pids
        self.ensemble.start()
        self.led_by = self.leader()
        for number, name in enumerate(self.names, 1):
            for side in "ab":
                self.network.add(self.ensemble.network, name + side, self.ensemble.servers[number].client)

    def address(self, side):
        """What contenders of that side have as DLOCK_NODES now: in the theme deposed side a only knows the leader."""
        names = [f"n{self.led_by}"] if self.scenario.theme == "deposed" and side == "a" else self.names
        return "zk://" + ",".join(f"127.0.0.1:{self.network.ports[name + side]}" for name in names)

    def direct(self):
        return "zk://" + ",".join(f"127.0.0.1:{port}" for port in self.ensemble.ports())

    def inflict(self, event, holder):
        """A fault of servers.  HOLDER: the visit that it is about, or None."""
        if not self.busy.acquire(blocking=False):
            return
        for node in self.nodes.values():
            node.trouble(1)
        try:
            self.harm(event, holder)
        finally:
            self.ensemble.restore()
            self.led_by = self.leader()
            for node in self.nodes.values():
                node.trouble(-1)
            self.busy.release()

    def harm(self, event, holder):
        leader = self.leader()
        others = [number for number in (1, 2, 3) if number != leader]
        if event.what in ("kill server", "hang server", "kill leader", "hang leader"):
            number = leader if event.what.endswith("leader") else random.choice((1, 2, 3))
            self.ensemble.servers[number].send(signal.SIGSTOP if event.what.startswith("hang") else signal.SIGKILL)
        elif event.what == "hang leader late":
            # Just when a renewal has been answered.
            done = threading.Event()
            self.network.arm("setData-reply", done.set, 0)
            done.wait(2 * event.seconds)
            self.ensemble.servers[leader].send(signal.SIGSTOP)
        elif event.what == "cut servers":
            self.cut([tuple(random.sample((1, 2, 3), 2)) for _ in range(2)])
        elif event.what == "cut holder's server":
            self.cut_off(self.server_of(holder), leader, event.step)
        elif event.what == "depose leader":
            self.cut([way for other in others for way in ((leader, other), (other, leader))])
            for other in others:
                self.ensemble.servers[other].kill()
                self.ensemble.servers[other].start(self.ensemble.options)
        time.sleep(event.seconds)

    def cut_off(self, number, leader, ways):
        """Between the leader and this server, or between the leader and all where it is the leader itself."""
        for other in [n for n in (1, 2, 3) if n != leader] if number == leader else [number]:
            self.cut([(other, leader)] * (ways != "from leader") + [(leader, other)] * (ways != "to leader"))

    def cut(self, ways):
        for i, j in ways:
            self.history.say("fault", f"cut {i}-{j}")
            self.ensemble.network.cut(i, j)

    def server_of(self, visit):
        place = self.network.place_of(visit.process.pid) if visit else None
        return int(place[1]) if place else random.choice((1, 2, 3))

    def leader(self):
        end = time.monotonic() + READY_LIMIT
        while time.monotonic() < end:
            for number, role in self.ensemble.roles().items():
                if role == "leader":
                    return number
            time.sleep(0.05)
        raise RuntimeError("there is no leader")

    def client(self):
        end = time.monotonic() + READY_LIMIT
        while time.monotonic() < end:
            for port in self.ensemble.ports():
                try:
                    return zkwire.Client(port)
                except OSError:
                    time.sleep(0.05)
        raise RuntimeError("no server serves")

    def entries(self, client):
        """The paths of the nodes, those of holders first."""
        paths = []
        for parent in [f"/{crowd.KEY}/leases", f"/{crowd.KEY}/locks"] if self.scenario.slots else [f"/{crowd.KEY}"]:
            try:
                client.sync("/")
                paths += [f"{parent}/{name}" for name in sorted(client.children(parent), key=lambda name: name[-10:])]
            except zkwire.ZkError:
                pass
        return paths

    def delete(self, _names):
        """As an operator would: the holder's first node."""
        try:
            client = self.client()
            names = self.entries(client)
            for node in self.nodes.values():
                self.history.say(node.name, "lost key (delete)")
            if names:
                client.delete(names[0])
            client.close()
        except (OSError, RuntimeError, zkwire.ZkError):
            pass  # it is down, or the lock has gone

    def left(self):
        """Node, name, kind and life of what is there of the lock."""
        client = self.client()
        names = self.entries(client)
        client.close()
        return [(self.nodes["n1"], name, "ephemeral", -1) for name in names]

    def end(self):
        self.network.stop()
        self.ensemble.kill()
