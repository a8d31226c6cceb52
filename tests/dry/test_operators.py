#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each row of analyzer/report/operators.def by a program of PyTorch that runs out of memory in it, dry."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import torch_venv
from dry import Dry

PYTHON = torch_venv.python("torch")
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "analyzer", "report", "operators.def")
BEGIN = """
import copy, functools, gc, sys, time, torch, torch.nn.functional as F
from torch import nn
def empty(*shape, dtype=torch.float32, **more): return torch.empty(*shape, dtype=dtype, device="cuda", **more)
def runs(make, use):
    before = torch.cuda.memory_allocated()
    made = make()
    try: use(*made)
    except torch.OutOfMemoryError: return
    finally:
        del made; gc.collect()
        for _ in range(100):  # NCCL's watchdog lets go of tensors when it next looks
            if torch.cuda.memory_allocated() <= before: break
            time.sleep(0.02)
        torch.cuda.empty_cache()
    print("fits:", sys._getframe(1).f_lineno)
def grads(w, x): return torch.func.vmap(torch.func.grad(lambda w, x: (x @ w).sum()), in_dims=(None, 0))(w, x)
def leaf(*shape): return empty(*shape, requires_grad=True)
"""
# The card is a T4 of 15 GiB.  One line each: the row, what is made before, and what asks for too much.
LINES = r'''
jacrev.<locals>.wrapper_fn | [leaf(1 << 16)] | torch.func.jacrev(lambda x: x * 2)
_flat_vmap | leaf(4096, 1024), empty(2048, 1, 4096) | grads
_scaled_dot_product_attention_math | [empty(1, 16, 24576, 8).double()] | lambda q: F.scaled_dot_product_attention(q, q, q)
multi_head_attention_forward | nn.MultiheadAttention(64, 16, device="cuda"), empty(24576, 1, 64) | lambda m, x: m(x, x, x)
cross_entropy_loss | empty(1, 1).expand(80000, 65536), torch.zeros(80000, dtype=torch.long, device="cuda") | F.cross_entropy
LogSoftmaxBackward0 | [leaf(20000, 65536)] | lambda x: x.log_softmax(-1).backward(empty(1, 1).expand(20000, 65536))
_log_softmax | [empty(1, 1, dtype=torch.bfloat16).expand(80000, 131072)] | lambda x: x.log_softmax(-1)
binary_cross_entropy_with_logits | [empty(1, 1).expand(80000, 65536)] | lambda x: F.binary_cross_entropy_with_logits(x, x)
one_hot | [torch.zeros(1 << 16, dtype=torch.long, device="cuda")] | lambda x: F.one_hot(x, 50000)
_multi_tensor_adam | [nn.Parameter(empty(1 << 28)) for _ in range(4)] | lambda *p: adam(torch.optim.Adam, p, foreach=True)
deepcopy | [nn.Linear(48000, 48000, device="cuda")] | copy.deepcopy
Module._apply | [nn.Sequential(*[nn.Linear(16384, 16384) for _ in range(20)])] | lambda m: m.cuda()
_multi_tensor_adagrad | [nn.Parameter(empty(1 << 28)) for _ in range(5)] | lambda *p: adam(torch.optim.Adagrad, p, foreach=True)
_multi_tensor_rmsprop | [nn.Parameter(empty(1 << 28)) for _ in range(5)] | lambda *p: adam(torch.optim.RMSprop, p, foreach=True)
embedding_dense_backward | nn.Embedding(1 << 22, 512, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda") | lambda m, x: m(x).sum().backward()
cached_cast | [nn.Linear(52000, 52000, device="cuda")] | lambda m: autocast(m)
stack | [empty(1 << 30)] | lambda x: torch.stack([x, x, x])
cat | [empty(1 << 30)] | lambda x: torch.cat([x, x, x])
repeat_interleave_self_int | [empty(1 << 22)] | lambda x: x.repeat_interleave(1024)
repeat | [empty(1 << 22)] | lambda x: x.repeat(1024)
masked_fill_Tensor | [empty(1, 1).expand(80000, 65536)] | lambda x: x.masked_fill(empty(1, dtype=torch.bool), empty(()))
masked_fill_Scalar | [empty(1, 1).expand(80000, 65536)] | lambda x: x.masked_fill(empty(1, dtype=torch.bool), 0)
triu | [empty(1, 1).expand(80000, 65536)] | lambda x: x.triu()
tril | [empty(1, 1).expand(80000, 65536)] | lambda x: x.tril()
bitwise_not | [empty(1, 1, dtype=torch.bool).expand(160000, 131072)] | lambda x: ~x
eye | [80000] | lambda n: torch.eye(n, device="cuda")
index_put | empty(1, 1).expand(80000, 65536), torch.zeros(8, dtype=torch.long, device="cuda") | lambda x, i: x.index_put((i,), empty(1))
index_Tensor | empty(1, 65536), torch.zeros(80000, dtype=torch.long, device="cuda") | lambda x, i: x[i]
index_select | empty(1, 65536), torch.zeros(80000, dtype=torch.long, device="cuda") | lambda x, i: x.index_select(0, i)
gather | empty(1, 65536), torch.zeros(1, 1, dtype=torch.long, device="cuda").expand(80000, 65536) | lambda x, i: x.gather(0, i)
to_dense | [torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.long, device="cuda"), empty(1), (80000, 65536))] | lambda x: x.to_dense()
pad | [empty(1, 65536)] | lambda x: F.pad(x, (0, 0, 0, 80000))
cdist | [empty(70000, 64)] | lambda x: torch.cdist(x, x)
sub_Tensor | empty(70000, 1), empty(1, 70000) | lambda x, y: x - y
add_Tensor | empty(70000, 1), empty(1, 70000) | lambda x, y: x + y
mul_Tensor | empty(70000, 1), empty(1, 70000) | lambda x, y: x * y
div_Tensor | empty(70000, 1), empty(1, 70000) | lambda x, y: x / y
eq_Tensor | empty(140000, 1), empty(1, 140000) | lambda x, y: x == y
outer | [empty(70000)] | lambda x: torch.outer(x, x)
einsum | [empty(70000, 64)] | lambda x: torch.einsum("id,jd->ij", x, x)
argsort | [empty(1 << 31)] | lambda x: x.argsort()
sort | [empty(1 << 31)] | lambda x: x.sort()
topk | [empty(1 << 30)] | lambda x: x.topk(1 << 30)
unique_dim | [torch.zeros(1 << 29, 2, dtype=torch.long, device="cuda")] | lambda x: x.unique(dim=0)
linalg_svd | [empty(40000, 40000)] | lambda x: torch.linalg.svd(x)
_unique2 | [torch.zeros(1 << 30, dtype=torch.long, device="cuda")] | lambda x: x.unique()
im2col | [empty(16, 64, 512, 512)] | lambda x: F.unfold(x, 7, padding=3)
_fft_r2c | [empty(1 << 31)] | lambda x: torch.fft.fft(x)
convolution | nn.Conv2d(8, 256, 3, padding=1, device="cuda"), empty(8, 8, 1536, 1536) | lambda m, x: m(x)
batch_norm | nn.BatchNorm2d(64, device="cuda"), empty(16, 64, 1536, 1536) | lambda m, x: m(x)
pixel_shuffle | [empty(32, 256, 512, 512)] | lambda x: F.pixel_shuffle(x, 2)
upsample_bilinear2d | [empty(8, 64, 512, 512)] | lambda x: F.interpolate(x, scale_factor=6, mode="bilinear")
_softmax | [empty(1, 1).expand(80000, 65536)] | lambda x: x.softmax(-1)
cosine_similarity | empty(65536, 1, 8), empty(1, 65536, 8) | lambda x, y: F.cosine_similarity(x, y, dim=2)
slice_backward | [leaf(1 << 31)] | lambda x: x[:9].sum().backward()
select_backward | [leaf(2, 1 << 30)] | lambda x: x[0].sum().backward()
GatherBackward0 | [leaf(1 << 31)] | lambda x: x.gather(0, torch.zeros(8, dtype=torch.long, device="cuda")).sum().backward()
clone | [empty(1 << 31)] | lambda x: x.clone()
_to_copy | [empty(1, 1, dtype=torch.half).expand(80000, 65536)] | lambda x: x.float()
'''
# These need packages, or are one rank of 64 with 2 GiB.
PACKAGE = r'''
eager_attention_forward | groups(), empty(1, 8, 24576, 8) | lambda m, q: eager_attention_forward(m, q, q, q, None, 1.0)
DynamicLayer.update | DynamicCache(), empty(1, 8, 1 << 20, 96) | lambda c, k: (c.update(k, k, 0), c.update(k, k, 0))
'''
RANKS = r'''
all_gather_object | [bytes(1 << 25)] | lambda x: dist.all_gather_object([None] * 64, x)
gather_object | [bytes(1 << 25)] | lambda x: dist.gather_object(x, [None] * 64)
broadcast_object_list | [bytes(1 << 25)] | lambda x: dist.broadcast_object_list([x] * 64)
scatter_object_list | [bytes(1 << 25)] | lambda x: dist.scatter_object_list([None], [x] * 64)
DistributedDataParallel._ddp_init_helper | [nn.Linear(15500, 15500, device="cuda")] | nn.parallel.DistributedDataParallel
FSDPParam.to_accumulated_grad_if_needed | unsynchronised(), empty(1, 4096) | lambda m, x: m(x).sum().backward()
_gather_state_dict | [shard(lambda: layers(40))] | whole_state
DTensor.full_tensor | [shard(lambda: nn.Linear(24000, 24000, bias=False))] | lambda m: m.weight.full_tensor()
'''
HELP = """
def adam(kind, p, **more):
    for one in p: one.grad = empty(1).expand_as(one)
    kind(p, **more).step()
def groups():
    made = nn.Module()
    made.num_key_value_groups = 1
    return made
def shard(make, **more):
    from torch.distributed.fsdp import fully_shard
    with torch.device("meta"): model = make()  # the whole of it does not fit
    for one in model if isinstance(model, nn.Sequential) else ():
        fully_shard(one, **more)
    return fully_shard(model, **more).to_empty(device="cuda")
def unsynchronised():
    from torch.distributed.fsdp import MixedPrecisionPolicy
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = shard(lambda: layers(24), mp_policy=half)
    model.set_requires_gradient_sync(False)
    return model
def layers(count): return nn.Sequential(*[nn.Linear(4096, 4096, bias=False) for _ in range(count)])
def whole_state(m):
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    get_model_state_dict(m, options=StateDictOptions(full_state_dict=True))
def autocast(m):
    with torch.autocast("cuda"): m(empty(1, 52000))
"""


