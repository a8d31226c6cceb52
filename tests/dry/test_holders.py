#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which variable holds each block, as Python tells it in a dry run. The truth is the program: it stores blocks of one size into one
variable. Without the environment of scripts/torch-venv the test is skipped."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import torch_venv
from dry import ANALYZE, Dry

PYTHON = torch_venv.python("torch")
PACKAGE = os.path.join(HERE, "..", "..", "python")
KINDS = """
import asyncio, collections, contextvars, functools, gc, logging.handlers, queue as queues, sys, threading, types, weakref
import numpy, torch

def block(mib=1):
    return torch.zeros(mib << 18, device="cuda")

listed = [block() for _ in range(3)]
keyed = {"a": block(), 7: block()}
nested = {"x": [block(), block()], "y": [block()]}
queue = collections.deque((block() for _ in range(9)), maxlen=4)
Pair = collections.namedtuple("Pair", "left right")
pairs = [Pair(block(), block())]
weak = weakref.WeakValueDictionary(only=listed[0])
alone = block()
objects = numpy.empty(3, dtype=object)
objects[0], objects[2] = block(), block()
def function():
    pass
function.cache = [block()]
ones = torch.ones(1, device="cuda")
ones.extra = block()
indices = torch.zeros(1, 1 << 17, dtype=torch.long, device="cuda")
sparse = torch.sparse_coo_tensor(indices, torch.zeros(1 << 17, device="cuda"), (1 << 17,))
del indices
context = contextvars.ContextVar("context")
context.set(block())
ended = weakref.finalize(Pair, print, block(11))  # a class of a library has it
ended.atexit = False

class Meter:
    everywhere = [block(), block()]
    def __init__(self):
        self.seen = [block() for _ in range(5)]
    @functools.cached_property
    def once(self):
        return block()

class Slotted:
    __slots__ = ("held",)

class Bank(list):
    pass
bank_of_blocks = Bank([block()])
bank_of_blocks.more = block()

meters = [Meter()]
meters[0].once
slotted = Slotted()
slotted.held = block()

class Layer:
    def __init__(self):
        self.keys = block()
sessions = {n: [Layer()] for n in range(6)}

def make():
    enclosed = [block(), block()]
    return lambda: enclosed
step = make()

def default(x, cache=[block(), block()], *, more={"k": block()}):
    return cache

@functools.lru_cache(maxsize=None)
def cached(n):
    return block()
cached(1), cached(2)

@functools.lru_cache(maxsize=8)
def bounded(n):
    return block()
bounded(1)

def generate():
    yielded = [block()]
    yield
running = generate()
next(running)
local = threading.local()
local.cache = [block()]
saved = contextvars.copy_context()
saved.run(contextvars.ContextVar("other").set, block())
handler = logging.handlers.MemoryHandler(9)
handler.handle(logging.makeLogRecord({"args": (block(),), "levelno": 10}))
puts = queues.Queue()
puts.put(block())
loop = asyncio.new_event_loop()
async def waits():
    inside = block()
    await asyncio.sleep(1000)
task = loop.create_task(waits())
loop.call_soon(loop.stop)
loop.run_forever()
class Counted:
    @functools.lru_cache(maxsize=None)
    def features(self):
        return block()
Counted().features()
def raises():
    in_frame = block()
    raise ValueError
try:
    raises()
except ValueError as error:
    caught = error
bound = Meter().seen.append
partial = functools.partial(print, block())

net = torch.nn.Sequential(torch.nn.Linear(512, 512, bias=False), torch.nn.ModuleDict({"head": torch.nn.Linear(512, 256, bias=False)})).cuda()
optimizer = torch.optim.AdamW(net.parameters())
optimizer.zero_grad()
net[1]["head"](net[0](torch.ones(1, 512, device="cuda"))).sum().backward()
optimizer.step()

source = torch.ones(1 << 18, device="cuda", requires_grad=True)
losses = [(source * 2).exp().sum() for _ in range(3)]
retained = source * 3
retained.retain_grad()
retained.sum().backward()
bank = [block(16)[:1024] for _ in range(2)]

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = x * x
        return ctx.kept
    @staticmethod
    def backward(ctx, grad):
        return grad

class Ring:
    pass
def turn():
    ring = Ring()
    ring.me, ring.block = ring, block(3)
gc.disable()  # else PyTorch's next import may free the ring
turn()
sys.path.insert(0, %r)
import stormlog_native
print([one for one in stormlog_native.holders(60) if one[1] == "cycle" or one[3] == 11 << 20])

def wait(ready, go):
    threaded = block(2)
    ready.set()
    go.wait()
ready, go = threading.Event(), threading.Event()
thread = threading.Thread(target=wait, args=(ready, go))
thread.start()
ready.wait()

def fails():
    local = [block() for _ in range(4)]
    try:
        block(1 << 20)
    finally:
        go.set()
fails()
""" % PACKAGE

