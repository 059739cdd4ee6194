# SPDX-License-Identifier: MIT
"""Locks on three servers that agree with each other: dlock and kazoo on ZooKeeper, etcdctl on etcd."""

import os
import shutil
import sys

from lib.lab import free_port, until
from lib.locks import PEERS, Dlock, Etcd, Lock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "lib"))

import zkwire  # noqa: E402
from ensemble import Ensemble  # noqa: E402

TICK_MS = 2000


class ZooKeeper:
    """An ensemble as in production, but for its place: servers share a disk and the processors."""

    def __init__(self, lab):
        self.ensemble = Ensemble(lab.path("ensemble"), TICK_MS, plain=True)
        self.ensemble.start()
        self.processes = [server.process for server in self.ensemble.servers.values()]
        lab.processes += self.processes
        self.hosts = ",".join(f"127.0.0.1:{port}" for port in self.ensemble.ports())
        self.client = zkwire.Client(self.ensemble.ports()[0], 40000)

    def contenders(self, path, form):
        """How many hold it or wait for it."""
        try:
            return sum(form in name for name in self.client.children(path))
        except zkwire.ZkError:
            return 0


class OnEnsemble(Lock):
    """Each contender has a node of this form below the lock's."""

    def __init__(self, zookeeper):
        self.zookeeper, self.processes = zookeeper, zookeeper.processes

    def waiting(self):
        return self.zookeeper.contenders(self.path, self.form) - 1


class DlockOnEnsemble(OnEnsemble, Dlock):
    """dlock over zk://."""

    name, kind, path, form = "dlock, ZooKeeper", "ours", "/dlock/key", "-lock-"

    def __init__(self, zookeeper, program):
        OnEnsemble.__init__(self, zookeeper)
        self.program, self.addresses = program, [f"zk://{zookeeper.hosts}/dlock"]

    def listen(self):
        return lambda: None


class KazooOnEnsemble(OnEnsemble):
    """kazoo's lock on the same servers."""

    name, every, path, form = "kazoo, ZooKeeper", 10, "/key", "__lock__"

    def __init__(self, zookeeper, python):
        OnEnsemble.__init__(self, zookeeper)
        self.python = python

    def argv(self, *command):
        return [self.python, os.path.join(PEERS, "kazoo-lock"), self.zookeeper.hosts, "key", *command]


class EtcdCluster(Etcd):
    """etcdctl lock on three servers of etcd."""

    name, every = "etcdctl lock, three", 4

    def __init__(self, lab):
        places = {f"e{n}": tuple(f"http://127.0.0.1:{free_port()}" for _ in range(2)) for n in (1, 2, 3)}
        cluster = ",".join(f"{name}={peer}" for name, (_, peer) in places.items())
        self.url = places["e1"][0]
        self.endpoints = ",".join(client for client, _ in places.values())
        self.processes = [lab.start(
            ["etcd", "--name", name, "--data-dir", lab.path(name), "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", cluster]) for name, (client, peer) in places.items()]
        until(self.healthy, "etcd")

    def argv(self, *command):
        return [shutil.which("etcdctl"), f"--endpoints={self.endpoints}", "lock", "--", "key", *command]
