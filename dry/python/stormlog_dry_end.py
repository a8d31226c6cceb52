# SPDX-License-Identifier: MIT
"""Ends the job of a dry run with status 0: after so many steps of an optimizer, or once memory has settled."""
import collections.abc
import os
import re
import sys
import time

import stormlog_dry_decides
from stormlog_dry import is_installed

SETTLED = 10      # steps in which neither the peak nor what a step keeps has grown
WHOLE = 60        # seconds in which a job may end by its own
PATIENCE = 600    # seconds for which an evaluation is waited for
READS = 3         # lines of a step that are named
EVALUATES = re.compile(r"\.eval\(\)|evaluate\(|eval_strategy|evaluation_strategy|validation_step")


def own_code_evaluates():
    """True: a file of the program, which is no installed package, has an evaluation."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path.endswith(".py") and not is_installed(path):
            try:
                with open(path, errors="replace") as file:
                    if EVALUATES.search(file.read()):
                        return True
            except OSError:
                pass
    return False


class Job:
    """What has run so far."""

    def __init__(self, torch, steps, say):
        self.torch, self.last, self.say = torch, steps, say
        self.began, self.wait = time.monotonic(), float(os.environ.get("STORMLOG_DRY_WHOLE", WHOLE))
        self.steps = self.grown = 0  # a step: until an optimizer steps that has stepped in it
        self.within = self.before = frozenset()  # optimizers that have stepped in this step, and in the one before
        self.read_at, self.read = -1, []  # lines that read values since that step
        self.ends = {}  # lines that have read values, and whether one may end the program
        self.peak = self.kept = 0
        self.longest = ()
        self.ran = {"evaluation": False, "checkpoint": False, "generate": False}
        self.elements = 0        # of the parameters of the first optimizer
        self.evaluating = None   # allocations at the model's eval(); None: it trains
        self.saved = 0           # elements that were saved since the last step
        self.whole = False

    def mark(self, owner, name, what):
        """Calls what() with the function's arguments before it, once the job has stepped."""
        function = getattr(owner, name)

        def marked(*args, **kwargs):
            if self.steps:
                what(*args, **kwargs)
            return function(*args, **kwargs)

        setattr(owner, name, marked)

    def tensors(self, x):
        if isinstance(x, self.torch.Tensor):
            return [x]
        if isinstance(x, self.torch.nn.Module):
            return list(x.parameters())
        parts = x.values() if isinstance(x, collections.abc.Mapping) else x if isinstance(x, (list, tuple)) else ()
        return [tensor for part in parts for tensor in self.tensors(part)]

    def count(self, x):
        return sum(tensor.numel() for tensor in self.tensors(x))

    def changes(self, module, mode=True):
        """Module.train(), and eval(), which is train(False): what allocates between them is an evaluation."""
        allocated = self.torch.cuda.memory_stats().get("allocation.all.allocated", 0)
        if mode and self.evaluating is not None:
            self.ran["evaluation"] |= allocated > self.evaluating
            self.evaluating = None
        elif not mode and self.evaluating is None and self.count(module) >= self.elements:  # no layer that is frozen
            self.evaluating = allocated

    def saves(self, x, *args, **kwargs):
        """A checkpoint has at least as many elements as are trained, in one file or several."""
        self.saved += self.count(x)
        self.ran["checkpoint"] |= self.saved >= self.elements

    def generates(self, *args, **kwargs):
        self.ran["generate"] = True

    def watch(self):
        torch = self.torch
        self.mark(torch.nn.Module, "train", self.changes)
        self.mark(torch, "save", self.saves)
        history = torch.cuda.memory._record_memory_history

        def record(*args, **kwargs):  # the program is to write a snapshot in its end
            self.whole = True
            return history(*args, **kwargs)

        torch.cuda.memory._record_memory_history = record
        import torch.utils.data.dataloader as loader

        following = loader._BaseDataLoaderIter.__next__

        def followed(iterator):
            batch = following(iterator)
            for x in batch.values() if isinstance(batch, collections.abc.Mapping) else batch if isinstance(batch, (list, tuple)) else [batch]:
                if isinstance(x, torch.Tensor) and (not self.longest or x.numel() > self.longest.numel()):
                    self.longest = x.shape
            return batch

        loader._BaseDataLoaderIter.__next__ = followed

    def has_settled(self):
        if self.steps == 1 and "transformers.generation.utils" in sys.modules:
            self.mark(sys.modules["transformers.generation.utils"].GenerationMixin, "generate", self.generates)
        peak, kept = self.torch.cuda.max_memory_allocated(), self.torch.cuda.memory_allocated()
        if self.steps <= 2 or peak > self.peak or kept > self.kept:
            self.grown, self.peak, self.kept = self.steps, max(peak, self.peak), max(kept, self.kept)
        went = time.monotonic() - self.began
        if self.whole or not peak or self.steps - self.grown < SETTLED or went < self.wait:
            return False
        return self.ran["evaluation"] or went > PATIENCE or not own_code_evaluates()

    def stepped(self, optimizer, args, kwargs):
        begins = not self.steps or id(optimizer) in self.within
        if begins and self.steps == self.last > 0:  # an optimizer that had stepped before this step has not
            self.end("after %d steps" % self.steps)
        if begins:
            self.steps += 1
            self.before, self.within = self.within, frozenset()
        self.within |= {id(optimizer)}
        self.elements = self.elements or self.count([group["params"] for group in optimizer.param_groups])
        self.ran["evaluation"] |= self.evaluating is not None  # Lightning ends it without train()
        self.evaluating, self.saved = None, 0
        if self.say:  # at each, since the job may end by os._exit()
            self.say(b"dry.steps", b"%d" % self.steps)
        if self.steps == self.last:
            if self.within >= self.before:
                self.end("after %d steps" % self.steps)
        elif begins and not self.last and self.has_settled():
            self.end("by itself: in %d steps neither the peak nor what a step keeps has grown" % SETTLED)

    def reads(self, line, frame):
        """A value that was not computed, which may end the job soon (analyzer/report/dry.c), unless it decides no end."""
        if line not in self.ends:
            self.ends[line] = stormlog_dry_decides.ends(frame)
        if not self.ends[line]:
            return
        if self.read_at != self.steps:
            self.read_at, self.read = self.steps, []
        if self.say and line not in self.read and len(self.read) < READS:
            self.read.append(line)
            self.say(b"dry.late", b"%d %s" % (self.steps, ", ".join(map(os.path.basename, self.read)).encode()))

    def end(self, why):
        ran = ["%s %s" % (what, "ran" if did else "did not run") for what, did in self.ran.items()
               if what != "generate" or "transformers.generation.utils" in sys.modules]
        text = "the first %d steps fit; %s%s" % (self.steps, "longest input %s; " % "x".join(map(str, self.longest)) if self.longest else "", ", ".join(ran))
        if os.environ.get("STORMLOG_QUIET", "0") == "0":
            print("stormlog: DRY RUN ended %s; %s. --steps N decides otherwise" % (why, text), file=sys.stderr, flush=True)
        if self.say:
            self.say(b"dry.end", text.encode())
        import stormlog_holders

        if stormlog_holders.teller:
            stormlog_holders.teller.tell("end")
        sys.exit(0)


def begin(torch, steps, say):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    begin.job = job = Job(torch, steps, say)
    if say:
        say(b"dry.steps", b"0")
    job.watch()
    register_optimizer_step_post_hook(job.stepped)
    return job
