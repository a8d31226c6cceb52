# SPDX-License-Identifier: MIT
"""Operators with integer or boolean results, and small ones, are computed on the CPU behind the device's addresses, so that masks,
counts and loops go the way they go on a card.  Everything else reads as 0.

Each operator gets a kernel under BackendSelect, which PyTorch asks before the device's own.  That is below autograd and is no
dispatch mode: under a mode autograd takes other ways and asks for more memory.  begin() returns whether the value of a tensor of the
device is known, and whether that of one of the host is, which may be a copy of the former."""
import ctypes
import math
import sys

import stormlog_dry

LARGEST = 1 << 24   # elements of integers that are computed
BOOLEANS = 1 << 27  # elements of booleans that are computed
SMALL = 1 << 13     # elements of any type that are computed
COPIED = 1 << 20    # bytes up to which the driver moves a copy (dry/contents.c)
STALE = 1 << 17     # elements up to which a result that is not computed is made 0
OVERWRITE = ("aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_")
COUNTS = ("nonzero", "_unique2", "unique_consecutive", "unique_dim", "_coalesce")
CLEARS = ("aten::zero_", "aten::fill_")
TOTALS = ("bincount", "repeat_interleave")  # they read the sum or the largest of their first argument, which is computed
ALGEBRA = ("linalg", "_linalg", "cholesky", "triangular", "lu_", "ormqr", "geqrf")
# They move no values, or their results are of floating point and nobody reads them.
LEFT = ("empty", "new_empty", "resize_", "set_", "record_stream", "as_strided", "view", "_reshape_alias", "unfold",
        "is_pinned", "_fused", "_foreach", "convolution")


