# SPDX-License-Identifier: MIT
"""Tells the agent which module of PyTorch's runs or moves on a thread: `layers.12.mlp`.  Its hooks keep no tensor."""
import ctypes
import threading
import weakref

import stormlog_dry

WITHIN = 14  # its place in the agent's table (agent/include/stormlog.h)


class Running(threading.local):
    def __init__(self):
        self.names = []


def begin(torch):
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
