# SPDX-License-Identifier: MIT
"""Notes each line of the program that reads a value from the device: no kernel has computed it. The notes are metadata of the trace."""
import ctypes
import os
import sys

READS = ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__contains__")
PREFIX = b"dry.read."
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
MOST = 200  # lines that are noted
seen = set()
say = None  # adds metadata to the trace


def metadata():
    """The agent's function that adds a key to the trace (include/stormlog.h); None: there is no agent."""
    table = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stormlog_api_v1") if hasattr(ctypes.CDLL(None), "stormlog_api_v1") else None
    if table is None:
        return None
    words = ctypes.cast(ctypes.addressof(table), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)(words[6])


def place(frame):
    """The innermost frame that is no code of an installed package."""
    inner = frame
    while frame and ("site-packages" in frame.f_code.co_filename or frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename.startswith("<")):
        frame = frame.f_back
    frame = frame or inner
    return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)


def note(frame, what):
    """Once for each line and first word of what was read there. Returns the line."""
    where = place(frame)
    known = where, what.split()[0]
    if len(seen) < MOST and known not in seen:
        seen.add(known)
        if say:
            say(PREFIX + where.encode(), what.encode())
    return where


def with_criteria(module):
    """The end token of generate() follows from logits that were not computed, so none ends it early."""
    real = module.EosTokenCriteria.__call__

    def longest(self, *args, **kwargs):
        note(sys._getframe(1), "longest case: no end token in generate")
        return real(self, *args, **kwargs).zero_()

    module.EosTokenCriteria.__call__ = longest


def with_callbacks(module):
    """A metric that was not computed ends no training of transformers' Trainer."""
    real = module.EarlyStoppingCallback.on_evaluate

    def goes_on(self, args, state, control, **kwargs):
        stopped = control.should_training_stop
        real(self, args, state, control, **kwargs)
        if control.should_training_stop and not stopped:
            note(sys._getframe(1), "longest case: no early stop")
            control.should_training_stop = False

    module.EarlyStoppingCallback.on_evaluate = goes_on


def with_early_stopping(module):
    """Nor one of Lightning."""
    real = module.EarlyStopping._evaluate_stopping_criteria

    def goes_on(self, current):
        stops, why = real(self, current)
        if stops:
            note(sys._getframe(1), "longest case: no early stop")
        return False, None

    module.EarlyStopping._evaluate_stopping_criteria = goes_on


def begin(torch):
    global say
    say = metadata()
    if torch.version.cuda is None:
        print("stormlog: DRY RUN ended: this PyTorch (%s) was built without CUDA; install one for CUDA, as in: pip install torch "
              "--index-url https://download.pytorch.org/whl/cu130" % torch.__version__, file=sys.stderr, flush=True)
        os._exit(124)
    import stormlog_dry_end

    job = stormlog_dry_end.begin(torch, int(os.environ.get("STORMLOG_DRY_STEPS", 0)), say)

    def noted(name, read):
        def method(tensor, *args, **kwargs):
            value = read(tensor, *args, **kwargs)
            if not (knows if tensor.is_cuda else brought)(tensor):
                job.reads(note(sys._getframe(1), "%s of %s" % (name, str(tensor.dtype).replace("torch.", ""))))
            return value

        method.__name__ = name
        return method

    knows, brought = lambda tensor: False, lambda tensor: True
    for name in READS:
        setattr(torch.Tensor, name, noted(name, getattr(torch.Tensor, name)))
    if not os.environ.get("STORMLOG_DRY_NO_VALUES"):
        import stormlog_dry_values

        knows, brought = stormlog_dry_values.begin(torch, note)
