# SPDX-License-Identifier: MIT
"""Which variable holds each block of a device.  One walk goes from the names that the program wrote to the tensors that they reach.

begin() tells it at the end of the program, at an out-of-memory, and now and then between them.  A function's locals hold their tensors
until it returns.  A walk calls no code of the program, changes no object and keeps no reference.  After two seconds it tells what it has."""
import atexit
import collections
import contextvars
import ctypes
import functools
import gc
import itertools
import os
import sys
import time
import types
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import _thread

NO_FILE = "__main__"  # of a notebook
BUDGET = 2.0       # seconds of a walk
BETWEEN = 1.0      # seconds of all walks before the end
OBJECTS = 5000000  # that one walk visits
SLICE = 1000       # parts of a container, before others have their turn
TEXT = 250         # bytes of what is told of a block
HOLD = 13          # its place in the agent's table
ENDED = 1 << 63    # with the number of a walk that its budget ended
LONGEST = 160      # characters of a path
HERE = os.path.abspath(__file__)
LIBRARIES = {"site-packages", "dist-packages", os.path.dirname(os.path.abspath(os.__file__)), os.path.dirname(HERE)}
FIRST = 0.1        # seconds until the first walk by the clock; each later one waits half as long again

SKIP, PLAIN, TENSOR, STORAGE, NODE, FUNCTION, FRAME, MODULE, CLASS, LATER, NET, RUN, ARRAY, OBJECT = range(14)
HOLDING = (TENSOR, STORAGE, OBJECT)
INSTANCES = (PLAIN, NET, OBJECT)
ATOMS = (int, float, complex, str, bytes, bytearray, bool, type(None), type(...), range, slice, types.CodeType, types.BuiltinFunctionType,
         types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
         types.ClassMethodDescriptorType, types.MethodWrapperType, property)
SEQUENCES = (list, tuple, set, frozenset, collections.deque)
RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
SPARSE = ("_indices", "_values", "crow_indices", "col_indices", "ccol_indices", "row_indices", "values")  # parts of a tensor without a storage
HANDLES = {"_CUDAGraph": "raw_cuda_graph_exec", "_CudaEventBase": "cuda_event"}  # what tells the driver's number of an object
MEMBERS = ("_modules", "_parameters", "_buffers")  # of a module of PyTorch, which are its attributes

# What is known of an object on the way to a tensor. names: "": its parts are items, "attributes", "threads" that each have some, or
# "state" of an optimizer.
# most: items of the largest container on the way
State = collections.namedtuple("State", "path how container place names most", defaults=(0,))


def is_foreign(error: BaseException) -> bool:
    """True: a handler of a signal, which is the program's, has raised it here."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace is not None and os.path.abspath(trace.tb_frame.f_code.co_filename) != HERE


def ask(function: Callable[..., Any], *args: Any) -> Any:
    """The function's answer; None: it has none."""
    try:
        return function(*args)
    except Exception as error:
        if is_foreign(error):
            raise
        return None


def is_library(path: str) -> bool:
    return not path or path.startswith("<") or any(folder in path for folder in LIBRARIES)


program = ""  # the file of __main__, which loses its name when it has run


def file_of(module: Any) -> str:
    """The file of a module; "": it has none."""
    return program if module == "__main__" else str(getattr(sys.modules.get(module), "__file__", None) or "") if type(module) is str else ""


def is_ours(module: Any) -> bool:
    return type(module) is str and module.startswith("stormlog_")


def items_of(thing: Any) -> int:
    bases: tuple[Any, ...] = (dict, *SEQUENCES)
    return next((base.__len__(thing) for base in bases if isinstance(thing, base)), 0)


def has_base(kind: type, base: Any) -> bool:
    return any(one is base for one in kind.__mro__)


class Kinds(Dict[type, int]):
    """What the walk does with the objects of a type."""

    def __init__(self, torch: Any) -> None:
        super().__init__()
        self.torch = torch
        self.update(dict.fromkeys(ATOMS, SKIP))
        self.update(dict.fromkeys(RUNNING, RUN))
        self.update({types.FunctionType: FUNCTION, types.FrameType: FRAME, types.ModuleType: MODULE})

    def __missing__(self, kind: type) -> int:
        torch = self.torch
        if is_ours(kind.__module__):
            self[kind] = SKIP
            return SKIP
        self[kind] = found = next((what for base, what in ((torch._C.TensorBase if hasattr(torch._C, "TensorBase") else torch._C._TensorBase, TENSOR),
                                                           (torch.UntypedStorage, STORAGE), (torch.optim.Optimizer, LATER),
                                                           (torch.nn.Module, NET), (torch._C._FunctionBase, NODE), (types.ModuleType, MODULE), (type, CLASS),
                                                           *((getattr(torch._C, name, None), OBJECT) for name in HANDLES),
                                                           (getattr(sys.modules.get("numpy"), "ndarray", None), ARRAY))
                                   if has_base(kind, base)), PLAIN)
        return found


