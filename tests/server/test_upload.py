#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_upload.py STORMLOG_SERVER [KILLS]: a pack is stored whole or not at all, whether the upload, the server or the disk fails."""
import glob
import hashlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from served import Server, make_pack, name_of, pack_of_members, wait_for

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 20


class Upload(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-server-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = None

    def tearDown(self):
        if self.server:
            self.server.kill()

    def serve(self, *options, store="store"):
        self.server = Server(PROGRAM, os.path.join(self.folder, store), *options).start()
        return self.server

    def read(self, name):
        with open(self.server.packs()[name], "rb") as file:
            return file.read()

    def test_a_pack_is_stored_as_it_came_and_comes_back_so(self):
        server, pack = self.serve(), make_pack(1)
        name = name_of(pack)
        self.assertEqual(server.offset(name), (404, 0))
        status, headers, _ = server.put(pack)
        self.assertEqual((status, headers["Location"]), (201, "/api/v1/packs/" + name))
        self.assertEqual(self.read(name), pack)
        self.assertEqual(server.get("/api/v1/packs/" + name)[2], pack)
        self.assertEqual(server.offset(name), (200, len(pack)))
        self.assertEqual(server.put(pack)[0], 200, "a second time it is there already")
        self.assertEqual(os.stat(server.packs()[name]).st_mode & 0o777, 0o600)

    def test_curl_alone_uploads(self):
        server, pack = self.serve(), make_pack(2, 1 << 22)
        path = os.path.join(self.folder, "a pack")
        with open(path, "wb") as file:
            file.write(pack)
        subprocess.run(["curl", "-sSf", "-T", path, "-H", "Authorization: Bearer " + server.writes,
                        f"{server.url}/api/v1/packs/{name_of(pack)}"], check=True, capture_output=True)
        self.assertEqual(self.read(name_of(pack)), pack)

    def test_an_upload_that_was_torn_goes_on_where_it_stopped(self):
        server, pack = self.serve(), make_pack(3, 1 << 20)
        name = name_of(pack)
        connection = server.connect()
        connection.putrequest("PUT", "/api/v1/packs/" + name)
        connection.putheader("Authorization", "Bearer " + server.writes)
        connection.putheader("Content-Length", str(len(pack)))
        connection.endheaders()
        connection.send(pack[:300000])
        wait_for(lambda: server.offset(name)[1] == 300000)
        self.assertEqual(server.ask("PUT", "/api/v1/packs/" + name, body=pack, token=server.writes)[0], 423, "one upload of a pack at a time")
        connection.close()
        self.assertEqual(server.packs(), {})
        self.assertEqual(server.get("/api/v1/packs/" + name)[0], 404, "half a pack is no pack")
        rest = wait_for(lambda: self.resume(pack, 300000))
        self.assertEqual(rest, 201)
        self.assertEqual(self.read(name), pack)

    def resume(self, pack, offset):
        status, _, _ = self.server.put(pack[offset:], name_of(pack), Content_Range=f"bytes {offset}-{len(pack) - 1}/{len(pack)}")
        return status if status != 423 else None

    def test_a_pack_in_three_parts(self):
        server, pack = self.serve(), make_pack(4)
        name = name_of(pack)
        third = len(pack) // 3
        for at, end, wanted in ((0, third, 202), (third, 2 * third, 202), (2 * third, len(pack), 201)):
            status, headers, _ = server.put(pack[at:end], name, Content_Range=f"bytes {at}-{end - 1}/{len(pack)}")
            self.assertEqual((status, headers["Upload-Offset"]), (wanted, str(end)))
        self.assertEqual(self.read(name), pack)

    def test_a_wrong_offset_says_the_right_one(self):
        server, pack = self.serve(), make_pack(5)
        server.put(pack[:1000], name_of(pack), Content_Range=f"bytes 0-999/{len(pack)}")
        status, headers, _ = server.put(pack[2000:], name_of(pack), Content_Range=f"bytes 2000-{len(pack) - 1}/{len(pack)}")
        self.assertEqual((status, headers["Upload-Offset"]), (409, "1000"))
        for wrong in ("bytes 5-3/10", "bytes 0-9/5", "bytes */10", "0-9/10", "bytes 0-99999999999999999999/10", "bytes 1000-1000/" + "9" * 30, "x" * 300):
            status, _, _ = server.put(pack[:10], name_of(pack), Content_Range=wrong)
            self.assertEqual(status, 400, wrong)
        self.assertEqual(server.packs(), {})

    def test_what_does_not_agree_with_its_name_is_not_stored(self):
        server, pack = self.serve(), make_pack(6)
        self.assertEqual(server.put(pack[:-1] + b"!", name_of(pack))[0], 422)
        self.assertEqual(server.put(b"\0no pack, and no text")[0], 422)
        self.assertEqual(server.put(b"")[0], 422)
        self.assertEqual(server.packs(), {})
        self.assertEqual(os.listdir(os.path.join(server.store, "incoming")), [])

    def test_limits_are_said(self):
        server = self.serve("--max-pack", "100K", "--quota", "150K")
        self.assertEqual(server.put(make_pack(7, 200 << 10))[0], 413)
        self.assertEqual(server.put(make_pack(8, 90 << 10))[0], 201)
        status, _, body = server.put(make_pack(9, 90 << 10))
        self.assertEqual(status, 507)
        self.assertIn(b"--quota", body)
        self.assertEqual(server.put(make_pack(10, 50 << 10))[0], 201, "what fits still comes")

    def begin(self, n, size, total):
        return self.server.put(b"x" * size, f"{n:064x}", Content_Range=f"bytes 0-{size - 1}/{total}")

    def in_incoming(self):
        folder = os.path.join(self.server.store, "incoming")
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))

    def test_what_was_begun_counts_against_the_quota(self):
        server = self.serve("--quota", "150K")
        pack = make_pack(12, 60 << 10)
        half = len(pack) // 2
        server.put(pack[:half], name_of(pack), Content_Range=f"bytes 0-{half - 1}/{len(pack)}")
        answers = [self.begin(n, 50 << 10, 51 << 10)[0] for n in range(8)]
        self.assertEqual(answers, [202, 202] + [507] * 6)
        self.assertLess(self.in_incoming(), 150 << 10)
        self.assertEqual(self.begin(0, 50 << 10, 51 << 10)[0], 202, "begun anew it is counted once")
        server.kill()
        server.start()
        self.assertEqual(self.begin(9, 50 << 10, 51 << 10)[0], 507, "also after a restart")
        self.assertEqual(server.put(b"x" * 1024, f"{1:064x}", Content_Range=f"bytes {50 << 10}-{(51 << 10) - 1}/{51 << 10}")[0], 422)
        self.assertEqual(self.resume(pack, half), 201, "what was refused makes room")
        self.assertEqual(server.put(make_pack(13, 20 << 10))[0], 201)

    def test_the_uploads_that_were_begun_are_few(self):
        self.serve()
        folder = os.path.join(self.server.store, "incoming")
        for n in range(256):
            with open(os.path.join(folder, f"{n:064x}.part"), "w"):
                pass
        status, _, body = self.begin(300, 1, 2)
        self.assertEqual((status, b"begun" in body), (507, True))
        self.assertEqual(self.begin(3, 1, 2)[0], 202, "one of them goes on")
        self.assertEqual(len(os.listdir(folder)), 256)

    def test_two_at_once_do_not_exceed_the_quota(self):
        server = self.serve("--quota", "150K")
        pack = make_pack(14, 100 << 10)
        connection = server.connect()
        connection.putrequest("PUT", "/api/v1/packs/" + name_of(pack))
        connection.putheader("Authorization", "Bearer " + server.writes)
        connection.putheader("Content-Length", str(len(pack)))
        connection.endheaders()
        connection.send(pack[:1000])
        wait_for(lambda: server.offset(name_of(pack))[1] == 1000)
        self.assertEqual(server.put(make_pack(15, 100 << 10))[0], 201)
        try:
            connection.send(pack[1000:])
            self.assertEqual(connection.getresponse().status, 507)
        except (BrokenPipeError, ConnectionResetError):
            pass
        wait_for(lambda: self.in_incoming() == 0)
        connection.close()
        self.assertEqual(len(server.packs()), 1)

    def test_a_length_that_was_not_said_is_limited_too(self):
        server, pack = self.serve("--max-pack", "1M"), make_pack(11)
        status, _, _ = server.ask("PUT", "/api/v1/packs/" + name_of(pack), body=iter([pack[:40000], pack[40000:]]), token=server.writes)
        self.assertEqual(status, 201)
        endless = (b"x" * 65536 for _ in range(64))
        try:
            self.assertEqual(server.ask("PUT", "/api/v1/packs/" + "0" * 64, body=endless, token=server.writes)[0], 413)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertEqual(list(server.packs()), [name_of(pack)])

    def test_killed_at_any_moment_every_answered_pack_is_there_and_none_is_half(self):
        """Four clients upload while the server is killed again and again; they note which packs were acknowledged."""
        server = self.serve()
        dice, answered, packs = random.Random(25), set(), {}
        lock, ends = threading.Lock(), threading.Event()

        def client(seeds):
            for seed in seeds:
                if ends.is_set():
                    return
                pack = make_pack(seed, 1 << 18)
                with lock:
                    packs[name_of(pack)] = pack
                if server.put(pack)[0] in (200, 201):
                    with lock:
                        answered.add(name_of(pack))

        def guarded(number):
            seeds = itertools.count(number * 1000000)
            while not ends.is_set():
                try:
                    client(seeds)
                except Exception:  # an answer that was cut off, as any of http.client's errors
                    continue

        threads = [threading.Thread(target=guarded, args=(n,)) for n in range(1, 5)]
        port = server.port
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            ends.wait(dice.uniform(0.01, 0.3))
            server.kill(signal.SIGKILL)
            server.start(port)
        ends.set()
        for thread in threads:
            thread.join()
        there = server.packs()
        self.assertGreater(len(answered), 5)
        self.assertEqual(answered - set(there), set(), "answered and not there")
        for name in there:
            with open(there[name], "rb") as file:
                self.assertEqual(file.read(), packs[name], "half a pack")
        print(f"{KILLS} kills, {len(answered)} answered, {len(there)} stored")

    def small_disk(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        return disk

    def fill(self, disk, left):
        room = os.statvfs(disk)
        with open(os.path.join(disk, "other"), "wb") as other:
            os.posix_fallocate(other.fileno(), 0, room.f_bavail * room.f_frsize - left)

    def a_run(self, number=0):
        members = []
        for path in sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "traces", "every-kind", "*.zst"))):
            with open(path, "rb") as file:
                members.append((os.path.basename(path).encode().replace(b"00000", b"%05d" % number), file.read()))
        return pack_of_members(members)

    def test_a_pack_that_is_being_read_when_the_server_ends_is_read_by_the_next(self):
        server, packs = self.serve(), [self.a_run(number) for number in range(8)]
        for pack in packs:
            self.assertEqual(server.put(pack)[0], 201)
            wait_for(lambda: os.path.exists(os.path.join(server.store, "work", "now", "card.json")) or server.get("/packs/" + name_of(pack))[0] == 302)
            server.kill(signal.SIGTERM)
            server.start()
        for pack in packs:
            self.assertEqual(wait_for(lambda: (lambda status: status != 202 and status)(server.get("/packs/" + name_of(pack))[0])), 302)

    def test_many_packs_that_were_not_read_wait_in_one_queue_without_cost(self):
        for number in range(40000):
            name = hashlib.sha256(b"%d" % number).hexdigest()
            os.makedirs(os.path.join(self.folder, "store", "packs", name[:2]), exist_ok=True)
            with open(os.path.join(self.folder, "store", "packs", name[:2], name + ".stormlog"), "wb") as file:
                file.write(b"stormlog.pack\n\1\0")
        server = self.serve()
        wait_for(lambda: "stormlog-server: pack " in server.said())  # the first is read
        with open(f"/proc/{server.process.pid}/stat") as file:
            used = int(file.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")
        self.assertLess(used, 3, "seconds of the processor; six where each is compared with all")

    def test_a_pack_whose_pages_found_the_disk_full_is_read_when_there_is_room(self):
        disk, pack = self.small_disk(), self.a_run()
        server = self.serve(store="disk/store")
        self.assertEqual(server.put(pack)[0], 201)
        wait_for(lambda: server.get("/runs/1")[0] == 200)
        server.kill(signal.SIGTERM)
        shutil.rmtree(os.path.join(server.store, "pages"))
        self.fill(disk, 64 << 10)  # SQLite's shared memory file takes half of it
        server.start()
        wait_for(lambda: "pack %s: " % name_of(pack) in server.said())
        answers = [server.ask("POST", "/runs/1/note", body="text=" + "x" * 4000, token=server.writes)[0] for _ in range(20)]
        self.assertEqual(set(answers) - {303}, {507}, "a note that could not be kept")
        self.assertEqual(server.get("/runs/1")[0], 200)
        os.unlink(os.path.join(disk, "other"))
        wait_for(lambda: server.get("/api/v1/runs/1/report")[0] == 200)

    def test_a_full_disk_refuses_with_a_sentence_and_reading_goes_on(self):
        disk = self.small_disk()
        server, stored = self.serve(store="disk/store"), []
        for seed in range(12):
            pack = make_pack(100 + seed, 4 << 20)
            status, _, body = server.put(pack)
            if status != 201:
                break
            stored.append(pack)
        self.assertEqual(status, 507)
        self.assertIn(b"disk is full", body)
        self.assertGreater(len(stored), 2)
        # fill the disk to the last byte, after the server's check of free space
        with open(os.path.join(disk, "other"), "wb") as other:
            try:
                while other.write(b"x" * 65536):
                    pass
            except OSError:
                pass
        self.assertEqual(server.put(make_pack(1, 1000))[0], 507)
        for pack in stored:
            self.assertEqual(server.get("/api/v1/packs/" + name_of(pack))[2], pack)
        os.unlink(os.path.join(disk, "other"))
        os.unlink(server.packs()[name_of(stored[0])])
        self.assertEqual(server.put(make_pack(1, 1000))[0], 201, "and goes on when there is room")

    def test_the_packs_may_lie_in_a_mounted_object_store(self):
        """It cannot change a file, so the server puts an upload together elsewhere, and removes what a killed server left in it."""
        objects, packs = os.path.join(self.folder, "objects"), os.path.join(self.folder, "store", "packs")
        os.makedirs(objects)
        os.makedirs(packs)
        mount = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "object_store.py"), objects, packs],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(mount.wait)
        self.addCleanup(subprocess.run, ["umount", "-l", packs], capture_output=True)
        if not wait_for(lambda: os.path.ismount(packs) or mount.poll() is not None) or mount.poll() is not None:
            self.skipTest("no FUSE here")
        server, pack = self.serve(), make_pack(1, 3 << 20)
        name = name_of(pack)
        self.assertEqual(server.put(pack)[0], 201)
        with open(os.path.join(objects, name[:2], name + ".stormlog"), "rb") as file:
            self.assertEqual(file.read(), pack)
        self.assertEqual(server.get("/api/v1/packs/" + name)[2], pack)
        wait_for(lambda: server.get("/packs/" + name)[0] == 422)  # its child has read and refused it
        left = os.path.join(objects, "ff", "f" * 64 + ".part")  # as a server leaves it that is killed while it writes
        os.makedirs(os.path.dirname(left), exist_ok=True)
        with open(left, "w") as file:
            file.write("half")
        self.assertEqual(server.offset("f" * 64), (404, 0))
        os.utime(left, (0, 0))
        server.kill()
        server.start()
        wait_for(lambda: not os.path.exists(left))
        self.assertEqual(list(server.packs()), [name])
        server.kill()

    def test_every_option_of_help_is_in_the_manual(self):
        shown = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "man", "stormlog-server.1.in")) as page:
            manual = page.read().replace("\\-", "-")
        flags = set(re.findall(r"--[a-z-]+", shown))
        self.assertGreater(len(flags), 9)
        for flag in flags:
            self.assertIn(flag, manual)
        for wrong in ([], ["--store"], ["--store", "x", "--quota", "many"], ["--store", "x", "--keep-count", "0"], ["--store", "x", "--listen", "nowhere"],
                      ["--store", "x", "token", "add", "../x", "--read"], ["--store", "x", "token", "add", "x"], ["--store", "x", "nonsense"]):
            done = subprocess.run([PROGRAM, *wrong], capture_output=True, text=True, cwd=self.folder, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), wrong)
            self.assertNotEqual(done.stderr, "")

    def test_a_folder_of_something_else_is_no_store_and_stays_as_it_is(self):
        store = os.path.join(self.folder, "mine")
        os.makedirs(os.path.join(store, "work", "now"))
        os.makedirs(os.path.join(store, "pages", "compare"))
        for path in ("work/now/notes.txt", "pages/compare/.gitkeep", "packs"):
            with open(os.path.join(store, path), "w"):
                pass
        before = sorted(os.walk(store))
        for command in ["token", "add", "ci", "--write"], ["--listen", "127.0.0.1:0"]:
            done = subprocess.run([PROGRAM, "--store", store, *command], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 4)
            self.assertIn("not empty and not a store", done.stderr)
        self.assertEqual(sorted(os.walk(store)), before)
        for names in (["packs", "pages"], ["packs", "tokens.new"], ["packs", "README"], ["tokens", ".snapshot"], ["tokens.new"], ["lost+found"]):
            store = tempfile.mkdtemp(dir=self.folder)
            for name in names:
                os.mkdir(os.path.join(store, name)) if "tokens" not in name else open(os.path.join(store, name), "w").close()
            done = subprocess.run([PROGRAM, "--store", store, "token", "add", "ci", "--read"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, (names, done.stderr))
        server = self.serve(store="old")  # whose catalogue is gone, and beside which somebody put something
        server.kill(signal.SIGTERM)
        os.unlink(os.path.join(server.store, "catalogue.sqlite"))
        with open(os.path.join(server.store, "README"), "w"):
            pass
        server.start()

    def test_what_only_asks_makes_no_store(self):
        empty = tempfile.mkdtemp(dir=self.folder)
        usages = [["nonsense"], ["--listen", "nowhere"], *(["token", *words.split()] for words in (
            "", "nonsense", "list extra", "list --read", "remove", "remove a b", "remove a --write", "add", "add ci", "add --write", "add a/b --write",
            "add ci --nonsense", "add ci --nonsense --write", "add ci me --write"))]
        for store, command, status in ((empty, ["token", "list"], 4), (empty, ["token", "remove", "ci"], 4), (empty, ["backup", os.path.join(self.folder, "b")], 4),
                                       (empty + "/new", ["token", "list"], 4), *((empty, command, 2) for command in usages)):
            done = subprocess.run([PROGRAM, "--store", store, *command], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout, os.listdir(empty)), (status, "", []), (command, done.stderr))
            if command[0] == "token":
                self.assertIn("NAME --read|--write" if status == 2 else store + ": no store is there", done.stderr)

    def test_a_store_is_there_by_its_catalogue_or_its_packs(self):
        server = self.serve()
        server.kill(signal.SIGTERM)
        shutil.rmtree(os.path.join(server.store, "packs"))
        only_packs = tempfile.mkdtemp(dir=self.folder)
        os.mkdir(os.path.join(only_packs, "packs"))
        for store in server.store, only_packs:
            done = subprocess.run([PROGRAM, "--store", store, "token", "list"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_second_server_on_a_store_is_refused(self):
        server = self.serve()
        done = subprocess.run([PROGRAM, "--store", server.store, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 4)
        self.assertIn("another server uses this store", done.stderr)
        server.kill(signal.SIGTERM)


unittest.main(argv=sys.argv[:1], verbosity=2)