class Operators(unittest.TestCase):
    maxDiff = None

    def check(self, text, begin="", options=()):
        """Runs the lines on a T4; returns which row each was told by."""
        rows = [line.split(" | ") for line in text.strip().split("\n")]
        begin = BEGIN + HELP + begin
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(begin + "".join("runs(lambda: (%s), %s)\n" % ("tuple(%s)" % make if make.startswith("[") else make, use) for _, make, use in rows))
            program.flush()
            run = Dry(PYTHON, program.name, card="t4", options=options)
        self.assertEqual(run.status, 0, run.err[-3000:])
        told, frames = {}, run.report["frames"]
        for oom in run.report["ooms"]:
            lines = [frames[i]["line"] for i in oom["stack"] if frames[i]["file"] == program.name and frames[i]["function"] == "<module>"]
            told.setdefault(lines[-1] - begin.count("\n") - 1, oom["operator"])
        self.assertEqual({rows[at][0]: told.get(at) for at in range(len(rows))}, {row[0]: row[0] for row in rows}, run.out)

    def test_operators_of_pytorch(self):
        self.check(LINES)

    def test_functions_of_transformers(self):
        if subprocess.run([PYTHON, "-c", "import transformers"], capture_output=True).returncode:
            self.skipTest("no transformers")
        self.check(PACKAGE, "from transformers import DynamicCache\nfrom transformers.models.llama.modeling_llama import eager_attention_forward\n")

    def test_collectives_and_shards(self):
        self.check(RANKS, 'import torch.distributed as dist\ntorch.cuda.set_device(0)\ndist.init_process_group("nccl")\n', ["--rank", "0", "--world-size", "64", "--limit", "2G"])

    def test_each_row_has_a_program(self):
        with open(TABLE) as file:
            table = re.findall(r'^(?:OPERATOR|MAPS|JOIN)\("([^"]+)"', file.read(), re.M)
        self.assertEqual(sorted(table), sorted(line.split(" | ")[0] for line in (LINES + PACKAGE + RANKS).split("\n") if line))


if __name__ == "__main__":
    unittest.main(verbosity=2)
