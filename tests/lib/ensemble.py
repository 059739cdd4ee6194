#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A private ensemble of three ZooKeeper servers on loopback, whose servers and network can be broken.

    ensemble.py FOLDER [--sync TICKS] [--connections N] [--tls CERTIFICATES] [--read-only] [--one]

Servers hear each other and their clients through proxies (zkproxy.py).  Commands come line by line through the pipe
FOLDER/ask, and each is answered by a line in FOLDER/reply, "ok ..." or "error ...":

    kill N            SIGKILL; it has its data when it starts again
    start N
    stop N, cont N    SIGSTOP, SIGCONT
    cut I-J...        what server I sends to server J is held back, in one direction
    heal              nothing is held back any more
    rules WORD...     what the proxies of the clients do from now on, see zkproxy.py
    roles             of the servers 1, 2 and 3, as "ok follower leader -"
    restore           all servers run, all is healed, no rules; answered when a leader serves
    children N PATH, stat N PATH
                      what zkwire.py says of it at server N, with no proxy between; tabs for newlines

FOLDER/direct has the three client ports, FOLDER/proxied those of the proxies before them, FOLDER/requests a line for
each request through these.  With --tls, which names a folder of tls.bash, FOLDER/secure has the ports with TLS; server
3 demands a certificate of clients.  With --one, one server is all three.  All servers end with this process, and this
process with the one that started it.

Where ZooKeeper is not installed, or ZOOKEEPER_JAR names a file that is not there, zkfake.py takes its place.

