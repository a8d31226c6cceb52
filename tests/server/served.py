# SPDX-License-Identifier: MIT
"""Starts a stormlog-server for a test.  Its client uses sockets and http.client, and none of our code."""
import base64
import hashlib
import http.client
import os
import re
import signal
import struct
import subprocess
import time


def make_pack(seed, size=1 << 16):
    """Bytes that begin like a pack and go on with noise: the server must store them, and its child process must refuse them."""
    return b"stormlog.pack\n\1\0" + b"".join(hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(size // 32))


def name_of(pack):
    return hashlib.sha256(pack).hexdigest()


class Server:
    def __init__(self, program, store, *options):
        self.program, self.store, self.options, self.process = program, store, options, None
        self.writes = self.token("ci", "--write")
        self.reads = self.token("me", "--read")

    def token(self, name, *rights):
        return subprocess.run([self.program, "--store", self.store, "token", "add", name, *rights], check=True, capture_output=True,
                              text=True).stdout.strip()

    def start(self, port=0):
        self.log_path = self.store + ".log"
        self.log = open(self.log_path, "w")
        self.process = subprocess.Popen([self.program, "--store", self.store, "--listen", f"127.0.0.1:{port}", *self.options], stderr=self.log)
        for _ in range(12000):
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.said())
            if found:
                self.port = int(found[1])
                self.url = f"http://127.0.0.1:{self.port}"
                return self
            if self.process.poll() is not None:
                raise RuntimeError(self.said())
            time.sleep(0.01)
        raise RuntimeError("the server does not say its address, but %r; its threads are in:\n%s" % (self.said(), self.threads()))

    def threads(self):
        """For each thread of the server its system call, and the kernel function in which it waits."""
        tasks = "/proc/%d/task" % self.process.pid
        def told(task, name):
            with open(os.path.join(tasks, task, name)) as file:
                return file.read().strip()
        return "\n".join(" ".join((task, told(task, "comm"), told(task, "syscall"), told(task, "wchan"))) for task in os.listdir(tasks))

    def said(self):
        with open(self.log_path) as log:
            return log.read()

    def kill(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.log.close()
            self.process = None

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, token=None, **headers):
        """Sends a request.  Returns status, headers and body."""
        connection = self.connect()
        if token:
            headers["Authorization"] = "Bearer " + token
        connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def put(self, pack, name=None, **headers):
        return self.ask("PUT", "/api/v1/packs/" + (name or name_of(pack)), body=pack, token=self.writes, **headers)

    def get(self, path, **headers):
        return self.ask("GET", path, token=self.reads, **headers)

    def offset(self, name):
        status, headers, _ = self.ask("HEAD", "/api/v1/packs/" + name, token=self.writes)
        return status, int(headers["Upload-Offset"])

    def packs(self):
        """{name: path} of the packs in the store, read from the file system."""
        return {entry[:64]: os.path.join(folder, entry) for folder, _, entries in os.walk(os.path.join(self.store, "packs")) for entry in entries}


def basic(token):
    return "Basic " + base64.b64encode(b"anybody:" + token.encode()).decode()


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def pack_of_members(members):
    """A pack by the page of the format: `members`, each (name, bytes), in one zstd frame."""
    import zstandard
    content = b"".join(struct.pack("<I", len(name)) + name + struct.pack("<Q", len(data)) + data for name, data in members) + struct.pack("<I", 0)
    return b"stormlog.pack\n\1\0" + zstandard.ZstdCompressor().compress(content)
