#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The locks of kazoo, for interop.bats.  Peer.java does the same with those of Curator.

    kazoo_peer.py HOSTS try KIND PATH         exit status 0 if it is to be had at once, 1 if not
    kazoo_peer.py HOSTS hold KIND PATH FILE   creates FILE once it holds the lock, and gives it back when FILE has gone
    kazoo_peer.py HOSTS again KIND PATH FILE  exit status 0 if a lock fails when the node has gone, and ensure_path() helps; FILE is
                                              created before, when the lock has seen the node
    kazoo_peer.py HOSTS wait KIND PATH FILE LINE   writes LINE to FILE once it has the lock, and gives it back

KIND is Lock, ReadLock or WriteLock.
"""

import logging
import os
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


def acquire(lock, **options):
    """ZooKeeper may remove a container that is empty between kazoo's two requests, one for it and one for a node in it."""
    while True:
        try:
            return lock.acquire(**options)
        except NoNodeError:
            lock.assured_path = False


def main():
    hosts, verb, kind, path, *words = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    client = KazooClient(hosts, timeout=8)
    client.start(timeout=20)
    lock = getattr(client, kind)(path)
    if verb == "try":
        got = acquire(lock, blocking=False)
        if got:
            lock.release()
        return 0 if got else 1
    if verb == "again":
        lock.acquire(blocking=False)
        with open(words[0], "w", encoding="ascii"):
            pass
        while client.exists(path):
            time.sleep(0.05)
        try:
            lock.acquire()
            return "expected NoNodeError"
        except NoNodeError:
            client.ensure_path(path)
        lock.acquire()
        lock.release()
        return 0
    acquire(lock)
    with open(words[0], "a", encoding="ascii") as file:
        print(*words[1:], file=file)
    while verb == "hold" and os.path.exists(words[0]):
        time.sleep(0.02)
    lock.release()
    client.stop()
    client.close()
    return 0


sys.exit(main())
