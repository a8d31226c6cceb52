#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch as pip installed it, dry, in the environment of scripts/torch-venv."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import torch_venv
from dry import ANALYZE, RUN, Dry

PYTHON = torch_venv.python("torch", "transformers")
TRAIN = """
import sys, torch
steps, batch, keeps = map(int, sys.argv[1:])
kept = []
def train(model, optimizer):
    for step in range(steps):
        loss = model(torch.randn(batch, 1024, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if keeps:
            kept.append(loss * torch.ones(1 << 20, device="cuda"))
model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
train(model, torch.optim.AdamW(model.parameters()))
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""
SHARD = """
import os, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group()
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)])
fully_shard(model)
model.cuda()
shard = torch.cuda.memory_allocated()
model(torch.randn(8, 1024, device="cuda")).sum().backward()
ranks = [None] * 8
dist.all_gather_object(ranks, dist.get_rank())
host = dist.new_group(backend="gloo")
dist.barrier(group=host)
dist.monitored_barrier(group=host)
print(dist.get_rank(), dist.get_world_size(), torch.cuda.current_device(), torch.cuda.device_count(), shard, "".join(map(str, ranks)))
"""
WEIGHTS = 2 * (1024 * 1024 + 1024) * 4


EARLY = TRAIN.replace("        optimizer.zero_grad()", "        if loss.item() < 1e-3:\n            break\n        optimizer.zero_grad()")
# A kept loss of 512 B beside the leak, a refused request, and what PyTorch tells of both.
WITH_SNAPSHOT = TRAIN.replace("kept = []", "kept, losses = [], []\ntorch.cuda.memory._record_memory_history()").replace("        if keeps:", "        losses.append(loss)\n        if keeps:") + """
try:
    torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    pass
torch.cuda.memory._dump_snapshot("own.pickle")
import json
json.dump([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), 1], open("stats.json", "w"))
"""


class Torch(unittest.TestCase):
    def check(self, program, *limits):
        """What `check --dry` says of three steps on an L4 under each list of limits, and the screen."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(program)
            subprocess.run([RUN, "-q", "--dry=l4", "-o", "traces", "--", PYTHON, "train.py", "3", "4096", "0"], cwd=folder, capture_output=True, check=True)
            asked = [["check", "--dry", *more] for more in limits]
            wide = {**os.environ, "COLUMNS": "300"}
            done = [subprocess.run([ANALYZE, *verb, "traces"], cwd=folder, capture_output=True, text=True, env=wide if verb else None) for verb in asked + [[]]]
            return *((one.returncode, one.stdout) for one in done[:-1]), done[-1].stdout

    def test_a_capacity_inside_the_span_of_a_card_is_unknown(self):
        whole, strict, beyond, screen = self.check(TRAIN, ["--fits", "700M", "--max-leak", "1MiB"], ["--fits", "700M", "--strict"], ["--fits", "2G"])
        self.assertRegex(whole[1], "unknown  fits .* it depends on what the card takes outside of PyTorch")
        self.assertIn("ok       max-leak         left at the end 0 B", whole[1])  # cuBLAS has its workspace still
        self.assertIn("ok       dry", whole[1])
        self.assertEqual((whole[0], strict[0], beyond[0]), (0, 1, 0))
        self.assertRegex(beyond[1], "ok       fits")
        self.assertRegex(screen, r"FITS   \S+ needs .* of the L4's 22 GiB\n")
        self.assertRegex(screen, r"context, code +with cuBLAS \d")
        self.assertRegex(screen, r"  128  cuBLAS +\S+ +64 train\.py:7, 64 train\.py:8\n")
        self.assertNotIn("so far", screen)

    def test_an_end_by_a_value_that_was_read_is_not_sure(self):
        early, strict, screen = self.check(EARLY, [], ["--strict"])
        self.assertRegex(early[1], "unknown  dry .* train.py:10 read a value that was not computed")
        self.assertEqual((early[0], strict[0]), (0, 1))
        self.assertRegex(" ".join(screen.split()), "MAY FIT so far .* it ended before step 2, and train.py:10 had read a value that was not computed")
        late, strict, _ = self.check(EARLY.replace("< 1e-3", "< 1e-3 and step == 2"), [], ["--strict"])
        self.assertIn("came to its end: 3 optimizer steps ran; a value that was not computed may have ended it (train.py:10)", late[1])
        self.assertEqual((late[0], strict[0]), (0, 1))

    def train(self, steps, batch, keeps, card="h200"):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(TRAIN)
            program.flush()
            return Dry(PYTHON, program.name, str(steps), str(batch), str(keeps), card=card)

    def test_a_training_step_has_its_weights_gradients_and_moments(self):
        run = self.train(3, 256, 0)
        self.assertEqual(run.status, 0, run.err)
        allocated, reserved = map(int, run.out.split())
        self.assertGreater(allocated, 4 * WEIGHTS)
        self.assertLess(allocated, 5 * WEIGHTS + (80 << 20))
        self.assertGreaterEqual(reserved, allocated)
        self.assertIn("  ran    3 optimizer steps ran\n", run.screen)
        self.assertEqual(run.report["run"]["dry"]["steps"], 3)

    def test_where_cublas_runs_out_a_larger_card_is_no_fit(self):
        """It has no room for its workspace at 680 MiB, and the step needs more than 740."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(TRAIN)
            ended = [subprocess.run([RUN, "-q", "--dry=h200", "--limit", size, "-o", size, "--", PYTHON, "train.py", "3", "4096", "0"],
                                    cwd=folder, capture_output=True, text=True) for size in ("680M", "740M")]
            said = [subprocess.run([ANALYZE, "check", "--config", os.devnull, "--fits", size, "680M"], cwd=folder, capture_output=True, text=True).stdout
                    for size in ("680M", "740M")]
        self.assertTrue(all(done.returncode == 1 for done in ended), ended)
        self.assertIn("CUBLAS", ended[0].stderr)
        self.assertRegex(said[0], "FAIL     fits ")
        self.assertRegex(said[1], "unknown  fits ")

    def test_a_small_card_runs_out_at_the_line(self):
        run = self.train(3, 4 << 20, 0, card="t4")
        self.assertEqual(run.status, 1)
        self.assertRegex(run.screen, r"DOES NOT FIT   [^\n]*py:7 asks 16 GiB")
        self.assertRegex(run.screen, r"py:7 +(\S.* )?<- asks 16 GiB")

    def test_integers_and_booleans_are_those_of_the_cpu(self):
        code = """
