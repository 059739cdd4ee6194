# SPDX-License-Identifier: MIT
"""dlock and its peers: how each runs a command under a lock, who waits for it, and what its server hears."""

import base64
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.request

from lib.lab import Connection, Failure, Redis, free_port, until
from lib.report import version

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers")


class Lock:
    """What the scenarios ask of a lock; this one has no server and nothing to count.

    name    in tables                                kind   ours, base or other, in plots
    every   takes part in each so many'th round      most   contenders, of which there is memory for
    polls   its waiters look again and again         nodes  servers that it asks
    processes  of its servers                        lease  seconds, None as it is without options
    """

    kind, every, most, polls, nodes, processes, lease = "other", 1, 500, False, 1, (), None

    def argv(self, *command):
        """The words of a command that takes the lock, however long that takes, and runs COMMAND."""
        raise NotImplementedError

    def waiting(self):
        """How many wait for the lock at this instant."""
        raise NotImplementedError

    def listen(self):
        """Begin to count requests; call what comes back to stop, and it tells how many there were."""
        return lambda: None


class Flock(Lock):
    name, kind, most = "flock", "base", 10000

    def __init__(self, lab):
        self.path = lab.path("file")
        open(self.path, "w", encoding="ascii").close()
        self.inode = f":{os.stat(self.path).st_ino} "

    def argv(self, *command):
        return [shutil.which("flock"), self.path, *command]

    def waiting(self):
        with open("/proc/locks", encoding="ascii") as f:
            return sum("->" in line and self.inode in line for line in f)


class OnRedis(Lock):
    """A lock on Redis servers of its own."""

    def __init__(self, servers):
        self.servers, self.ears = servers, []
        self.nodes = len(servers)
        self.processes = [server.process for server in servers if server.process]

    def waiting(self):
        """Each waiter keeps a connection, and so does the holder; the others are ours."""
        return int(self.servers[0].connection.info("clients", "connected_clients")) - 2 - len(self.ears)

    def listen(self):
        self.ears = [Ear(server) for server in self.servers]
        return self.heard

    def heard(self):
        total = sum(ear.stop() for ear in self.ears)
        self.ears = []
        return total


class Ear:
    """Counts what clients send to a Redis, by MONITOR; what scripts call doesn't count."""

    def __init__(self, server):
        self.server, self.connection, self.heard = server, Connection(server.path), 0
        self.connection.call("MONITOR")
        self.thread = threading.Thread(target=self.hear)
        self.thread.start()

    def hear(self):
        for line in self.connection.stream:
            if b'"INFO"' in line or b'"PING"' in line:  # ours
                continue
            if b'"ECHO" "stop"' in line:
                return
            self.heard += b" lua] " not in line

    def stop(self):
        self.server.connection.call("ECHO", "stop")
        self.thread.join()
        self.connection.close()
        return self.heard


class Dlock(OnRedis):
    kind, most = "ours", 10000

    def __init__(self, name, program, servers, tcp=False):
        super().__init__(servers)
        self.name, self.program = name, program
        self.addresses = [server.tcp if tcp else server.path for server in servers]

    def words(self, command):
        """dlock COMMAND --node..."""
        lease = ["--ttl", f"{self.lease}s"] if self.lease else []
        return [self.program, command, *lease, *(word for node in self.addresses for word in ("--node", node))]

    def argv(self, *command):
        return [*self.words("run"), "-q", "--wait", "forever", "key", *command]

    def waiting(self):
        return sum(int(s.connection.info("clients", "blocked_clients")) for s in self.servers)


class Least(OnRedis):
    """Not a lock that anyone could use: what is left when all is left out that makes it safe, see bench/least.c."""

    def __init__(self, name, program, form, server, tcp=False):
        super().__init__([server])
        self.name, self.program, self.form = name, program, form
        self.address = str(server.port) if tcp else server.path

    def argv(self, *command):
        # The form that waits renews nothing, and a crowd may take its time.
        lease = self.lease or (600 if self.form == "wait" else 30)
        return [self.program, self.form, self.address, "key", str(lease * 1000), *command]

    def waiting(self):
        return int(self.servers[0].connection.info("clients", "blocked_clients"))


