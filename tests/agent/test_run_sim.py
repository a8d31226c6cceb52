# SPDX-License-Identifier: MIT
"""stormlog-run with the agent over the simulated GPU: --limit and --inject-oom, the last message, the files that remain."""
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

# ctypes lets other threads of Python run during a call.
THREADS = '''
import ctypes, threading
runtime, got = ctypes.CDLL("libcudart.so.12"), []
free, total, together = ctypes.c_size_t(), ctypes.c_size_t(), threading.Barrier(8)
assert runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
def work():
    address = ctypes.c_void_p()
    together.wait()
    while runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(8 << 20)) == 0:
        got.append(address.value)
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(got))
'''

# Jobs one after the other, each in a context whose end frees what they leave.
CONTEXTS = '''
import ctypes, sys
driver, context, address, codes = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), []
assert driver.cuInit(0) == 0
for job in range(4):
    if sys.argv[1] == "own":
        assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    else:
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
    codes.append(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(600 << 20)))
    assert (driver.cuCtxDestroy_v2(context) if sys.argv[1] == "own" else driver.cuDevicePrimaryCtxRelease_v2(0)) == 0
print(codes)
'''

# Memory of device 1 that is asked for while device 0, which has 600M already, is current.
ELSEWHERE = '''
import ctypes, struct, sys
runtime, pool, stream, address = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
here, bytes_ = ctypes.byref(address), lambda mib: ctypes.c_size_t(mib << 20)
assert runtime.cudaSetDevice(1) == 0 and runtime.cudaStreamCreate(ctypes.byref(stream)) == 0 and runtime.cudaSetDevice(0) == 0
if sys.argv[1] == "pool":
    props = struct.pack("iiii72x", 1, 0, 1, 1)
    assert runtime.cudaMemPoolCreate(ctypes.byref(pool), props) == 0
elif sys.argv[1] == "default pool":
    assert runtime.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 1) == 0
codes = [runtime.cudaMalloc(here, bytes_(600))]
for mib in (500, 600):
    codes.append(runtime.cudaMallocFromPoolAsync(here, bytes_(mib), pool, None) if pool else runtime.cudaMallocAsync(here, bytes_(mib), stream))
print(codes)
'''

# Graphs that are captured one after the other and never launched.
CAPTURED = '''
import ctypes, sys
runtime, stream, graph, address, codes = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), []
call = lambda name, *arguments: getattr(runtime, name + sys.argv[1])(*arguments)
assert sys.argv[1] or runtime.cudaStreamCreate(ctypes.byref(stream)) == 0  # else the thread's own stream, which is 0 there
for capture in range(4):
    assert call("cudaStreamBeginCapture", stream, 0) == 0
    codes.append(call("cudaMallocAsync", ctypes.byref(address), ctypes.c_size_t(600 << 20), stream))
    assert call("cudaStreamEndCapture", stream, ctypes.byref(graph)) == 0 and runtime.cudaGraphDestroy(graph) == 0
print(codes)
'''

# What is there beside the blocks, the primary context, is known; a context of the program's own comes and goes.
BESIDE = '''
import ctypes, time
driver, context, address, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
ask = lambda mib: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == driver.cuCtxSetCurrent(context) == ask(600) == ask(1) == 0
while driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0 and free.value >= 399 << 20:
    time.sleep(0.01)
fits = free.value >> 20
assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == driver.cuCtxDestroy_v2(context) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == driver.cuCtxSetCurrent(context) == 0
print([ask(fits + 1), ask(fits)])
'''

# What two contexts take is known; both go.
GONE = '''
import ctypes, sys, time
driver, one, two, address, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
ask = lambda mib: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
assert driver.cuInit(0) == driver.cuCtxCreate_v2(ctypes.byref(one), 0, 0) == driver.cuCtxCreate_v2(ctypes.byref(two), 0, 0) == ask(10) == 0
context = int(sys.argv[1])
while driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0 and free.value >= 1000 - 2 * context << 20:
    time.sleep(0.01)
time.sleep(1)  # so that no sample is due
assert driver.cuCtxDestroy_v2(one) == driver.cuCtxDestroy_v2(two) == driver.cuCtxCreate_v2(ctypes.byref(one), 0, 0) == 0
print([ask(990 - context), ask(11)])
'''