import torch
torch.manual_seed(1)
numbers, lengths, flags = torch.randint(0, 50, (6, 40)), torch.tensor([3, 5, 2, 0]), torch.rand(8, 8)
for device in ("cpu", "cuda"):
    n, l = numbers.to(device), lengths.to(device)
    causal = torch.full((8, 8), float("-inf"), device=device).triu(1)
    print([x.tolist() for x in (
        n[n > 25], (n % 7).unique(), torch.repeat_interleave(l), torch.bincount(n[0]), n.cumsum(0)[-1], n.float().mean(),
        (torch.arange(5, device=device)[None] < l[:, None]).sum(-1), torch.isinf(causal).sum(), torch.nonzero(l), torch.nonzero(n.float()[:0]), n.sort()[0][0],
        torch.where(n > 9, n, -1).max(), torch.cat([l, l]).roll(1), torch.zeros(4, device=device).scatter_add(0, l % 4, l.float()),
        torch.isfinite(torch.zeros(1 << 22, device=device)).all(), (numbers.repeat(6000, 1).to(device) + 1).cpu().sum())],
        torch.equal(n, n.clone()), bool(torch.isnan(1 / n.float().mean()).any()))
"""
        out = Dry(PYTHON, "-c", code).out.splitlines()
        self.assertEqual(out[0], out[1])

    def test_computed_integers_add_no_request(self):
        code = """
import torch
q, k, v = (torch.randn(2, 4, 256, 64, device="cuda", requires_grad=True) for _ in range(3))
seen = torch.tril(torch.ones(256, 256, device="cuda", dtype=torch.bool))
for _ in range(2):
    scores = torch.where(seen, q @ k.transpose(-1, -2) / 8, float("-inf"))
    weights = torch.exp(scores - scores.max(-1, keepdim=True).values)
    (weights / weights.sum(-1, keepdim=True) @ v).sum().backward()
