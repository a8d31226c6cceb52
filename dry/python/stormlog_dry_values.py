# SPDX-License-Identifier: MIT
"""`--values`: operators with integer or boolean results, and small ones, are computed on the CPU behind the device's addresses, so
that masks, counts and loops go the way they go on a card.  Everything else reads as 0."""
import ctypes
import threading

LARGEST = 1 << 24  # elements of integers that are computed
SMALL = 1 << 13    # elements of any type that are computed
STALE = 1 << 17    # elements up to which a result that is not computed is made 0


def begin(torch):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten, tree_unflatten

    aten = torch.ops.aten
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuDryNextValue.argtypes = [ctypes.c_int64]
    integers = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
    counting = {aten.nonzero.default, aten.masked_select.default, aten._unique2.default, aten.unique_consecutive.default,
                aten.unique_dim.default, aten.repeat_interleave.Tensor, aten.bincount.default}
    indexing = {aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default}
    copying = {aten._to_copy.default: 0, aten.copy_.default: 1}
    making = {aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default, aten.new_empty.default,
              aten.new_empty_strided.default}
    random = torch.Generator().manual_seed(1)
    shapes = {}

    def on_device(x):
        return isinstance(x, torch.Tensor) and x.device.type == "cuda"

    def memory(tensor):
        """The bytes behind a tensor of the device, as a tensor of the CPU."""
        storage = tensor.untyped_storage()
        if not storage.nbytes() or not tensor.numel():
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
        raw = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
        return torch.frombuffer(raw, dtype=torch.uint8).view(tensor.dtype).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def facts(func):
        """(changes an argument, is a view, is linear algebra): what its schema says."""
        if func not in shapes:
            schema = func._schema
            views = not schema.is_mutable and any(a.alias_info is not None and not a.alias_info.is_write for a in schema.arguments)
            algebra = any(word in schema.name for word in ("linalg", "cholesky", "triangular", "lu_"))
            shapes[func] = schema.is_mutable, views, algebra
        return shapes[func]

    def tell_count(func, args, kwargs, small):
        """A count that the operator copies to the host decides the size of its result."""
        if func in counting and small:
            made = func(*[memory(a) if on_device(a) else a for a in args], **kwargs)
            driver.cuDryNextValue((made[0] if isinstance(made, tuple) else made).shape[0])
        elif func in indexing:
            for mask in args[1]:
                if on_device(mask) and mask.dtype in (torch.bool, torch.uint8) and mask.numel() <= LARGEST:
                    driver.cuDryNextValue(int(memory(mask).count_nonzero()))

    def compute(func, args, kwargs, results, changes):
        if func in copying:
            source = args[copying[func]]
            target = results[0] if func is aten._to_copy.default else args[0]
            if on_device(target):
                memory(target).copy_(memory(source) if on_device(source) else source)
            return
        flat, spec = tree_flatten((args, kwargs))
        flat = [memory(x) if on_device(x) else torch.device("cpu") if isinstance(x, torch.device) else x for x in flat]
        args, kwargs = tree_unflatten(flat, spec)
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        kwargs.pop("pin_memory", None)
        if any(a.name == "generator" for a in func._schema.arguments):
            kwargs["generator"] = random
        state = torch.random.get_rng_state() if torch.Tag.nondeterministic_seeded in func.tags else None
        made = func(*args, **kwargs)
        if state is not None:
            torch.random.set_rng_state(state)
        for target, value in zip([] if changes else results, [x for x in tree_flatten(made)[0] if isinstance(x, torch.Tensor)]):
            if target.shape == value.shape:
                memory(target).copy_(value)

    def clear(results):
        for result in results:
            if result.numel() <= STALE:
                memory(result).zero_()

    class Values(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            inputs = [x for x in tree_flatten((args, kwargs))[0] if on_device(x)]
            device = kwargs.get("device")
            if not inputs and (device is None or torch.device(device).type != "cuda"):
                return func(*args, **kwargs)
            if func is aten._local_scalar_dense.default or (func is aten._to_copy.default and device is not None and torch.device(device).type != "cuda"):
                return func(*args, **kwargs)
            changes, views, algebra = facts(func)
            elements = sum(x.numel() for x in inputs)
            try:
                tell_count(func, args, kwargs, elements <= LARGEST and all(x.dtype in integers for x in inputs))
            except Exception:  # the CPU cannot do it: the size stays the longest case
                pass
            out = func(*args, **kwargs)
            if views or func in making:
                return out
            results = [x for x in tree_flatten(out)[0] if on_device(x)]
            if changes:
                results = [x for x, a in zip(args, func._schema.arguments) if on_device(x) and a.alias_info is not None and a.alias_info.is_write]
            elements += sum(x.numel() for x in results)
            small = elements <= SMALL or (elements <= LARGEST and all(x.dtype in integers for x in results))
            try:
                if results and small and not algebra:
                    compute(func, args, kwargs, results, changes)
                elif not changes:
                    clear(results)
            except Exception:  # what the CPU cannot compute reads as 0
                pass
            return out

    run = threading.Thread.run

    def run_with_values(self):
        with Values():
            run(self)

    threading.Thread.run = run_with_values
    begin.mode = Values()  # kept: a mode ends with its object
    begin.mode.__enter__()
