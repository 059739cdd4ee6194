# SPDX-License-Identifier: MIT
"""One scenario: nodes, network and contenders, its faults in their time, then calm, and what is left in the end."""

import os
import random
import signal
import subprocess
import threading
import time

import crowd
import nodes
import zookeeper

CALM_LIMIT = 60  # so long after the last fault everybody has had a turn
SLACK = 3
BAIT_SECONDS = 3
LASTING = (":dlock", ":dlock:waiting", ":dlock:history")  # siblings that outlive a lease; every other key has to go
HOLDER_ATTACKS = {
    "kill dlock": (signal.SIGKILL, ["dlock"]),
    "kill command": (signal.SIGKILL, ["command"]),
    "kill both": (signal.SIGKILL, ["command", "dlock"]),
    "stop dlock": (signal.SIGSTOP, ["dlock"]),
    "stop command": (signal.SIGSTOP, ["command"]),
    "stop both": (signal.SIGSTOP, ["command", "dlock"]),
    "end dlock": (signal.SIGTERM, ["dlock"]),
}
WAITER_ATTACKS = {"kill waiter": signal.SIGKILL, "stop waiter": signal.SIGSTOP, "end waiter": signal.SIGTERM}


WORLDS = {"redis": nodes.World, "zookeeper": zookeeper.World}


class History:
    """One file, one line an event, in the order in which things happened.

    Each line is a time (CLOCK_BOOTTIME, microseconds), who, what, and words.  README.md lists them all.
    """

    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def say(self, who, words):
        os.write(self.fd, f"{crowd.now() * 1e6:.0f} {who} {words}\n".encode())

    def close(self):
        os.close(self.fd)