linear = torch.nn.Linear(256, 256, device="cuda")  # the gradient of the residual branch is the one whose rows make that of the bias
h = torch.randn(2048, 256, device="cuda", requires_grad=True) * 2
((h + linear(h)) * 3).sum().backward()
print(torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.max_memory_allocated())
"""
        computed, not_computed = (list(map(int, Dry(PYTHON, "-c", code, options=options).out.split())) for options in ([], ["--no-values"]))
        self.assertEqual(computed[0], not_computed[0])
        self.assertAlmostEqual(computed[1], not_computed[1], delta=4 << 20)  # the thread of backward() frees its last blocks a moment later

    def test_lines_that_read_values_are_listed(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("import torch\nprint(torch.nonzero(torch.arange(6, device='cuda') % 2).shape[0])\n"
                          "print(torch.ones(1 << 20, device='cuda').sum().item())\n"
                          "torch.nn.LSTM(8, 8, 2, bidirectional=True).cuda()(torch.ones(5, 3, 8, device='cuda'))[0].sum().backward()\n")
            program.flush()
            run = Dry(PYTHON, program.name)
        self.assertEqual(run.out.split(), ["3", "0.0"], run.err)
        self.assertEqual([(read["line"], read["what"]) for read in run.report["run"]["dry"]["reads"]], [(program.name + ":3", "item of float32")])
        self.assertIn("open   %s:3 read a value that was not computed (item of float32)" % os.path.basename(program.name), run.screen)

    def test_a_host_that_looks_at_a_copy_reads_it_and_a_checkpoint_does_not(self):
        lines = ["import os, torch, numpy as np", "x, w = torch.randn(4, 300, device='cuda'), torch.nn.Linear(300, 300).cuda()", "x.cpu().numpy()",
                 "x.half().to('cpu').float()[0].tolist()", "np.asarray(w.weight.detach().cpu())", "if x.sum().cpu(): pass",
                 "torch.save({name: one.cpu() for name, one in w.state_dict().items()}, os.devnull)", "host = torch.empty(4, 300).copy_(x)",
                 "host.copy_(torch.ones(4, 300)).numpy(), torch.arange(9, device='cuda').cpu().numpy(), torch.ones(1).item()",
                 "edges = torch.eye(600, device='cuda').to_sparse().requires_grad_()", "(edges @ torch.ones(600, 8, device='cuda')).sum().backward()", "edges.detach().cpu()",
                 "if x.sum().cpu() < 1: pass", "print((torch.cat([x.cpu(), torch.ones(1, 300)]).argmax(-1) == torch.zeros(5)).sum().item())",
                 "sgd = torch.optim.AdamW([torch.nn.Parameter(x.cpu())])", "sgd.param_groups[0]['params'][0].grad = x.cpu()", "sgd.step(), torch.ones(2).sum().item()"]
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("\n".join(lines))
            program.flush()
            run = Dry(PYTHON, program.name)
        self.assertEqual([(int(read["line"].rsplit(":")[-1]), read["what"]) for read in run.report["run"]["dry"]["reads"]], [
            (3, "numpy of float32"), (4, "tolist of float32"), (5, "numpy of float32"), (6, "__bool__ of float32"), (10, "mask of 600 of 360000 elements"), (13, "__bool__ of bool"), (14, "item of int64")], run.err)
        self.assertEqual(run.status, 0, run.err)

    def test_shapes_that_follow_from_values_are_listed(self):
        lines = ["import torch", "x = torch.randn(1000, 1000, device='cuda')", "y = x[x > 0.5]", "logits = x[:, :64] @ torch.randn(64, 8, device='cuda')",
                 "rows = (logits.topk(2).indices == 0).nonzero()", "kinds = logits.argmax(-1).unique()", "small = torch.tensor([1.0, 0, 2], device='cuda')",
                 "known = small[small > 0], torch.nonzero(torch.arange(6, device='cuda') % 2)"]
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("\n".join(lines))
            program.flush()
            run = Dry(PYTHON, program.name)
        self.assertEqual([(int(read["line"].rsplit(":")[-1]), read["what"]) for read in run.report["run"]["dry"]["reads"]], [
            (3, "mask of 0 of 1000000 elements"), (5, "mask of 2000 of 2000 elements"), (6, "unique of 1 of 1000 elements")], run.err)
        steps = ["w = torch.nn.Parameter(torch.zeros(1, device='cuda'))", "sgd = torch.optim.SGD([w], lr=1)", "for i in range(3):", "    w.sum().backward()", "    sgd.step()"]
        (_, said), _ = self.check("\n".join(lines[:3] + steps), [])
        self.assertRegex(said, r"unknown +dry +train.py:3 took a size from values that were not computed \(mask of 0 of 1000000 elements\)")

    def test_sizes_that_operators_count_are_computed_or_listed(self):
        lines = ["import torch", "words = torch.nn.Embedding(100000, 64, sparse=True).cuda()", "ids = torch.arange(4000, device='cuda') % 500", "words(ids).sum().backward()",
                 "torch.optim.SparseAdam(words.parameters()).step()", "rows = words.weight.grad.coalesce()._nnz()", "x = torch.randn(9000, 64, device='cuda') @ torch.randn(64, 8, device='cuda')",
                 "kinds = x.argmax(-1)", "torch.bincount(kinds)", "torch.repeat_interleave(kinds)", "torch.nn.functional.one_hot(kinds)",
                 "torch.sparse_coo_tensor(kinds[None], x, (8, 8)).coalesce()", "many = torch.arange(1 << 25, device='cuda').unique().shape[0]",
                 "torch.bincount(ids), torch.repeat_interleave(ids[:3]), torch.nn.functional.one_hot(ids)", "print(rows, many >> 25)"]
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("\n".join(lines))
            program.flush()
            run = Dry(PYTHON, program.name)
        self.assertEqual(run.out.split(), ["500", "1"], run.err)
        self.assertEqual([(int(read["line"].rsplit(":")[-1]), read["what"]) for read in run.report["run"]["dry"]["reads"]], [
            (9, "bincount of 1 of 9000 elements"), (10, "repeat of 0 of 9000 elements"), (11, "item of int64 in an operator"),
            (12, "coalesce of 1 of 9000 elements"), (13, "unique of %d of %d elements" % (1 << 25, 1 << 25))])

    def test_a_value_that_is_only_told_ends_nothing(self):
        told = TRAIN.replace("        optimizer.zero_grad()", "        losses.append(loss.item())\n        if step % 2:\n            print(sum(losses))\n"
                             "        optimizer.zero_grad()").replace("kept = []", "kept = losses = []")
        late, strict, screen = self.check(told, [], ["--strict"])
        self.assertEqual((late[0], strict[0]), (0, 0), strict[1])
        self.assertNotIn("may have ended", late[1] + screen)
        once, _, screen = self.check(told.replace("range(steps)", "range(1)"), [], ["--strict"])
        self.assertNotIn("ended before", once[1] + screen)

    def test_steps_of_several_optimizers_are_those_in_which_none_steps_twice(self):
        code = """