# A pool keeps what is freed.
KEEPS = '''
import ctypes, time
driver, context, address, pool, codes = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), []
assert driver.cuInit(0) == driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
assert driver.cuMemPoolSetAttribute(pool, 4, ctypes.byref(ctypes.c_uint64(1 << 63))) == 0
for turn in range(3):
    codes.append(driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(600 << 20), None))
    assert driver.cuMemFreeAsync(address, None) == driver.cuCtxSynchronize() == 0
    time.sleep(0.5)  # samples are taken
print(codes)
'''

# What eight contexts take is known, more than a first estimate may be; one of them goes.
MANY = '''
import ctypes, sys, time
driver, context, address, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
ask = lambda mib: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
assert driver.cuInit(0) == 0 and [driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) for _ in range(8)] == [0] * 8 and ask(10) == 0
known = 4000 - 8 * int(sys.argv[1])
while driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0 and free.value >= known << 20:
    time.sleep(0.01)
time.sleep(1)  # so that no sample is due
assert driver.cuCtxDestroy_v2(context) == 0
print([ask(known + int(sys.argv[1]) + 1), ask(known + int(sys.argv[1]))])
'''

# What the primary context and another one take is known; the primary one goes.
ANOTHER = '''
import ctypes, sys, time
driver, primary, own, address, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
ask = lambda mib: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary), 0) == driver.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == ask(10) == 0
left = 990 - int(sys.argv[1])
while driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0 and free.value > 990 - 2 * int(sys.argv[1]) << 20:
    time.sleep(0.01)
time.sleep(1)  # so that no sample is due
assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
print([ask(left + 1), ask(left)])
'''

# The first allocation after a reset.
RESETS = '''
import ctypes, sys
runtime, address, codes = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p(), []
for mib in 10, 1001 - int(sys.argv[1]), 1000 - int(sys.argv[1]):
    codes.append(runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20)))
    assert runtime.cudaDeviceReset() == 0
print(codes)
'''

# After a reset and a pause, in which a sample finds the process on no device.
PAUSES = '''
import ctypes, sys, time
runtime, address, codes = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p(), []
ask = lambda mib: runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20))
assert ask(10) == 0
time.sleep(1)
assert runtime.cudaDeviceReset() == 0
time.sleep(1)
print([ask(10), ask(991 - int(sys.argv[1])), ask(990 - int(sys.argv[1]))])
'''

# A block of a pool, and much that no pool kept; then contexts come.
COMES = '''
import ctypes, sys, time
driver, context, address, other, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
ask = lambda mib: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
assert driver.cuInit(0) == driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == driver.cuMemAllocAsync(ctypes.byref(other), ctypes.c_size_t(2 << 20), None) == 0
assert driver.cuMemFreeAsync(other, None) == driver.cuCtxSynchronize() == ask(2000) == driver.cuMemFree_v2(address) == 0
assert [driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) for _ in range(3)] == [0, 0, 0] and ask(10) == 0
for turn in range(1000):
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    if free.value < 4000 - 4 * int(sys.argv[1]) << 20: break
    time.sleep(0.02)
print(free.value >> 20 in (3990 - 4 * int(sys.argv[1]), 3992 - 4 * int(sys.argv[1])))
'''

# A pool gives back what was freed; then a context comes.
GIVES = '''
import ctypes, sys, time
driver, context, address, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
assert driver.cuInit(0) == driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(400 << 20), None) == 0
assert driver.cuMemFreeAsync(address, None) == driver.cuCtxSynchronize() == 0
time.sleep(1)
assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
for turn in range(1000):
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    if free.value <= 2000 - 2 * int(sys.argv[1]) << 20: break
    time.sleep(0.02)
print(free.value >> 20 == 2000 - 2 * int(sys.argv[1]))
'''

# Memory that lies in no context is asked for when all contexts have gone.
NOWHERE = '''
import ctypes, struct, time
driver, one, two, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == driver.cuCtxCreate_v2(ctypes.byref(one), 0, 0) == driver.cuCtxCreate_v2(ctypes.byref(two), 0, 0) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(10 << 20)) == 0
time.sleep(1)  # what contexts take is known
assert driver.cuCtxDestroy_v2(two) == driver.cuCtxDestroy_v2(one) == 0
place = struct.pack("iiii72x", 1, 0, 1, 0)  # pinned, of device 0
for turn in range(500):
    code = driver.cuMemCreate(ctypes.byref(address), ctypes.c_size_t(900 << 20), place, ctypes.c_uint64(0))
    if not code: break
    time.sleep(0.02)
print(code)
'''

