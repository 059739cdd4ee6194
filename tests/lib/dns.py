#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# dns.py NAME ADDRESS COMMAND [ARG...]
#
# Run COMMAND in a network namespace of its own, which the caller has made, with a DNS server at 127.0.0.1 that knows
# NAME, with this IPv4 address, and nothing else.  The exit status is that of COMMAND.

import fcntl
import socket
import struct
import subprocess
import sys
import threading

SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def question(request):
    """The name that is asked for, the type, and where the question ends."""
    labels = []
    at = 12
    while request[at]:
        labels.append(request[at + 1 : at + 1 + request[at]].decode())
        at += 1 + request[at]
    return ".".join(labels), struct.unpack_from(">H", request, at + 1)[0], at + 5


def reply(request, name, address):
    asked, kind, end = question(request)
    known = asked.lower() == name
    answers = 1 if known and kind == 1 else 0
    header = request[:2] + struct.pack(">HHHHH", 0x8580 if known else 0x8583, 1, answers, 0, 0)
    record = struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(address) if answers else b""
    return header + request[12:end] + record


def serve(server, name, address):
    while True:
        request, client = server.recvfrom(512)
        server.sendto(reply(request, name, address), client)


def main():
    name, address, *command = sys.argv[1:]
    loopback_up()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=serve, args=(server, name, address), daemon=True).start()
    sys.exit(subprocess.run(command, check=False).returncode)


main()
