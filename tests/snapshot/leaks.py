#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs of real PyTorch with a seeded leak, of which a snapshot must name the line, and healthy ones.

    leaks.py RIG [NAME...]   in the torch rig (scripts/torch-rig): each program is written as whole history, as a window that begins in its third step, and as a full ring
    leaks.py --run NAME HOW PATH   one program
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 12
HOWS = ("whole", "window", "ring")
NONE = ("clean", "warm_cache", "first_step_state", "many_layers")


class Program:
    """A small training loop.  A leak keeps something in each step, in the line that ends in a comment with its name."""

    def __init__(self, torch):
        self.torch, self.kept, self.nodes = torch, [], []
        self.model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)) for _ in range(6))).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.table = {}

    def batch(self):
        return self.torch.empty(1024, 256, device="cuda")

    def step(self, name, i):
        torch = self.torch
        out = self.model(self.batch())
        loss = out.pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if name == "kept_output":
            self.kept.append(self.model(self.batch()).detach())  # LEAK kept_output
        elif name == "kept_graph":
            self.kept.append(self.model(self.batch()).sum())  # LEAK kept_graph
        elif name == "kept_batch":
            batch = torch.empty(2000, 256, device="cuda")  # LEAK kept_batch
            self.kept.append(batch)
        elif name == "growing_cache":
            self.kept.append((torch.empty(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")))  # LEAK growing_cache
        elif name == "keyed_cache":
            self.table[i] = torch.zeros(300000 + 512 * i, device="cuda")  # LEAK keyed_cache
        elif name == "new_buffers":
            self.model.register_buffer(f"buffer_{i}", torch.zeros(1 << 19, device="cuda"))  # LEAK new_buffers
        elif name == "cycle":
            node = {"data": torch.ones(1 << 18, device="cuda")}  # LEAK cycle
            node["self"] = node
            self.nodes.append(node)
        elif name == "every_other" and i % 2:
            self.kept.append(torch.empty(2 << 20, device="cuda"))  # LEAK every_other
        elif name == "concatenated":
            part = torch.zeros(1 << 16, device="cuda")
            self.kept.append(torch.cat([part] * 8))  # LEAK concatenated
        elif name == "helper":
            self.keep_clone(out)
        elif name == "warm_cache" and i < 1:
            self.kept += [torch.empty(1 << 20, device="cuda") for _ in range(8)]

    def keep_clone(self, out):
        self.kept.append(out.detach().clone())  # LEAK helper

    def run(self, name, begin):
        for i in range(STEPS if name != "first_step_state" else 1):
            if i == begin:
                self.torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="python")
            self.step(name, i)


LEAKS = ("kept_output", "kept_graph", "kept_batch", "growing_cache", "keyed_cache", "new_buffers", "cycle", "every_other", "concatenated", "helper")


def run(name, how, path):
    import torch
    torch.backends.cudnn.enabled = False
    if how != "window":
        torch.cuda.memory._record_memory_history(max_entries=2400 if how == "ring" else 1000000, stacks="python")
    program = Program(torch)
    if name == "many_layers":
        torch.nn.Sequential(*(program.model for _ in range(4)))(program.batch()).sum()
    program.run("clean" if name == "many_layers" else name, 2 if how == "window" and name != "first_step_state" else 0 if how == "window" else -1)
    torch.cuda.memory._dump_snapshot(path)
    os._exit(0)


def line_of(name):
    with open(os.path.abspath(__file__)) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith("# LEAK " + name))


def main():
    sys.path.insert(0, os.path.join(HERE, "..", "fit"))
    import real_programs as real
    rig, *names = sys.argv[1:]
    tempfile.tempdir = os.path.join(rig, "work")
    wrong = 0
    print("| program | " + " | ".join(HOWS) + " |\n|---" * 1 + "|---" * len(HOWS) + "|")
    for name in names or LEAKS + NONE:
        cells = []
        for how in HOWS:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "s.pickle")
                words = real.command(rig)[:-1] + [os.path.abspath(__file__), "--run", name, how, path]
                done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **real.environment(rig, SIM_VRAM=str(16 << 30), SIM_DIR=folder + "/sim")})
                if not os.path.exists(path):
                    sys.exit(done.stderr[-2000:])
                analyze = os.path.join(real.TOP, "build/analyzer/stormlog-analyze")
                said = json.loads(subprocess.run([analyze, "report", "--json", path], capture_output=True, text=True).stdout)
            told = [verdict for verdict in said["answer"]["verdicts"] if verdict["word"] == "LEAK"]
            lines = [(os.path.basename(line["file"] or ""), line["line"]) for verdict in told for line in verdict["lines"] if line["mark"] == "made here"]
            right = lines == [("leaks.py", line_of(name))] if name in LEAKS else not said["leaks"] and not told
            cells.append("told" if right and name in LEAKS else "none" if right else f"WRONG: {[verdict['headline'] for verdict in told]}")
            wrong += not right
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(run(*sys.argv[2:]) if sys.argv[1:2] == ["--run"] else main())