class RedisCli(OnRedis):
    name, every, most, polls = "redis-cli script", 4, 50, True

    def argv(self, *command):
        return [os.path.join(PEERS, "redis-cli-lock"), str(self.servers[0].port), "key", *command]

    def waiting(self):
        """Nobody can tell: between two looks at the lock there is neither a process nor a connection."""
        return None


class RedisPy(OnRedis):
    name, every, most, polls = "redis-py", 10, 50, True

    def __init__(self, servers, python):
        super().__init__(servers)
        self.python = python

    def argv(self, *command):
        return [self.python, os.path.join(PEERS, "redis-py-lock"), str(self.servers[0].port), "key", *command]


class Redlock(OnRedis):
    name, every, most, polls = "node-redlock", 10, 10, True

    def argv(self, *command):
        script = os.path.join(PEERS, "redlock-lock.js")
        return [shutil.which("node"), script, str(self.servers[0].port), "key", *command]


class Etcd(Lock):
    """etcdctl lock on an etcd of its own, whose data is in the temporary folder."""

    name, every, most = "etcdctl lock", 4, 200

    def __init__(self, lab):
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.url = client
        self.processes = [lab.start(
            ["etcd", "--data-dir", lab.path("etcd"), "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", f"default={peer}"])]
        until(self.healthy, "etcd")

    def healthy(self):
        try:
            return json.loads(self.get("/health"))["health"] in ("true", True)
        except OSError:
            return False

    def get(self, path, body=None):
        with urllib.request.urlopen(f"{self.url}{path}", body, timeout=5) as reply:
            return reply.read()

    def argv(self, *command):
        return [shutil.which("etcdctl"), f"--endpoints={self.url}", "lock", "--", "key", *command]

    def waiting(self):
        """Each contender has a key of its own below the lock's; the first one holds it."""
        key, end = (base64.b64encode(word).decode() for word in (b"key/", b"key0"))
        reply = self.get("/v3/kv/range", json.dumps({"key": key, "range_end": end, "count_only": True}).encode())
        return int(json.loads(reply).get("count", 0)) - 1

    def received(self):
        metrics = self.get("/metrics").decode()
        return sum(float(n) for n in re.findall(r"^grpc_server_msg_received_total\{.*\} (\S+)$", metrics, re.M))

    def listen(self):
        before = self.received()
        return lambda: self.received() - before