FORKS = """
import os, sys, torch
kept = [torch.zeros(1 << 18, device="cuda") for _ in range(5)]
if "ask" in sys.argv:
    sys.path.insert(0, %r)
    import stormlog_native
    assert stormlog_native.holders() == [("kept[*]", "global", 5, 5 << 20)]
for batch in torch.utils.data.DataLoader(range(4), num_workers=2):
    print(batch)
sys.stdout.flush()
if not os.fork():
    print("child")
    sys.exit(4)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]) - 1)
""" % PACKAGE


STEPS = """
import collections, functools, torch
net = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(4))).cuda()

def block(mib):
    return torch.zeros(mib << 18, device="cuda")

@functools.lru_cache(maxsize=None)
def encode(n):
    return block(64)

class Meter:
    def __init__(self):
        self.seen = collections.defaultdict(list)
    def add(self, n):
        self.seen[n // 100].append(Pair())

class Pair:
    def __init__(self):
        self.left, self.right = (torch.zeros(32 << 18, device="cuda") for _ in range(2))
meter = Meter()
first, second = [], []

def two(n):
    first.append(torch.zeros(40 << 18, device="cuda"))
    second.append(torch.zeros(24 << 18, device="cuda"))

def shared(n):
    (first if n % 3 else second).append(block(40))

def evaluate(n):
    losses = []
    while True:
        losses.append(net(block(32).view(-1, 2048)).mean())
"""


HOOKS = """
import torch

class Store:
    def __init__(self):
        self.outputs, self.gradients = [], []
    def keep(self, output):
        self.outputs.append(output)
        output.register_hook(self.gradients.append)

store = Store()
weight = torch.nn.Parameter(torch.zeros(1 << 18, device="cuda"))
for step in range(40):
    output = weight * 2
    store.keep(output)
    (output * output).sum().backward()
"""
SMOOTHED = """
import torch

class Monitor:
    value = 0
    def update(self, net, batch):
        self.value = 0.9 * self.value + net(batch).mean()

def main():
    net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)) for _ in range(3))).cuda()
    optimizer, monitor = torch.optim.SGD(net.parameters()), Monitor()
    for step in range(64):
        net(torch.zeros(512, 512, device="cuda")).mean().backward()
        optimizer.step()
        monitor.update(net, torch.zeros(512, 512, device="cuda"))
main()
import sys
print(sys.modules["stormlog_holders"].teller.steps)
"""
GRAPHS = """
import torch

class Replayed:
    def __init__(self):
        self.records = {}
    def __call__(self, n):
        if n not in self.records:
            self.records[n] = self.record(n)
    def record(self, n):
        given = torch.zeros(n << 10, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = (given * 2).sin() + 1
        return graph, given, result

replayed = Replayed()
for n in range(1000, 1040):
    replayed(n)
"""
CONTEXTS = """
import multiprocessing
import settings

def work(n):
    return n

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(work, range(8))
        pool.close()
        pool.join()
    kept = settings.torch.zeros(1 << 28, device="cuda")
"""
LARGE = """
import torch, stormlog_holders

class Thing:
    def __init__(self, n):
        self.parts = {"n": [n]}
        if not n % 3000:
            self.block = torch.zeros(1 << 8, device="cuda")

stormlog_holders.OBJECTS = 12000
stormlog_holders.teller.left["between"] = 0
things = [Thing(n) for n in range(30001)]
late = [things, []]
for step in range(1500):
    late[1].append(torch.zeros(1 << 8, device="cuda"))
"""
CYCLE = """
import torch
for step in range(40):
    weight = torch.nn.Parameter(torch.zeros(1 << 18, device="cuda"))
    (weight * weight * weight).sum().backward(create_graph=True)
"""
NOTEBOOK = """
import code, sys, types
main = sys.modules["__main__"] = types.ModuleType("__main__")  # as ipykernel does
shell = code.InteractiveInterpreter(vars(main))
for n, cell in enumerate(("import torch; kept = []", "def step():\\n    kept.append(torch.zeros(1 << 18, device='cuda'))",
                          "for n in range(60):\\n    step()", "step() + nothing", "print(len(kept))")):
    shell.runcode(compile(cell, "/tmp/ipykernel_1/%d.py" % n, "exec"))
sys.exit(3)
"""


