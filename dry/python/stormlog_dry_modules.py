# SPDX-License-Identifier: MIT
"""Tells the agent which module of PyTorch's runs or moves on a thread: `layers.12.mlp`.  Its hooks keep no tensor.  At an out-of-memory it
tells how large the models are whose weights were on their way to the device."""
import ctypes
import itertools
import sys
import threading
import types
import weakref

import stormlog_dry

WITHIN = 14  # its place in the agent's table (agent/include/stormlog.h)


class Running(threading.local):
    def __init__(self):
        self.names = []


def modules_of(names, kind, groups):
    """Adds models of a namespace, and its lists of them: not those that only keep models, where none of three waits."""
    for value in list(names.values()):
        if isinstance(value, kind):
            groups.append([value])
        elif type(value) in (list, tuple, dict):
            members = [one for one in itertools.islice(value.values() if type(value) is dict else value, 1000) if isinstance(one, kind)]
            groups += [members] if len(members) <= 2 or not all(part.is_cuda for one in members for part in one.parameters()) else []


def on_the_way(torch, frames):
    """(the model that a frame moves or builds, models of which a part is on the device)"""
    import stormlog_holders

    kind, moved, groups = torch.nn.Module, None, []
    for frame in frames:
        names = stormlog_holders.Walk.locals_of(None, frame)
        own = names.get("self")
        if isinstance(own, kind):
            moved = own if frame.f_code.co_name in ("_apply", "__init__") else moved
        elif own is not None and not isinstance(own, (type, types.ModuleType)):
            modules_of(getattr(own, "__dict__", {}), kind, groups)
        modules_of(names, kind, groups)
    nets = [net for group in groups for net in group if any(one is moved or any(part.is_cuda for part in one.parameters()) for one in group)]
    parts = {id(part) for net in nets for part in itertools.islice(net.modules(), 1, None)}
    nets = list({id(net): net for net in nets if id(net) not in parts}.values())
    waiting = [net for net in nets if any(not part.is_cuda for part in net.parameters())]
    moving = [net for net in nets if any(part is moved for part in net.modules())] or waiting
    return max(moving, key=lambda net: sum(part.numel() for part in net.parameters()), default=None), nets


def weights_of(net):
    """[(bytes that it takes on the device, whether it is there, whether it has four bytes a number), ...] of a model's parameters and
    buffers.  What waits becomes the type of what is there, unless some of it waits in that type."""
    parts = list({id(part): part for part in itertools.chain(net.parameters(), net.buffers())}.values())
    there = {part.dtype for part in parts if part.is_cuda and part.is_floating_point()}
    keeps = not there or any(part.dtype in there for part in parts if not part.is_cuda)
    kinds = [(part, part.dtype if keeps or part.is_cuda or not part.is_floating_point() else next(iter(there))) for part in parts]
    return [(part.numel() * kind.itemsize, part.is_cuda, kind.is_floating_point and kind.itemsize == 4) for part, kind in kinds]


def tell_weights(torch):
    """Adds to the trace: bytes on the device and in all, of them those of four bytes a number, and of which model."""
    try:
        here, frames = sys._getframe(2), []
        main = here  # not this function's frame, which would keep itself; a pool's thread may place them for the main one
        if threading.current_thread() is not threading.main_thread():
            main = sys._current_frames().get(threading.main_thread().ident)
        for frame in here, main:
            while frame and frame not in frames:
                frames.append(frame)
                frame = frame.f_back
        net, nets = on_the_way(torch, frames)
        if net is None:
            return
        parts, own = [part for one in nets for part in weights_of(one)], sum(size for size, _, _ in weights_of(net))
        sums = sum(size for size, there, _ in parts if there), sum(size for size, _, _ in parts), sum(size for size, _, wide in parts if wide), own
        line = stormlog_dry.place(here if not stormlog_dry.is_installed(stormlog_dry.place(here)) else main)
        stormlog_dry.say(b"dry.weights", b"%d %d %d %d %s %s" % (*sums, type(net).__name__.encode()[:80], line.encode()))
    except Exception:  # as of a parameter that has no size yet
        pass


def begin(torch):
    if stormlog_dry.say:
        torch.cuda._lazy_call(lambda: torch._C._cuda_attach_out_of_memory_observer(lambda *args: tell_weights(torch)))
    within = stormlog_dry.agent(WITHIN, ctypes.c_char_p, kind=ctypes.PYFUNCTYPE)
    if within is None:
        return
    running, names, roots = Running(), weakref.WeakKeyDictionary(), weakref.WeakSet()
    compiles = torch.compiler.is_compiling if hasattr(torch, "compiler") and hasattr(torch.compiler, "is_compiling") else lambda: False

    def name_all(root):
        """Names of other models than the first begin with their class."""
        prefix = "%s." % type(root).__name__ if roots else ""
        roots.add(root)
        for path, module in root.named_modules():
            names.setdefault(module, (prefix + path if path else type(root).__name__).encode()[:90])

    def enter(module, args):
        if compiles():
            return
        if not running.names and module not in roots and module not in names:
            name_all(module)
        name = names.get(module) or type(module).__name__.encode()
        running.names.append(name)
        within(name)

    def leave(module, args, result):
        if compiles():
            return
        if running.names:
            running.names.pop()
        within(running.names[-1] if running.names else None)

    move = torch.nn.Module._apply

    def _apply(self, *args, **kwargs):
        enter(self, ())
        try:
            return move(self, *args, **kwargs)
        finally:
            leave(self, (), None)

    torch.nn.Module._apply = _apply  # weights on their way to the device
    torch.nn.modules.module.register_module_forward_pre_hook(enter)
    torch.nn.modules.module.register_module_forward_hook(leave, always_call=True)
