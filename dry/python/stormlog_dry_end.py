# SPDX-License-Identifier: MIT
"""Ends the job of a dry run with status 0: after so many steps of an optimizer, or once memory has settled."""
import collections.abc
import os
import re
import sys
import time

SETTLED = 10      # steps in which neither the peak nor what a step keeps has grown
WHOLE = 60        # seconds in which a job may end by its own
PATIENCE = 600    # seconds for which an evaluation is waited for
READS = 3         # lines of a step that are named
EVALUATES = re.compile(r"\.eval\(\)|evaluate\(|eval_strategy|evaluation_strategy|validation_step")


def own_code_evaluates():
    """True: a file of the program, which is no installed package, has an evaluation."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path.endswith(".py") and "site-packages" not in path and not path.startswith((sys.base_prefix, os.path.dirname(os.path.abspath(__file__)))):
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
        self.first = None  # the optimizer whose steps count
        self.steps = self.grown = 0
        self.read_at, self.read = -1, []  # lines that read values since that step
        self.peak = self.kept = 0
        self.longest = ()
        self.ran = {"evaluation": False, "checkpoint": False, "generate": False}
        self.whole = False

    def mark(self, owner, name, what):
        """Calls of the function count as `what`, once the job has stepped."""
        function = getattr(owner, name)

        def marked(*args, **kwargs):
            if self.steps and (what != "evaluation" or args[1:] == (False,) or kwargs.get("mode") is False):
                self.ran[what] = True
            return function(*args, **kwargs)

        setattr(owner, name, marked)

    def watch(self):
        torch = self.torch
        self.mark(torch.nn.Module, "train", "evaluation")  # eval() is train(False)
        self.mark(torch, "save", "checkpoint")
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
            self.mark(sys.modules["transformers.generation.utils"].GenerationMixin, "generate", "generate")
        peak, kept = self.torch.cuda.max_memory_allocated(), self.torch.cuda.memory_allocated()
        if self.steps <= 2 or peak > self.peak or kept > self.kept:
            self.grown, self.peak, self.kept = self.steps, max(peak, self.peak), max(kept, self.kept)
        went = time.monotonic() - self.began
        if self.whole or not peak or self.steps - self.grown < SETTLED or went < self.wait:
            return False
        return self.ran["evaluation"] or went > PATIENCE or not own_code_evaluates()

    def stepped(self, optimizer, args, kwargs):
        self.first = self.first or optimizer
        if optimizer is not self.first and not self.last:
            return
        self.steps += 1
        if self.say:  # at each, since the job may end by os._exit()
            self.say(b"dry.steps", b"%d" % self.steps)
        if self.steps == self.last:
            self.end("after %d steps" % self.steps)
        elif not self.last and self.has_settled():
            self.end("by itself: in %d steps neither the peak nor what a step keeps has grown" % SETTLED)

    def reads(self, line):
        """A value that was not computed, which may end the job soon (analyzer/report/dry.c)."""
        if self.read_at != self.steps:
            self.read_at, self.read = self.steps, []
        if self.say and line not in self.read and len(self.read) < READS:
            self.read.append(line)
            self.say(b"dry.late", b"%d %s" % (self.steps, ", ".join(map(os.path.basename, self.read)).encode()))

    def end(self, why):
        ran = ["%s %s" % (what, "ran" if did else "did not run") for what, did in self.ran.items()]
        text = "the first %d steps fit; %s%s" % (self.steps, "longest input %s; " % "x".join(map(str, self.longest)) if self.longest else "", ", ".join(ran))
        print("stormlog: DRY RUN ended %s; %s. --steps N decides otherwise" % (why, text), file=sys.stderr, flush=True)
        if self.say:
            self.say(b"dry.end", text.encode())
        sys.exit(0)


def begin(torch, steps, say):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    job = Job(torch, steps, say)
    if say:
        say(b"dry.steps", b"0")
    job.watch()
    register_optimizer_step_post_hook(job.stepped)
    return job
