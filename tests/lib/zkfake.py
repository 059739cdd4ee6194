# SPDX-License-Identifier: MIT
"""ZooKeeper where it is not installed: a tree in this process that three ports serve.

It has what dlock uses: sessions that expire and move, ephemeral and sequential nodes, containers, transactions, watches,
ACLs.  A server that is killed, stopped or cut off serves nobody; without a majority none does.  A test that needs more,
such as a server that lags behind, calls zk_real.
"""

import asyncio
import base64
import copy
import hashlib
import os
import signal
import struct
import time

from zkwire import NAMES, XID_EVENT, XID_PING, frame, mode, pack_text, take_text

READ, WRITE, CREATE, DELETE, ALL = 1, 2, 4, 8, 31
UNIMPLEMENTED, NO_NODE, NO_AUTH, BAD_VERSION, NO_CHILDREN = -6, -101, -102, -103, -108
NODE_EXISTS, NOT_EMPTY, INVALID_ACL = -110, -111, -114
CREATED, DELETED, CHANGED, CHILDREN = 1, 2, 3, 4
ANYONE = (b"world", b"anyone")
OPEN = [(ALL, *ANYONE)]
CONTAINER_OWNER = -1 << 63
WRITES = ("create", "createContainer", "delete", "setData", "multi")


