#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the simulated GPU: usage test_sim.py BUILD_DIR_OF_SIM BUILD_DIR_OF_APPS [unittest arguments]."""
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import journal

SIM, APPS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MB, GB = 1 << 20, 1 << 30
REAL_CUDART = '/usr/local/cuda/lib64/libcudart.so.13'

PRELUDE = '''
import ctypes, os, sys, time
MB, GB = 1 << 20, 1 << 30
def lib(name): return ctypes.CDLL(name)
def malloc(rt, n):
    p = ctypes.c_void_p()
    return rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)), p
def info(rt):
    f, t = ctypes.c_size_t(), ctypes.c_size_t()
    assert rt.cudaMemGetInfo(ctypes.byref(f), ctypes.byref(t)) == 0
    return f.value, t.value
'''


class Machine(unittest.TestCase):
    """A fresh machine with GPUs for every test."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='sim-')
        self.addCleanup(self.folder.cleanup)

    def env(self, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('SIM_', 'CUDA_'))}
        env.update(LD_LIBRARY_PATH=SIM, SIM_JOURNAL=self.folder.name)
        env.update({k: str(v) for k, v in settings.items()})
        return env

    def start(self, code, cwd=None, **settings):
        return subprocess.Popen([sys.executable, '-c', PRELUDE + textwrap.dedent(code)], env=self.env(**settings), cwd=cwd,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def python(self, code, **settings):
        process = self.start(code, **settings)
        out = process.communicate()[0]
        self.assertEqual(process.returncode, 0)
        return out.split()

    def app(self, name, *args, code=0, **settings):
        done = subprocess.run([os.path.join(APPS, name), *map(str, args)], env=self.env(**settings))
        self.assertEqual(done.returncode, code)
        return self.truth()

    def truth(self):
        processes = journal.load(self.folder.name)
        for p in processes:
            self.assertEqual(p.errors, [])
        return processes


class Memory(Machine):
    def test_a_device_gives_no_more_than_it_has(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            before, total = info(rt)
            print(total, malloc(rt, before + 1)[0], malloc(rt, before)[0], malloc(rt, 1)[0], info(rt)[0])
        ''', SIM_VRAM='1G', SIM_CTX_BYTES='100M')
        self.assertEqual(out, [str(GB), '2', '0', '2', '0'])

    def test_a_freed_address_is_the_next_one_given(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            a, b = malloc(rt, MB)[1], malloc(rt, MB)[1]
            rt.cudaFree(a); rt.cudaFree(b)
            c, d = malloc(rt, MB)[1], malloc(rt, MB)[1]
            print(c.value == b.value, d.value == a.value, a.value != b.value)
        ''')
        self.assertEqual(out, ['True'] * 3)

    def test_small_blocks_share_granules(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            before = info(rt)[0]
            for i in range(4096): malloc(rt, 512)
            print(before - info(rt)[0])
        ''', SIM_GRANULARITY='2M')
        self.assertEqual(out, [str(2 * MB)])

    def test_outputs_of_a_failed_call_are_poisoned(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            error, p = malloc(rt, 1 << 60)
            print(error, hex(p.value))
        ''')
        self.assertEqual(out, ['2', '0xdeadbeefdeadbeef'])

    def test_a_context_costs_memory_and_a_destroyed_one_gives_it_back(self):
        out = self.python('''
            cuda, c = lib('libcuda.so.1'), ctypes.c_void_p()
            f, t = ctypes.c_size_t(), ctypes.c_size_t()
            nvml, h, m = lib('libnvidia-ml.so.1'), ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
            nvml.nvmlInit_v2(); nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h))
            def used():
                nvml.nvmlDeviceGetMemoryInfo(h, m)
                return m[2]
            cuda.cuInit(0)
            print(used())
            cuda.cuCtxCreate_v2(ctypes.byref(c), 0, 0)
            print(used())
            cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(10 * MB))
            print(used())
            cuda.cuCtxDestroy_v2(c)
            print(used())
        ''', SIM_CTX_BYTES='200M')
        self.assertEqual([int(x) for x in out], [0, 200 * MB, 210 * MB, 0])
        self.assertEqual(self.truth()[0].memory[('device', 0)].implicit_frees, 1)

    def test_only_the_last_release_of_a_primary_context_destroys_it(self):
        out = self.python('''
            cuda, c, active = lib('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_int()
            cuda.cuInit(0)
            def state():
                cuda.cuDevicePrimaryCtxGetState(0, None, ctypes.byref(active))
                return active.value
            print(state())
            for i in range(2): cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0)
            for i in range(2): print(cuda.cuDevicePrimaryCtxRelease_v2(0), state())
            print(cuda.cuDevicePrimaryCtxRelease_v2(0))
        ''')
        self.assertEqual(out, ['0', '0', '1', '0', '0', '201'])


class Processes(Machine):
    def test_two_processes_compete_for_one_device(self):
        holder = self.start('''
            rt = lib('libcudart.so.13')
            print(malloc(rt, 5 * GB)[0], flush=True)
            sys.stdin.readline()
        ''', SIM_VRAM='8G')
        self.assertEqual(holder.stdout.readline().strip(), '0')
        other = "rt = lib('libcudart.so.13'); print(malloc(rt, 5 * GB)[0])"
        self.assertEqual(self.python(other, SIM_VRAM='8G'), ['2'])
        holder.kill()
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie, and its memory is free
        self.assertEqual(self.python(other, SIM_VRAM='8G'), ['0'])
        holder.communicate()

    def test_the_death_of_whoever_holds_the_machines_lock_stops_nobody(self):
        for how in ('self', 'fork', '_Fork', 'clone'):
            with self.subTest(how), tempfile.TemporaryDirectory(prefix='sim-') as folder:
                holder = self.start('''
                    rt = lib('libcudart.so.13')
                    for line in iter(sys.stdin.readline, ''): print(malloc(rt, 4 * GB)[0], flush=True)
                ''', SIM_DIR=folder, SIM_VRAM='10G')
                self.addCleanup(holder.communicate)
                def allocate():
                    print(file=holder.stdin, flush=True)
                    return holder.stdout.readline().strip()
                self.assertEqual(allocate(), '0')
                done = subprocess.run([os.path.join(APPS, 'kill_inside'), how], env=self.env(SIM_DIR=folder, SIM_VRAM='10G'))
                if done.returncode == 77:  # this C library has no such function
                    continue
                self.assertEqual(done.returncode, -signal.SIGKILL if how == 'self' else 0)
                self.assertEqual([allocate(), allocate()], ['0', '2'])
                self.assertEqual(self.python("print(malloc(lib('libcudart.so.13'), GB)[0])", SIM_DIR=folder), ['0'])

    def test_the_file_of_another_versions_machine_is_replaced(self):
        with open(os.path.join(self.folder.name, 'devices.state'), 'wb') as file:
            file.write(b'\1' * 90000)
        self.assertEqual(self.python("print(malloc(lib('libcudart.so.13'), GB)[0])"), ['0'])

    def test_nvml_sees_every_process_and_its_bytes(self):
        holders = [self.start(f'''
            rt = lib('libcudart.so.13')
            print(malloc(rt, {n} * GB)[0], flush=True)
            sys.stdin.readline()
        ''') for n in (1, 2)]
        for h in holders:
            self.assertEqual(h.stdout.readline().strip(), '0')
        out = self.python('''
            nvml, h, n = lib('libnvidia-ml.so.1'), ctypes.c_void_p(), ctypes.c_uint(1)
            class Process(ctypes.Structure):
                _fields_ = [('pid', ctypes.c_uint), ('bytes', ctypes.c_ulonglong), ('gi', ctypes.c_uint), ('ci', ctypes.c_uint)]
            found = (Process * 8)()
            nvml.nvmlInit_v2(); nvml.nvmlDeviceGetHandleByPciBusId_v2(b'00000000:01:00.0', ctypes.byref(h))
            print(nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(n), found), n.value)
            n.value = 8
            print(nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(n), found), n.value)
            for p in found[:2]: print(p.pid, p.bytes)
        ''', SIM_CTX_BYTES='300M')
        self.assertEqual(out[:4], ['7', '2', '0', '2'])
        found = dict(zip(map(int, out[4::2]), map(int, out[5::2])))
        self.assertEqual(found, {h.pid: n * GB + 300 * MB for h, n in zip(holders, (1, 2))})
        for h in holders:
            h.communicate('\n')

    NVML = '''
        rt, nvml = lib('libcudart.so.13'), lib('libnvidia-ml.so.1')
        nvml.nvmlInit_v2()
        dev = ctypes.c_void_p(); nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(dev))
        class Info(ctypes.Structure):
            _fields_ = [('pid', ctypes.c_uint), ('bytes', ctypes.c_ulonglong), ('gi', ctypes.c_uint), ('ci', ctypes.c_uint)]
        def listed():
            infos, n = (Info * 99)(), ctypes.c_uint(99)
            assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(dev, ctypes.byref(n), infos) == 0
            return {i.pid: i.bytes for i in infos[:n.value]}
        malloc(rt, 64 * MB)
        frees = [info(rt)[0] for _ in range(50)]
    '''

    def test_neighbours_come_and_go_between_two_readings_and_nvml_lists_them(self):
        moved, count, own, rest = map(int, self.python(self.NVML + '''
        known = listed()
        own = known.pop(os.getpid())
        free, total = info(rt)
        print(len(set(frees)), len(known), own, total - free - own - sum(listed().values()) + own)
        ''', SIM_NEIGHBOURS=5, SIM_NEIGHBOUR_BYTES='100M', SIM_CTX_BYTES='100M'))
        self.assertGreater(moved, 25)
        self.assertTrue(3 <= count <= 5, count)
        self.assertEqual((own, rest), (164 * MB, 0))

    def test_nvml_of_a_container_lists_nothing_or_numbers_that_nobody_has(self):
        ask = self.NVML + '''
        print(os.getpid() in listed(), sorted(listed().values()))
        '''
        self.assertEqual(self.python(ask, SIM_PIDS='none'), ['False', '[]'])
        self.assertEqual(self.python(ask, SIM_PIDS='others'), ['False', '[%d]' % (364 * MB)])

    def test_nvml_lists_the_server_of_mps_and_not_its_clients(self):
        ask = self.NVML + '''
        print(os.getpid() in listed(), len(listed()), sum(listed().values()) == info(rt)[1] - info(rt)[0])
        '''
        self.assertEqual(self.python(ask, SIM_PIDS='server'), ['False', '1', 'True'])
        self.assertEqual(self.python(ask, SIM_PIDS='server', SIM_NEIGHBOURS=5)[:2], ['False', '1'])

    def test_the_child_of_an_initialised_process_gets_3(self):
        processes = self.app('fork_exec')
        self.assertEqual(len(processes), 5)  # parent, child, child before and after exec, the child that gets 3
        failed = [p for p in processes if p.apis['cudaMalloc'].failures]
        self.assertEqual([c.result for c in failed[0].calls if c.api == 'cudaMalloc'], [3])

    def test_visible_devices_renumber_and_keep_their_uuid(self):
        out = self.python('''
            cuda, uuid, n = lib('libcuda.so.1'), (ctypes.c_ubyte * 16)(), ctypes.c_int()
            cuda.cuInit(0); cuda.cuDeviceGetCount(ctypes.byref(n)); cuda.cuDeviceGetUuid_v2(uuid, 0)
            print(n.value, uuid[15])
        ''', SIM_DEVICES=4, CUDA_VISIBLE_DEVICES='3,1')
        self.assertEqual(out, ['2', '3'])


class Journal(Machine):
    def test_it_survives_sigkill_with_the_calls_in_flight(self):
        for threads in (1, 4):
            for _ in range(10):  # a thread that is not scheduled may be between two calls
                victim = subprocess.Popen([os.path.join(APPS, 'kill_me'), str(threads)], stdout=subprocess.PIPE,
                                          env=self.env(SIM_LATENCY='cuMemAlloc_v2:200000'))
                victim.stdout.readline()
                while not any(len(p.effects) > 20 for p in journal.load(self.folder.name) if p.pid == victim.pid):
                    time.sleep(0.01)
                victim.kill()
                victim.communicate()
                self.assertEqual(victim.returncode, -signal.SIGKILL)
                process = [p for p in self.truth() if p.pid == victim.pid][0]
                seen = len(process.in_flight)
                self.assertLessEqual(seen, threads)
                row = process.memory[('device', 0)]
                self.assertEqual(row.allocations, row.frees + row.live_blocks)
                if seen:
                    break
            self.assertGreaterEqual(seen, 1, threads)

    def test_it_grows_under_a_program_that_closed_every_descriptor_and_went_elsewhere(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            malloc(rt, MB)
            os.closerange(3, 100)
            os.chdir('/')
            files = [os.open(folder + '/file', os.O_RDWR | os.O_CREAT) for i in range(20)]
            for i in range(10000): rt.cudaFree(malloc(rt, 512)[1])
            print(os.fstat(files[0]).st_size)
        '''.replace('folder', repr(self.folder.name)), SIM_JOURNAL='.', cwd=self.folder.name)
        self.assertEqual(out, ['0'])
        process, = self.truth()
        self.assertEqual((process.apis['cudaMalloc'].calls, process.torn), (10001, 0))

    def test_frees_by_other_threads_and_reused_addresses_add_up(self):
        row = self.app('threads', 8, 1000)[0].memory[('device', 0)]
        self.assertEqual(row.allocations, 8000)
        self.assertEqual(row.allocations, row.frees + row.live_blocks)

    def test_one_application_call_counts_once(self):
        apis = self.app('plugin_host', os.path.join(APPS, 'plugin.so'))[0].apis
        self.assertEqual((apis['cudaMalloc'].calls, apis['cuMemAlloc'].calls), (1, 2))
        self.assertEqual((apis['cudaFree'].calls, apis['cuMemFree'].calls), (1, 1))

    def test_hip_calls_itself_and_counts_once(self):
        process = self.app('hip6')[0]
        self.assertEqual(process.apis['hipMallocHost'].calls, 1)
        self.assertEqual(process.apis['hipHostMalloc'].calls, 1)
        self.assertEqual(sum(c.api == 'hipHostMalloc' for c in process.calls), 2)
        self.assertEqual(process.memory[('host_pinned', None)].allocations, 2)

    def test_unset_it_writes_nothing(self):
        env = self.env()
        del env['SIM_JOURNAL']
        env['SIM_DIR'] = self.folder.name
        subprocess.run([os.path.join(APPS, 'runtime13')], env=env, check=True)
        self.assertEqual([f for f in os.listdir(self.folder.name) if f.startswith('journal')], [])


class Kinds(Machine):
    """The programs in tests/apps check the answers they get; these tests check the simulator's journal of them."""

    def row(self, process, kind, device=0):
        r = process.memory[(kind, device)]
        return r.allocations, r.frees, r.implicit_frees, r.failed_allocations, r.live_bytes

    def test_physical_memory_ends_with_its_last_reference_or_mapping(self):
        process = self.app('vmm')[0]
        self.assertEqual(self.row(process, 'vmm'), (4, 3, 0, 1, 16 * MB))
        self.assertEqual(self.row(process, 'imported'), (1, 1, 0, 0, 0))
        self.assertEqual(self.row(process, 'vmm', None), (1, 1, 0, 0, 0))
        last = [next(c.api for c in process.calls if c.number == e.parent) for e in process.effects if e.what == 'free']
        self.assertEqual(last, ['cuMemUnmap', 'cuMemRelease', 'cuMemRelease', 'cuMemRelease', 'cuMemRelease'])

    def test_what_is_imported_is_never_new_memory(self):
        process = self.app('imports')[0]
        self.assertEqual(self.row(process, 'imported'), (2, 2, 0, 0, 0))  # a mapped graphics resource has an address
        self.assertEqual(self.row(process, 'vmm'), (2, 2, 0, 0, 0))
        self.assertEqual(self.row(process, 'pool'), (1, 1, 0, 0, 0))

    def test_graph_memory_ends_in_the_graph_by_hand_or_with_it(self):
        self.assertEqual(self.row(self.app('graphs')[0], 'graph'), (3, 1, 2, 0, 0))

    def test_captured_allocations_are_nodes(self):
        process = self.app('capture')[0]
        self.assertEqual(self.row(process, 'graph'), (1, 0, 0, 0, 2 * MB))
        self.assertEqual(self.row(process, 'pool'), (1, 1, 0, 0, 0))

    def test_views_and_sparse_arrays_are_no_memory(self):
        self.assertEqual(self.row(self.app('arrays')[0], 'array'), (3, 2, 0, 0, MB))

    def test_an_ipc_block_is_one_import_however_often_it_is_opened(self):
        parent, child = sorted(self.app('ipc'), key=lambda p: ('device', 0) in p.memory and -p.memory[('device', 0)].peak_bytes)
        self.assertEqual(self.row(child, 'imported'), (1, 1, 0, 0, 0))
        self.assertEqual(child.apis['cudaIpcOpenMemHandle'].calls, 2)
        self.assertEqual(self.row(parent, 'imported'), (0, 0, 0, 1, 0))

    def test_a_reset_takes_everything_of_the_device(self):
        process = self.app('reset')[0]
        self.assertEqual(self.row(process, 'device'), (12, 2, 9, 0, 5 * MB))
        for kind, device in ('host_pinned', None), ('managed', 0), ('pool', 0):
            self.assertEqual(self.row(process, kind, device), (1, 0, 1, 0, 0))

    def test_out_of_memory_is_counted_once_per_call(self):
        row = self.app('oom', 'retry')[0].memory[('device', 0)]
        self.assertEqual((row.failed_allocations, row.live_blocks), (2, 0))

    def test_every_ending_leaves_the_same_truth(self):
        for how, code in (('exit', 3), ('_exit', 4), ('quick_exit', 5), ('abort', -signal.SIGABRT), ('kill', -signal.SIGKILL)):
            with self.subTest(how=how):
                process = self.app('ending', how, code=code)[-1]
                self.assertEqual(self.row(process, 'device'), (3, 1, 0, 0, 5 * MB))
        self.assertEqual(self.row(self.app('ending', 'dtor')[-1], 'device'), (3, 2, 0, 0, 2 * MB))