import sys, torch
first, second = (torch.nn.Linear(8, 8).cuda() for _ in range(2))
one, two = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
def step(optimizer):
    second(first(torch.ones(1, 8, device="cuda"))).sum().backward()
    optimizer.step()
for _ in range(3):
    step(one)
for _ in range(5):
    for optimizer in (one, one, two):
        step(optimizer)
print("end")
"""
        for options, steps, out in ((), 13, "end"), (("--steps", "5"), 5, ""):
            run = Dry(PYTHON, "-c", code, options=options)
            self.assertEqual((run.report["run"]["dry"]["steps"], run.out.strip()), (steps, out), run.err)

    def test_lists_that_values_end_take_their_longest_case(self):
        lines = {"torchvision": ["import torch, torchvision", "scores = torch.randn(500, 64, device='cuda') @ torch.randn(64, device='cuda')",
                                 "kept = torchvision.ops.nms(torch.rand(500, 4, device='cuda'), scores, 0.5)", "print(kept.shape[0])"],
                 "transformers": ["import torch, transformers", "model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=99, eos_token_id=0, bos_token_id=0)).cuda()",
                                  "out = model.generate(torch.ones(2, 4, dtype=torch.long, device='cuda'), max_new_tokens=9, do_sample=False)", "print(out.shape[1])"]}
        for package, longest, said in (("torchvision", 500, "nms kept all of 500"), ("transformers", 13, "no end token in generate")):
            if subprocess.run([PYTHON, "-c", "import " + package], capture_output=True).returncode:
                continue
            with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
                program.write("\n".join(lines[package]))
                program.flush()
                run = Dry(PYTHON, program.name)
            self.assertEqual(run.out.split(), [str(longest)], run.err)
            self.assertEqual([(read["line"], read["what"]) for read in run.report["run"]["dry"]["reads"]], [(program.name + ":3", "longest case: " + said)])
            self.assertRegex(run.screen, r"FITS   \S+ needs .* of the H200's 140 GiB")

    def test_lazy_modules_move_and_get_their_sizes(self):
        code = ("import torch\nfrom torch import nn\nmodel = nn.Sequential(nn.LazyConv2d(4, 3), nn.Flatten(), nn.LazyBatchNorm1d(), nn.LazyLinear(2)).half().cuda()\n"
                "print(*model(torch.ones(3, 2, 8, 8, device='cuda').half()).shape, *model[3].weight.shape, model[3].weight.dtype, model[3].weight.device)\n")
        run = Dry(PYTHON, "-c", code, analyze=False)
        self.assertEqual(run.out.split(), ["3", "2", "2", "144", "torch.float16", "cuda:0"], run.err)

    def test_the_job_ends_after_so_many_steps(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(TRAIN)
            program.flush()
            run = Dry(PYTHON, program.name, "1000000", "8", "0", options=["--steps", "4"])
        self.assertEqual((run.status, run.out), (0, ""), run.err)
        self.assertIn("ended after 4 steps; the first 4 steps fit; evaluation did not run", run.err)

    def test_evaluation_and_checkpoint_are_told_where_they_did_something(self):
        after = {"evaluation did not run, checkpoint did not run": "model.eval(); model.train(); torch.save({'lr': torch.ones(1)}, os.devnull)",
                 "evaluation ran, checkpoint did not run": "model.eval(); model(torch.ones(1, 1024, device='cuda')); model.train()",
                 "evaluation did not run, checkpoint ran": "model[0].eval(); torch.save({'step': step, 'model': model.state_dict()}, os.devnull)"}
        for said, statement in after.items():
            with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
                program.write("import os\n" + TRAIN.replace("        if keeps:", "        %s\n        if keeps:" % statement))
                program.flush()
                run = Dry(PYTHON, program.name, "9", "8", "0", options=["--steps", "3"], analyze=False)
            self.assertIn("ended after 3 steps; the first 3 steps fit; %s. --steps" % said, run.err)

    def test_a_write_that_is_refused_is_named(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            run = Dry(PYTHON, "-c", "import torch\ntorch.save(torch.ones(2, device='cuda'), %r)" % os.path.join(folder, "best.pt"))
        why = "it must not write %s/best.pt: --allow-writes DIR opens a folder" % folder
        self.assertIn("stormlog: DRY RUN ended: " + why, run.err)
        said = " ".join(run.screen.split())
        self.assertIn("MAY FIT so far ", said)
        self.assertIn(" ran " + why, said)

    def test_the_job_ends_by_itself_once_memory_has_settled(self):
        for keeps, snapshot, ends in ((0, "", True), (1, "", False), (0, "torch.cuda.memory._record_memory_history(); ", False)):
            with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
                program.write(TRAIN.replace("kept = []", snapshot + "kept = []"))
                program.flush()
                run = Dry(PYTHON, program.name, "40", "8", str(keeps), STORMLOG_DRY_WHOLE="0")
            self.assertEqual((run.status, "ended by itself" in run.err, run.out == ""), (0, ends, ends), run.err)
            self.assertEqual("the first 12 steps fit; evaluation did not run" in run.screen, ends)

    def test_one_rank_of_eight_has_its_shard_and_no_rank_is_waited_for(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(SHARD)
            program.flush()
            for words in ([PYTHON, program.name], [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "8", program.name]):
                run = Dry(*words, options=["--rank", "3", "--world-size", "8"])
                self.assertEqual(run.out.split(), ["3", "8", "3", "8", str(4 * 1024 * 1024 * 4 // 8), "33333333"], run.err)
                self.assertIn("libnccl.so", [row["library"] for row in run.report["processes"][0]["libraries"] if row["peak_bytes"]])
                self.assertNotIn("no trace of rank", run.screen)

    def test_deepspeed_gives_a_rank_its_share(self):
        if subprocess.run([PYTHON, "-c", "import importlib.util; exit(not importlib.util.find_spec('deepspeed'))"]).returncode:
            self.skipTest("no DeepSpeed")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "deepspeed_zero.py")
        run = Dry(PYTHON, program, options=["--rank", "3", "--world-size", "8"])
        self.assertEqual((run.status, run.out.splitlines()[-1:]), (0, ["3 8 %d" % (4 * 1024 * 1024 // 8)]), run.err)

    def test_objects_of_collectives_take_the_memory_that_pytorch_takes(self):
        code = """