class Refused(Exception):
    """A request failed with this code."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Node:
    def __init__(self, data, acl, zxid, owner):
        self.data, self.acl, self.czxid, self.owner = data, acl, zxid, owner
        self.ctime = self.mtime = int(time.time() * 1000)
        self.version = self.created = 0
        self.children = set()

    def stat(self):
        count = len(self.children)
        return struct.pack(">qqqqiiiqiiq", self.czxid, self.czxid, self.ctime, self.mtime, self.version,
                           2 * self.created - count, 0, self.owner, len(self.data), count, self.czxid)


class Session:
    def __init__(self, number):
        self.number, self.password = number, os.urandom(16)
        self.length, self.deadline, self.link = 0, 0, None

    def touch(self):
        self.deadline = time.monotonic() + self.length / 1000


class Link:
    """One connection of a client to a server."""

    def __init__(self, server, reader, writer):
        self.server, self.reader, self.writer = server, reader, writer
        self.tree, self.session = server.ensemble, None
        self.users = {ANYONE}
        self.data_watches, self.child_watches = set(), set()

    async def converse(self):
        head = await self.reader.readexactly(4)
        while self.server.stopped:
            await asyncio.sleep(0.01)
        if head.isalpha():
            await self.send("word", 0, self.server.describe())
            return
        if not self.server.serves():
            return
        body = await self.reader.readexactly(struct.unpack(">i", head)[0])
        if not await self.connect(body):
            return
        while True:
            body = await self.reader.readexactly(struct.unpack(">i", await self.reader.readexactly(4))[0])
            while self.server.stopped:
                await asyncio.sleep(0.01)
            if not self.server.serves() or self.session.number not in self.tree.sessions:
                return
            xid, op = struct.unpack_from(">ii", body)
            if xid != XID_PING and self.session.link is self:
                self.session.touch()
            await self.answer(xid, NAMES.get(op, ""), body[8:])
            if NAMES.get(op) == "closeSession":
                return

    async def connect(self, body):
        _, _, length, number = struct.unpack_from(">iqiq", body)
        session = self.tree.sessions.get(number)
        if number == 0:
            session = self.tree.new_session()
        if session is None or (number != 0 and session.password != body[28:44]):
            await self.send("connect", 0, session_reply(0, 0, bytes(16)))
            return False
        old, session.link, self.session = session.link, self, session
        if old and old.server is self.server:
            old.writer.close()
        session.length = min(max(length, 2 * self.tree.tick_ms), 60 * self.tree.tick_ms)
        session.touch()
        await self.send("connect", 0, session_reply(session.length, session.number, session.password))
        return True

    async def send(self, _kind, _xid, reply):
        """The reply to a request of this kind."""
        self.writer.write(reply)

    async def answer(self, xid, kind, body):
        code, reply, events = 0, b"", []
        if kind in WRITES and self.session.link is not self:
            raise ConnectionError("the session has moved")
        try:
            reply, events = self.tree.perform(self, kind, body)
        except Refused as refusal:
            code = refusal.code
        self.tree.tell(events)  # before the reply, as ZooKeeper does
        await self.send(kind, xid, frame(struct.pack(">iqi", xid, self.tree.zxid, code), reply))

    def allowed(self, node, rights):
        if not any(given & rights and (scheme, who) in self.users for given, scheme, who in node.acl):
            raise Refused(NO_AUTH)


def session_reply(length, number, password):
    return frame(struct.pack(">iiq", 0, length, number), pack_text(password), b"\0")


def parent_of(path):
    return path.rpartition(b"/")[0] or b"/"


class Ensemble:
    """In the place of that of ensemble.py."""

    link = Link

    def __init__(self, network, tick_ms=500):
        self.network, self.tick_ms, self.options = network, tick_ms, []
        self.zxid, self.sessions, self.links, self.led_by = 0x100000000, {}, set(), None
        self.nodes = {path: Node(b"", OPEN, 0, 0) for path in (b"/", b"/zookeeper")}
        config = b"".join(b"server.%d=127.0.0.1:1:2:participant;127.0.0.1:3\n" % n for n in (1, 2, 3))
        self.nodes[b"/zookeeper/config"] = Node(config, [(READ, *ANYONE)], 0, 0)
        self.nodes[b"/"].children.add(b"zookeeper")
        self.servers = {n: Server(self, n) for n in (1, 2, 3)}

    def start(self):
        for server in self.servers.values():
            server.client = self.network.listen(server.serve)
        self.led_by = self.leader()
        asyncio.run_coroutine_threadsafe(self.pass_time(), self.network.loop)

    def ports(self):
        return [server.client for server in self.servers.values()]

    def roles(self):
        return {n: mode(server.client) for n, server in self.servers.items()}

    def restore(self):
        self.network.heal()
        for server in self.servers.values():
            server.start(None)
        while sorted(self.roles().values()) != ["follower", "follower", "leader"] or self.led_by is not self.leader():
            time.sleep(0.02)

    def leader(self):
        return next((server for server in self.servers.values() if server.serves()), None)

    async def pass_time(self):
        """Sessions expire, each tick; empty containers go; a new leader gives each session its full length."""
        while True:
            await asyncio.sleep(self.tick_ms / 2000)
            leader = self.leader()
            for link in list(self.links):
                if not link.server.stopped and (not link.server.serves() or leader is not self.led_by):
                    link.writer.close()
            for session in list(self.sessions.values()):
                if leader is None or leader is not self.led_by:
                    session.touch()
                elif session.deadline < time.monotonic():
                    self.tell(self.end_session(session))
                    session.link.writer.close()
            self.led_by = leader
            for path, node in list(self.nodes.items()):
                if leader and node.owner == CONTAINER_OWNER and node.created > 0 and not node.children:
                    self.zxid += 1
                    self.tell(self.remove(path))

    def new_session(self):
        self.zxid += 1
        session = Session(self.zxid << 16 | 0x77)
        self.sessions[session.number] = session
        return session

    def end_session(self, session):
        del self.sessions[session.number]
        self.zxid += 1
        mine = [path for path, node in self.nodes.items() if node.owner == session.number]
        return [event for path in mine for event in self.remove(path)]

    def perform(self, link, kind, body):
        """The body of the reply, and what watchers are told."""
        if kind in WRITES:
            self.zxid += 1
        if kind == "multi":
            return self.multi(link, body)
        if kind in WRITES:
            reply, events, _ = self.change(link, kind, body, 0)
            return reply, events
        if kind == "closeSession":
            return b"", self.end_session(link.session)
        if kind == "auth":
            _, at = take_text(body, 4)
            login, _ = take_text(body, at)
            user = login.partition(b":")[0]
            link.users.add((b"digest", user + b":" + base64.b64encode(hashlib.sha1(login).digest())))
            return b"", []
        if kind == "ping":
            return b"", []
        path, at = take_text(body, 0)
        if kind == "sync":
            return pack_text(path), []
        return self.look(link, kind, path, body[at:at + 1] == b"\1"), []

    def look(self, link, kind, path, watch):
        node = self.nodes.get(path)
        if watch and (node or kind == "exists"):
            (link.child_watches if kind == "getChildren2" else link.data_watches).add(path)
        if node is None:
            raise Refused(NO_NODE)
        if kind == "exists":
            return node.stat()
        link.allowed(node, READ)
        if kind == "getData":
            return pack_text(node.data) + node.stat()
        if kind == "getChildren2":
            return struct.pack(">i", len(node.children)) + b"".join(map(pack_text, node.children)) + node.stat()
        if kind == "getACL":
            rules = [struct.pack(">i", given) + pack_text(scheme) + pack_text(who) for given, scheme, who in node.acl]
            return struct.pack(">i", len(rules)) + b"".join(rules) + node.stat()
        raise Refused(UNIMPLEMENTED)

    def multi(self, link, body):
        before, results, events, at, failed = self.nodes, [], [], 0, None
        self.nodes = copy.deepcopy(before)
        while True:
            op, done, _ = struct.unpack_from(">i?i", body, at)
            at += 9
            if done:
                break
            reply = b""
            if failed is None:
                try:
                    reply, told, at = self.change(link, NAMES[op], body, at)
                    events += told
                except Refused as refusal:
                    failed = len(results), refusal.code
            results.append((op, reply))
            if failed is not None:
                break
        if failed is not None:
            self.nodes = before
            number, code = failed
            results, events = [(-1, struct.pack(">i", 0 if i < number else code)) for i in range(number + 1)], []
        return b"".join(struct.pack(">i?i", op, False, 0) + reply for op, reply in results) + \
            struct.pack(">i?i", -1, True, -1), events

    def change(self, link, kind, body, at):
        """What is answered, what watchers are told, and where the request ends."""
        path, at = take_text(body, at)
        if kind in ("create", "createContainer"):
            data, at = take_text(body, at)
            count, = struct.unpack_from(">i", body, at)
            acl, at = [], at + 4
            for _ in range(count):
                rights, = struct.unpack_from(">i", body, at)
                scheme, at = take_text(body, at + 4)
                who, at = take_text(body, at)
                users = link.users - {ANYONE} if scheme == b"auth" else [(scheme, who)]
                acl += [(rights, *user) for user in users]
            flags, = struct.unpack_from(">i", body, at)
            path = self.create(link, path, data, acl, flags)
            node = self.nodes[path]
            return pack_text(path) + (node.stat() if kind == "createContainer" else b""), \
                [(CREATED, path), (CHILDREN, parent_of(path))], at + 4
        version, node = None, self.nodes.get(path)
        if kind == "setData":
            data, at = take_text(body, at)
        version, = struct.unpack_from(">i", body, at)
        if node is None:
            raise Refused(NO_NODE)
        link.allowed(node if kind == "setData" else self.nodes[parent_of(path)], WRITE if kind == "setData" else DELETE)
        if version not in (-1, node.version):
            raise Refused(BAD_VERSION)
        if kind == "delete":
            if node.children:
                raise Refused(NOT_EMPTY)
            return b"", self.remove(path), at + 4
        node.data, node.version, node.mtime = data, node.version + 1, int(time.time() * 1000)
        return node.stat(), [(CHANGED, path)], at + 4

    def create(self, link, path, data, acl, flags):
        parent = self.nodes.get(parent_of(path))
        if parent is None:
            raise Refused(NO_NODE)
        link.allowed(parent, CREATE)
        if not acl:
            raise Refused(INVALID_ACL)
        if flags & 2 and flags != 4:
            path += b"%010d" % ((parent.created + (1 << 31)) % (1 << 32) - (1 << 31))
        if path in self.nodes:
            raise Refused(NODE_EXISTS)
        if parent.owner not in (0, CONTAINER_OWNER):
            raise Refused(NO_CHILDREN)
        owner = CONTAINER_OWNER if flags == 4 else link.session.number if flags & 1 else 0
        self.nodes[path] = Node(data, acl, self.zxid, owner)
        parent.children.add(path.rpartition(b"/")[2])
        parent.created += 1
        return path

    def remove(self, path):
        del self.nodes[path]
        self.nodes[parent_of(path)].children.discard(path.rpartition(b"/")[2])
        return [(DELETED, path), (CHILDREN, parent_of(path))]

    def tell(self, events):
        """The watches of a node are told once."""
        for event, path in events:
            for link in self.links:
                watches = [link.child_watches] if event == CHILDREN else [link.data_watches]
                if event == DELETED:
                    watches.append(link.child_watches)
                if not any(path in each for each in watches):
                    continue
                for each in watches:
                    each.discard(path)
                if not link.server.stopped:
                    link.writer.write(frame(struct.pack(">iqiii", XID_EVENT, -1, 0, event, 3), pack_text(path)))


class Server:
    """One of its servers."""

    def __init__(self, ensemble, number):
        self.ensemble, self.number = ensemble, number
        self.client = self.secure = 0
        self.dead = self.stopped = False

    def start(self, _options):
        self.dead = self.stopped = False

    def send(self, sent):
        self.stopped = sent == signal.SIGSTOP

    def kill(self):
        self.dead = True
        for link in list(self.ensemble.links):
            if link.server is self:
                self.ensemble.network.loop.call_soon_threadsafe(link.writer.close)

    def runs(self):
        return not self.dead and not self.stopped

    def serves(self):
        """With another server, which each of them hears."""
        held = self.ensemble.network.held
        return self.runs() and any(
            other.runs() and not {(self.number, other.number), (other.number, self.number)} & held
            for other in self.ensemble.servers.values() if other is not self)

    def describe(self):
        if not self.serves():
            return b"This ZooKeeper instance is not currently serving requests\n"
        role = b"leader" if self.ensemble.leader() is self else b"follower"
        return b"Zookeeper version: 3.8.0-0, built on now\nMode: " + role + b"\n"

    async def serve(self, reader, writer):
        link = self.ensemble.link(self, reader, writer)
        self.ensemble.links.add(link)
        try:
            if not self.dead:
                await link.converse()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.ensemble.links.discard(link)
            writer.close()