class Faults(Machine):
    def test_the_nth_call_fails_with_the_code_asked_for(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            print(*[malloc(rt, MB)[0] for i in range(5)])
        ''', SIM_FAIL='cuMemAlloc_v2:3:700')
        self.assertEqual(out, ['0', '0', '700', '0', '0'])
        row = self.truth()[0].memory[('device', 0)]
        self.assertEqual((row.allocations, row.failed_allocations), (4, 1))

    def test_a_context_that_does_not_fit_fails_the_allocation(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            print(malloc(rt, MB)[0], rt.cudaGetLastError(), malloc(rt, MB)[0])
        ''', SIM_FAIL='cuDevicePrimaryCtxRetain:1:2')
        self.assertEqual(out, ['2', '2', '0'])

    def test_latency_is_felt(self):
        out = self.python('''
            rt = lib('libcudart.so.13')
            malloc(rt, MB)
            t = time.monotonic()
            for i in range(5): malloc(rt, MB)
            print(time.monotonic() - t > 0.05)
        ''', SIM_LATENCY='cuMemAlloc_v2:10000000')
        self.assertEqual(out, ['True'])


class LookUp(Machine):
    CASES = [  # name, version, flags, export or None
        ('cuMemAlloc', 3019, 0, 'cuMemAlloc'), ('cuMemAlloc', 3020, 0, 'cuMemAlloc_v2'), ('cuMemAlloc', 13000, 0, 'cuMemAlloc_v2'),
        ('cuMemAlloc', 1999, 0, None), ('cuMemAlloc_v2', 13000, 0, None),
        ('cuMemHostRegister', 6040, 0, 'cuMemHostRegister'), ('cuMemHostRegister', 6050, 0, 'cuMemHostRegister_v2'),
        ('cuIpcOpenMemHandle', 4010, 0, 'cuIpcOpenMemHandle'), ('cuIpcOpenMemHandle', 11000, 0, 'cuIpcOpenMemHandle_v2'),
        ('cuCtxCreate', 3020, 0, 'cuCtxCreate_v2'), ('cuCtxCreate', 11040, 0, 'cuCtxCreate_v3'), ('cuCtxCreate', 12050, 0, 'cuCtxCreate_v4'),
        ('cuDevicePrimaryCtxReset', 7000, 0, 'cuDevicePrimaryCtxReset'), ('cuDevicePrimaryCtxReset', 11000, 0, 'cuDevicePrimaryCtxReset_v2'),
        ('cuGraphAddNode', 12020, 0, 'cuGraphAddNode'), ('cuGraphAddNode', 12030, 0, 'cuGraphAddNode_v2'),
        ('cuGetProcAddress', 11030, 0, 'cuGetProcAddress'), ('cuGetProcAddress', 12000, 0, 'cuGetProcAddress_v2'),
        ('cuMemAllocAsync', 11020, 0, 'cuMemAllocAsync'), ('cuMemAllocAsync', 11020, 1, 'cuMemAllocAsync'),
        ('cuMemAllocAsync', 11020, 2, 'cuMemAllocAsync_ptsz'), ('cuMemAlloc', 3020, 2, 'cuMemAlloc_v2'),
        ('cuMemcpyHtoD', 7000, 2, 'cuMemcpyHtoD_v2_ptds'), ('cuMemcpyHtoD', 6050, 2, 'cuMemcpyHtoD_v2'),
        ('cuStreamBeginCapture', 10000, 2, 'cuStreamBeginCapture_ptsz'), ('cuStreamBeginCapture', 10010, 2, 'cuStreamBeginCapture_v2_ptsz'),
        ('cuNoSuchThing', 13000, 0, None),
    ]

    def test_the_version_decides_the_export(self):
        out = self.python('''
            cuda = lib('libcuda.so.1')
            cases = %r
            for name, version, flags, export in cases:
                p, status = ctypes.c_void_p(), ctypes.c_int(-1)
                error = cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(p), version, ctypes.c_uint64(flags), ctypes.byref(status))
                q = ctypes.c_void_p()
                error1 = cuda.cuGetProcAddress(name.encode(), ctypes.byref(q), version, ctypes.c_uint64(flags))
                expected = ctypes.cast(getattr(cuda, export), ctypes.c_void_p).value if export else None
                assert error == 0 and p.value == expected, (name, version, flags, error)
                assert error1 == (0 if export else 500), (name, version, error1)
                assert (status.value == 0) == bool(export), (name, version, status.value)
            print(len(cases))
        ''' % (self.CASES,))
        self.assertEqual(out, [str(len(self.CASES))])

    def test_a_version_too_old_and_an_unknown_name_differ(self):
        out = self.python('''
            cuda, p, s = lib('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_int()
            for name, version in (b'cuMemAllocAsync', 11010), (b'cuNoSuchThing', 13000):
                cuda.cuGetProcAddress_v2(name, ctypes.byref(p), version, ctypes.c_uint64(0), ctypes.byref(s))
                print(s.value)
        ''')
        self.assertEqual(out, ['2', '1'])

    def test_the_runtime_hands_out_driver_entry_points(self):
        out = self.python('''
            cuda = lib('libcuda.so.1')
            p, s = ctypes.c_void_p(), ctypes.c_int()
            def of(name): return ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value
            for name in 'libcudart.so.12', 'libcudart.so.13':
                rt = lib(name)
                print(rt.cudaGetDriverEntryPoint(b'cuMemCreate', ctypes.byref(p), ctypes.c_uint64(0), ctypes.byref(s)),
                      p.value == of('cuMemCreate'))
                print(rt.cudaGetDriverEntryPointByVersion(b'cuMemAllocAsync', ctypes.byref(p), 12000, ctypes.c_uint64(2),
                      ctypes.byref(s)), p.value == of('cuMemAllocAsync_ptsz'))
            print(lib('libcudart.so.11.0').cudaGetDriverEntryPoint(b'cuMemAlloc', ctypes.byref(p), ctypes.c_uint64(0)),
                  p.value == of('cuMemAlloc_v2'))
            print(hasattr(lib('libcudart.so.11.0'), 'cudaGetDriverEntryPointByVersion'))
        ''')
        self.assertEqual(out, ['0', 'True'] * 5 + ['False'])

    def test_an_old_driver_refuses_a_young_runtime(self):
        out = self.python("print(malloc(lib('libcudart.so.13'), MB)[0], malloc(lib('libcudart.so.12'), MB)[0])",
                          SIM_DRIVER_VERSION=12080)
        self.assertEqual(out, ['35', '0'])

    @unittest.skipUnless(os.path.exists(REAL_CUDART), 'no CUDA 13 toolkit here')
    def test_nvidias_own_runtime_finds_every_name_and_refuses_us_unchanged(self):
        # NVIDIA's runtime checks its driver: that it refuses the simulated one is the right answer.
        out = self.python('''
            rt, version = ctypes.CDLL(%r), ctypes.c_int()
            print(malloc(rt, MB)[0], rt.cudaDriverGetVersion(ctypes.byref(version)), version.value)
        ''' % REAL_CUDART, SIM_LOOKUPS=os.path.join(self.folder.name, 'lookups'))
        with open(os.path.join(self.folder.name, 'lookups')) as f:
            asked = [line.split() for line in f]
        missing = sorted({name for name, _, _, found in asked if found == '0'})
        self.assertGreater(len(asked), 400)
        self.assertEqual([m for m in missing if not m.startswith(('cuGL', 'cuEGL', 'cuVDPAU', 'cuGraphicsEGL',
                                                                  'cuGraphicsVDPAU', 'cuGraphicsGL', '(empty)'))], [])
        self.assertNotEqual(out[0], '0')
        self.assertEqual([p.effects for p in self.truth()], [[]])  # it came as far as cuInit


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