import os, torch, torch.distributed as dist
torch.cuda.set_device(0)
dist.init_process_group("nccl")
ranks, rank, big = dist.get_world_size(), dist.get_rank(), os.urandom(1 << 20)
def peak(collective):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    collective()
    return (torch.cuda.max_memory_allocated() - before) >> 20
every, gathered, two, mine = [None] * ranks, None if rank else [None] * ranks, [None if rank else big] * 2, [None]
host = dist.new_group(backend="gloo")
peaks = [peak(lambda: dist.all_gather_object(every, big)), peak(lambda: dist.gather_object(big, gathered)), peak(lambda: dist.broadcast_object_list(two)),
         peak(lambda: dist.scatter_object_list(mine, None if rank else [big] * ranks)), peak(lambda: dist.all_gather_object(every, big, group=host))]
print(*peaks, every == [big] * ranks, gathered in (None, [big] * ranks), mine == [None if rank else big])
"""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(code)
            program.flush()
            for rank, peaks in ("0", "17 9 4 9 0"), ("3", "17 1 0 0 0"):
                run = Dry(PYTHON, program.name, options=["--rank", rank, "--world-size", "8"])
                self.assertEqual(run.out, peaks + " True True True\n", run.err)
                unknown = [(int(one["line"].rsplit(":")[-1]), one["what"]) for one in run.report["run"]["dry"]["unknown"]]
                self.assertEqual(unknown, [(line, "objects that rank 0 sends") for line in (13, 14)] if rank == "3" else [])
                self.assertEqual("not counted: objects that rank 0 sends" in " ".join(run.screen.split()), rank == "3")
                self.assertEqual(run.report["run"]["dry"]["reads"], [])

    def test_weights_that_are_absent_have_the_shapes_of_their_configuration(self):
        if subprocess.run([PYTHON, "-c", "import transformers"], capture_output=True).returncode:
            self.skipTest("no transformers")
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 1024, "n_layer": 4, "n_head": 8, "vocab_size": 20000}, file)
            program.write("import torch, transformers\n"
                          "model = transformers.AutoModelForCausalLM.from_pretrained(%r, dtype=torch.float16).cuda()\n"
                          "print(sum(p.numel() for p in model.parameters()), torch.cuda.memory_allocated())\nopen('/absent/train.bin')\n" % folder)
            program.flush()
            run = Dry(PYTHON, program.name)
        elements = 20000 * 1024 + 1024 * 1024 + 4 * (12 * 1024 * 1024 + 13 * 1024) + 2 * 1024
        self.assertEqual(int(run.out.split()[0]), elements, run.err)
        self.assertAlmostEqual(int(run.out.split()[1]) / (2 * elements), 1, delta=0.02)
        self.assertIn("the weights of %s are not here" % folder, run.err)
        self.assertIn("DRY RUN ended: not on this machine: /absent/train.bin", run.err)

    def test_a_model_of_many_gigabytes_takes_little_of_the_host(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("import resource, torch\n"
                          "model = torch.nn.Sequential(*[torch.nn.Linear(16384, 16384) for _ in range(16)]).half().cuda()\n"
                          "model(torch.ones(1, 16384, dtype=torch.half, device='cuda')).sum().backward()\n"
                          "torch.optim.AdamW(model.parameters()).step()\n"
                          "print(torch.cuda.max_memory_allocated() >> 30, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20)\n")
            program.flush()
            run = Dry(PYTHON, program.name)
        allocated, resident = map(int, run.out.split())
        self.assertGreaterEqual(allocated, 32)
        self.assertEqual(resident, 0, run.out)

    def test_batches_of_any_kind_pass(self):
        code = ("import torch\nfor data in (torch.ones(4, 3), [{'x': torch.ones(3)}] * 4, [(torch.ones(3), 1)] * 4):\n"
                "    print(sum(1 for batch in torch.utils.data.DataLoader(data, 2)))\n")
        run = Dry(PYTHON, "-c", code, analyze=False)
        self.assertEqual(run.out.split(), ["2", "2", "2"], run.err)

    def test_a_program_that_asks_whether_torch_is_there(self):
        code = "import importlib.util\nimportlib.util.find_spec('torch')\nimport torch\nprint(torch.arange(6, device='cuda').max().item())\n"
        self.assertEqual(Dry(PYTHON, "-c", code, analyze=False).out.split()[0], "5")

    def test_workspaces_of_streams_are_no_tensors(self):
        code = """import torch