def begin(torch, note):
    from torch._C._dynamo import eval_frame

    Tensor = torch.Tensor
    cuda, sparse = torch._C.DispatchKey.CUDA, torch._C.DispatchKey.SparseCUDA
    below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuDryNextValue.argtypes = [ctypes.c_int64]
    storage_size = ctypes.CDLL("libtorch_cpu.so").aoti_torch_get_storage_size
    integers = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
    to_host = torch.ops.aten.copy_.default
    guessed = set()  # addresses of the storages whose values follow from what was not computed
    within_nms = []  # its boxes, of which none is suppressed: the longest case
    random = torch.Generator().manual_seed(1)

    def on_device(*values):
        """The tensors of the device among the values and in lists of them.  A sparse one has no storage of its own."""
        found = []
        for x in values:
            if isinstance(x, Tensor):
                if x.is_cuda and x.layout is torch.strided:
                    found.append(x)
            elif isinstance(x, (list, tuple)):
                found += on_device(*x)
        return found

    def storage(tensor):
        """Address and bytes.  Python's own object of a storage counts as a user of it, and autograd then does not add in place."""
        size = ctypes.c_int64()
        storage_size(ctypes.byref(ctypes.c_void_p(tensor._cdata)), ctypes.byref(size))
        return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size(), size.value

    def memory(tensor):
        """The bytes behind a tensor of the device, as a tensor of the CPU."""
        if not tensor.numel():
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
        address, size = storage(tensor)
        raw = (ctypes.c_char * size).from_address(address)
        return torch.frombuffer(raw, dtype=torch.uint8).view(tensor.dtype).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def is_guessed(tensor):
        address, size = storage(tensor)
        return address in guessed or tensor.is_floating_point() and size > COPIED

    def guess(results, doubtful):
        for result in results:
            address, size = storage(result)
            if doubtful:
                guessed.add(address)
            elif result.numel() * result.element_size() == size:
                guessed.discard(address)

    # Kernels of Triton write what nobody follows.
    def knows(tensor):
        return tensor.dtype in integers and not is_guessed(tensor) and "triton" not in sys.modules

    def knows_host(tensor):
        return tensor.layout is not torch.strided or not getattr(tensor.untyped_storage(), "stormlog_guessed", False)

    def follow(target, source):
        """A copy on the host is as known as its source.  The mark goes with the storage, of which it may be a part."""
        if not (knows if source.is_cuda else knows_host)(source):
            target.untyped_storage().stormlog_guessed = follow.any = True
        elif not knows_host(target) and target.numel() * target.element_size() == target.untyped_storage().nbytes():
            target.untyped_storage().stormlog_guessed = False

    follow.any = False

    def carry(out, args):
        """What the host computes of such a copy, as the comparison with a label."""
        for x in args:
            if isinstance(x, Tensor) and not knows_host(x):
                out.untyped_storage().stormlog_guessed = True
            elif isinstance(x, (list, tuple)):
                carry(out, x)

    def is_finite(x):
        if isinstance(x, list):
            return all(map(is_finite, x))
        if isinstance(x, Tensor):
            return not x.is_floating_point() or bool(x.isfinite().all())
        return not isinstance(x, float) or math.isfinite(x)

    def on_host(x):
        if isinstance(x, Tensor):
            return memory(x) if x.is_cuda else x
        if isinstance(x, torch.device):
            return torch.device("cpu")
        return [on_host(y) for y in x] if isinstance(x, (list, tuple)) else x

    def compute(op, args, kwargs, results, written):
        args = [on_host(x) for x in args]
        kwargs = {name: on_host(x) for name, x in kwargs.items() if name != "pin_memory"}
        finite = all(map(is_finite, args + [*kwargs.values()]))
        if any(a.name == "generator" for a in op._schema.arguments):
            kwargs["generator"] = random
        state = torch.random.get_rng_state() if torch.Tag.nondeterministic_seeded in op.tags else None
        made = op(*args, **kwargs)
        if state is not None:
            torch.random.set_rng_state(state)
        for target, value in zip(results, made if isinstance(made, (list, tuple)) else [made]):
            if finite and value.is_floating_point():  # something was divided by what was not computed
                value.nan_to_num_(0, 0, 0)
            if not written and target.shape == value.shape:
                memory(target).copy_(value)

    def clear(results):
        for result in results:
            if result.numel() <= STALE and result.is_contiguous():
                ctypes.memset(result.data_ptr(), 0, result.numel() * result.element_size())

    def fits(results, elements):
        return elements <= SMALL or all(x.dtype in integers and elements <= (BOOLEANS if x.dtype is torch.bool else LARGEST) for x in results)

    def fill(op, args, kwargs, out, written, algebra, outs):
        """Gives the results their values, once the device's own kernel has made them."""
        results = on_device(*[args[i] if i < len(args) else kwargs[name] for i, name in written]) if written else on_device(out)
        if op is to_host and not results and on_device(args[1]) and args[0].dtype in integers and args[1].numel() <= LARGEST:
            args[0].copy_(memory(args[1]))  # the driver leaves zeros where a copy is large
        if not results:
            return
        inputs = on_device(*args[1 if op._schema.name in OVERWRITE else 0:], *[x for key, x in kwargs.items() if key not in outs])
        guess(results, any(map(is_guessed, inputs)))
        elements = sum(x.numel() for x in on_device(*args, *kwargs.values()) + ([] if written else results))
        if not algebra and fits(results, elements):
            try:
                compute(op, args, kwargs, results, written)
                return
            except Exception:  # what the CPU cannot compute reads as 0
                inputs = results
        if inputs or op._schema.name not in CLEARS:
            guess(results, True)
        if not written:
            clear(results)

    def as_tensor(number, others):
        """PyTorch has made a number of a tensor that was one, on the way here.  It must not promote the others."""
        kind = next((x.dtype for x in others if isinstance(x, Tensor)), None)
        if isinstance(number, bool):
            kind = torch.bool
        elif kind is torch.bool or kind in integers and isinstance(number, float) or isinstance(number, complex):
            kind = None
        return torch.tensor(number, dtype=kind, device="cpu")

    def decides(op, x):
        """The tensor whose values decide the count: of a sparse one its indices, each a column."""
        return x._indices() if op._schema.name == "aten::_coalesce" else x

    def is_computed(x):
        return x.numel() <= (BOOLEANS if x.dtype is torch.bool else LARGEST)

    def counted(op, args, kwargs):
        """Tells the driver the count that the operator will copy to the host, which decides the size of its result."""
        x = decides(op, args[0])
        if within_nms:
            memory(x).fill_(True)
        if not x.numel():
            driver.cuDryNextValue(0)
            return 0
        if x is not args[0]:
            count = torch.unique(memory(x), dim=1).shape[1] if is_computed(x) else x.shape[1]
        elif not is_computed(x):
            count = x.numel()
        else:
            made = op(memory(x), *args[1:], **kwargs)
            count = (made[0] if isinstance(made, tuple) else made).shape[0]
        driver.cuDryNextValue(count)
        return count

    def note_size(frame, op, x, count):
        """A size that follows from what was not computed.  Of more elements than are computed the longest case is taken."""
        x = decides(op, x)
        if on_device(x) and not within_nms and (is_guessed(x) or not is_computed(x)):
            name = {"nonzero": "mask", "_coalesce": "coalesce"}.get(op._schema.name[6:], op._schema.name[6:].lstrip("_").rstrip("2").partition("_")[0])
            note(frame, "%s of %d of %d elements" % (name, count, x.numel() if op._schema.name[6:] != "_coalesce" else x.shape[1]))

    def leave_to_python(code):
        """torch.compile is not to compile it."""
        if hasattr(eval_frame, "skip_code"):
            eval_frame.skip_code(code)
        else:
            eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT))

    def kernel(op):
        schema = op._schema
        name = schema.name.partition("::")[2]
        written = [(i, a.name) for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        tensors = [i for i, a in enumerate(schema.arguments) if str(a.type) == "Tensor"]
        outs = {a.name for a in schema.arguments if a.kwarg_only and a.alias_info is not None and a.alias_info.is_write}
        algebra = name.startswith(ALGEBRA)
        own = op._handle.redispatch_boxed

        def run(keys, *args, **kwargs):
            for i in tensors:
                if i < len(args) and isinstance(args[i], (int, float, complex)):
                    args = (*args[:i], as_tensor(args[i], args), *args[i + 1:])
            if name == "_local_scalar_dense":  # C++ reads it, as one_hot does for its classes; of Python's reads stormlog_dry tells
                if keys.has(cuda) and args[0].dtype in integers and not stormlog_dry.reading and not knows(args[0]):
                    note(sys._getframe(1), "item of %s in an operator" % str(args[0].dtype).replace("torch.", ""))
                return own(keys & below, *args)
            if name == "copy_" and not args[0].is_cuda and args[0].layout is torch.strided:
                outer = eval_frame.set_eval_frame(None)
                follow(*args[:2])
                eval_frame.set_eval_frame(outer)
            if not (keys.has(cuda) or keys.has(sparse)):
                out = own(keys & below, *args, **kwargs)
                if follow.any and isinstance(out, Tensor) and out.layout is torch.strided:
                    outer = eval_frame.set_eval_frame(None)
                    carry(out, args)
                    eval_frame.set_eval_frame(outer)
                return out
            if name in COUNTS:
                outer = eval_frame.set_eval_frame(None)
                note_size(sys._getframe(1), op, args[0], counted(op, args, kwargs))
                eval_frame.set_eval_frame(outer)
            out = own(keys & below, *args, **kwargs)
            if name in COUNTS:
                driver.cuDryNextValue(-1)
            elif name in TOTALS and isinstance(out, Tensor):
                outer = eval_frame.set_eval_frame(None)
                note_size(sys._getframe(1), op, args[0], out.numel())
                eval_frame.set_eval_frame(outer)
            first = args[0] if written and args else out
            if isinstance(first, Tensor) and first.numel() > STALE and first.dtype not in integers:
                if first.is_cuda and first.layout is torch.strided and first.numel() * first.element_size() <= COPIED:
                    guess([first], True)
                return out
            outer = eval_frame.set_eval_frame(None)  # nor what it calls
            try:
                if name == "equal":  # the one whose answer is no tensor
                    return op(*map(memory, args))
                fill(op, args, kwargs, out, written, algebra, outs)
            finally:
                eval_frame.set_eval_frame(outer)
            return out

        leave_to_python(run.__code__)
        return run

    begin.library = library = torch.library.Library("aten", "IMPL")
    taken = set(torch._C._dispatch_get_registrations_for_dispatch_key("BackendSelect"))
    registered = {*torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"), "aten::copy_", "aten::_coalesce"}
    for full in sorted(registered - taken):
        name, _, overload = full.partition("::")[2].partition(".")
        if not full.startswith("aten::") or name.startswith(LEFT) and name != "_foreach_norm" or name.endswith(("_backward", "_backward_input")):
            continue
        if overload.endswith("out") and full[:-3].rstrip("_.") in registered:  # C++ may call it with a number of the device, which Python cannot take
            continue
        library.impl(full.partition("::")[2], kernel(getattr(getattr(torch.ops.aten, name), overload or "default")), "BackendSelect", with_keyset=True)

    def with_boxes():
        own = torch.ops.torchvision.nms.default._handle.redispatch_boxed

        def nms(keys, boxes, *args):
            if not keys.has(cuda):
                return own(keys & below, boxes, *args)
            note(sys._getframe(1), "longest case: nms kept all of %d" % boxes.shape[0])
            within_nms.append(boxes)
            try:
                return own(keys & below, boxes, *args)
            finally:
                within_nms.pop()

        leave_to_python(nms.__code__)
        begin.torchvision = torch.library.Library("torchvision", "IMPL")
        begin.torchvision.impl("nms", nms, "BackendSelect", with_keyset=True)

    begin.with_boxes = with_boxes
    return knows, knows_host
