#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A verb's output replaces a file, but never an input, a recording or a link: every file in the folder is compared before and after."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import formats  # noqa: E402
import traces as t  # noqa: E402

ANALYZE = os.path.abspath(sys.argv[1])
TRACE = "t/rank-00000-100.msgpack.zst"
# Verbs that write a file; %s is its name.
VERBS = [["export", form, "-o", "%s", "t"] for form in formats.of(ANALYZE)]
VERBS += [["check", "--max-peak", "1T", option, "%s", "t"] for option in ("--junit", "--sarif", "--metrics")]
VERBS += [["check", "--baseline", "%s", "--update-baseline", "t"], ["pack", "-o", "%s", "t"], ["pack", "--redact", "-o", "%s", "t"],
          ["diff", "--html", "%s", "t", "t"], ["diff", "--collapsed", "%s", "t", "t"], ["monitor", "-o", "%s", "t"]]
APPENDS = [["check", "--max-peak", "1T", "--summary", "%s", "t"]]
VERBS += [["monitor", "--format", form, "-o", "%s", "t"] for form in ("csv", "ndjson")]


class Outputs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-outputs-")
        self.addCleanup(shutil.rmtree, self.folder)
        t.write(self.path(TRACE), t.header(), t.Thread().events(4, api=t.MALLOC, kind=1, address=[4096, 8192, 12288, 16384], bytes=4096), t.footer())

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data)

    def contents(self):
        found = {}
        for root, _, files in os.walk(self.folder):
            for name in files:
                with open(os.path.join(root, name), "rb") as file:
                    found[os.path.relpath(os.path.join(root, name), self.folder)] = file.read()
        return found

    def run_it(self, verb, name="", cwd=""):
        return subprocess.run([ANALYZE, *(word.replace("%s", name) for word in verb)], capture_output=True, text=True, timeout=120,
                              cwd=self.path(cwd))

    def refused(self, verb, name, says, cwd=""):
        before = self.contents()
        done = self.run_it(verb, name, cwd)
        self.assertEqual((done.returncode, done.stdout), (2, ""), (verb, name, done.stderr))
        self.assertRegex(done.stderr, r"^stormlog-analyze: .*%s.*(stays as it is|name another place)" % says, (verb, name))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(self.contents(), before, (verb, name))

    def test_no_verb_replaces_an_input(self):
        os.link(self.path(TRACE), self.path("other name"))
        for verb in VERBS + APPENDS:
            self.refused(verb, TRACE, "is what is read")
            self.refused(verb, "other name", "is a recording")
        self.refused(["export", "csv", "-o", "%s", TRACE], "other name", "is what is read")
        self.put("./s", b"leak:x\n")
        self.refused(["check", "--max-peak", "1T", "--suppressions", "s", "--junit", "%s", "t"], "s", "is what is read")

    def test_no_verb_replaces_a_recording_that_it_does_not_read(self):
        self.put("r/x.ring", b"stormlog.ring\n\1" + bytes(200))
        self.put("r/x", b"stormlog.ring\n\1" + bytes(200))
        self.put("r/torn.msgpack.zst", b"torn")
        self.run_it(["pack", "-o", "r/x.stormlog", "t"])
        for verb in VERBS + APPENDS:
            for name in "r/x.ring", "r/x", "r/torn.msgpack.zst", "r/x.stormlog":
                if not (verb[0] == "pack" and name.endswith(".stormlog")):
                    self.refused(verb, name, "is (a recording|no )")

    def test_files_that_are_read_by_name_stay_in_folders_that_are_read(self):
        self.run_it(["pack", "-o", "t/old.stormlog", "t"])
        self.refused(["pack", "-o", "%s", "t"], "t/old.stormlog", "is what is read")
        for name in "t/manifest.json", "t/segment-00001.jsonl", "t/x.summary":
            self.put(name, b"")
            for verb in VERBS:
                if "--baseline" not in verb:
                    self.refused(verb, name, "is what is read")

    def test_a_link_at_the_place_of_a_file_stays(self):
        for verb in VERBS:
            self.put("./former", b"")
            self.assertEqual(self.run_it(verb, "former").returncode, 0, verb)
            for to in "notes", "former", "nothing", "t":
                self.put("./notes", b"")
                os.symlink(to, self.path("out"))
                done = self.run_it(verb, "out")
                self.assertEqual((done.returncode, os.readlink(self.path("out"))), (2, to), (verb, to, done.stderr))
                self.assertRegex(done.stderr, "out is (a symbolic link.*; name another place|no baseline)")
                os.unlink(self.path("out"))
                self.assertEqual((self.contents()["notes"], "nothing" in self.contents()), (b"", False))
            os.unlink(self.path("former"))

    def test_standard_output_is_appended_to_and_never_replaced(self):
        os.symlink("/proc/self/fd/1", self.path("stdout"))  # as /dev/stdout
        for name in "-", "stdout":
            for verb in ["monitor", "--duration", "0.1", "--format", "csv"], ["export", "csv"], ["check", "--max-peak", "1T", "--junit"]:
                self.put("./log", b"line\n" * 600)
                with open(self.path("log"), "ab") as log:
                    full = subprocess.run(["sh", "-c", 'ulimit -f 3; trap "" XFSZ; exec "$@"', "sh", ANALYZE, *verb, *([] if "check" in verb else ["-o"]), name, "t"],
                                          stdout=log, stderr=subprocess.PIPE, text=True, cwd=self.folder)
                with open(self.path("log"), "rb") as log:
                    self.assertEqual(log.read(3000), b"line\n" * 600, (verb, name, full.stderr))
                self.assertTrue(os.path.islink(self.path("stdout")), verb)

    def test_standard_error_is_never_replaced(self):
        os.symlink("/proc/self/fd/2", self.path("stderr"))
        done = self.run_it(["export", "csv", "-o", "%s", "t"], "stderr")
        self.assertEqual((done.returncode, os.path.islink(self.path("stderr"))), (4, True))

    def test_an_open_descriptor_is_written_to_as_it_is(self):
        wanted = self.run_it(["export", "csv", "-o", "-", "t"]).stdout
        for form in "/dev/fd/%d", "/proc/self/fd/%d":
            with self.subTest(name=form), open(self.path("log"), "w+b") as log:
                log.write(b"line\n")
                log.flush()
                name = form % log.fileno()
                for verb in ["export", "csv", "-o", name, "t"], ["check", "--max-peak", "1T", "--summary", name, "t"]:
                    done = subprocess.run([ANALYZE, *verb], capture_output=True, text=True, cwd=self.folder, pass_fds=[log.fileno()])
                    self.assertEqual(done.returncode, 0, done.stderr)
                log.seek(0)
                text = log.read().decode().replace("\r\n", "\n")
                self.assertTrue(text.startswith("line\n" + wanted), text)
                self.assertIn("### GPU memory", text)

    def test_a_link_to_an_open_descriptor_may_be_anybodys(self):
        with open(self.path("log"), "w+b") as log:
            log.write(b"line\n")
            log.flush()
            os.symlink("/dev/fd/%d" % log.fileno(), self.path("link"))
            done = subprocess.run([ANALYZE, "export", "csv", "-o", "link", "t"], capture_output=True, cwd=self.folder, pass_fds=[log.fileno()])
            log.seek(0)
            self.assertEqual((done.returncode, log.read(), os.path.islink(self.path("link"))), (2, b"line\n", True), done.stderr)

    def test_every_verb_writes_to_a_pipe_of_the_shell(self):
        for verb in VERBS:
            if "sqlite" in verb or "--update-baseline" in verb:
                continue
            words = [word.replace("%s", "/dev/fd/9") for word in verb]
            done = subprocess.run(["bash", "-c", '"$@" 9> >(cat >caught); status=$?; wait $!; exit $status', "bash", ANALYZE, *words],
                                  capture_output=True, text=True, timeout=120, cwd=self.folder)
            self.assertEqual(done.returncode, 0, (verb, done.stderr))
            self.assertTrue(self.contents()["caught"], verb)

    def test_standard_output_by_its_number(self):
        for name in "/dev/fd/1", "/proc/self/fd/1":
            done = self.run_it(["export", "csv", "-o", "%s", "t"], name)
            self.assertEqual((done.returncode, done.stdout), (0, self.run_it(["export", "csv", "-o", "-", "t"]).stdout), done.stderr)

    def test_a_descriptor_that_nobody_opened_for_us_is_refused(self):
        for number in range(3, 16):
            done = self.run_it(["export", "csv", "-o", "%s", "t"], "/dev/fd/%d" % number)
            self.assertEqual((done.returncode, done.stdout), (4, ""), (number, done.stderr))
            self.assertIn("Bad file descriptor", done.stderr)
        done = self.run_it(["export", "sqlite", "-o", "%s", "t"], "/dev/fd/3")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("needs -o FILE", done.stderr)

    def test_a_summary_is_appended_to_standard_output(self):
        os.symlink("/proc/self/fd/1", self.path("stdout"))
        with open(self.path("log"), "wb") as log:
            subprocess.run([ANALYZE, "check", "--max-peak", "1T", "--summary", "stdout", "t"], stdout=log, stderr=subprocess.DEVNULL, cwd=self.folder)
        with open(self.path("log")) as log:
            text = log.read()
        self.assertRegex(text, r"(?s)### GPU memory.*asked: max-peak")

    def test_rows_that_are_written_anew_leave_other_names_of_the_old_file(self):
        rows = ["monitor", "--duration", "0.1", "-o", "%s", "t"]
        self.run_it(rows, "rows")
        os.link(self.path("rows"), self.path("kept"))
        before = self.contents()["kept"]
        self.assertTrue(before)
        self.run_it(rows, "rows")
        self.assertEqual(self.contents()["kept"], before)
        self.assertFalse(os.path.samefile(self.path("rows"), self.path("kept")))

    def test_a_file_is_replaced(self):
        for verb in VERBS:
            if "--update-baseline" in verb:
                continue
            self.put("./new", b"thesis\n")
            for _ in range(2):
                done = self.run_it(verb, "new")
                self.assertEqual(done.returncode, 0, (verb, done.stderr))
                self.assertFalse(self.contents()["new"].startswith(b"thesis"), verb)

    # ---- what a settings file that was found may name

    def found(self, text):
        self.put("repo/.git/HEAD", b"")
        self.put("repo/.stormlog.ini", text.encode())
        shutil.copytree(self.path("t"), self.path("repo/t"), dirs_exist_ok=True)

    def test_a_settings_file_that_was_found_writes_in_its_own_folder(self):
        update = ["check", "--update-baseline", "t"]
        self.put("victim/.bashrc", b"export IMPORTANT=1\n")
        os.makedirs(self.path("repo"))
        os.symlink("../victim", self.path("repo/link"))
        for where in "../victim/.bashrc", "../victim/new", self.path("victim/new"), "link/.bashrc", "link/new":
            self.found("[check]\nbaseline = %s\n" % where)
            before = self.contents()
            done = self.run_it(update, cwd="repo")
            self.assertEqual((done.returncode, done.stdout), (2, ""), where)
            self.assertIn("is not in its folder", done.stderr)
            self.assertEqual(self.contents(), before, where)
        done = self.run_it(["check", "--baseline", "../victim/new", "--update-baseline", "t"], cwd="repo")
        self.assertEqual((done.returncode, done.stdout), (0, "baseline: ../victim/new\n"), "the user names what he likes: " + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