# A free fails.
KEPT = '''
import ctypes
driver, context, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
ask = lambda: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(600 << 20))
assert driver.cuInit(0) == driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
print([ask(), driver.cuMemFree_v2(address), ask(), driver.cuCtxDestroy_v2(context), driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0), ask()])
'''


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

    def test_amds_libraries_are_told_the_same_limit(self):
        def answers(*flags):
            done = self.launch(*flags, '--', sys.executable, QUESTIONS.replace('gpu_', 'hip_'))
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)
        free = answers()['hip'][0]
        used = 8192 - free
        self.assertEqual(answers(), {'hip': [free, 8192], 'rocm_smi': [used, 8192], 'amd_smi': [used, 8192], 'usage': [used, 8192],
                                     'gtt': 0, 'refused': 0})
        self.assertEqual(answers('--limit', '1G'), {'hip': [1024 - used, 1024], 'rocm_smi': [used, 1024], 'amd_smi': [used, 1024],
                                                    'usage': [used, 1024], 'gtt': 0, 'refused': 2})

    def test_eight_threads_together_get_what_fits_below_the_limit_and_not_a_block_more(self):
        done = self.launch('--limit', '1G', '--', sys.executable, '-c', THREADS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(int(done.stdout), (1024 - CONTEXT) // 8)

    def test_what_ended_with_its_context_is_not_counted(self):
        for kind in ('own', 'primary'):
            done = self.launch('--limit', '1000M', '--', sys.executable, '-c', CONTEXTS, kind)
            self.assertEqual((kind, done.returncode, done.stdout), (kind, 0, '[0, 0, 0, 0]\n'), done.stderr)

    def test_an_allocation_counts_where_its_pool_or_its_stream_lies(self):
        self.environment['SIM_DEVICES'] = '2'
        for kind in ('pool', 'default pool', 'stream'):
            done = self.launch('--limit', '1000M', '--', sys.executable, '-c', ELSEWHERE, kind)
            self.assertEqual((kind, done.returncode, done.stdout), (kind, 0, '[0, 0, 2]\n'), done.stderr)

    def test_what_is_captured_counts_at_no_capture(self):
        for suffix in ('', '_ptsz'):
            done = self.launch('--limit', '1000M', '--', sys.executable, '-c', CAPTURED, suffix)
            self.assertEqual((suffix, done.returncode, done.stdout), (suffix, 0, '[0, 0, 0, 0]\n'), done.stderr)

    def test_what_lies_beside_the_blocks_still_counts_when_another_context_has_gone(self):
        done = self.launch('--limit', '1000M', '--', sys.executable, '-c', BESIDE)
        self.assertEqual((done.returncode, done.stdout), (0, '[2, 0]\n'), done.stderr)

    def test_what_contexts_took_that_have_gone_does_not_count(self):
        done = self.launch('--limit', '1000M', '--', sys.executable, '-c', GONE, str(CONTEXT))
        self.assertEqual((done.returncode, done.stdout), (0, '[0, 2]\n'), done.stderr)

    def test_what_a_pool_keeps_serves_its_next_allocation(self):
        done = self.launch('--limit', '1000M', '--', sys.executable, '-c', KEEPS)
        self.assertEqual((done.returncode, done.stdout), (0, '[0, 0, 0]\n'), done.stderr)

    def test_what_contexts_took_counts_while_they_are_there(self):
        for program, limit, codes in ((MANY, '4000M', '[2, 0]'), (ANOTHER, '1000M', '[2, 0]'), (RESETS, '1000M', '[0, 2, 0]'), (PAUSES, '1000M', '[0, 2, 0]'),
                                       (COMES, '4000M', 'True'), (GIVES, '2000M', 'True'), (NOWHERE, '1000M', '0')):
            done = self.launch('--limit', limit, '--', sys.executable, '-c', program, str(CONTEXT))
            self.assertEqual((done.returncode, done.stdout), (0, codes + '\n'), (program, done.stderr))

    def test_a_block_whose_free_failed_counts_until_its_context_ends(self):
        self.environment['SIM_FAIL'] = 'cuMemFree_v2:0:700'
        done = self.launch('--limit', '1000M', '--', sys.executable, '-c', KEPT)
        self.assertEqual((done.returncode, done.stdout), (0, '[0, 700, 2, 0, 0, 0]\n'), done.stderr)

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
        self.assertIn('there will be no recording', done.stderr.splitlines()[0])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
