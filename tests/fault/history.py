# SPDX-License-Identifier: MIT
"""The history of a scenario: one file, one line an event, in the order in which things happened.

Each line is a time (CLOCK_BOOTTIME, microseconds), who, what, and words.  README.md lists them all.
"""

import os
import time


class History:
    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def say(self, who, words):
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        os.write(self.fd, f"{now * 1e6:.0f} {who} {words}\n".encode())
        return now

    def close(self):
        os.close(self.fd)