class AtTheEnd(unittest.TestCase):
    def run_job(self, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "job.py"), "w") as file:
                file.write(text)
            return Dry(PYTHON, file.name, folder=folder)

    def screen(self, text):
        return self.run_job(text).screen

    def test_the_line_that_fills_the_container_is_marked_with_its_name(self):
        screen = self.screen(HOOKS)
        self.assertRegex(screen, r"job.py:9 +output.register_hook\(self.\S* +<- Store.gradients keeps it|job.py:8 +self.outputs.append\(\S* +<- Store.outputs keeps it")
        self.assertIn("of every backward pass", screen)  # no optimizer ran

    def test_what_a_local_held_on_many_ways_through_libraries_has_its_name(self):
        """At the end the local is gone: the name is of a look between, at which it held all that the line then had."""
        done = self.run_job(SMOOTHED)
        screen = done.screen
        self.assertEqual(done.out.split(), ["64"])  # steps of the optimizer, by which it looks
        self.assertRegex(screen, r"LEAK +Monitor.value keeps .* of every training step")
        self.assertRegex(screen, r"job.py:7 .*<- Monitor.value keeps it")

    def test_what_keeps_graphs_is_named_too(self):
        screen = self.screen(GRAPHS)
        self.assertRegex(screen, r"job.py:9 .*<- Replayed.records keeps it")
        self.assertIn("LEAK job.py:13 keeps a graph executable", " ".join(screen.split()))
        self.assertRegex(" ".join(screen.split()), r"Python found \d+ of them in the dict `Replayed.records`")

    def test_the_variable_that_makes_a_context_in_each_worker(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ("settings.py", 'import torch\nSCALE = torch.tensor(0.7, device="cuda")\n'), ("job.py", CONTEXTS):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            screen = " ".join(Dry(PYTHON, file.name, folder=folder).screen.split())
        self.assertIn("HIDDEN 2 processes make a CUDA context each", screen)
        self.assertIn("Python found 512 B in `settings.SCALE` of settings.py.", screen)
        self.assertNotIn("views", screen)

    def test_a_look_that_ends_early_has_names_from_each_large_container_and_says_for_how_many_blocks_it_stands(self):
        with tempfile.TemporaryDirectory() as keep:
            run = Dry(PYTHON, "-c", LARGE, keep=os.path.join(keep, "traces"))
            tree = subprocess.run([ANALYZE, "tree", "--by", "holder", os.path.join(keep, "traces")], capture_output=True, text=True).stdout
        holders = run.report["processes"][0]["holders"]
        self.assertEqual({one["path"] for one in holders}, {"late[*][*]", "things[*].block"})
        for one in holders:
            self.assertTrue(sum(one["blocks"] for one in holders) == one["look_named"] < one["look_among"] == 1511, one)
        stands = "1 %03d of 1 511 blocks" % (one["look_named"] - 1000)
        self.assertIn("Python's look ended early: it stands for %s." % stands, " ".join(run.screen.split()))
        self.assertIn("its look ended early, after %s " % stands, " ".join(tree.split()))

    def test_a_notebook_is_told_the_variable_of_its_cells_and_says_and_ends_the_same(self):
        run = Dry(PYTHON, "-c", NOTEBOOK)
        self.assertEqual((run.status, run.out, run.err.count("Error")), (3, "61\n", 1))
        holders = [(one["path"], one["how"], one["file"], one["blocks"]) for one in run.report["processes"][0]["holders"]]
        self.assertEqual(holders, [("kept[*]", "global", None, 61)])

    def test_a_cycle_without_a_variable_is_not_sent_to_another_dry_run(self):
        screen = " ".join(self.screen(CYCLE).split())
        self.assertRegex(screen, r"LEAK job.py:\d+ keeps .* Python found no variable: a parameter and its \.grad keep each other")
        self.assertRegex(screen, r"fix torch\.autograd\.grad\(\.\.\., create_graph=True\) instead of backward\(\) at job\.py:5\b")
        self.assertNotIn("--holders", screen)


class AtAnError(unittest.TestCase):
    """The walk is made before frames unwind."""

    def screen(self, step, more=""):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "job.py"), "w") as file:
                file.write(STEPS + more + "for n in range(100000):\n    %s(n)\n" % step)
            run = Dry(PYTHON, file.name, card="4090", folder=folder)
        self.assertEqual((run.status, run.err.count("OutOfMemoryError")), (1, 1))
        return " ".join(run.screen.split())

    def test_the_variable_heads_its_error_and_is_the_fix(self):
        for step, variable, container, mib in ("encode", "encode", "cache", 64), ("meter.add", "Meter.seen", "defaultdict", 32):
            screen = self.screen(step)
            self.assertIn("DOES NOT FIT %s keeps %d MiB of every pass until the card is full" % (variable, mib), screen)
            self.assertIn("Python found them in the %s `%s`" % (container, variable), screen)
            self.assertRegex(screen, r"fix (clear|move what) `%s`" % variable)

    def test_weights_have_the_name_of_their_model(self):
        screen = self.screen("fill", """
def fill(n):
    model = torch.nn.Sequential(*(torch.nn.Linear(16384, 16384) for _ in range(30)))
    model = model.to("cuda")
""")
        self.assertRegex(screen, r"room for 23.\d GiB .* Python found 2\d(\.\d)? GiB in `model` of fill\(\)")

    def test_lines_that_leak_together_are_told_once(self):
        screen = self.screen("two")
        self.assertRegex(screen, r"DOES NOT FIT first keeps 40 MiB .* job.py:\d+, job.py:\d+ leak together")
        self.assertNotIn("also LEAK", screen)

    def test_a_variable_with_a_part_of_a_line_does_not_head_it(self):
        screen = self.screen("shared")
        self.assertRegex(screen, r"DOES NOT FIT job.py:\d+ keeps 40 MiB .* Python found 15.\d GiB in the list `first`")

    def test_a_graph_has_the_name_of_the_local_that_leads_to_it(self):
        screen = self.screen("evaluate")
        self.assertIn("Autograd's graph of `losses[*]` of evaluate() holds", screen)
        self.assertRegex(screen, r"losses keeps .* fix detach what `losses` gets at job.py:\d+")
        self.assertNotIn("also LEAK", screen)


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = Dry(PYTHON, "-c", KINDS)
        cls.holders = {(one["path"], one["how"]): one for one in cls.run_.report["processes"][0]["holders"]}

    def holds(self, path, how, blocks, **more):
        self.assertIn((path, how), self.holders)
        one = self.holders[path, how]
        self.assertEqual({"blocks": one["blocks"], **{name: one[name] for name in more}}, {"blocks": blocks, **more})

    def test_a_list_a_dict_and_a_deque_of_a_module(self):
        self.holds("listed[*]", "global", 3, container="list", variable="listed")
        self.holds("keyed[*]", "global", 2, container="dict")
        self.holds("nested[*][*]", "global", 3, container="dict", variable="nested")
        self.holds("queue[*]", "global", 4, container="deque")
        self.holds("pairs[*][*]", "global", 2)
        self.holds("alone", "global", 1, container=None)
        self.holds("objects[*]", "global", 2, container="ndarray")
        self.holds("context", "global", 1)

    def test_what_objects_of_pythons_own_classes_have(self):
        """Those of C have no attributes, so that there is not more to say than what has them."""
        for path in "local.cache[*]", "saved", "handler.buffer[*].args[*]", "puts.queue[*]", "task.inside", "caught.tb_frame.in_frame":
            with self.subTest(path):
                self.holds(path, "global", 1)
        self.holds("Counted.features[*]", "cache", 1)
        self.holds("bank_of_blocks[*]", "global", 1, container="Bank")
        self.holds("Bank.more", "attribute", 1)

    def test_what_hangs_on_a_function_and_on_a_tensor(self):
        self.holds("function.cache[*]", "global", 1)
        self.holds("ones.extra", "global", 1)
        self.holds("sparse", "global", 2)  # indices and values

    def test_attributes_of_instances_and_of_classes(self):
        self.holds("Meter.seen[*]", "attribute", 5, container="list", variable="Meter.seen")
        self.holds("Meter.once", "attribute", 1)
        self.holds("Slotted.held", "attribute", 1)
        self.holds("Meter.everywhere[*]", "global", 2)

    def test_a_container_of_many_instances_is_named_with_their_attribute(self):
        self.holds("sessions[*][*].keys", "global", 6, variable="sessions")

    def test_what_a_function_keeps(self):
        self.holds("step.enclosed[*]", "closure", 2)
        self.holds("default(cache=)[*]", "default", 2)
        self.holds("default(more=)[*]", "default", 1)
        self.holds("cached[*]", "cache", 2)
        self.holds("bounded[*]", "cache", 1)
        self.holds("running.yielded[*]", "global", 1)
        self.holds("partial.args[*]", "global", 1)

    def test_parameters_gradients_and_states_have_names_of_the_model(self):
        self.holds("net.0.weight", "global", 1)
        self.holds("net.1.head.weight", "global", 1)
        self.holds("net.0.weight.grad", "global", 1)
        self.holds("optimizer.state[net.0.weight].exp_avg", "global", 1)

    def test_a_graph_has_the_name_of_what_leads_to_it(self):
        self.holds("losses[*]", "graph", 3)
        self.holds("retained.grad", "global", 1)

    def test_views_see_less_than_they_hold(self):
        self.holds("bank[*]", "global", 2, bytes=32 << 20, seen_bytes=8192)

    def test_a_cycle_has_the_name_of_a_class_in_it_and_a_library_its_own(self):
        """Asked for with time enough: at an error the walk may end before it looks there."""
        self.assertEqual(self.run_.out, "%s\n" % [("ended._registry[*].args[*]", "global", 1, 11 << 20), ("Ring", "cycle", 1, 3 << 20)])

    def test_locals_at_an_error(self):
        self.holds("local[*]", "local", 4, function="fails")
        self.holds("threaded", "local", 1, function="wait")

    def test_what_a_caught_error_held_is_free_when_its_handler_ends(self):
        program = """
import gc
import torch
gc.disable()
def ask():
    first = torch.empty(1 << 28, device="cuda")
    return first, torch.empty(1 << 44, device="cuda")
for _ in range(2):
    try:
        ask()
    except torch.OutOfMemoryError:
        pass
    print(torch.cuda.memory_allocated())
"""
        self.assertEqual(Dry(PYTHON, "-c", program, analyze=False).out.split()[-2:], ["0", "0"])

    def test_a_program_that_asks_says_and_ends_the_same_and_its_children_tell_nothing(self):
        plain, asks = (Dry(PYTHON, "-c", FORKS, *more) for more in ([], ["ask"]))
        self.assertEqual((asks.status, asks.out), (plain.status, plain.out))
        self.assertEqual((plain.status, plain.out.endswith("child\n")), (3, True))
        for run in plain, asks:
            self.assertEqual([one["path"] for process in run.report["processes"] for one in process.get("holders", [])], ["kept[*]"])


if __name__ == "__main__":
    unittest.main()
