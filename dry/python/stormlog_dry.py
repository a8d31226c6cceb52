# SPDX-License-Identifier: MIT
"""Notes each line of the program that reads a value from the device: no kernel has computed it. The notes are metadata of the trace."""
import ctypes
import os
import sys
import sysconfig

READS = ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__contains__")
PREFIX = b"dry.read."
UNKNOWN = b"dry.unknown."
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
STANDARD = os.path.join(sysconfig.get_path("stdlib"), "")
MOST = 200  # lines that are noted
seen, sized = set(), set()
say = None  # adds metadata to the trace
reading = 0 # more than 0: Python reads a value
quiet = 0   # more than 0: a function of PyTorch's runs on our account, and its reads are none of the program's


def agent(place, *arguments, kind=ctypes.CFUNCTYPE):
    """The function at that place of the agent's table (agent/include/stormlog.h); None: there is no agent."""
    table = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stormlog_api_v1") if hasattr(ctypes.CDLL(None), "stormlog_api_v1") else None
    if table is None:
        return None
    words = ctypes.cast(ctypes.addressof(table), ctypes.POINTER(ctypes.c_void_p))
    return kind(None, *arguments)(words[place])


def metadata():
    """Adds a key to the trace."""
    return agent(6, ctypes.c_char_p, ctypes.c_char_p)


def is_installed(path):
    """No code of the program's own: of a package, of Python's library, or ours."""
    return "site-packages" in path or "dist-packages" in path or path.startswith((HERE, "<", STANDARD)) or os.path.basename(path).startswith("stormlog_")


def place(frame):
    """The innermost frame of the program's own code."""
    inner = frame
    while frame and is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or inner
    return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)


def note(frame, what, prefix=PREFIX):
    """Once for each line and first word of what was read there. Returns the line."""
    where = place(frame)
    known = where, what.split()[0]
    if " elements" in what:  # a size, which no other read of its line replaces
        sized.add(where)
    elif where in sized:
        return where
    if len(seen) < MOST and known not in seen:
        seen.add(known)
        if say:
            say(prefix + where.encode(), what.encode())
    return where


def unknown(frame, what):
    """What takes memory on a card that a dry run cannot know."""
    note(frame, what, UNKNOWN)


def with_criteria(module):
    """The end token of generate() follows from logits that were not computed, so none ends it early."""
    if not hasattr(module, "EosTokenCriteria"):  # before transformers 4.39, where tokens of logits that read as 0 end nothing
        return
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
    import stormlog_dry_modules

    job = stormlog_dry_end.begin(torch, int(os.environ.get("STORMLOG_DRY_STEPS", 0)), say)

    def noted(name, read):
        def method(tensor, *args, **kwargs):
            global reading
            reading += 1
            try:
                value = read(tensor, *args, **kwargs)
            finally:
                reading -= 1
            if not quiet and not (knows if tensor.is_cuda else brought)(tensor):
                frame = sys._getframe(1)
                job.reads(note(frame, "%s of %s" % (name, str(tensor.dtype).replace("torch.", ""))), frame)
            return value

        method.__name__ = name
        return method

    knows, brought = lambda tensor: False, lambda tensor: True
    stormlog_dry_modules.begin(torch)
    record = torch.Tensor.record_stream

    def record_stream(tensor, stream):
        if tensor.is_cuda:
            unknown(sys._getframe(1), "how long other streams use their blocks")
        return record(tensor, stream)

    torch.Tensor.record_stream = record_stream
    for name in READS:
        setattr(torch.Tensor, name, noted(name, getattr(torch.Tensor, name)))
    if not os.environ.get("STORMLOG_DRY_NO_VALUES"):
        import stormlog_dry_values

        knows, brought = stormlog_dry_values.begin(torch, note)