model = torch.nn.Linear(4096, 4096, device='cuda')
for _ in range(6):
    with torch.cuda.stream(torch.cuda.Stream()):
        model(torch.randn(8, 4096, device='cuda'))
"""
        rows = Dry(PYTHON, "-c", code).report["answer"]["verdicts"][0]["table"]["rows"]
        held = {row["name"]: row["bytes"] for row in rows}["cuBLAS"]
        self.assertEqual((held - 6 * (32 << 20)) >> 20, 64)  # beside the one of the handle

    def test_workspaces_have_one_role_in_all_views(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(TRAIN)
            subprocess.run([RUN, "-q", "--dry=h200", "-o", "traces", "--", PYTHON, "train.py", "3", "4096", "0"], cwd=folder, capture_output=True, check=True)
            ask = lambda *words: json.loads(subprocess.run([ANALYZE, *words, "traces"], cwd=folder, capture_output=True, check=True).stdout)
            process, = ask("--json")["processes"]
            roles = {one["role"]: one["bytes_at_peak"] for one in process["roles"] if one["bytes_at_peak"]}
            self.assertGreater(roles["workspace"], 32 << 20)  # one of cuBLAS on an H200
            for verb in "tree", "table":
                shown = {owner["name"]: owner["bytes"] for owner in ask(verb, "--json", "--by", "role")["owners"] if owner["bytes"]}
                self.assertIn("workspace", shown, verb)
                self.assertEqual(shown, {name: roles.get(name) for name in shown}, verb)  # small owners are not listed

    def test_our_snapshot_of_a_run_has_the_figures_of_pytorch(self):
        """The job writes PyTorch's own snapshot and statistics: its peaks, one error, the leak alone (a kept loss is 512 B), no memory of cuBLAS."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(WITH_SNAPSHOT)
            subprocess.run([RUN, "-q", "--dry=h200", "--allow-writes", ".", "-o", "traces", "--", PYTHON, "train.py", "40", "64", "1"], cwd=folder, capture_output=True, check=True)
            def ask(*words):
                return subprocess.run([ANALYZE, *words], cwd=folder, capture_output=True, check=True, text=True).stdout
            ask("export", "pytorch-snapshot", "-q", "-o", "ours.pickle", "traces")
            with open(os.path.join(folder, "stats.json")) as file:
                stats = json.load(file)
            for path in "traces", "ours.pickle", "own.pickle":
                report = json.loads(ask("--json", path))
                torch, = report["processes"][0]["pytorch"]
                self.assertEqual([torch[name] for name in ("peak_allocated_bytes", "peak_reserved_bytes", "ooms")], stats, path)
                leaks = [verdict["headline"] for verdict in report["answer"]["verdicts"] if verdict["word"] == "LEAK"]
                self.assertEqual(len(leaks), 1, (path, leaks))

    def test_a_leak_has_its_line(self):
        leak, = [verdict for verdict in self.train(100, 8, 1).report["answer"]["verdicts"] if verdict["word"] == "LEAK"]
        self.assertEqual([(line["line"], line["function"]) for line in leak["lines"] if line["mark"] == "made here"], [(12, "train")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