class Walk:
    def __init__(self, torch: Any, seconds: float) -> None:
        self.torch, self.until = torch, time.thread_time() + seconds
        self.kinds = Kinds(torch)
        self.parent: Dict[int, Any] = {}           # of what was reached, by id
        self.states: Dict[int, State] = {}
        self.keys: Dict[int, Dict[int, Any]] = {}  # of a namespace: the name of each part, by id
        self.order: List[Any] = []                 # what was reached: it lives until the walk ends
        self.later: collections.deque[Any] = collections.deque()  # what names less well: optimizers, graphs
        self.large: collections.deque[Any] = collections.deque()  # containers, and their parts that wait
        self.found: Dict[int, Tuple[Any, int]] = {}  # address: the object that holds it, bytes that it sees
        self.sought: Dict[int, Any] = {}           # tensors that Python knows, by id
        self.everything: List[Any] = []            # while the walk has it, a collection frees nothing of it
        self.saved: Dict[type, List[str]] = {}
        self.classes: List[Any] = []               # of libraries, which were met
        self.library = False                       # go into them and into modules of libraries too
        self.whole, self.stops = True, False
        self.parent[id(self)] = self.parent[id(sys.__dict__)] = None  # sys has what an ended error's frames held
        self.parent.update((id(part), None) for part in vars(self).values())

    def spent(self) -> bool:
        self.whole = self.whole and time.thread_time() < self.until and len(self.order) < OBJECTS
        return not self.whole

    # ---- what an object refers to

    def locals_of(self, frame: types.FrameType) -> Dict[str, Any]:
        """Until CPython 3.12 the frame keeps the dict that it makes for us, and with it what the function deletes later."""
        here = frame.f_locals
        copy = dict(here)
        if sys.version_info < (3, 13) and frame.f_code.co_flags & 1 and sys.getrefcount(here) <= 3:
            here.clear()
        del here
        return copy

    def namespace(self, thing: Any, kind: int) -> Dict[str, Any]:
        """Names and parts of an object that has names for them."""
        if kind == FRAME:
            return self.locals_of(thing)
        if kind == CLASS:
            return dict(type.__dict__["__dict__"].__get__(thing))
        if kind == FUNCTION:
            code, last = thing.__code__, thing.__code__.co_argcount
            parts = dict(thing.__dict__)
            parts.update(zip(code.co_freevars, thing.__closure__ or ()))
            parts.update(zip(("%s=" % name for name in code.co_varnames[last - len(thing.__defaults__ or ()):last]), thing.__defaults__ or ()))
            parts.update(("%s=" % name, value) for name, value in (thing.__kwdefaults__ or {}).items())
            return parts
        frame = getattr(thing, "gi_frame", None) or getattr(thing, "cr_frame", None) or getattr(thing, "ag_frame", None)
        return self.locals_of(frame) if frame else {}

    def nodes(self, node: Any) -> List[Any]:
        """The next nodes of autograd's graph, and the tensors that it saved.  A hook of the program's that packed one is not called."""
        parts = [next_node for next_node, _ in ask(lambda: node.next_functions) or () if next_node is not None]
        kind = type(node)
        if kind not in self.saved:
            self.saved[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")] + ["variable"] * hasattr(kind, "variable")
        for name in self.saved[kind]:
            raw = ask(getattr, node, name)
            for one in raw if isinstance(raw, (list, tuple)) else (raw,):
                parts.append(one if name == "variable" else ask(lambda one=one: one.data))
        for part in parts:
            if self.kinds[type(part)] == PLAIN and hasattr(type(part), "next_functions"):
                self.kinds[type(part)] = NODE
        return parts + (gc.get_referents(node) if has_base(kind, self.torch._C._FunctionBase) else [])

    def parts(self, thing: Any, kind: int) -> Iterable[Any]:
        if kind in INSTANCES:
            return gc.get_referents(thing)
        if kind == TENSOR:
            parts = gc.get_referents(thing)
            node = ask(lambda: thing.grad_fn)
            if node is not None:
                self.kinds[type(node)] = NODE
            if node is None or ask(lambda: thing.retains_grad):
                parts.append(ask(lambda: thing.grad))
            return parts + [node]
        if kind == NODE:
            return self.nodes(thing)
        if kind == ARRAY:
            return thing.ravel().tolist() if thing.dtype.hasobject else []
        if kind == LATER:
            return [thing.__dict__.get("state"), thing.__dict__]
        if kind == MODULE:
            return [] if is_library(file_of(thing.__name__)) and not self.library else [thing.__dict__]
        if kind == FUNCTION and is_ours(thing.__module__):
            return []  # a dry run has put it around one of PyTorch's
        if kind == FUNCTION and self.library and not thing.__closure__ and not thing.__defaults__:
            return []
        if kind == CLASS and not self.library and is_library(file_of(thing.__module__)):
            self.classes.append(thing)
            return []
        names = self.namespace(thing, kind)
        if kind == FRAME and self.kinds[type(names.get("self"))] == NET and id(names["self"]) not in self.parent:
            self.parent[id(names["self"])] = thing  # a name of the whole model says more
            self.later.append(names["self"])
        return names.values()

    # ---- from the names to the tensors

    def note(self, holder: Any, kind: int) -> None:
        """A tensor or a storage was reached."""
        self.sought.pop(id(holder), None)
        if kind == OBJECT:
            read = next(getattr(base, HANDLES[base.__name__]) for base in type(holder).__mro__ if base.__name__ in HANDLES)
            handle = read(holder) if callable(read) else read.__get__(holder)
            if handle:
                self.found[handle] = self.found.get(handle) or (holder, 0)
            return
        if kind == TENSOR:
            if not holder.is_cuda:
                return
            parts = [holder] if ask(holder.untyped_storage) is not None else [ask(getattr(holder, name)) for name in SPARSE]
            blocks = [(ask(part.untyped_storage), part.numel() * part.element_size()) for part in parts if part is not None]
        else:
            blocks = [(holder, holder.nbytes() if holder.device.type == "cuda" else 0)]
        for storage, seen in blocks:
            address = ask(storage.data_ptr) if storage is not None and seen else 0
            if address:
                self.found[address] = self.found.get(address) or (holder, seen)

    def go(self, roots: Iterable[Tuple[Any, State]]) -> None:
        """Breadth first, so that the shortest path names a tensor.  Large containers take turns, so that each has a name in time."""
        parent, order, kinds, at, turns = self.parent, self.order, self.kinds, len(self.order), 0
        for root, state in roots:
            if id(root) not in parent:
                parent[id(root)], self.states[id(root)] = None, state
                order.append(root)
        if self.library:
            order += self.classes
        referents = gc.get_referents
        done = self.stops and not self.sought  # only graphs may still lead to others
        while (not done and (at < len(order) or self.large)) or self.later:
            turns += 1
            if not turns & 1023 and self.spent():
                return
            if done or (at == len(order) and not self.large):
                at = len(order)
                order.append(self.later.popleft())
            if at < len(order):
                thing, at = order[at], at + 1
                kind = kinds[type(thing)]
                if kind in HOLDING:
                    ask(self.note, thing, kind)
                    done = self.stops and not self.sought
                parts = referents(thing) if kind == PLAIN else ask(self.parts, thing, kind) or ()
                rest = iter(parts) if len(parts) > SLICE else None
            else:
                thing, rest = self.large.popleft()
            if rest is not None:
                parts = list(itertools.islice(rest, SLICE))
                self.large.extend([(thing, rest)] * bool(parts))
            for part in parts:
                kind = kinds[type(part)]
                if kind and id(part) not in parent:
                    parent[id(part)] = thing
                    (self.later if done or kind == NODE or kind == LATER else order).append(part)

    def roots(self, library: bool) -> Iterable[Tuple[Any, State]]:
        """Modules, and the frames of all threads: those of the program, or those of libraries."""
        modules = list(sys.modules.items())
        modules.sort(key=lambda item: item[0] != "__main__")
        for name, module in modules:
            path = file_of(name)
            if type(module) is types.ModuleType and not is_ours(name) and (is_library(path) and name != "__main__") == library:
                yield module.__dict__, State("" if name == "__main__" else name, "global", "", path, "attributes")
        if not library:
            yield {var.name: value for var, value in contextvars.copy_context().items()}, State("", "global", "", NO_FILE, "attributes")
        frames: List[Optional[types.FrameType]] = list(sys._current_frames().values())
        trace = getattr(sys, "last_traceback", None)
        while trace:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        for frame in frames:
            while frame:
                code = frame.f_code
                if is_library(code.co_filename) == library and os.path.dirname(code.co_filename) != os.path.dirname(__file__):
                    if code.co_flags & 1:
                        yield frame, self.of_frame(frame)
                    else:
                        yield frame.f_globals, State("", "global", "", code.co_filename, "attributes")
                frame = frame.f_back
        frames.clear()  # one is this function's own, so that it would hold the program's until the next collection

    def of_frame(self, frame: types.FrameType) -> State:
        return State("", "local", "", "%s:%d %s" % (frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_code.co_name), "attributes")

    # ---- from a tensor back to its name

    def key(self, parent: Any, part: Any) -> Optional[Any]:
        """The name, or the key, under which the parent has the part."""
        known = self.keys.get(id(parent))
        if known is None:
            parts = parent if isinstance(parent, dict) else self.namespace(parent, self.kinds[type(parent)])
            known = self.keys[id(parent)] = {id(value): key for key, value in list(dict.items(parts))}
        return known.get(id(part))

    def attribute(self, thing: Any, part: Any) -> Optional[str]:
        """The name of a part of an instance; "": it is the dict of its attributes."""
        own = ask(object.__getattribute__, thing, "__dict__")
        if own is part:
            return ""
        if type(own) is dict and self.key(own, part) is not None:
            return str(self.key(own, part))
        for kind in type(thing).__mro__:
            for name, slot in kind.__dict__.items():
                if type(slot) is types.MemberDescriptorType and ask(slot.__get__, thing) is part:
                    return str(name)
        return None

    def derive(self, above: State, parent: Any, part: Any) -> State:
        """What is known of a part, from what is known of its parent."""
        kind, kinds = self.kinds[type(parent)], self.kinds
        path, how, container = above.path, above.how, ""
        if kind == NODE or (kind == TENSOR and kinds[type(part)] == NODE):
            return above._replace(how="graph", names="")
        if kind == TENSOR:
            return above._replace(path=path + ".grad" if kinds[type(part)] == TENSOR else path, names="attributes" if type(part) is dict else "")
        if above.names == "threads":
            return above._replace(names="attributes")
        if above.names == "state":
            key = self.key(parent, part)
            return above._replace(path="%s[%s]" % (path, self.state(key).path if id(key) in self.parent else "*"), names="attributes")
        if above.names or kind in (FRAME, CLASS, FUNCTION):
            name = str(self.key(parent, part) or "")
            owner = self.parent[id(parent)]
            if isinstance(parent, dict) and owner is not None and self.kinds[type(owner)] in (PLAIN, LATER, NET):
                return self.member(above, owner, name, part)
            if name.endswith("="):
                return above._replace(path="%s(%s)" % (path, name), how="default", names="")
            if kind == FUNCTION and name in parent.__code__.co_freevars:
                how = "closure"
            path = "%s.%s" % (path, name) if path and name else path + name
        elif kind == ARRAY or (isinstance(parent, (dict, *SEQUENCES)) and
                               (type(parent).__module__ in ("builtins", "collections") or self.attribute(parent, part) is None)):
            path, container = path + "[*]", type(parent).__name__
        elif type(parent) is _thread._local:  # before CPython 3.13 it has the attributes of all threads, by a weak reference to each
            return above._replace(names="threads" if any(type(key) is weakref.ref for key in part) else "attributes")
        elif type(parent) is functools._lru_cache_wrapper:
            return above._replace(path=path if type(part) is dict else path + "[*]", how="cache", container="cache", names="")
        elif kind == RUN:
            path += ".%s" % self.key(parent, part)
        elif (kind in INSTANCES or kind in (LATER, MODULE)) and type(parent) not in (types.CellType, types.MethodType):
            named = self.attribute(parent, part) if kind != MODULE else ""
            if named == "":
                return above._replace(names="attributes")
            return self.member(above, parent, named, part) if named else above
        return self.shortened(State(path, how, above.container or container, above.place, "", max(above.most, items_of(parent) if container else 0)), part)

    def member(self, above: State, owner: Any, name: str, part: Any) -> State:
        """An attribute of an instance: a class of the program's names it, whoever has the instance, unless one of many instances has it."""
        kind, owned = self.kinds[type(owner)], type(owner)
        if kind == NET and name in MEMBERS:
            return above._replace(names="attributes")
        if kind == PLAIN and above.how != "cycle" and max(items_of(part), 1) >= above.most and not is_library(file_of(owned.__module__)):
            return State("%s.%s" % (owned.__qualname__.split("<locals>.")[-1], name), "attribute", "", file_of(owned.__module__), "")
        return above._replace(path="%s.%s" % (above.path, name) if above.path else name, names="state" if name == "state" and kind == LATER else "")

    def shortened(self, state: State, part: Any) -> State:
        if self.kinds[type(part)] == CLASS:
            state = State(part.__qualname__, "global", "", file_of(part.__module__), "")
        elif type(part) is types.FrameType:
            state = self.of_frame(part)
        if len(state.path) > LONGEST:
            state = state._replace(path=state.path[:LONGEST // 2] + "..." + state.path[-LONGEST // 4:])
        return state

    def state(self, thing: Any) -> State:
        chain = []
        while id(thing) not in self.states:
            chain.append(thing)
            thing = self.parent[id(thing)]
        state = self.states[id(thing)]
        for part in reversed(chain):
            state = self.states[id(part)] = self.derive(state, thing, part)
            thing = part
        return state

    def cycles(self) -> None:
        """Tensors that no name reaches, where each object above them has one above it: only the collector would free them."""
        own = {id(part) for part in vars(self).values()} | {id(self), id(vars(self))}
        above: Dict[int, List[Any]] = {}
        for thing in self.everything:
            kind = self.kinds[type(thing)]
            if not kind or id(thing) in self.parent or id(thing) in own:
                continue
            for part in self.parts(thing, kind) if kind in (TENSOR, NODE) else gc.get_referents(thing):
                if part is not None and id(part) not in self.parent:
                    above.setdefault(id(part), []).append(thing)
        for tensor in [] if self.spent() else list(self.sought.values()):
            chain, seen = [tensor], {id(tensor)}
            for thing in chain:
                for one in above.get(id(thing), ()):
                    if id(one) not in seen:
                        seen.add(id(one))
                        chain.append(one)
            if self.whole and len(chain) > 1 and all(id(thing) in above for thing in chain):
                owner = next((type(thing) for thing in chain if not is_library(file_of(type(thing).__module__))), type(chain[-1]))
                self.states[id(tensor)] = State(owner.__qualname__, "cycle", "", file_of(owner.__module__), "")
                self.note(tensor, TENSOR)

    def run(self, deep: bool) -> Dict[int, Tuple[int, State]]:
        """Address of each block that has a holder: bytes of it that the holder sees, and what is known of the holder.  deep: go on to
        names of libraries, and to cycles."""
        kinds = self.kinds
        with self.torch._C.DisableTorchFunction():
            if deep:
                self.everything = gc.get_objects()
                self.parent[id(self.everything)] = None
                tensors = {kind for kind in set(map(type, self.everything)) if kinds[kind] == TENSOR}
                self.sought.update((id(thing), thing) for thing in self.everything if type(thing) in tensors and thing.is_cuda)
            self.stops = deep
            self.go(self.roots(False))
            if self.sought and self.whole:
                now = time.thread_time()
                self.library, self.until = True, now + (self.until - now) / 2
                self.go(self.roots(True))
            if self.sought and self.whole:
                self.cycles()
            found = {address: (seen, self.state(holder)) for address, (holder, seen) in self.found.items()}
            for held in (self.everything, self.order, self.classes, self.parent, self.sought, self.found, self.later, self.large):
                held.clear()  # they have each other, and the program's objects until the next collection
            return found


class Teller:
    """Tells the recording what holds its blocks, at the end, at an out-of-memory and now and then.  Its truth is a walk: CPython takes a
    pending call that returns an int, and the int of an object's truth is the only one that Python can give it with an exception."""

    def __init__(self, torch: Any, hold: Callable[[int, int, bytes, int], Any]) -> None:
        self.torch, self.hold, self.pid = torch, hold, os.getpid()
        self.walks = self.steps = self.errors = self.waited = 0  # waited: the steps when the clock was last there
        self.left = {"between": BETWEEN, "error": BUDGET, "end": BUDGET}
        self.busy = False

    def tell(self, why: str) -> None:
        if self.busy or os.getpid() != self.pid or not self.torch.cuda.is_initialized() or self.left[why] <= 0:
            return
        began, self.busy = time.thread_time(), True
        try:
            walk = Walk(self.torch, self.left[why] / (4 if why == "between" else 1))
            self.say(walk.run(why != "between"), walk.whole)
        except Exception as error:
            if is_foreign(error):
                raise
        finally:
            self.left[why] -= time.thread_time() - began
            self.busy = False

    def say(self, found: Dict[int, Tuple[int, State]], whole: bool) -> None:
        self.walks += bool(found)
        for address, (seen, state) in found.items():
            text = "\t".join((state.path, state.how, state.container)).encode("utf-8", "replace")
            place = b"" if state.place == NO_FILE else state.place.encode("utf-8", "replace")
            self.hold(address, seen, text + b"\t" + place[len(text) - TEXT:], self.walks | (0 if whole else ENDED))

    def __bool__(self) -> bool:
        """By the clock, where no optimizer's step does it: walks that a busy machine makes many would take the time of the last ones."""
        if self.steps == self.waited:
            self.tell("between")
        self.waited = self.steps
        return False

    def clock(self) -> None:
        wait = FIRST
        is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
        while self.left["between"] > 0:
            time.sleep(wait)
            wait *= 1.5
            ctypes.pythonapi.Py_AddPendingCall(is_true, ctypes.c_void_p(id(self)))

    def stepped(self, *args: Any) -> None:
        self.steps += 1
        if not self.steps & (self.steps - 1):
            self.tell("between")

    def failed(self, *args: Any) -> None:
        self.errors += 1
        if not self.errors & (self.errors - 1):
            self.tell("error")

    def ready(self) -> None:
        """The device is used."""
        ask(self.torch._C._cuda_attach_out_of_memory_observer, self.failed)
        ask(_thread.start_new_thread, self.clock, ())


def agent() -> Optional[Callable[[int, int, bytes, int], Any]]:
    """The agent's function that tells the recording of one block (agent/include/stormlog.h); None: there is no agent."""
    table = ask(lambda: ctypes.c_size_t.in_dll(ctypes.CDLL(None), "stormlog_api_v1"))
    words = ctypes.cast(ctypes.addressof(table), ctypes.POINTER(ctypes.c_size_t)) if table else None
    if not words or words[0] <= HOLD * ctypes.sizeof(ctypes.c_size_t):
        return None
    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_uint64)(words[HOLD])


teller: Optional[Teller] = None


def begin(torch: Any) -> None:
    """Tells it from now on, where there is an agent."""
    global program, teller
    LIBRARIES.add(os.path.dirname(torch.__file__))  # which may be none of pip's
    hold = agent()
    if hold is None or teller is not None:
        return
    file = getattr(sys.modules["__main__"], "__file__", None)
    program = os.path.abspath(file) if file else NO_FILE
    teller = Teller(torch, hold)
    atexit.register(teller.tell, "end")
    ask(torch.cuda._lazy_call, teller.ready)
    ask(lambda: sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(teller.stepped))  # torch.optim deletes the name


def holders(seconds: float = BUDGET) -> List[Tuple[str, str, int, int]]:
    """[(path, how, blocks, bytes that it sees), ...], largest first: what holds PyTorch's blocks now.  A recording is told, too."""
    torch, other = sys.modules.get("torch"), sys.modules.get("stormlog_holders")
    if other is not None and other.__name__ != __name__:
        return list(other.holders(seconds))  # the launcher has begun it
    if torch is None or not torch.cuda.is_initialized():
        return []
    begin(torch)
    walk = Walk(torch, seconds)
    found = walk.run(True)
    if teller is not None:
        teller.say(found, walk.whole)
    sums: Dict[Tuple[str, str], List[int]] = {}
    for seen, state in found.values():
        one = sums.setdefault((state.path, state.how), [0, 0])
        one[0] += 1
        one[1] += seen
    return sorted(((path, how, blocks, held) for (path, how), (blocks, held) in sums.items()), key=lambda row: -row[3])
