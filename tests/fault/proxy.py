# SPDX-License-Identifier: MIT
"""A network between clients and nodes that can be broken: a proxy for each node and each side of the network.

All proxies run in one thread.  Each passes whole messages on, and knows which request a reply answers, so that it can
lose exactly a reply, or kill or stop the client at a named point of the protocol: when a request of a certain kind has
been sent on ("acquire-sent"), or its reply has come ("acquire-reply").
"""

import asyncio
import collections
import os
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from servers import parse  # noqa: E402

IDLE_CHECK = 0.02

# By which words a script is known.
SCRIPTS = [(b"note_waiter", "acquire"), (b"hand_over", "release"), (b"takes_part", "renew"),
           (b"RPUSH', leave", "leave"), (b"LPUSH", "pass"), (b"now >= tonumber", "heal")]


class Cut(Exception):
    """The connection ends here."""


def kind_of(request):
    """What a request is about: the name of a command, of scripts that of the script."""
    words = parse(request)[0]
    name = words[0].decode("latin-1").lower() if words else ""
    return name if name != "eval" else next((script for word, script in SCRIPTS if word in words[1]), "script")


class Messages:
    """Whole messages from a stream."""

    def __init__(self, stream):
        self.stream = stream
        self.data = b""

    async def next(self):
        while (parsed := parse(self.data)) is None:
            more = await self.stream.read(65536)
            if not more:
                raise Cut
            self.data += more
        message, self.data = self.data[:parsed[1]], self.data[parsed[1]:]
        return message


class Conversation:
    """A connection: both ends, the requests that are unanswered, and when a reply came for the last time."""

    def __init__(self, client, server, kinds):
        self.client = client
        self.server = server
        self.kinds = kinds
        self.answered = float("inf")


class Gate:
    """A server as one side of the network sees it.  What is wrong with it is changed in the network's thread only."""

    def __init__(self, network):
        self.network = network
        self.partitions = 0
        self.open = asyncio.Event()
        self.open.set()
        self.delay = 0.0
        self.chance = {"lose": 0.0, "cut": 0.0, "before": 0.0}

    def partition(self, change):
        self.partitions += change
        (self.open.clear if self.partitions else self.open.set)()

    def happens(self, what):
        return random.random() < self.chance[what]


class Link(Gate):
    """The way to a Redis."""

    def __init__(self, network, path, upstream):
        super().__init__(network)
        self.path = path
        self.upstream = upstream
        self.idle = []  # a connection that is idle for so many seconds is closed
        self.conversations = set()

    async def serve(self, reader, writer):
        try:
            await self.open.wait()
            server_reader, server_writer = await asyncio.open_unix_connection(self.upstream)
        except OSError:
            writer.close()
            return
        peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid = struct.unpack("3i", peer)[0]
        kinds = collections.deque()
        conversation = Conversation(writer, server_writer, kinds)
        self.conversations.add(conversation)
        await asyncio.gather(self.pass_requests(Messages(reader), server_writer, kinds, pid, writer),
                             self.pass_replies(Messages(server_reader), writer, kinds, pid, server_writer,
                                               conversation))
        self.conversations.discard(conversation)

    def close_idle(self):
        now = time.monotonic()
        for conversation in list(self.conversations) if self.idle and not self.partitions else []:
            if not conversation.kinds and conversation.answered + min(self.idle) < now:
                conversation.client.close()
                conversation.server.close()
                self.conversations.discard(conversation)

    async def pass_requests(self, requests, server, kinds, pid, client):
        try:
            while True:
                request = await requests.next()
                await self.open.wait()
                kind = kind_of(request)
                if self.happens("before"):
                    client.close()
                    break
                kinds.append(kind)
                server.write(request)
                await server.drain()
                self.network.reached(f"{kind}-sent", pid)
        except (Cut, OSError):
            pass
        await self.open.wait()
        server.close()

    @staticmethod
    async def deliver(reply, client):
        """False if the client has gone; what it sent before that still counts."""
        try:
            client.write(reply)
            await client.drain()
        except OSError:
            return False
        return True

    async def pass_replies(self, replies, client, kinds, pid, server, conversation):
        deaf = False
        try:
            while True:
                reply = await replies.next()
                kind = kinds.popleft() if kinds else ""
                conversation.answered = time.monotonic()
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self.open.wait()
                what = self.network.reached(f"{kind}-reply", pid)
                if what == "cut" or self.happens("cut"):
                    break
                deaf = deaf or what == "lose" or self.happens("lose")
                deaf = deaf or not await self.deliver(reply, client)
        except (Cut, OSError):
            pass
        await self.open.wait()
        client.close()
        server.close()


class Faults:
    """What is wrong with which link, and the points of the protocol at which something is to happen next."""

    def __init__(self, act, loop=None):
        """act(what, seconds, pid, point) does to a client what a point has for it; it is false if that is no client."""
        self.act, self.loop = act, loop
        self.links = {}
        self.points = []

    def change(self, function, *args):
        self.loop.call_soon_threadsafe(function, *args)

    def partition(self, names, change):
        for name in names:
            self.change(self.links[name].partition, change)

    def slow(self, names, seconds):
        for name in names:
            self.links[name].delay += seconds

    def spoil(self, names, what, chance):
        for name in names:
            self.links[name].chance[what] = chance

    def arm(self, point, what, seconds):
        self.points.append((point, what, seconds))

    def disarm(self):
        self.points = []

    def take(self, armed, pid):
        """What the armed point does to the connection of that client, if anything; it does it once."""
        try:
            self.points.remove(armed)
        except ValueError:
            return None
        return armed[1] if self.act(armed[1], armed[2], pid, armed[0]) else None


class Network(Faults):
    """The links, their thread and their faults."""

    def __init__(self, act):
        super().__init__(act, asyncio.new_event_loop())
        self.loop.set_exception_handler(lambda loop, context: None)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def add(self, name, path, upstream):
        """A link by that name, which listens on a unix socket."""
        async def watch(link):
            while True:
                await asyncio.sleep(IDLE_CHECK)
                link.close_idle()

        async def listen():
            self.links[name] = link = Link(self, path, upstream)
            self.loop.create_task(watch(link))
            await asyncio.start_unix_server(link.serve, path, backlog=512)
        asyncio.run_coroutine_threadsafe(listen(), self.loop).result()

    def close_idle(self, names, seconds):
        """From now on what is idle for so long is closed; negative: not any more."""
        for name in names:
            idle = self.links[name].idle
            self.change(idle.append if seconds > 0 else idle.remove, abs(seconds))

    def reached(self, point, pid):
        """Somebody is at that point: what happens to the connection, if anything does."""
        for armed in self.points:
            if armed[0] == point:
                return self.take(armed, pid)
        return None

    @staticmethod
    async def cancel_all():
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def stop(self):
        asyncio.run_coroutine_threadsafe(self.cancel_all(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        for link in self.links.values():
            os.unlink(link.path)