As a library for the fault harness and the measurements: the class Ensemble.
"""

import argparse
import concurrent.futures
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import zkfake
import zkproxy
from zkwire import Client, ZkError, look, mode

JARS = "/usr/share/java/"
JAR = os.environ.get("ZOOKEEPER_JAR", JARS + "zookeeper.jar")
# What TLS takes, and Debian's zookeeper.jar does not name.
NETTY = [JARS + "netty-codec.jar", JARS + "netty-resolver.jar"]
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# What starts soonest and needs least, and elects soon: a server that hears nothing asks again after up to a minute.
SMALL = ["-Xmx48m", "-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
         "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024",
         "-Dzookeeper.fastleader.maxNotificationInterval=1000"]
NUMBERS = (1, 2, 3)
START_LIMIT = 60
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)
# A server ends with the thread that started it, so that is one that lives as long as the process.
starter = concurrent.futures.ThreadPoolExecutor(1)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    """Ports below those that the system gives to clients, and a socket that keeps them from other ensembles while it is
    open: a port is used only when its server runs, and that of followers only while its server leads."""
    while True:
        first = random.randrange(10000, 20000 - count, count)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0dlock-ensemble-{first}")
            ports = list(range(first, first + count))
            for port in ports:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            return ports, claim
        except OSError:
            claim.close()


class Server:
    """One server and where it listens: for clients, for followers, for elections, for clients with TLS."""

    def __init__(self, number, folder, ports):
        self.number, self.folder = number, folder
        self.client, self.quorum, self.election, self.secure = ports
        self.process = None

    def configure(self, lines):
        os.makedirs(f"{self.folder}/data", exist_ok=True)
        with open(f"{self.folder}/data/myid", "w", encoding="ascii") as file:
            print(self.number, file=file)
        with open(f"{self.folder}/zoo.cfg", "w", encoding="ascii") as file:
            print("\n".join([f"dataDir={self.folder}/data", *lines]), file=file)

    def start(self, options):
        if self.process and self.process.poll() is None:
            return
        with open(f"{self.folder}/log", "ab") as log:
            self.process = starter.submit(
                subprocess.Popen, ["java", *options, "-cp", ":".join([JAR, *NETTY]), MAIN, f"{self.folder}/zoo.cfg"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_parent).result()

    def send(self, sent):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sent)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def role(self):
        return mode(self.client)

    def works(self):
        """A session can be made here, which takes a majority: a role may be one of the past."""
        try:
            Client(self.client, patience=3).close()
            return True
        except OSError:
            return False


class Ensemble:
    """Three servers; or one, with three proxies for clients, where no server fails: each costs a second of a processor.

    plain: with no proxies between them, and as they are in production, as measurements want it.
    """

    def __init__(self, folder, tick_ms=500, sync_ticks=10, plain=False):
        self.folder, self.tick_ms, self.sync_ticks, self.one = folder, tick_ms, sync_ticks, False
        self.connections, self.certificates = 0, None
        self.options = ["-Xmx256m"] if plain else [*SMALL, "-Dznode.container.checkIntervalMs=1000"]
        self.network = None if plain else zkproxy.Network()
        self.servers, self.claim = {}, None

    def start(self):
        """Returns when a leader serves, and two followers."""
        for _ in range(5):
            ports, self.claim = free_ports(12)
            self.servers = {n: Server(n, f"{self.folder}/{n}", ports[4 * n - 4:4 * n]) for n in NUMBERS}
            if self.one:
                self.servers = dict.fromkeys(NUMBERS, self.servers[1])
            self.configure(set(self.servers.values()))
            for server in self.servers.values():
                server.start(self.options)
            if self.wait_ready():
                return
            self.kill()
        raise RuntimeError(f"no ensemble comes up in {self.folder}, see {self.folder}/*/log")

    def configure(self, servers):
        ways = {(i, j): self.network.between(i.number, j.number, j.quorum, j.election)
                for i in servers for j in servers if i != j and self.network}
        for server in servers:
            lines = [f"tickTime={self.tick_ms}", "initLimit=20", f"syncLimit={self.sync_ticks}",
                     f"maxSessionTimeout={60 * self.tick_ms}", f"maxClientCnxns={self.connections}",
                     "admin.enableServer=false", "4lw.commands.whitelist=*", "standaloneEnabled=false",
                     *self.secure_lines(server)]
            for other in servers:
                quorum, election = ways.get((server, other), (other.quorum, other.election))
                lines.append(f"server.{other.number}=127.0.0.1:{quorum}:{election};127.0.0.1:{other.client}")
            server.configure(lines)

    def secure_lines(self, server):
        if not self.certificates:
            return []
        return [f"secureClientPort={server.secure}", "secureClientPortAddress=127.0.0.1",
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                "ssl.keyStore.type=PEM", f"ssl.keyStore.location={self.certificates}/good.pem",
                "ssl.trustStore.type=PEM", f"ssl.trustStore.location={self.certificates}/ca.pem",
                f"ssl.clientAuth={'need' if server.number == 3 else 'none'}"]

    def wait_ready(self):
        """False if a server ended instead."""
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end:
            if sorted(self.roles().values()) == 2 * ["leader" if self.one else "follower"] + ["leader"] and \
                    all(server.works() for server in self.servers.values()):
                return True
            if any(server.process.poll() is not None for server in self.servers.values()):
                return False
            time.sleep(0.02)
        return False

    def roles(self):
        return {n: server.role() for n, server in self.servers.items()}

    def restore(self):
        self.network.heal()
        for server in self.servers.values():
            server.send(signal.SIGCONT)
            server.start(self.options)
        if not self.wait_ready():
            raise RuntimeError(f"the ensemble does not come up again: {self.roles()}")

    def kill(self):
        for server in self.servers.values():
            server.kill()

    def ports(self):
        return [server.client for server in self.servers.values()]


def write_ports(path, ports):
    with open(path + ".new", "w", encoding="ascii") as file:
        print(*ports, file=file)
    os.rename(path + ".new", path)


class Control:
    """Carries out the commands of a test."""

    def __init__(self, ensemble, rules):
        self.ensemble, self.rules = ensemble, rules

    def carry_out(self, line):
        word, *words = line.split()
        ensemble = self.ensemble
        if word == "rules":
            self.rules.change(words)
        elif word == "cut":
            for way in words:
                ensemble.network.cut(*map(int, way.split("-")))
        elif word == "heal":
            ensemble.network.heal()
        elif word == "roles":
            return " ".join(role or "-" for role in ensemble.roles().values())
        elif word == "restore":
            self.rules.change([])
            ensemble.restore()
        elif word in ("children", "stat"):
            return self.look(word, ensemble.servers[int(words[0])], " ".join(words[1:]))
        else:
            self.change_server(word, ensemble.servers[int(words[0])])
        return ""

    def look(self, command, server, path):
        client = Client(server.client)
        try:
            lines = look(client, command, path)
        finally:
            client.close()
        if lines is None:
            raise ValueError(f"no node {path}")
        return "\t".join(lines)

    def change_server(self, word, server):
        if word == "kill":
            server.kill()
        elif word == "start":
            server.start(self.ensemble.options)
        elif word in ("stop", "cont"):
            server.send(signal.SIGSTOP if word == "stop" else signal.SIGCONT)
        else:
            raise ValueError(f"no command {word}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--sync", type=int, default=10)
    parser.add_argument("--connections", type=int, default=0, help="maxClientCnxns")
    parser.add_argument("--one", action="store_true", help="one server is all three")
    parser.add_argument("--read-only", action="store_true", help="servers without a majority serve reads")
    parser.add_argument("--tls", help="folder of certificates")
    options = parser.parse_args()
    folder = options.folder
    die_with_parent()
    for name in ("ask", "reply"):
        os.mkfifo(f"{folder}/{name}")
    if os.path.exists(JAR) and shutil.which("java"):
        ensemble = Ensemble(folder, sync_ticks=options.sync)
        ensemble.connections, ensemble.certificates, ensemble.one = options.connections, options.tls, options.one
        if options.read_only:
            ensemble.options.append("-Dreadonlymode.enabled=true")
    else:
        ensemble = zkfake.Ensemble(zkproxy.Network())
    rules = zkproxy.Rules(f"{folder}/requests")
    ensemble.start()
    write_ports(f"{folder}/proxied", [ensemble.network.before(server.client, rules, n)
                                      for n, server in ensemble.servers.items()])
    write_ports(f"{folder}/direct", ensemble.ports())
    write_ports(f"{folder}/secure", [server.secure for server in ensemble.servers.values()])
    control = Control(ensemble, rules)
    # Both ways, so that neither end is ever closed.
    with open(os.open(f"{folder}/ask", os.O_RDWR), encoding="utf-8") as ask, \
            open(os.open(f"{folder}/reply", os.O_RDWR), "w", encoding="utf-8", buffering=1) as reply:
        print("READY", flush=True)
        for line in ask:
            try:
                answer = f"ok {control.carry_out(line)}"
            except (RuntimeError, ValueError, KeyError, OSError, ZkError) as error:
                answer = f"error {error}"
            reply.write(f"{answer}\n")


if __name__ == "__main__":
    main()