class Arena:
    def __init__(self, scenario, folder, shift):
        self.scenario = scenario
        self.folder = folder
        self.rng = random.Random(f"arena {scenario.seed}")
        self.history = History(f"{folder}/history")
        self.history.say("scenario", f"begins seed={scenario.seed} theme={scenario.theme} nodes={scenario.nodes} "
                         f"ttl={scenario.ttl:g} strict={int(scenario.strict)} slots={scenario.slots}")
        self.world = WORLDS[scenario.world](scenario, folder, shift, self.history, self.act_at)
        self.nodes, self.network = self.world.nodes, self.world.network
        self.crowd = crowd.Crowd(folder, scenario, self.history, self.world.address, shift)
        self.clients_clock = nodes.Clock(f"{folder}/a.clock")
        self.threads = []

    def act_at(self, *words):
        return self.crowd.act_at(*words)

    def start(self):
        self.world.start(self.crowd)
        self.crowd.start()

    def suffer(self):
        """All faults, each at its time; returns when the last one is over."""
        begin = crowd.now()
        if self.scenario.asks:
            asker = threading.Thread(target=self.ask, args=(begin + self.scenario.seconds,), daemon=True)
            self.threads.append(asker)
            asker.start()
        for event in self.scenario.events:
            time.sleep(max(begin + event.at - crowd.now(), 0))
            self.history.say("fault", str(event)[11:])
            thread = threading.Thread(target=self.inflict, args=(event,), daemon=True)
            self.threads.append(thread)
            thread.start()
        time.sleep(max(begin + self.scenario.seconds - crowd.now(), 0))
        for thread in self.threads:
            thread.join()
        self.network.disarm()
        for timer in list(self.crowd.timers):
            timer.join()
        self.clients_clock.set(0)
        self.history.say("scenario", "calm")

    def ask(self, end):
        while crowd.now() < end:
            time.sleep(0.3)
            self.crowd.ask()

    def inflict(self, event):
        if event.what.endswith(" holder") or event.what in HOLDER_ATTACKS:
            self.attack_holder(event)
        elif event.what in WAITER_ATTACKS:
            visit = self.crowd.waiter(self.rng)
            if visit:
                self.crowd.hit(visit, WAITER_ATTACKS[event.what], ["dlock"], event.seconds)
        elif event.what.endswith(" at"):
            self.network.arm(event.step, event.what[:-3], event.seconds)
        elif event.what == "close idle":
            links = [name + side for name in event.nodes for side in event.side]
            self.network.close_idle(links, event.amount)
            time.sleep(event.seconds)
            self.network.close_idle(links, -event.amount)
        elif event.what in ("partition", "delay", "lose", "cut", "before"):
            self.break_network(event)
        elif event.what in ("jump client", "delete", "break"):
            self.meddle(event)
        else:
            self.world.inflict(event, self.crowd.bait(BAIT_SECONDS) if event.bait else self.crowd.holder())

    def attack_holder(self, event):
        visit = self.crowd.bait(BAIT_SECONDS) if event.bait else self.crowd.holder()
        if visit is None:
            return
        if event.what == "isolate holder":
            event.nodes, event.side = list(self.nodes), visit.side
            self.break_network(event)
            return
        sent, targets = HOLDER_ATTACKS[event.what]
        self.crowd.hit(visit, sent, targets, event.seconds)

    def change_network(self, event, change):
        """It breaks with 1, and works again with -1."""
        links = [name + side for name in event.nodes for side in event.side]
        if event.what in ("partition", "isolate holder"):
            self.network.partition(links, change)
        elif event.what == "delay":
            self.network.slow(links, change * event.amount)
        else:
            self.network.spoil(links, event.what, max(change, 0) * event.amount)

    def break_network(self, event):
        for name in event.nodes:
            self.nodes[name].trouble(1)
        self.change_network(event, 1)
        time.sleep(event.seconds)
        self.change_network(event, -1)
        for name in event.nodes:
            self.nodes[name].trouble(-1)

    def meddle(self, event):
        """What an operator does, and what becomes of clocks."""
        if event.what == "jump client":
            self.history.say("clients", f"jump {event.seconds:+g}")
            self.clients_clock.set(event.seconds)
        elif event.what == "delete":
            self.world.delete(event.nodes)
        elif event.what == "break":
            environment = dict(os.environ, DLOCK_NODES=self.world.direct())
            self.note_break()
            for key in crowd.locks(self.scenario):
                done = subprocess.run([self.crowd.dlock, "break", "--force", key], env=environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      check=False)
                self.history.say("operator", f"broke it: {done.returncode}")
                self.note_break()  # it may have taken long, and have met another holder than at its begin

    def note_break(self):
        for node in self.nodes.values():
            self.history.say(node.name, "lost key (break)")

    def finish(self):
        self.crowd.stop(CALM_LIMIT)
        lease = 0 if self.scenario.strict else max(self.scenario.ttl, 3) + self.jumped_back()
        longest = lease + 2 * self.scenario.node_timeout + SLACK
        end = time.monotonic() + longest
        found = self.world.left()
        while not all(name.endswith(LASTING) for _, name, _, _ in found) and time.monotonic() < end:
            time.sleep(0.05)
            found = self.world.left()
        for node, name, kind, left in found:
            self.history.say(node.name, f"left {name} {kind} {left}")
        self.history.say("scenario", "ends")

    def jumped_back(self):
        return sum(-event.seconds for event in self.scenario.events if event.what == "jump node" and event.seconds < 0)

    def end(self):
        self.crowd.over.set()
        self.crowd.kill()
        self.world.end()
        self.history.close()


def watch_machine(history, stop):
    """How late a process is that wants to run every 10 ms, at the most: bounds on time are as much longer.  A dlock that
    is as late as the first of these is killed by its timer."""
    latest = 0.003
    while not stop.is_set():
        begin = time.monotonic()
        time.sleep(0.01)
        late = time.monotonic() - begin - 0.01
        if late > latest:
            latest = late
            history.say("machine", f"late {late:.3f}")


def run(scenario, folder, shift):
    """The path of the history."""
    os.makedirs(folder)
    arena, stop = Arena(scenario, folder, shift), threading.Event()
    threading.Thread(target=watch_machine, args=(arena.history, stop), daemon=True).start()
    try:
        arena.start()
        arena.suffer()
        arena.finish()
    finally:
        stop.set()
        arena.end()
    return arena.history.path
