#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs of PyTorch that run out of memory, each for one reason: the answer tells first what to change, and with that change,
which was made by hand, the program fits.  Types, shapes and modules of blocks, as tensors themselves say them."""
import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import msgpack
import torch_venv
from dry import ANALYZE, Dry

PYTHON = torch_venv.python("torch")
BEGIN = """\
import os, queue, sys, tempfile, threading, torch
from torch import nn
def layers(count, size): return nn.Sequential(*[nn.Linear(size, size, bias=False) for _ in range(count)]).cuda()
"""
# name: limit, the change that the replay tried ("": the source alone proves it), words of `fix`, the program, what is changed by hand
PROGRAMS = {
    "late zero_grad": ("2G", "zero_early", r"call zero_grad\(\) before prog\.py:\d+", """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.up, self.down = nn.LayerNorm(1024), nn.Linear(1024, 4096), nn.Linear(4096, 1024)
            def forward(self, x): return x + self.down(torch.relu(self.up(self.norm(x))))
        net = nn.Sequential(*[Block() for _ in range(10)]).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=False)
        for step in range(4):
            loss = net(torch.randn(2700, 1024, device="cuda")).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """, ("    loss = net", "    optimizer.zero_grad()\n    loss = net")),
    "caches in full length": ("2G", "", r"make them for fewer sequences or a shorter context at prog\.py:\d+", """
        class KVCache(nn.Module):
            def __init__(self, shape):
                super().__init__()
                self.register_buffer("k", torch.zeros(shape, dtype=torch.half, device="cuda"), persistent=False)
                self.register_buffer("v", torch.zeros(shape, dtype=torch.half, device="cuda"), persistent=False)
        net = layers(8, 4096).half()
        for layer in net:
            layer.cache = KVCache((16, 32, 1024, 128))
        """, ("(16, ", "(4, ")),
    "a result as large as its operands": ("2G", "", r"write the result into an operand at prog\.py:\d+", """
        def blend(rows):
            total, weight = torch.zeros(rows, 1 << 20, device="cuda"), torch.zeros(rows, 1 << 20, device="cuda")
            return total / weight
        with torch.no_grad():
            blend(200)
        """, ("return total / weight", "total /= weight\n    return total")),
    "algorithms that cuDNN could not have": ("2G", "", r"hold less at prog\.py:\d+, or ask for less at prog\.py:\d+", """
        net = nn.Conv2d(64, 64, 5, padding=2).cuda()
        with torch.no_grad():
            images, kept = torch.empty(16, 64, 128, 128, device="cuda"), torch.empty(1600 << 18, device="cuda")
            maps = net(images)
            more = torch.empty(100 << 18, device="cuda")
        """, ("100 << 18", "10 << 18")),
    "evaluation with autograd": ("2G", "", r"run prog\.py:\d+ under torch\.no_grad\(\)", """
        net = nn.Sequential(*[layer for _ in range(32) for layer in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
        def evaluate(net):
            net.eval()
            total = 0.0
            for batch in range(4):
                total += net(torch.empty(16384, 1024, device="cuda")).mean().item()
            return total
        print(evaluate(net))
        """, ("def evaluate", "@torch.no_grad()\ndef evaluate")),
    "a teacher with autograd": ("2G", "", r"run prog\.py:\d+ under torch\.no_grad\(\)", """
        def net(count): return nn.Sequential(*[layer for _ in range(count) for layer in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
        class Distiller:
            def __init__(self, teacher, student):
                self.teacher, self.student = teacher.eval(), student
                self.optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
            def loss(self, batch):
                wanted = self.student(batch)
                return nn.functional.mse_loss(wanted, self.teacher(batch))
        distiller = Distiller(net(32), net(2))
        for step in range(3):
            distiller.loss(torch.empty(16384, 1024, device="cuda")).backward()
            distiller.optimizer.step()
            distiller.optimizer.zero_grad()
        """, ("return nn.functional.mse_loss(wanted, self.teacher(batch))", "\n        with torch.no_grad(): told = self.teacher(batch)\n        return nn.functional.mse_loss(wanted, told)")),
    "a table of which few rows are used": ("900M", "", "pass sparse=True to the Embedding, with SparseAdam for it", """
        table = nn.Embedding(400000, 128, sparse=False).cuda()
        optimizer = torch.optim.Adam(table.parameters())
        for step in range(2):
            table(torch.zeros(64, dtype=torch.long, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        """, ("sparse=False).cuda()\noptimizer = torch.optim.Adam", "sparse=True).cuda()\noptimizer = torch.optim.SparseAdam")),
    "one document that is too long": ("2G", "", r"halve the batch of prog\.py:7", """
        net = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
        optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
        for length in (900, 800, 950, 700, 880, 910, 40000):
            loss = net(torch.empty(length, 1024).cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """, ("40000", "20000")),
    "a queue": ("2G", "", r"put batches of the host into the queue of prog\.py:\d+, or let it hold two", """
        waiting, full = queue.Queue(maxsize=96), threading.Event()
        def fill():
            try:
                for number in range(60):
                    waiting.put(torch.empty(1 << 24).to("cuda", non_blocking=True))
                    if waiting.full(): full.set()
            finally:
                full.set()
                waiting.put(None)
        threading.Thread(target=fill, daemon=True).start()
        full.wait()
        count = sum(1 for batch in iter(waiting.get, None))
        sys.exit(count != 60)
        """, ("maxsize=96", "maxsize=2")),
    "a kept slice": ("1G", "", r"store copies in `bank` at prog\.py:8: \(\.\.\.\)\.clone\(\)", """
        bank, net = [], nn.Linear(768, 768).cuda()
        with torch.inference_mode():
            for index in range(80):
                tokens = net(torch.empty(64, 64, 768, device="cuda"))
                bank.append(tokens[:, 0])
        """, ("[:, 0]", "[:, 0].clone()")),
    "a checkpoint on the card": ("1100M", "load_on_host", r'pass map_location="cpu" to the load at prog\.py:8', """
        path = os.path.join(tempfile.mkdtemp(), "last.pt")
        torch.save(nn.Sequential(*[nn.Linear(2048, 2048, bias=False) for _ in range(10)]).state_dict(), path)
        net = layers(10, 2048)
        optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
        state = torch.load(path, map_location="cuda")
        net.load_state_dict(state)
        for step in range(3):
            net(torch.empty(8, 2048, device="cuda")).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        """, ('"cuda")\nnet.load', '"cpu")\nnet.load')),
    "an optimizer of replaced weights": ("1G", "new_optimizer", "make a new optimizer where its weights are replaced", """
        net = layers(6, 2048)
        optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
        for round in range(4):
            for step in range(2):
                net(torch.empty(8, 2048, device="cuda")).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            for layer in net: layer.weight = nn.Parameter(layer.weight.detach().clone())
            optimizer.add_param_group({"params": list(net.parameters())})
        """, ('optimizer.add_param_group({"params": list(net.parameters())})', "optimizer = torch.optim.AdamW(net.parameters(), foreach=False)")),
    "a loss of all batches": ("1G", "", r"call backward\(\) in each batch, not once for all of them at prog\.py:\d+", """
        def train(net, total=0):
            for batch in range(40):
                total = total + net(torch.empty(4096, 1024, device="cuda")).mean()
            total.backward()
        train(nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.ReLU())]).cuda())
        """, ('total = total + net(torch.empty(4096, 1024, device="cuda")).mean()\n    total.backward()',
              'net(torch.empty(4096, 1024, device="cuda")).mean().backward()')),
    "all batches on the card": ("1G", "", r"move a batch to the card when its pass begins, and not all of them at prog\.py:\d+", """
        host = [torch.empty(1 << 23) for _ in range(40)]
        def prepare(batches, device): return [(batch.to(device), number) for number, batch in enumerate(batches)]
        for batch, number in prepare(host, "cuda"): batch.cuda().sum()
        """, ('prepare(host, "cuda")', 'prepare(host, "cpu")')),
    "results without autograd": ("1G", "offload_results", r"move what .{0,60} keeps to the host by \.detach\(\)\.cpu\(\)", """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(6))
            def forward(self, x):
                return [x := torch.relu(layer(x)) for layer in self.layers]
        def embed(net, states):
            with torch.no_grad():
                for batch in range(40):
                    states.append(net(torch.empty(2048, 1024, device="cuda")))
        embed(Net().cuda(), [])
        """, ('net(torch.empty(2048, 1024, device="cuda"))', '[x.cpu() for x in net(torch.empty(2048, 1024, device="cuda"))]')),
    "an optimizer's temporaries": ("1150M", "one_by_one", "pass foreach=False", """
        net = layers(10, 2048)
        optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
        for step in range(3):
            net(torch.empty(8, 2048, device="cuda")).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        """, ("foreach=True", "foreach=False")),
}
TENSORS = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 512, bias=False), nn.Linear(512, 256, bias=False)
    def forward(self, x): return self.down(self.up(x))
net = nn.ModuleDict({"body": nn.ModuleList(Block() for _ in range(2)), "head": nn.Linear(256, 1000, dtype=torch.bfloat16)}).cuda()
class Net(nn.Module):
    def __init__(self): super().__init__(); self.layers = net
    def forward(self, x):
        for block in self.layers["body"]: x = block(x)
        return self.layers["head"](x.bfloat16())
kept = [Net()(torch.empty(1024, 256, device="cuda")), torch.zeros(3000, dtype=torch.int64, device="cuda")]
tensors = [*net.parameters(), kept[0], kept[1]]
print({str(kind): sum(x.nbytes for x in tensors if x.dtype is kind) for kind in {x.dtype for x in tensors}})
torch.empty(512, 3, 1 << 20, dtype=torch.float64, device="cuda")
"""


def run(text, **how):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "prog.py")
        with open(path, "w") as file:
            file.write(BEGIN + textwrap.dedent(text).lstrip("\n"))
        return Dry(PYTHON, path, card="4090", folder=folder, **how)


class Causes(unittest.TestCase):
    maxDiff = None

    def check(self, name):
        limit, kind, fix, text, (was, becomes) = PROGRAMS[name]
        text = textwrap.dedent(text)
        failed, changed = run(text, options=["--limit", limit]), run(text.replace(was, becomes), options=["--limit", limit], analyze=False)
        self.assertNotEqual(failed.status, 0)
        self.assertEqual(changed.status, 0, changed.err)
        head = failed.screen.partition("the card at the error")[0]
        self.assertRegex(" ".join(head.split()), " fix " + fix)
        tried = {change["kind"]: change["passes"] for process in failed.report["processes"] for change in process["changes"]["tried"]}
        self.assertNotIn(tried.get(kind), ("no", None) if kind else (), failed.screen)


def add(name):
    setattr(Causes, "test_" + re.sub(r"\W", "_", name), lambda self: self.check(name))


for one in PROGRAMS:
    add(one)


NET = """
class Net(nn.Module):
    def __init__(self, count, device=None):
        super().__init__()
        self.head = nn.Linear(2048, 1000, device=device)
        self.layers = nn.ModuleList(nn.Linear(2048, 4096, device=device) for _ in range(count))
    def forward(self, x): return self.head(x)
def bytes_of(*nets): print(sum(x.nbytes for net in nets for x in net.parameters()), flush=True)
"""
MIB = {"MiB": 1 << 20, "GiB": 1 << 30}


class Weights(unittest.TestCase):
    """Weights that do not fit are no leak; how much they need is what the program counted itself."""

    def head(self, text):
        failed = run(NET + textwrap.dedent(text), options=["--limit", "1G"])
        head = failed.screen.partition("the limit (--limit) at the error")[0]
        self.assertNotEqual(failed.status, 0)
        self.assertNotRegex(failed.screen, r"LEAK|a list|keeps [\d.]|, fits")
        self.assertEqual([finding["id"] for finding in failed.report["findings"] if finding["id"].startswith("leak.")], [])
        return " ".join(head.split()), int(failed.out) if failed.out else 0

    def assert_need(self, text, line):
        head, counted = self.head(text)
        number, unit = re.search(r"DOES NOT FIT weights need ([\d.]+) (\w+) and the card has room for", head).groups()
        self.assertLess(abs(float(number) * MIB[unit] - counted), 0.01 * counted, head)
        self.assertIn("dtype=torch.bfloat16 before prog.py:%d" % line, head)

    def test_a_model_of_the_host(self):
        self.assert_need("net = Net(40); bytes_of(net); net.cuda()", 11)
        changed = run(NET + "net = Net(40).bfloat16().cuda()", options=["--limit", "1G"], analyze=False)
        self.assertEqual(changed.status, 0, changed.err)

    def test_layer_by_layer(self):
        self.assert_need("net = Net(40); bytes_of(net); net.head.cuda()\nfor layer in net.layers: layer.to('cuda')", 12)

    def test_the_second_of_two(self):
        self.assert_need("""
            first = Net(20).cuda()
            first(torch.empty(4, 2048, device="cuda"))
            second = Net(20); bytes_of(first, second); second.cuda()
            """, 14)

    def test_made_on_the_card(self):
        self.assertRegex(self.head("net = Net(50, 'cuda')")[0], r"DOES NOT FIT prog\.py:\d+ loads weights until the card is full")

    def test_layers_in_a_list(self):
        head, _ = self.head("""
            layers = []
            for number in range(100): layers.append(nn.Linear(2048, 4096, device="cuda"))
            """)
        self.assertRegex(head, r"DOES NOT FIT prog\.py:\d+ loads weights until the card is full")
        head, _ = self.head("layers = [nn.Linear(2048, 4096).cuda() for number in range(100)]")
        self.assertRegex(head, r"give them dtype=torch\.bfloat16 before prog\.py:11, half as much")
        self.assertIn("or of models that a loop keeps", head)

    def test_models_that_a_loop_keeps_are_a_leak(self):
        failed = run(NET + """
models = []
for step in range(100):
    net = Net(1).cuda()
    net(torch.empty(4, 2048, device="cuda"))
    models.append(net)
""", options=["--limit", "1G"])
        self.assertIn("DOES NOT FIT   models keeps", failed.screen)


class Tensors(unittest.TestCase):
    def test_types_shapes_and_modules_are_those_of_the_tensors(self):
        with tempfile.TemporaryDirectory() as folder:
            traces = os.path.join(folder, "traces")
            failed = run(TENSORS, options=["--limit", "2G"], keep=traces)
            trees = {by: json.loads(subprocess.run([ANALYZE, "tree", "--json", "--by", by, "--at", "oom", traces], capture_output=True).stdout)
                     for by in ("type", "module")}
            peak = {by: json.loads(subprocess.run([ANALYZE, "tree", "--json", "--by", by, traces], capture_output=True).stdout)
                    for by in ("type", "module")}
            with open(os.path.join(traces, "analysis", "report.html")) as page:
                data = re.search(r'type="text/plain">([^<]+)<', page.read())[1]
        rows = msgpack.unpackb(gzip.decompress(base64.b64decode(data)), strict_map_key=False)["tensors"]
        for by, none in (("type", "no known type"), ("module", "in no module")):
            shown = {}
            for row in rows:
                shown[row[by] or none] = shown.get(row[by] or none, 0) + row["bytes"]
            self.assertEqual(shown, {owner["name"]: owner["bytes"] for owner in peak[by]["owners"] if owner["name"] != "kept by PyTorch, unused"})
        owners = {by: {owner["name"]: owner["bytes"] for owner in tree["owners"]} for by, tree in trees.items()}
        for kind, size in eval(failed.out.splitlines()[0]).items():
            held = owners["type"][kind.replace("torch.", "")]
            self.assertTrue(size <= held < size + 7 * (1 << 20), (kind, size, held))  # activations, and what sizes are rounded to
        self.assertIn("512 x 3 x 1048576 float64", " ".join(failed.screen.split()))
        self.assertEqual({name for name in owners["module"] if "body" in name},
                         {"body.%d.%s" % (i, part) for i in (0, 1) for part in ("up", "down")})


if __name__ == "__main__":
    unittest.main(verbosity=2)
