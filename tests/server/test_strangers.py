#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_strangers.py STORMLOG_SERVER: how the server answers clients without a token, and attackers."""
import collections
import glob
import hashlib
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from served import Server, basic, make_pack, name_of, pack_of_members, wait_for

PROGRAM = os.path.abspath(sys.argv[1])


def tree(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, files in os.walk(folder) for name in folders + files)


class Strangers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-strangers-")
        with open(os.path.join(cls.folder, "secret"), "w") as secret:
            secret.write("a secret beside the store")
        cls.server = Server(PROGRAM, os.path.join(cls.folder, "store"), "--name", "runs.example.org").start()
        cls.pack = make_pack(1)
        cls.server.put(cls.pack)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def raw(self, data, wait=5):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=wait) as s:
            s.sendall(data)
            answer = b""
            try:
                while part := s.recv(65536):
                    answer += part
            except OSError:
                pass
        return answer

    def status(self, data):
        answer = self.raw(data)
        return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else 0

    def test_no_token_no_answer(self):
        path = "/api/v1/packs/" + name_of(self.pack)
        for method in ("GET", "HEAD", "PUT"):
            status, headers, _ = self.server.ask(method, path, body=b"" if method == "PUT" else None)
            self.assertEqual(status, 401, method)
            self.assertIn("Basic", headers["WWW-Authenticate"])
        self.assertEqual(self.server.ask("GET", path, Authorization=basic(self.server.reads))[0], 200, "as browsers send it")
        self.assertEqual(self.server.ask("GET", path, token=self.server.writes)[0], 403, "a token for writing does not read")
        self.assertEqual(self.server.ask("PUT", path, body=self.pack, token=self.server.reads)[0], 403)

    def test_the_store_has_no_token_to_steal(self):
        wait_for(lambda: os.listdir(os.path.join(self.server.store, "work")) == [])  # files there come and go
        for at, _, files in os.walk(self.server.store):
            for name in files:
                with open(os.path.join(at, name), "rb") as file:
                    data = file.read()
                for token in (self.server.reads, self.server.writes):
                    self.assertNotIn(token.encode(), data)
        self.assertEqual(os.stat(os.path.join(self.server.store, "tokens")).st_mode & 0o777, 0o600)

    @unittest.skipIf(os.getuid(), "only root can write for another user")
    def test_a_token_that_root_adds_is_read_by_the_user_of_the_server(self):
        store = tempfile.mkdtemp(prefix="stormlog-theirs-")
        self.addCleanup(shutil.rmtree, store, True)
        os.chown(store, 12345, 12346)
        subprocess.run([PROGRAM, "--store", store, "token", "add", "ci", "--write"], check=True, capture_output=True)
        there = os.stat(os.path.join(store, "tokens"))
        self.assertEqual((there.st_uid, there.st_gid, there.st_mode & 0o777), (12345, 12346, 0o600))

    def test_tokens_that_are_not_understood_are_never_rewritten(self):
        path = os.path.join(self.server.store, "tokens")
        with open(path) as file:
            mine = file.read()
        elsewhere = os.path.join(self.server.store, "elsewhere")
        for content in ("# who may read\n" + mine, mine + "a note of mine\n", mine + "x" * 300 + " rw " + "0" * 64 + "\n", mine.replace("\n", "\0\n", 1), None):
            os.rename(path, elsewhere)
            if content is None:
                os.symlink("elsewhere", path)
            else:
                with open(path, "w") as file:
                    file.write(content)
            for command in ["add", "other", "--read"], ["remove", "me"], ["list"]:
                done = subprocess.run([PROGRAM, "--store", self.server.store, "token", *command], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (4, ""), (command, content))
                self.assertIn("stormlog-server: tokens: ", done.stderr)
            with open(path) as file:
                self.assertEqual(file.read(), mine if content is None else content)
            if content and content.startswith("#"):
                self.assertEqual(self.server.ask("GET", "/api/v1/packs/" + name_of(self.pack), token=self.server.reads)[0], 200)
            os.rename(elsewhere, path)

    def test_tokens_that_cannot_be_read_for_a_moment_stay(self):
        connection, name = self.server.connect(), name_of(self.pack)

        def status():
            connection.request("HEAD", "/api/v1/packs/" + name, headers={"Authorization": "Bearer " + self.server.writes})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        self.assertEqual(status(), 200)
        limits = resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE)

        def fails():
            before = self.server.said().count("tokens: Too many open files")
            os.utime(os.path.join(self.server.store, "tokens"))
            taken = set(map(int, os.listdir("/proc/%d/fd" % self.server.process.pid)))
            lowest = min(set(range(len(taken) + 1)) - taken)
            # nothing can be opened, unless something is closed meanwhile; a lower limit would be one of poll() too
            resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE, (lowest, limits[1]))
            try:
                self.assertEqual({status(), status()} & {401, 429}, set())
            finally:
                resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE, limits)
            said = self.server.said().count("tokens: Too many open files") - before
            self.assertLessEqual(said, 1, "it is said once until the file is read")
            return said
        wait_for(fails, 60)
        self.assertEqual(status(), 200)
        connection.close()

    def test_a_removed_token_opens_nothing(self):
        token = self.server.token("leaver", "--read")
        with open(os.path.join(self.server.store, "tokens"), "a") as file:
            file.write("\n")
        path = "/api/v1/packs/" + name_of(self.pack)
        self.assertEqual(self.server.ask("GET", path, token=token)[0], 200)
        subprocess.run([PROGRAM, "--store", self.server.store, "token", "remove", "leaver"], check=True)
        self.assertIn(self.server.ask("GET", path, token=token)[0], (401, 429))

    def test_guessed_tokens_are_refused_and_slowed_and_hinder_nobody_else(self):
        path = "/api/v1/packs/" + name_of(self.pack)
        seen = set()
        connection = self.server.connect()
        for i in range(1000):
            connection.request("GET", path, headers={"Authorization": "Bearer " + hashlib.sha256(b"%d" % i).hexdigest()})
            answer = connection.getresponse()
            answer.read()
            seen.add(answer.status)
        connection.close()
        self.assertIn(429, seen)
        self.assertLessEqual(seen, {401, 429})
        self.assertEqual(self.server.get(path)[0], 200, "the right one opens all the same")
        for wrong in ("Bearer ", "Bearer", "Basic !!!", "Basic " + "A" * 5000, "Digest x", "Bearer " + self.server.reads + " x", "Bearer \u00e9"):
            self.assertIn(self.server.ask("GET", path, Authorization=wrong)[0], (400, 401, 429), wrong)

    def test_guessing_is_slowed_where_everybody_may_read_too(self):
        folder = tempfile.mkdtemp(prefix="stormlog-open-")
        self.addCleanup(shutil.rmtree, folder, True)
        server = Server(PROGRAM, os.path.join(folder, "store"), "--open").start()
        self.addCleanup(server.kill)
        path = "/api/v1/packs/" + name_of(self.pack)
        self.assertEqual(server.ask("GET", "/api/v1/runs")[0], 200)
        seen = {server.ask("PUT", path, body=self.pack, token=hashlib.sha256(b"%d" % i).hexdigest())[0] for i in range(60)}
        self.assertEqual(seen, {401, 429})
        self.assertEqual(server.ask("GET", "/api/v1/runs", token="wrong")[0], 200, "a token that is not asked for is not looked at")
        self.assertEqual(server.ask("PUT", path, body=self.pack, token=server.reads)[0], 403)
        self.assertEqual(server.put(self.pack)[0], 201)

    def guess(self, numbers, seen):
        """Sends guessed tokens in pipelined requests, a hundred at a time, and counts the answers in `seen`."""
        path = "/api/v1/packs/" + name_of(self.pack)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
            for begin in range(0, len(numbers), 100):
                some = numbers[begin:begin + 100]
                s.sendall(b"".join(b"HEAD %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" %
                                   (path.encode(), hashlib.sha256(b"guess %d" % i).hexdigest().encode()) for i in some))
                answers = b""
                while answers.count(b"\r\n\r\n") < len(some):
                    part = s.recv(1 << 16)
                    self.assertTrue(part, "the server hung up")
                    answers += part
                for line in answers.split(b"\r\n"):
                    if line.startswith(b"HTTP/1.1 "):
                        seen[int(line.split()[1])] += 1

    def test_a_hundred_thousand_guesses(self):
        each, began = [collections.Counter() for _ in range(4)], time.monotonic()
        threads = [threading.Thread(target=self.guess, args=(range(n, 100000, 4), each[n])) for n in range(4)]
        for thread in threads:
            thread.start()
        rights = 0
        while any(thread.is_alive() for thread in threads):
            self.assertEqual(self.server.get("/api/v1/runs?limit=1")[0], 200, "who has one comes in meanwhile")
            rights += 1
            time.sleep(0.2)
        minutes = (time.monotonic() - began) / 60
        seen = sum(each, collections.Counter())
        self.assertEqual((sum(seen.values()), set(seen)), (100000, {401, 429}))
        self.assertLessEqual(seen[401], 20 * (int(minutes) + 2), "twenty a minute are looked at as wrong ones, the rest is told to wait")
        self.assertGreater(rights, 0)
        with open(f"/proc/{self.server.process.pid}/status") as status:
            most, = (int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        self.assertLess(most, 300 << 10, "KiB that it held at most")

    def test_names_lead_nowhere_else(self):
        before = tree(self.folder)
        for name in ("../../../secret", "..%2f..%2f..%2fsecret", "%2e%2e/%2e%2e/secret", "/etc/passwd", "a" * 63, "a" * 65, "A" * 64, "a" * 63 + "%00",
                     "%00", "..", ".", "", "a" * 62 + "..", "a" * 31 + "/" + "a" * 32, "a" * 30000):
            for method in ("GET", "PUT", "HEAD"):
                token = self.server.writes if method != "GET" else self.server.reads
                answer = self.raw(f"{method} /api/v1/packs/{name} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
                                  "Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
                self.assertRegex(answer.split(b"\r\n")[0], rb"HTTP/1.1 (400|404|405|414|422|431) ", (method, name))
                self.assertNotIn(b"a secret", answer)
        self.assertEqual(tree(self.folder), before)

    def test_headers_cannot_be_injected(self):
        for path in ("/api/v1/packs/a%0d%0aX-Evil:%20yes", "/x%0d%0a%0d%0a<script>", "/api/v1/%3Cscript%3Ealert(1)%3C/script%3E"):
            answer = self.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.server.reads}\r\nConnection: close\r\n\r\n".encode())
            self.assertNotIn(b"X-Evil", answer)
            self.assertNotIn(b"<script>", answer)

    def test_a_request_of_two_lengths_is_the_last_of_its_connection(self):
        """A proxy that goes by the other length would take the second request for the body of the first."""
        second = f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.server.reads}\r\nConnection: close\r\n\r\n"
        for lengths in ("Content-Length: 5\r\nContent-Length: 50", "Content-Length: 50\r\nContent-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked"):
            body = "0\r\n\r\n" if "chunked" in lengths else "hello"
            answer = self.raw(f"PUT /api/v1/packs/{'a' * 64} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.server.writes}\r\n{lengths}\r\n\r\n{body}{second}".encode())
            self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer[:60])
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1)

    def test_requests_of_other_sites_are_refused(self):
        path, pack = "/api/v1/packs/", make_pack(2)
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": f"http://127.0.0.1:{self.server.port + 1}"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            status = self.server.ask("PUT", path + name_of(pack), body=pack, token=self.server.writes, **headers)[0]
            self.assertEqual(status, 403, headers)
        for host, wanted in (("evil.example", 421), ("localhost.evil.example", 421), ("", 421), ("127.0.0.1", 404), ("runs.example.org", 404), ("LOCALHOST:1", 404)):
            self.assertEqual(self.server.get(path + name_of(pack), Host=host)[0], wanted, host)
        self.assertNotIn(name_of(pack), self.server.packs())
        self.assertEqual(self.server.ask("PUT", path + name_of(pack), body=pack, token=self.server.writes, Origin=self.server.url)[0], 201)

    def test_answers_let_a_browser_run_nothing_strange(self):
        _, headers, _ = self.server.get("/api/v1/packs/" + name_of(self.pack))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_nonsense_is_answered_or_closed_and_the_server_lives(self):
        for data in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"PUT /api/v1/packs/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                     b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"BREW /coffee HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                     b"PUT /api/v1/packs/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n"):
            self.assertIn(self.status(data) // 100, (0, 4, 5), data[:60])
        self.assertEqual(self.server.get("/api/v1/packs/" + name_of(self.pack))[0], 200)

    def test_slow_clients_hinder_nobody(self):
        slow = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(200)]
        for turn in range(3):
            for s in slow:
                s.sendall(b"a" if turn else b"GET / HTTP/1.1\r\nHost: loc")
            self.assertEqual(self.server.get("/api/v1/packs/" + name_of(self.pack))[0], 200)
        for s in slow:
            s.close()

    def test_one_address_takes_a_quarter_of_the_connections_at_most(self):
        held, answered = [], 0
        for _ in range(300):
            held.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=60, source_address=("127.0.0.2", 0)))
            try:
                held[-1].sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answered += bool(held[-1].recv(65536))
            except ConnectionError:
                continue
        self.assertEqual(answered, 250)
        self.assertEqual(self.server.get("/api/v1/packs/" + name_of(self.pack))[0], 200, "another address comes in")
        for s in held:
            s.close()

    def test_a_hostile_pack_costs_one_child(self):
        """Packs of noise, a zstd bomb, names that leave the folder, a trace of noise: each is reported, and the next pack is read."""
        bad = [make_pack(3), pack_of_members([(b"../../../../tmp/stormlog-escaped.msgpack.zst", b"x" * 100)]),
               pack_of_members([(b"rank-00000-1.msgpack.zst", b"\0" * (1 << 26))]), pack_of_members([(b"rank-00000-1.msgpack.zst", os.urandom(100000))]), pack_of_members([])]
        for pack in bad:
            self.assertEqual(self.server.put(pack)[0], 201)
        for pack in bad:
            name = name_of(pack)
            said = os.path.join(self.server.store, "pages", name[:2], name, "failed")
            wait_for(lambda: os.path.exists(said) and os.path.getsize(said))
        self.assertFalse(os.path.exists("/tmp/stormlog-escaped.msgpack.zst"))
        wait_for(lambda: os.listdir(os.path.join(self.server.store, "work")) == [])


    def test_mutated_traces_are_runs_or_refused_and_harm_nothing(self):
        """Golden traces, changed inside their frames and compressed again: each pack becomes a run or is refused with a sentence."""
        import zstandard
        from runs import t
        dice, packs = random.Random(25), []
        golden = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "traces", "*", "*.msgpack.zst")))
        for number in range(24):
            with open(golden[number % len(golden)], "rb") as file:
                data, frames = file.read(), b""
            while data:
                _, _, kind, thread, first, end, count, size, begin_ns, end_ns, _ = t.INDEX.unpack(data[:t.INDEX.size])
                content = bytearray(zstandard.ZstdDecompressor().decompressobj().decompress(data[t.INDEX.size:t.INDEX.size + size]))
                data = data[t.INDEX.size + size:]
                for _ in range(dice.choice((0, 0, 1, 3, 20)) if number else 0):
                    at = dice.randrange(len(content) + 1)
                    content[at:at + dice.randrange(4)] = bytes([dice.choice((0, 0x7f, 0x80, 0xc1, 0xff, dice.randrange(256)))])
                frames += t.frame(kind, bytes(content), thread, first, end, count, begin_ns, end_ns)
            packs.append(pack_of_members([(b"rank-00000-1.msgpack.zst", frames)]))
        outside = [name for name in tree(self.folder) if not name.startswith("store")]
        for pack in packs:
            self.assertIn(self.server.put(pack)[0], (200, 201))
        ends = [wait_for(lambda: (lambda got: got[0] != 202 and got)(self.server.get("/packs/" + name_of(pack)))) for pack in packs]
        self.assertEqual(ends[0][0], 302, "the one that was not changed")
        for status, _, body in ends:
            self.assertTrue(status == 302 or (status == 422 and 10 < len(body) < 300), (status, body))
        self.assertEqual([name for name in tree(self.folder) if not name.startswith("store")], outside)
        wait_for(lambda: os.listdir(os.path.join(self.server.store, "work")) == [])
        self.assertGreaterEqual(json.loads(self.server.get("/api/v1/runs")[2])["count"], 1)


unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
