# SPDX-License-Identifier: MIT
"""stormlog-run with sh as the command: environment, messages, arguments, signals and exit status."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# A shell that starts us in the background ignores them, and ignored signals stay ignored in children.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)

BUILT, STAND_IN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class Launcher(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix='stormlog-run-'))
        self.addCleanup(shutil.rmtree, self.folder)
        self.run_path = shutil.copy(BUILT, self.folder)
        self.library = shutil.copy(STAND_IN, os.path.join(self.folder, 'libstormlog_preload.so'))
        keep = ('PATH', 'HOME', 'LANG')
        self.environment = {name: os.environ[name] for name in keep if name in os.environ}

    def launch(self, *words, **extra):
        environment = dict(self.environment, **extra)
        return subprocess.run([self.run_path, *words], env=environment, cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def variable(self, name, *flags, **extra):
        done = self.launch('-q', *flags, '--', 'sh', '-c', f'printf "%s" "${{{name}-unset}}"', **extra)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def start(self, *words, **options):
        return subprocess.Popen([self.run_path, *words], env=self.environment, cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def test_the_commands_exit_status_is_ours(self):
        for status in (0, 1, 3, 124, 255):
            self.assertEqual(self.launch('sh', '-c', f'exit {status}').returncode, status)

    def test_the_commands_output_is_untouched_and_ours_is_on_stderr(self):
        done = self.launch('sh', '-c', 'echo out; echo err >&2')
        self.assertEqual(done.stdout, 'out\n')
        self.assertEqual(done.stderr.splitlines()[:2], ['stormlog: recording to traces/', 'err'])
        self.assertIn('nothing recorded', done.stderr.splitlines()[2])
        self.assertEqual(self.launch('-q', 'sh', '-c', 'echo err >&2').stderr, 'err\n')

    def test_a_program_with_holders_says_and_ends_the_same(self):
        """PyTorch cannot be loaded: a dry run would end the program."""
        python = os.path.join(self.folder, 'stormlog-dry', 'python')
        sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
        os.makedirs(python)
        open(os.path.join(self.folder, 'stormlog-dry', 'dry-audit.so'), 'w').close()
        shutil.copy(os.path.join(sources, 'dry', 'python', 'sitecustomize.py'), python)
        shutil.copy(os.path.join(sources, 'python', 'stormlog_native', 'holders.py'), os.path.join(python, 'stormlog_holders.py'))
        os.mkdir(os.path.join(self.folder, 'torch'))
        with open(os.path.join(self.folder, 'torch', '__init__.py'), 'w') as file:
            file.write('import os\nif "works" not in os.environ:\n    raise ImportError("libcudnn.so.9: cannot open shared object file")\n')
        with open(os.path.join(self.folder, 'program.py'), 'w') as file:
            file.write('import os, sys\ntry:\n    import torch\n    print("loaded")\nexcept ImportError as error:\n    print(error)\n'
                       'sys.stdout.flush()\nif not os.fork():\n    print("child")\n    sys.exit(4)\n'
                       'sys.exit(os.waitstatus_to_exitcode(os.wait()[1]) + 1)\n')
        for works in {}, {'works': '1'}:
            plain, told = (self.launch('-q', *flags, '--', sys.executable, 'program.py', **works) for flags in ([], ['--holders']))
            self.assertEqual((told.returncode, told.stdout, told.stderr), (plain.returncode, plain.stdout, plain.stderr))
            self.assertEqual((told.returncode, told.stderr), (5, ''))

    def meta(self, **extra):
        return self.variable('STORMLOG_META', **extra).splitlines()

    def git(self, *words, cwd=None):
        plain = dict(self.environment, GIT_CONFIG_NOSYSTEM='1', GIT_CONFIG_GLOBAL='/dev/null')
        return subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words], cwd=cwd or self.folder, env=plain,
                              check=True, text=True, capture_output=True).stdout.strip()

    @unittest.skipUnless(shutil.which('git'), 'no git')
    def test_the_commit_that_runs_is_said(self):
        name = os.path.basename(self.folder)
        self.git('init', '-q', '-b', 'topic/one')
        self.assertEqual(self.meta(), ['git.branch=topic/one', 'git.repository=' + name])  # nothing is committed
        self.git('commit', '-q', '--allow-empty', '-m', 'x')
        commit = self.git('rev-parse', 'HEAD')
        said = ['git.commit=' + commit, 'git.branch=topic/one', 'git.repository=' + name]
        self.assertEqual(self.meta(), said)
        self.assertEqual(self.meta(STORMLOG_META='a=b'), ['a=b'] + said)
        self.assertEqual(self.meta(STORMLOG_META='git.commit=mine\nxgit.branch=y'), ['git.commit=mine', 'xgit.branch=y'] + said[1:])
        self.git('pack-refs', '--all')
        self.assertEqual(self.meta(), said)
        self.assertEqual(self.meta(GITHUB_SHA='f' * 40, GITHUB_REF_NAME='main', GITHUB_REPOSITORY='o/r'), said)
        self.git('checkout', '-q', '--detach')
        self.assertEqual(self.meta(), [said[0], said[2]])
        self.assertEqual(self.meta(GITHUB_REF_NAME='main'), [said[0], 'git.branch=main', said[2]])

    @unittest.skipUnless(shutil.which('git'), 'no git')
    def test_a_linked_worktree_has_its_own_commit(self):
        whole = os.path.join(self.folder, 'whole')
        os.mkdir(whole)
        self.git('init', '-q', cwd=whole)
        self.git('commit', '-q', '--allow-empty', '-m', 'x', cwd=whole)
        self.git('worktree', 'add', '-q', '-b', 'side', os.path.join(self.folder, 'linked'), cwd=whole)
        self.git('commit', '-q', '--allow-empty', '-m', 'y', cwd=os.path.join(self.folder, 'linked'))
        commit = self.git('rev-parse', 'side', cwd=whole)
        shutil.rmtree(os.path.join(self.folder, 'in'), True)
        done = subprocess.run([self.run_path, '-q', 'sh', '-c', 'printf "%s" "$STORMLOG_META"'], env=self.environment, text=True,
                              cwd=os.path.join(self.folder, 'linked'), capture_output=True)
        self.assertEqual(done.stdout.splitlines(), ['git.commit=' + commit, 'git.branch=side', 'git.repository=whole'])

    def test_what_is_no_repository_says_nothing(self):
        self.assertEqual(self.variable('STORMLOG_META'), 'unset')
        self.assertEqual(self.meta(CI_COMMIT_SHA='abc', CI_COMMIT_REF_NAME='x\ny'), ['git.commit=abc'])
        for text in ('gitdir: ' + 'x/' * 3000, 'gitdir: /nowhere', '\0\1\2', ''):
            with open(os.path.join(self.folder, '.git'), 'w') as file:
                file.write(text)
            self.assertEqual(self.variable('STORMLOG_META'), 'unset')
        os.unlink(os.path.join(self.folder, '.git'))
        os.mkdir(os.path.join(self.folder, '.git'))
        for head in ('ref: refs/../../../etc/passwd', 'ref: ' + 'a' * 5000, 'zzz', '\0'):
            with open(os.path.join(self.folder, '.git', 'HEAD'), 'w') as file:
                file.write(head)
            self.assertNotIn('commit', ''.join(self.meta()))
        os.unlink(os.path.join(self.folder, '.git', 'HEAD'))
        os.mkfifo(os.path.join(self.folder, '.git', 'HEAD'))
        self.assertEqual(self.variable('STORMLOG_META'), 'unset')

    def test_a_run_that_records_nothing_leaves_no_folder(self):
        for folder in ('traces', 'a/b/c', 'a/%h-%p'):
            self.launch('-o', folder, 'true')
            self.assertEqual(sorted(os.listdir(self.folder)), ['libstormlog_preload.so', os.path.basename(BUILT)])
        os.mkdir(os.path.join(self.folder, 'kept'))
        self.launch('-o', 'kept/new', 'true')
        self.assertEqual(os.listdir(os.path.join(self.folder, 'kept')), [])

    def test_a_folder_that_cannot_be_used_is_told_before_the_start(self):
        open(os.path.join(self.folder, 'file'), 'w').close()
        done = self.launch('-o', 'file/traces', 'sh', '-c', 'echo ran >&2; exit 3')
        self.assertEqual(done.returncode, 3)
        said = done.stderr.splitlines()
        self.assertIn('/file/traces: Not a directory: there will be no recording; choose another folder with --output', said[0])
        self.assertEqual(said[1:], ['ran'])  # and no second time

    def test_a_command_killed_by_a_signal_kills_us_by_the_same(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
            self.assertEqual(self.launch('sh', '-c', f'kill -{int(number)} $$').returncode, -number)

    def test_not_found_is_127_not_executable_126_usage_125(self):
        self.assertEqual(self.launch('no-such-command-here').returncode, 127)
        self.assertEqual(self.launch('./libstormlog_preload.so.not').returncode, 127)
        plain = os.path.join(self.folder, 'plain')
        open(plain, 'w').close()
        self.assertEqual(self.launch(plain).returncode, 126)
        for words in ([], ['--'], ['--no-such-flag', 'true'], ['--keep', '3Q', 'true'], ['--stacks', 'x', 'true'],
                      ['--ranks', '3-1', 'true'], ['--only', 'python.*', 'true'], ['--only', '^a|b$', 'true'], ['--inject-oom', '0', 'true'],
                      ['--inject-oom', '1:', 'true'], ['--inject-oom', '3:cudaMaloc', 'true'], ['--meta', 'novalue', 'true'], ['-o']):
            done = self.launch(*words)
            self.assertEqual(done.returncode, 125, words)
            self.assertTrue(done.stderr.startswith('stormlog-run: '), words)
            self.assertEqual(done.stderr.count('\n'), 1, words)

    def test_a_wrong_flag_names_the_nearest_one(self):
        self.assertIn('did you mean --keep?', self.launch('--kepe', '1G', 'true').stderr)
        self.assertIn('did you mean cudaMalloc?', self.launch('--inject-oom', '3:cudaMaloc', 'true').stderr)
        self.assertNotIn('inject-oom', self.launch('--inject-oom', '3:cuMemAlloc', 'true').stderr)

    def test_a_name_may_be_cut_while_it_is_the_only_one_and_letters_may_share_a_word(self):
        for words in (('-qo', 'x'), ('-qox',), ('-q', '--outp', 'x'), ('--qu', '--outp=x', '--'), ('-o', 'y', '-q', '--output', 'x')):
            self.assertEqual(self.launch(*words, 'sh', '-c', 'echo $STORMLOG_DIR $STORMLOG_QUIET').stdout, os.path.join(os.path.realpath(self.folder), 'x') + ' 1\n', words)
        for words in (('--st', 'both'), ('--qu=1',), ('-qx',)):
            self.assertEqual(self.launch(*words, 'true').returncode, 125, words)

    def test_an_unknown_variable_is_named_with_its_nearest_and_the_command_runs(self):
        done = self.launch('true', STORMLOG_STAKCS='none', STORMLOG_NOSUCH='x', STORMLOG_RUN_ID='x')
        self.assertEqual(done.returncode, 0)
        self.assertIn('STORMLOG_STAKCS is no setting; did you mean STORMLOG_STACKS?', done.stderr)
        self.assertIn('STORMLOG_NOSUCH is no setting; stormlog-run --help lists them', done.stderr)
        self.assertNotIn('STORMLOG_RUN_ID', done.stderr)

    def test_a_launcher_below_a_launcher_does_not_warn_again(self):
        done = self.launch(self.run_path, '-q', 'true', STORMLOG_STAKCS='none')
        self.assertEqual(done.stderr.count('STORMLOG_STAKCS'), 1)

    def test_flags_become_variables(self):
        self.assertEqual(self.variable('STORMLOG_KEEP', '--keep', '1G'), '1G')
        self.assertEqual(self.variable('STORMLOG_FREE_STACKS', '--free-stacks'), '1')
        self.assertEqual(self.variable('STORMLOG_META', '--meta', 'a=1', '--meta=b=2', STORMLOG_META='c=3'), 'a=1\nb=2')
        self.assertEqual(self.variable('STORMLOG_TAG', STORMLOG_TAG='mine'), 'mine')
        self.assertEqual(self.variable('STORMLOG_KEEP'), 'unset')

    def test_a_rank_is_a_number_below_its_world_size(self):
        self.assertEqual(self.variable('STORMLOG_RANK', '--rank', '3', '--world-size', '4', '--job-id', 'j'), '3')
        wants, larger = 'wants', 'must be larger than --rank'
        for flags, why in ((('--rank', 'x'), wants), (('--rank', '-1'), wants), (('--world-size', '4'), wants),
                           (('--rank', '4', '--world-size', '4'), larger)):
            done = self.launch('-q', *flags, 'true')
            self.assertEqual(done.returncode, 125, flags)
            self.assertIn(why, done.stderr)

    def test_flags_after_the_command_are_the_commands(self):
        self.assertEqual(self.launch('-q', 'sh', '-c', 'echo "$@"', 'x', '--keep', '3Q').stdout, '--keep 3Q\n')

    def test_the_folder_is_absolute_and_keeps_its_placeholders(self):
        self.assertEqual(self.variable('STORMLOG_DIR'), self.folder + '/traces')
        self.assertEqual(self.variable('STORMLOG_DIR', '-o', 'x/%h-%p'), self.folder + '/x/%h-%p')
        self.assertEqual(self.variable('STORMLOG_DIR', '-o/x'), '/x')
        self.assertEqual(self.variable('STORMLOG_DIR', STORMLOG_DIR='y'), self.folder + '/y')

    def test_our_library_comes_before_what_is_preloaded_already_and_once(self):
        other = shutil.copy(self.library, os.path.join(self.folder, 'other.so'))
        self.assertEqual(self.variable('LD_PRELOAD'), self.library)
        self.assertEqual(self.variable('LD_PRELOAD', LD_PRELOAD=other), self.library + ':' + other)
        done = self.launch('-q', self.run_path, '-q', 'sh', '-c', 'printf %s $LD_PRELOAD')
        self.assertEqual(done.stdout, self.library)

    def test_nvtx_finds_us_unless_another_tool_has_the_place(self):
        self.assertEqual(self.variable('NVTX_INJECTION64_PATH'), self.library)
        self.assertEqual(self.variable('NVTX_INJECTION64_PATH', NVTX_INJECTION64_PATH='/x.so'), '/x.so')
        self.assertEqual(self.variable('NVTX_INJECTION64_PATH', '--labels', 'off'), 'unset')

    def test_a_run_has_one_name_in_all_its_processes_and_two_runs_have_two(self):
        inner = 'printf "%s " $STORMLOG_RUN_ID; sh -c "printf %s \\$STORMLOG_RUN_ID"'
        first, second = self.launch('-q', 'sh', '-c', inner).stdout.split()
        self.assertEqual(first, second)
        self.assertTrue(first)
        self.assertNotEqual(first, self.variable('STORMLOG_RUN_ID'))
        self.assertEqual(self.variable('STORMLOG_RUN_ID', STORMLOG_RUN_ID='given'), 'given')

    def test_launchers_of_one_job_step_leave_the_name_to_the_scheduler(self):
        step = dict(SLURM_JOB_ID='9', SLURM_STEP_ID='1', SLURM_PROCID='0', SLURM_NTASKS='8', SLURM_STEP_NUM_TASKS='8')
        self.assertEqual(self.variable('STORMLOG_RUN_ID', **step), 'unset')
        del step['SLURM_STEP_ID']
        self.assertNotEqual(self.variable('STORMLOG_RUN_ID', **step), 'unset')

    def test_launchers_of_other_ranks_are_silent(self):
        done = self.launch('true', RANK='1', WORLD_SIZE='2', LOCAL_RANK='1', STORMLOG_STAKCS='x')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('recording', self.launch('true', RANK='0', WORLD_SIZE='2').stderr)

    def test_help_and_version_go_to_stdout(self):
        done = self.launch('--help')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        for flag in ('--output', '--stacks', '--keep', '--report', '--check', '--inject-oom'):
            self.assertIn(flag, done.stdout)
        self.assertTrue(self.launch('--version').stdout.startswith('stormlog-run '))

    def test_signals_sent_to_us_alone_reach_the_command(self):
        for name in ('INT', 'TERM', 'HUP', 'QUIT', 'USR1', 'USR2', 'WINCH'):
            script = f'trap "echo got; exit 7" {name}; echo ready; while :; do sleep 0.05; done'
            running = self.start('sh', '-c', script)
            self.assertEqual(running.stdout.readline(), 'ready\n')
            running.send_signal(getattr(signal, 'SIG' + name))
            self.assertEqual(running.communicate(timeout=600)[0], 'got\n', name)
            self.assertEqual(running.returncode, 7, name)

    def test_a_signal_the_command_sends_to_its_group_reaches_it_once(self):
        script = 'n=0; trap "n=\\$((n+1))" USR1; kill -USR1 0; sleep 0.3; echo $n'
        running = self.start('sh', '-c', script, start_new_session=True)
        self.assertEqual(running.communicate(timeout=600)[0], '1\n')

    def end(self, running):
        try:
            os.killpg(running.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def counter(self, before='', **options):
        """A command that prints the name of each signal it gets and ends at TERM."""
        names = ('INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'WINCH', 'TERM')
        script = ('import os, signal\n%s\nnumbers = [getattr(signal, "SIG" + name) for name in %r]\n'
                  'signal.pthread_sigmask(signal.SIG_BLOCK, numbers)\nprint("ready", flush=True)\ngot = 0\n'
                  'while got != signal.SIGTERM:\n    got = signal.sigwait(numbers)\n    print(signal.Signals(got).name, flush=True)\n')
        running = self.start('python3', '-c', script % (before, names), start_new_session=True, **options)
        self.addCleanup(running.communicate)
        self.addCleanup(self.end, running)
        self.assertEqual(running.stdout.readline(), 'ready\n')
        return running, [getattr(signal, 'SIG' + name) for name in names]

    def test_a_signal_sent_to_the_group_reaches_a_command_that_has_left_it(self):
        running, numbers = self.counter(before='os.setpgrp()')
        for number in numbers:
            os.killpg(running.pid, number)
            self.assertEqual(running.stdout.readline(), number.name + '\n')
        self.assertEqual(running.wait(timeout=600), 0)

    def test_who_looks_for_the_launcher_by_name_finds_one_process_and_none_is_left(self):
        running, _ = self.counter()
        group = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if os.getpgid(int(pid)) == running.pid:
                    with open('/proc/%s/cmdline' % pid) as line, open('/proc/%s/comm' % pid) as name:
                        group.append((int(pid), 'stormlog-run' in line.read(), name.read().strip()))
            except OSError:
                pass
        self.assertEqual([pid for pid, named, name in group if named or name == 'stormlog-run'], [running.pid])
        self.assertEqual(len(group), 2, group)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.communicate(timeout=600)[0], 'SIGTERM\n')
        self.assertRaises(ProcessLookupError, os.killpg, running.pid, 0)

    def test_ignored_signals_stay_ignored(self):
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        running = self.start('sh', '-c', 'echo ready; read x; exit 5', preexec_fn=ignore)
        self.assertEqual(running.stdout.readline(), 'ready\n')
        running.send_signal(signal.SIGHUP)
        self.assertEqual(running.wait(timeout=600), 5)

    def shell(self, *words):
        """As an interactive shell does: a job of its own in the foreground, continued once when it stops."""
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(self.run_path, [self.run_path, *words], self.environment)
        while True:
            status = os.waitpid(job, os.WUNTRACED)[1]
            if not os.WIFSTOPPED(status):
                os.write(1, b'ended %d\n' % os.waitstatus_to_exitcode(status))
                os._exit(0)
            os.write(1, b'stopped\n')
            os.killpg(job, signal.SIGCONT)

    def test_the_terminals_keys_reach_the_command_once_and_ctrl_z_stops_both(self):
        script = 'n=0; trap "n=\\$((n+1))" INT; echo ready; while [ $n -lt 1 ]; do sleep 0.05; done; ' \
                 'sleep 0.3; echo total $n; read x; echo awake; exit 4'
        try:
            pid, terminal = pty.fork()
        except OSError as error:
            self.skipTest(str(error))  # a chroot without /dev/pts
        if not pid:
            os.chdir(self.folder)
            self.shell('bash', '-c', script)
        seen = b''

        def until(word):
            nonlocal seen
            while word not in seen:
                seen += os.read(terminal, 1000)

        until(b'ready')
        os.write(terminal, b'\x03')
        until(b'total 1\r\n')
        os.write(terminal, b'\x1a')
        until(b'stopped')
        os.write(terminal, b'\n')
        until(b'awake')
        until(b'ended 4')
        self.assertEqual(seen.count(b'stopped'), 1)
        os.waitpid(pid, 0)

    def test_scripts_are_followed_to_their_interpreter(self):
        static = os.path.join(self.folder, 'static')
        with open(os.path.join(self.folder, 's.c'), 'w') as source:
            source.write('int main(void) { return 0; }\n')
        compiled = subprocess.run(['cc', '-static', '-o', static, source.name], capture_output=True)
        if compiled.returncode:
            self.skipTest('no static C library')
        script = os.path.join(self.folder, 'script')
        with open(script, 'w') as out:
            out.write(f'#!{static}\n')
        os.chmod(script, 0o755)
        done = self.launch(script)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f'{static} is statically linked', done.stderr)
        self.assertNotIn('statically', self.launch('true').stderr)

    def test_a_set_user_id_program_is_named(self):
        if os.geteuid():
            self.skipTest('needs root to make a program of another user')
        other = shutil.copy('/bin/true', os.path.join(self.folder, 'other'))
        os.chown(other, 65534, 65534)
        os.chmod(other, 0o4755)
        self.assertIn('other is set-user-id', self.launch(other).stderr)
        os.chmod(other, 0o755)
        self.assertNotIn('set-user-id', self.launch(other).stderr)

    def test_check_says_what_stands_against_recording_and_records_nothing(self):
        done = self.launch('--check', '--', 'sh', '-c', 'echo ran')
        self.assertEqual((done.returncode, done.stdout), (0, ''))
        for word in (self.library, 'sh', self.folder + '/traces', 'NVML'):
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, 'traces')))
        done = self.launch('--check', 'no-such-command-here')
        self.assertEqual(done.returncode, 125)
        self.assertIn('no-such-command-here: not found', done.stderr)
        os.unlink(self.library)
        self.assertEqual(self.launch('--check').returncode, 125)

    def test_check_says_the_same_as_data(self):
        strange = os.path.join(self.folder, 'a "b" \\ \x01 é')
        os.mkdir(strange)
        for argv, code in ((('sh', '-c', 'echo ran'), 0), (('-o', strange, 'sh'), 0), (('no-such-command-here',), 125)):
            said, data = self.launch('--check', *argv), self.launch('--check', '--json', *argv)
            self.assertEqual((data.returncode, data.stderr), (code, ''))
            data = json.loads(data.stdout)
            self.assertEqual((data['schema'], data['schema_version'], data['records']), ('stormlog.run_check', 1, code == 0))
            wanted = [re.sub(r'[\d.]+ [KMGT]?i?B', 'N', line[14:]) for line in said.stderr.splitlines()]
            found = [re.sub(r'[\d.]+ [KMGT]?i?B', 'N', line['text']) for line in data['lines']]
            self.assertEqual(wanted, found)
            self.assertLessEqual({'agent', 'trace', 'not seen'}, {line['about'] for line in data['lines']})
        self.assertIn(self.folder + '/no ? text', [line['text'].split('  ')[0] for line in
                      json.loads(self.launch('--check', '--json', '-o', os.fsdecode(os.fsencode(self.folder) + b'/no \xff text'), 'sh').stdout)['lines']])
        self.assertEqual(self.launch('--json', 'sh').returncode, 125)

    def test_check_says_what_is_not_seen_and_who_stands_beside_us(self):
        said = self.launch('--check', LD_PRELOAD='').stderr
        self.assertIn('RTLD_DEEPBIND', said)
        self.assertNotIn('LD_PRELOAD', said)
        beside = os.path.join(self.folder, 'other.so')
        shutil.copy(self.library, beside)
        self.assertIn(beside + ': the agent goes before it', self.launch('--check', LD_PRELOAD=beside).stderr)

    def test_check_knows_what_starts_programs_elsewhere(self):
        for command, says in ((["torchrun", "--nproc-per-node", "8", "train.py"], "torchrun: Each rank"),
                              (["python3", "-u", "-m", "torch.distributed.run", "train.py"], "torch.distributed.run: Each rank"),
                              (["python3", "/opt/bin/torchrun", "train.py"], "torchrun: Each rank"),
                              (["/usr/bin/mpirun", "-n", "2", "x"], "-x LD_PRELOAD"), (["accelerate", "launch", "x"], "accelerate:"),
                              (["accelerate", "config"], None), (["python3", "-c", "docker"], None), (["true", "torchrun"], None),
                              (["docker", "run", "image"], "-v $PWD/traces:/traces"), (["sbatch", "job.sh"], "in the script"),
                              (["sbatch", "--array=0-7", "job.sh"], "a folder a job"), (["srun", "-n", "4", "--container-image", "x", "y"], "Pyxis"),
                              (["srun", "-n", "4", "x"], "passes the environment on"), (["code", "."], "launch.json"),
                              (["systemctl", "start", "x"], "ExecStart"), (["systemd-run", "x"], "systemd-run stormlog-run"),
                              (["kubectl", "apply"], "in the pod's command")):
            with self.subTest(command):
                said = [line for line in self.launch("--check", "--", *command).stderr.splitlines() if line.startswith("launcher")]
                self.assertEqual(len(said), 1 if says else 0)
                self.assertTrue(not says or says in said[0], said)

    def test_every_launcher_of_the_page_is_known(self):
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(top, "doc", "launching.md")) as file:
            rows = [line.split("|")[1] for line in file if line.startswith("| ")]
        with open(os.path.join(top, "agent", "launcher", "check.c")) as file:
            known = set(re.findall(r'^\t\{"([^"]+)"', file.read(), re.M))
        page = {"torchrun": ["torchrun"], "accelerate": ["accelerate"], "DeepSpeed": ["deepspeed"], "Slurm": ["srun"],
                "OpenMPI": ["mpirun", "mpiexec"], "MPICH": ["mpiexec"], "Ray": ["ray"], "Dask": ["dask"], "Apptainer": ["apptainer", "singularity"],
                "bubblewrap": ["bwrap"], "Docker": ["docker", "podman"], "Pyxis": ["srun"], "Kubernetes": ["kubectl"], "Jupyter": ["jupyter"],
                "VS Code": ["code"], "systemd": ["systemctl", "systemd-run"], "by hand": ["ssh"], "a shell": [], "setuid": [], "where": [], "---": []}
        for row in rows:  # a row that `page` lacks names a launcher that --check may not know
            names = next((names for word, names in page.items() if row.strip().startswith(word)), None)
            self.assertIsNotNone(names, row)
            self.assertLessEqual(set(names), known)
        self.assertLessEqual({word for word in page if word != "---"}, {word for word in page if any(row.strip().startswith(word) for row in rows)})

    def test_check_knows_a_python_behind_a_script_of_its_name(self):
        shim = os.path.join(self.folder, 'python3')
        with open(shim, 'w') as script:
            script.write('#!/bin/sh\nexec %s "$@"\n' % sys.executable)
        os.chmod(shim, 0o755)
        done = self.launch('--check', '--', shim, 'train.py')
        self.assertIn('%d.%d.%d' % sys.version_info[:3], done.stderr)
        self.assertNotRegex(done.stderr, r' (,|$)')

    def test_check_survives_a_library_that_crashes_when_loaded(self):
        with open(os.path.join(self.folder, 'c.c'), 'w') as source:
            source.write('#include <stdlib.h>\n__attribute__((constructor)) static void boom(void) { abort(); }\n')
        library = os.path.join(self.folder, 'libcuda.so.1')
        subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source.name], check=True)
        done = self.launch('--check', LD_LIBRARY_PATH=self.folder)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, 'CUDA driver .*signal 6')

    def test_a_path_that_ld_preload_cannot_hold_is_preloaded_by_a_link(self):
        for name in ('a b', 'a:b'):
            place = os.path.join(self.folder, name)
            os.mkdir(place)
            there = shutil.copy(BUILT, place)
            library = shutil.copy(STAND_IN, os.path.join(place, 'libstormlog_preload.so'))
            # Programs of the command started after the launcher's end find the library too.
            done = subprocess.run([there, '-q', 'sh', '-c', 'printf %s "$LD_PRELOAD"; cat /proc/self/maps'], env=self.environment,
                                  cwd='/', capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            link = done.stdout[:done.stdout.index('.so') + 3]
            self.addCleanup(os.unlink, link)
            self.assertNotRegex(link, '[ :]')
            self.assertEqual(os.readlink(link), library)
            self.assertIn(library, done.stdout, 'the library is not in the program')
            checked = subprocess.run([there, '--check'], env=self.environment, cwd='/', capture_output=True, text=True)
            self.assertIn(link, checked.stderr)

    def test_a_link_that_others_could_have_made_is_not_used(self):
        # Another user may have put a folder open to all, or a link, there first.  Tried in a private /tmp.
        if subprocess.run(['unshare', '-rm', 'true'], capture_output=True).returncode:
            self.skipTest('no mount namespaces here')
        place = os.path.join(self.folder, 'a b')
        os.mkdir(place)
        there = shutil.copy(BUILT, place)
        shutil.copy(STAND_IN, os.path.join(place, 'libstormlog_preload.so'))
        for before in ('mkdir -m 777 /tmp/stormlog-0', 'mkdir -m 700 /tmp/a; ln -s a /tmp/stormlog-0', 'touch /tmp/stormlog-0'):
            script = f'cp -r "$1" /mnt && mount -t tmpfs none /tmp && {before} && "/mnt/a b/stormlog-run" true'
            script = 'mount -t tmpfs none /mnt && ' + script
            done = subprocess.run(['unshare', '-rm', 'sh', '-c', script, 'sh', place], env=self.environment, cwd='/',
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (125, ''), done.stderr)
            self.assertRegex(done.stderr, 'a b/libstormlog_preload.so: LD_PRELOAD cannot hold a path with a blank or a colon, and no link')

    def test_a_clone_with_a_colon_in_its_path_is_refused_at_once(self):
        clone = os.path.join(self.folder, 'a:b')
        os.makedirs(os.path.join(clone, 'scripts'))
        for script in ('test', 'demo'):
            path = shutil.copy(os.path.join(os.path.dirname(__file__), '..', '..', 'scripts', script), os.path.join(clone, 'scripts'))
            done = subprocess.run([path], cwd='/', capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertIn('cannot hold: clone elsewhere', done.stderr)

    def test_a_library_that_is_missing_is_our_failure(self):
        os.unlink(self.library)
        done = self.launch('true')
        self.assertEqual(done.returncode, 125)
        self.assertIn('libstormlog_preload.so', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