class Kazoo(Lock):
    """kazoo's lock on a ZooKeeper of its own."""

    name, every, most = "kazoo, ZooKeeper", 10, 50
    jar = "/usr/share/java/zookeeper.jar"

    def __init__(self, lab, python):
        self.python, self.port = python, free_port()
        with open(lab.path("zoo.cfg"), "w", encoding="ascii") as f:
            f.write(f"dataDir={lab.path('zookeeper')}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                    "admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.processes = [lab.start(["java", "-cp", self.jar, main, lab.path("zoo.cfg")])]
        until(lambda: self.say(b"ruok") == b"imok", "ZooKeeper")

    def say(self, words):
        with socket.socket() as s:
            s.settimeout(5)
            try:
                s.connect(("127.0.0.1", self.port))
                s.sendall(words)
                return b"".join(iter(lambda: s.recv(65536), b""))
            except OSError:
                return b""

    def count(self, name):
        found = re.search(rb"^%s\t(\d+)" % name, self.say(b"mntr"), re.M)
        return int(found[1]) if found else 0

    def argv(self, *command):
        return [self.python, os.path.join(PEERS, "kazoo-lock"), f"127.0.0.1:{self.port}", "key", *command]

    def waiting(self):
        return self.count(b"zk_ephemerals_count") - 1

    def listen(self):
        before = self.count(b"zk_packets_received")
        return lambda: self.count(b"zk_packets_received") - before - 1


def has_module(python, name):
    return subprocess.run([python, "-c", f"import {name}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def node_module(lab, name):
    """Its version, if Node.js finds it and what it needs."""
    if shutil.which("node") is None:
        return None
    code = (f'require("ioredis"); require("{name}"); const path = require("path"), fs = require("fs");'
            f'let at = path.dirname(require.resolve("{name}"));'
            'while (!fs.existsSync(path.join(at, "node_modules")) && !(fs.existsSync(path.join(at, "package.json"))'
            ' && JSON.parse(fs.readFileSync(path.join(at, "package.json"))).version)) at = path.dirname(at);'
            'console.log(JSON.parse(fs.readFileSync(path.join(at, "package.json"))).version.replace("v", ""))')
    result = subprocess.run(["node", "-e", code], env=lab.environment, check=False, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    return result.stdout.decode().strip() or None


class Peers:
    """What is at hand, and of the rest why not; a lock's server is started when it is first asked for."""

    def __init__(self, lab, program, redis, python, only):
        self.lab, self.program, self.redis, self.python = lab, program, redis, python
        self.versions, self.skipped, self.made = {}, [], {}
        self.makers = {
            "flock": lambda: Flock(lab),
            "dlock": None,
            "redis-cli": lambda: RedisCli(self.servers(1)),
            "etcdctl": lambda: Etcd(lab),
            "redis-py": lambda: RedisPy(self.servers(1), python),
            "node-redlock": lambda: Redlock(self.servers(1)),
            "kazoo": lambda: Kazoo(lab, python),
            "zookeeper": None,  # dlock on it, see ensembles.py
        }
        unknown = set(only) - set(self.makers)
        if unknown:
            raise Failure(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(self.makers)}")
        for name in self.makers:
            lack = "left out by --only" if only and name not in only else self.lack(name)
            if lack:
                self.skipped.append((name, lack))

    def lack(self, name):
        """What is missing for this peer; None if nothing is.  Notes its version on the way."""
        programs = {"flock": ["flock"], "redis-cli": ["redis-cli"], "etcdctl": ["etcd", "etcdctl"],
                    "kazoo": ["java"], "zookeeper": ["java"]}.get(name, [])
        for program in programs:
            if shutil.which(program) is None:
                return f"{program} is not installed"
        modules = {"redis-py": "redis", "kazoo": "kazoo"}
        if name in modules and not has_module(self.python, modules[name]):
            return f"{self.python} has no module {modules[name]}"
        if name in ("kazoo", "zookeeper") and not os.path.exists(Kazoo.jar):
            return "ZooKeeper is not installed"
        if name == "node-redlock":
            self.versions["node-redlock"] = node_module(self.lab, "redlock")
            if self.versions["node-redlock"] is None:
                return "Node.js with redlock and ioredis is not installed"
        self.note_versions(name)
        return None

    def note_versions(self, name):
        if name == "etcdctl":
            self.versions["etcd"] = version(["etcd", "--version"])
        elif name == "redis-py":
            self.versions["redis-py"] = version([self.python, "-c", "import redis; print(redis.__version__)"])
        elif name == "kazoo":
            self.versions["kazoo"] = version([self.python, "-c", "import kazoo; print(kazoo.__version__)"])
        elif name == "zookeeper":
            jars = glob.glob(Kazoo.jar.replace(".jar", "-[0-9]*.jar"))
            self.versions["ZooKeeper"] = jars[0].rpartition("-")[2].removesuffix(".jar") if jars else "?"
        elif name == "node-redlock":
            self.versions["Node.js"] = version(["node", "--version"])

    def servers(self, count):
        return [Redis(self.lab, self.redis) for _ in range(count)]

    def has(self, name):
        return name not in dict(self.skipped)

    def dlock(self, where):
        """dlock over a "unix socket", over "TCP", or over "five nodes" on unix sockets."""
        if where not in self.made:
            self.made[where] = Dlock(f"dlock, {where}", self.program, self.servers(5 if where == "five nodes" else 1),
                                     where == "TCP")
        return self.made[where]

    def least(self, form):
        """The least of this form, over a unix socket and over TCP."""
        if form not in self.made:
            self.made[form] = [
                Least(f"the least, {where}", self.lab.least, form, self.servers(1)[0], where == "TCP")
                for where in ("unix socket", "TCP")]
        return self.made[form]

    def get(self, name):
        if name not in self.made:
            self.made[name] = self.makers[name]()
        return self.made[name]

    def all(self, five=True):
        locks = [self.get("flock")] if self.has("flock") else []
        locks += [self.dlock(where) for where in ("unix socket", "TCP", "five nodes")[:3 if five else 2]]
        return locks + [self.get(name) for name in list(self.makers)[2:-1] if self.has(name)]
