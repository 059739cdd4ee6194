#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""As much of a ZooKeeper client as the tests need, independent of dlock's: one session, one request at a time.

    zkwire.py PORT COMMAND [ARGUMENT...]

    mode              leader, follower or standalone; nothing if it does not serve
    tree PATH         the path of each node below PATH, in order
    children PATH     the names of its children, in order
    get PATH          its data
    stat PATH         its czxid, mtime, version, ephemeralOwner and number of children
    create PATH DATA [NAME...]  persistent; what is above it as well, and each NAME in it
    node PATH RIGHTS  creates it, with these rights for everybody (1 read, 2 write, 4 create, 8 delete, 16 admin)
    owned PATH USER:PASSWORD [NAME]  creates it, with all rights for this user and none for others, and NAME in it for all
    delete PATH       with all that is below it
    number PATH       creates and deletes so many sequential children that the next number is that of PATH

The exit status is 1 if there is no such node.
"""

import socket
import struct
import sys

from servers import exactly

OPS = {"create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6, "sync": 9, "ping": 11,
       "getChildren2": 12, "multi": 14, "create2": 15, "createContainer": 19, "auth": 100, "closeSession": -11}
NAMES = {op: name for name, op in OPS.items()}
NO_NODE, NODE_EXISTS = -101, -110
XID_EVENT, XID_PING, XID_AUTH = -1, -2, -4
FRAME_LIMIT = 4 << 20


class ZkError(Exception):
    """The server answered with an error code."""

    def __init__(self, code):
        super().__init__(f"ZooKeeper error {code}")
        self.code = code


def pack_text(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return struct.pack(">i", len(data)) + data


def frame(*parts):
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def connect_request(timeout_ms, session=0, password=bytes(16), zxid=0):
    return frame(struct.pack(">iqiq", 0, zxid, timeout_ms, session), pack_text(password), b"\0")


def take_text(data, at):
    size, = struct.unpack_from(">i", data, at)
    return data[at + 4:at + 4 + max(size, 0)], at + 4 + max(size, 0)


class Stat:
    """What the tests want to know of a node."""

    def __init__(self, data, at):
        (self.czxid, self.mzxid, self.ctime, self.mtime, self.version, self.cversion, self.aversion, self.owner, _,
         self.children, self.pzxid) = struct.unpack_from(">qqqqiiiqiiq", data, at)


class Client:
    """Raises OSError where the server is out of reach, ZkError where it refuses."""

    def __init__(self, port, timeout_ms=10000, patience=10, host="127.0.0.1"):
        self.xid = 0
        self.socket = socket.create_connection((host, port), patience)
        self.socket.settimeout(patience)
        try:
            self.socket.sendall(connect_request(timeout_ms))
            _, self.length_ms, self.session = struct.unpack_from(">iiq", self.receive())
        except OSError:
            self.socket.close()
            raise
        if self.session == 0:
            raise OSError("no session")

    def receive(self):
        return exactly(self.socket, struct.unpack(">i", exactly(self.socket, 4))[0])

    def ask(self, name, *parts):
        """The reply behind its header."""
        self.xid += 1
        self.socket.sendall(frame(struct.pack(">ii", self.xid, OPS[name]), *parts))
        while True:
            data = self.receive()
            xid, _, code = struct.unpack_from(">iqi", data)
            if xid == self.xid:
                if code:
                    raise ZkError(code)
                return data[16:]

    def exists(self, path):
        try:
            return Stat(self.ask("exists", pack_text(path), b"\0"), 0)
        except ZkError as error:
            if error.code == NO_NODE:
                return None
            raise

    def get(self, path):
        return take_text(self.ask("getData", pack_text(path), b"\0"), 0)[0]

    def children(self, path):
        data = self.ask("getChildren2", pack_text(path), b"\0")
        names, at = [], 4
        for _ in range(struct.unpack_from(">i", data)[0]):
            name, at = take_text(data, at)
            names.append(name.decode("utf-8", "surrogateescape"))
        return sorted(names)

    def sync(self, path):
        self.ask("sync", pack_text(path))

    def create(self, path, data=b"", flags=0, acl=(31, "world", "anyone")):
        """The path that it got; flags are 1 for ephemeral, 2 for sequential."""
        rights = struct.pack(">ii", 1, acl[0]) + pack_text(acl[1]) + pack_text(acl[2])
        return take_text(self.ask("create", pack_text(path), pack_text(data), rights, struct.pack(">i", flags)),
                         0)[0].decode()

    def create_all(self, path, data=b""):
        for end in range(1, len(path) + 1):
            if end == len(path) or path[end] == "/":
                try:
                    self.create(path[:end], data if end == len(path) else b"")
                except ZkError as error:
                    if error.code != NODE_EXISTS:
                        raise

    def delete(self, path, version=-1):
        self.ask("delete", pack_text(path), struct.pack(">i", version))

    def delete_all(self, path):
        for below in sorted(self.tree(path), reverse=True):
            self.delete(below)
        self.delete(path)

    def tree(self, path):
        found = []
        for name in self.children(path):
            below = f"{path.rstrip('/')}/{name}"
            found += [below, *self.tree(below)]
        return found

    def close(self):
        """Ends the session, if the server can be reached."""
        try:
            self.ask("closeSession")
        except OSError:
            pass
        self.socket.close()


def four_letters(port, word, patience=2):
    """The reply to a four letter word, or nothing."""
    try:
        with socket.create_connection(("127.0.0.1", port), patience) as conn:
            conn.settimeout(patience)
            conn.sendall(word)
            return b"".join(iter(lambda: conn.recv(65536), b"")).decode("latin-1")
    except OSError:
        return ""


def mode(port):
    for line in four_letters(port, b"srvr").splitlines():
        if line.startswith("Mode: "):
            return line[len("Mode: "):]
    return ""


def use_number(client, path):
    """Makes the numbers of PATH's parent go on so far that the next one is PATH's, which ends in it."""
    parent, number = path.rpartition("/")[0], int(path[-10:])
    while client.exists(parent).cversion < 2 * number:
        client.delete(client.create(f"{parent}/n-", flags=3))


def look(client, command, path):
    """What tree, children and stat print, as lines; None if there is no such node."""
    client.sync(path)
    if command != "stat":
        return getattr(client, command)(path)
    stat = client.exists(path)
    return stat and [f"{stat.czxid} {stat.mtime} {stat.version} {stat.owner & (1 << 64) - 1} {stat.children}"]


def main():
    port, command, *words = sys.argv[1:]
    if command == "mode":
        print(mode(int(port)))
        return
    client = Client(int(port))
    try:
        if command in ("tree", "children", "stat"):
            lines = look(client, command, words[0])
            if lines is None:
                sys.exit(1)
            for line in lines:
                print(line)
        elif command == "get":
            client.sync(words[0])
            sys.stdout.buffer.write(client.get(words[0]))
        elif command == "create":
            client.create_all(words[0], words[1].encode())
            for name in words[2:]:
                client.create(f"{words[0]}/{name}")
        elif command == "node":
            client.create(words[0], acl=(int(words[1]), "world", "anyone"))
        elif command == "owned":
            client.ask("auth", struct.pack(">i", 0), pack_text("digest"), pack_text(words[1]))
            client.create(words[0], acl=(31, "auth", ""))
            for name in words[2:]:
                client.create(f"{words[0]}/{name}")
        elif command == "delete":
            client.delete_all(words[0])
        elif command == "number":
            use_number(client, words[0])
        else:
            sys.exit(__doc__)
    except ZkError as error:
        sys.exit(1 if error.code == NO_NODE else f"zkwire.py: {error}")
    finally:
        client.close()


if __name__ == "__main__":
    main()
