#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_push.py STORMLOG_SERVER STORMLOG_ANALYZE MAKE_TRACE STORMLOG_RUN PROGRAM LIBRARIES: runs are sent to the server."""
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from served import Server, make_pack, name_of

PROGRAM, ANALYZE, MAKE_TRACE, RUN, RECORDED, LIBRARIES = map(os.path.abspath, sys.argv[1:7])


class Half:
    """A proxy that cuts its first connections, each after so many bytes (`cuts`) from the client."""

    def __init__(self, port, cuts):
        self.port, self.cuts = port, list(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.through = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        server = socket.create_connection(("127.0.0.1", self.port))

        def back():
            while data := server.recv(65536):
                client.sendall(data)
            client.close()

        threading.Thread(target=self.quietly, args=(back,), daemon=True).start()
        self.quietly(lambda: self.forth(client, server))

    def forth(self, client, server):
        seen = 0
        while data := client.recv(65536):
            seen += len(data)
            if self.cuts and seen > self.cuts[0]:
                self.cuts.pop(0)
                for end in (client, server):
                    end.shutdown(socket.SHUT_RDWR)
                return
            self.through += len(data)
            server.sendall(data)

    @staticmethod
    def quietly(run):
        try:
            run()
        except OSError:
            pass


class Push(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-push-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = Server(PROGRAM, os.path.join(self.folder, "store")).start()
        self.addCleanup(self.server.kill)
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)

    def push(self, *arguments, token=True, **environment):
        keep = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        if token:
            keep["STORMLOG_TOKEN"] = self.server.writes
        return subprocess.run([ANALYZE, "push", *arguments], capture_output=True, text=True, timeout=120,
                              env={**keep, "TMPDIR": self.temporary, **environment})

    def traces(self, name="traces"):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        subprocess.run([MAKE_TRACE, "training", path, "2", "20"], check=True)
        return path

    def stored(self):
        return set(self.server.packs())

    def test_a_folder_of_traces_arrives_as_the_pack_that_pack_writes(self):
        traces, pack = self.traces(), os.path.join(self.folder, "mine.stormlog")
        done = self.push(traces, "--to", self.server.url)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        subprocess.run([ANALYZE, "pack", "-o", pack, traces], check=True)
        with open(pack, "rb") as file:
            name = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(self.stored(), {name})
        self.assertEqual(done.stdout, f"{self.server.url}/packs/{name}\n")
        self.assertEqual(os.listdir(self.temporary), [], "what was packed for the way is gone")
        done = self.push(pack, STORMLOG_SERVER=self.server.url + "/")
        self.assertEqual(done.returncode, 0, "a pack, and a second time")
        self.assertEqual(self.stored(), {name})
        torn = os.path.join(self.folder, "torn.stormlog")
        with open(torn, "wb") as file:
            file.write(make_pack(1))
        done = self.push("--json", pack, torn, "--to", self.server.url)
        first, second = json.loads(done.stdout)["packs"]
        self.assertEqual((done.returncode, done.stderr), (4, "stormlog-push: torn.stormlog: %s\n" % second["error"]))
        self.assertEqual(first, {"name": "mine.stormlog", "bytes": os.path.getsize(pack), "url": f"{self.server.url}/packs/{name}", "waiting": False, "error": None})
        self.assertEqual((second["name"], second["bytes"], second["url"]), ("torn.stormlog", os.path.getsize(torn), None))

    def test_a_log_arrives_as_it_is_and_is_answered(self):
        log = os.path.join(self.folder, "job.log")
        with open(log, "w") as file:
            file.write('  File "/home/u/train.py", line 61, in main\n    y = model(x)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a '
                       "total capacity of 23.64 GiB of which 1.41 GiB is free.\n")
        done = self.push(log, "--to", self.server.url)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(log, "rb") as file:
            self.assertEqual(self.stored(), {hashlib.sha256(file.read()).hexdigest()})
        status, _, found = self.server.ask("GET", "/api/v1/runs?q=place:train.py:61", token=self.server.reads)
        self.assertEqual((status, [run["run"]["finding"] for run in json.loads(found)["runs"]]), (200, ["out_of_memory"]))
        self.assertEqual(json.loads(found)["runs"][0]["run"]["verdict"], "OUT OF MEMORY: train.py:61 asks 2.25 GiB, 1.41 GiB are free")
        status, _, report = self.server.ask("GET", "/api/v1/runs/1/report", token=self.server.reads)
        self.assertEqual((status, json.loads(report)["answer"]["verdicts"][0]["headline"]), (200, "train.py:61 asks 2.25 GiB, 1.41 GiB are free"))

    def test_a_part_of_a_run_is_sent_and_said(self):
        part, whole, none = self.traces("part"), self.traces("whole"), os.path.join(self.folder, "none")
        with open(os.path.join(part, "stranger.stormlog"), "wb") as file:
            file.write(b"no trace")
        os.mkfifo(os.path.join(part, "fifo.stormlog"))
        done = self.push(part, whole, "--to", self.server.url)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (3, 2), done.stderr)
        self.assertIn(f"{part} may not be the whole run", done.stderr)
        os.mkdir(none)
        shutil.copy(os.path.join(part, "stranger.stormlog"), none)
        done = self.push(self.traces("third"), none, "--to", self.server.url)
        self.assertEqual((done.returncode, done.stdout), (3, ""), "nothing is sent where one path has no trace")
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_network_that_breaks_is_gone_on_with(self):
        pack, path = make_pack(1, 8 << 20), os.path.join(self.folder, "large.stormlog")
        with open(path, "wb") as file:
            file.write(pack)
        half = Half(self.server.port, [3 << 20, 3 << 20])
        done = self.push(path, "--to", half.url)
        self.assertEqual((done.returncode, self.stored()), (4, {name_of(pack)}), done.stderr)
        self.assertRegex(done.stderr, "large.stormlog: the server cannot keep this run: .*the pack is torn or damaged")
        self.assertNotIn("/packs/", done.stdout, "no address is given for what is never shown")
        self.assertEqual(half.cuts, [])
        self.assertLess(half.through, 10 << 20, "what was there was not sent again")

    def test_a_terminal_is_told_how_far_it_is(self):
        path, (ours, theirs) = os.path.join(self.folder, "large.stormlog"), os.openpty()
        with open(path, "wb") as file:
            file.write(make_pack(2, 4 << 20))
        started = subprocess.Popen([ANALYZE, "push", path, "--to", self.server.url], stdout=subprocess.DEVNULL, stderr=theirs,
                                   env={**os.environ, "STORMLOG_TOKEN": self.server.writes, "TMPDIR": self.temporary})
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # on Linux a closed terminal is an error
            pass
        os.close(ours)
        self.assertEqual(started.wait(), 4, said)
        parts = [int(percent) for percent in re.findall(rb"\rlarge\.stormlog: (\d+) %", said)]
        self.assertEqual((parts, parts[-1]), (sorted(parts), 100), said)

    def test_what_was_interrupted_sends_nothing_more(self):
        path, nobody = os.path.join(self.folder, "mine.stormlog"), socket.socket()
        self.addCleanup(nobody.close)
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        with open(path, "wb") as file:
            file.write(make_pack(1))
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
            started = subprocess.Popen([ANALYZE, "push", path, "--to", "http://127.0.0.1:%d" % nobody.getsockname()[1]], text=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": self.temporary})
            with started.stderr:
                self.assertIn("trying again for a minute", started.stderr.readline())
                started.send_signal(number)
                self.assertEqual(started.stderr.read(), "", "the sender has ended too")
            self.assertEqual(started.wait(), -number)

    def test_refusals_are_the_servers_words(self):
        traces = self.traces()
        done = self.push(traces, "--to", self.server.url, token=False)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, rf"{os.path.basename(traces)}.*: the server says 401: a token for writing is needed.*\(STORMLOG_TOKEN")
        done = self.push(traces, "--to", self.server.url, STORMLOG_TOKEN="0" * 64)
        self.assertIn("401: this token is not known (STORMLOG_TOKEN", done.stderr)
        done = self.push(traces, "--to", self.server.url, STORMLOG_TOKEN=self.server.reads)
        self.assertIn("403: this token does not give that right", done.stderr)
        self.assertEqual(self.push(traces).returncode, 2, "to nowhere")
        self.assertEqual(self.push(traces, "--to", "ftp://x").returncode, 2)
        self.assertEqual(self.push(os.path.join(self.folder, "nothing"), "--to", self.server.url).returncode, 2)
        self.assertEqual(self.push(traces, "--to", self.server.url, "--run", "nosuch").returncode, 2)
        self.assertEqual(self.stored(), set())
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_token_that_others_could_read_on_the_way_is_said(self):
        for host, said in (("0.0.0.0", True), ("localhost", False), ("127.0.0.2", False)):
            done = self.push(self.traces(host), "--to", f"http://{host}:{self.server.port}")
            self.assertEqual(("unencrypted" in done.stderr, self.server.writes in done.stderr), (said, False), host)

    def test_the_token_may_lie_in_a_file(self):
        path = os.path.join(self.folder, "token")
        with open(path, "w") as file:
            file.write(self.server.writes + "\n")
        done = self.push(self.traces(), "--to", self.server.url, token=False, STORMLOG_TOKEN="", STORMLOG_TOKEN_FILE=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.stored()), 1)
        os.unlink(path)
        os.mkfifo(path)
        done = self.push(self.traces("others"), "--to", self.server.url, token=False, STORMLOG_TOKEN="", STORMLOG_TOKEN_FILE=path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(path + ": Invalid argument", done.stderr)

    def test_a_recording_is_pushed_when_it_ends_and_its_status_stays(self):
        environment = {**os.environ, "STORMLOG_SERVER": self.server.url, "STORMLOG_TOKEN": self.server.writes, "LD_LIBRARY_PATH": LIBRARIES,
                       "TMPDIR": self.temporary}
        output = os.path.join(self.folder, "recorded")
        done = subprocess.run([RUN, "--push", "-o", output, "--", "sh", "-c", f"{RECORDED}; exit 7"], env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(len(self.stored()), 1, done.stderr)
        name, = self.stored()
        self.assertIn(f"{self.server.url}/packs/{name}", done.stderr)
        report = subprocess.run([ANALYZE, "--json", self.server.packs()[name]], capture_output=True, text=True, check=True).stdout
        self.assertIn(os.path.basename(RECORDED), report)
        dump = subprocess.run([ANALYZE, "dump", output], capture_output=True, text=True, check=True).stdout
        self.assertNotIn(self.server.writes, dump + report, "the token is no part of the recording")

    def test_a_function_is_sent_when_it_ends_whatever_it_ends_with(self):
        script = os.path.join(self.folder, "trained.py")
        with open(script, "w") as file:
            file.write("""
import ctypes, os, sys, warnings
sys.path.insert(0, %r)
from stormlog_native import sent
cudart = ctypes.CDLL("libcudart.so.13")

@sent
def train(mib):
    assert cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0
    return mib

@sent(to=os.environ["STORMLOG_SERVER"] + "/nowhere")
def fails():
    raise KeyError("kept")

assert train(77) == 77
if len(sys.argv) > 1:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fails()
        except KeyError as error:
            print("raised", error, [str(one.message)[:20] for one in caught])
""" % os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
        environment = {**os.environ, "STORMLOG_SERVER": self.server.url, "STORMLOG_TOKEN": self.server.writes, "LD_LIBRARY_PATH": LIBRARIES,
                       "TMPDIR": self.temporary, "STORMLOG_BIN": os.path.dirname(ANALYZE)}
        done = subprocess.run([RUN, "-q", "-o", os.path.join(self.folder, "recorded"), "--", sys.executable, script, "again"], env=environment,
                              capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("raised 'kept' ['the run was not sent']", done.stdout)
        name, = self.stored()
        report = subprocess.run([ANALYZE, "--json", self.server.packs()[name]], capture_output=True, text=True, check=True).stdout
        self.assertEqual([row["live_bytes"] for row in json.loads(report)["processes"][0]["memory"]], [77 << 20])
        plain = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=100)
        self.assertEqual((plain.returncode, plain.stderr), (0, ""), "what is not recorded is not sent")
        self.assertEqual(len(self.stored()), 1)


unittest.main(argv=sys.argv[:1], verbosity=2)
