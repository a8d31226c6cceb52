# SPDX-License-Identifier: MIT
"""stormlog-run with the agent over the simulated GPU: --limit and --inject-oom, what is said at the end, what is left."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RUN, SIMULATOR, QUESTIONS = (os.path.abspath(path) for path in sys.argv[1:4])
CONTEXT = 300  # MiB, SIM_CTX_BYTES


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix='stormlog-sim-'))
        self.addCleanup(shutil.rmtree, self.folder)
        keep = ('PATH', 'HOME', 'LANG')
        self.environment = {name: os.environ[name] for name in keep if name in os.environ}
        self.environment.update(LD_LIBRARY_PATH=SIMULATOR, SIM_VRAM='8G', SIM_CTX_BYTES=f'{CONTEXT}M')

    def run_bare(self, *command):
        return subprocess.run(command, env=self.environment, cwd=self.folder, text=True, capture_output=True)

    def launch(self, *words):
        return self.run_bare(RUN, *words)

    def ask(self, flags, calls, size):
        done = self.launch(*flags, '--', sys.executable, QUESTIONS, str(calls), str(size))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_without_a_limit_the_program_gets_what_it_gets_without_us(self):
        bare = self.run_bare(sys.executable, QUESTIONS, '3', '100')
        self.assertEqual(self.ask([], 3, 100), json.loads(bare.stdout))

    def test_a_limit_is_what_every_question_answers_and_every_allocation_meets(self):
        answers = self.ask(['--limit', '1G'], 6, 200)
        left = 1024 - CONTEXT
        self.assertEqual(answers['first'], [left, 1024])
        self.assertEqual(answers['codes'], [0, 0, 0, 2, 2, 2])
        self.assertEqual(answers['free'], [left - 200, left - 400] + [left - 600] * 4)
        self.assertEqual(answers['pending'], 2)
        self.assertEqual(answers['driver'], [left - 600, 1024])
        self.assertEqual(answers['device_total'], 1024)
        self.assertEqual(answers['property_total'], 1024)
        self.assertEqual(answers['nvml'], [left - 600, 1024])

    def test_a_limit_above_the_device_changes_nothing(self):
        self.assertEqual(self.ask(['--limit', '1T'], 3, 100), self.ask([], 3, 100))

    def test_the_chosen_allocation_fails_as_the_runtimes_own_would_and_the_next_succeeds(self):
        answers = self.ask(['--inject-oom', '2:cudaMalloc'], 4, 100)
        self.assertEqual(answers['codes'], [0, 2, 0, 0])
        self.assertEqual(answers['pending'], 2)
        self.assertEqual(self.ask(['--inject-oom', '9'], 4, 100)['codes'], [0, 0, 0, 0])

    def test_the_end_says_how_many_processes_recorded(self):
        ask = f'{sys.executable} {QUESTIONS} 1 1'
        done = self.launch('--', sys.executable, QUESTIONS, '1', '1')
        self.assertEqual(done.stderr.splitlines()[-1], 'stormlog: 1 process recorded.  stormlog-analyze traces/')
        done = self.launch('-o', 'other', '--', 'sh', '-c', f'{ask}; {ask}; true')
        self.assertEqual(done.stderr.splitlines()[-1], 'stormlog: 2 processes recorded.  stormlog-analyze other/')
        # Another run in the same folder counts its own.
        done = self.launch('-o', 'other', '--', sys.executable, QUESTIONS, '1', '1')
        self.assertIn('1 process recorded', done.stderr)
        self.assertEqual(len(glob.glob(os.path.join(self.folder, 'other', 'rank-*.zst'))), 3)

    def test_placeholders_make_folders_of_their_own_and_the_end_names_one(self):
        done = self.launch('-o', 'x/%p', '--', sys.executable, QUESTIONS, '1', '1')
        folders = glob.glob(os.path.join(self.folder, 'x', '*'))
        self.assertEqual(len(folders), 1)
        self.assertIn(f'stormlog-analyze {folders[0]}', done.stderr)

    def test_who_does_not_record_leaves_nothing(self):
        for flags in (['--ranks', '3'], ['--only', 'no-such-program']):
            done = self.launch(*flags, '--', sys.executable, QUESTIONS, '1', '1')
            self.assertEqual(done.returncode, 0)
            self.assertIn('nothing recorded', done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, 'traces')))

    def test_a_folder_that_cannot_be_made_leaves_the_program_alone_and_is_said(self):
        open(os.path.join(self.folder, 'file'), 'w').close()
        done = self.launch('-o', 'file/traces', '--', sys.executable, QUESTIONS, '1', '1')
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)['codes'], [0])
        self.assertIn('file', done.stderr.splitlines()[0])
        self.assertIn('nothing recorded', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
