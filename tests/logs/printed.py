# SPDX-License-Identifier: MIT
"""Sentences as the libraries print them: each function has a library's own format, whose source file forms.def names."""
GIB, MIB = 1 << 30, 1 << 20


def size(n):
    """format_size of c10/cuda/CUDACachingAllocator.cpp"""
    if n <= 1024:
        return f"{n} bytes"
    if n <= 1 << 20:
        return f"{n / 1024:.2f} KiB"
    return f"{n / MIB:.2f} MiB" if n <= GIB else f"{n / GIB:.2f} GiB"


def torch(asked, device, total, free, allocated, unallocated, this=None, others=(), private=0, allowed=None, word="capacity", what="CUDA"):
    return (f"{what} out of memory. Tried to allocate {size(asked)}. GPU {device} has a total {word} of {size(total)} of which {size(free)} is free. "
            + "".join(f"Process {pid} has {size(n)} memory in use. " for pid, n in others)
            + (f"Including non-PyTorch memory, this process has {size(this)} memory in use. " if this else "")
            + (f"{size(allowed)} allowed; " if allowed else "")
            + f"Of the allocated memory {size(allocated)} is allocated by PyTorch, "
            + (f"with {size(private)} allocated in private pools (e.g., {'HIP' if what == 'HIP' else 'CUDA'} Graphs), " if private else "")
            + f"and {size(unallocated)} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            f"PYTORCH_{what}_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
            "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")


def torch_1(asked, device, total, allocated, free, reserved, allowed=None, cached=False):
    return (f"CUDA out of memory. Tried to allocate {size(asked)} (GPU {device}; {size(total)} total capacity; {size(allocated)} already allocated; "
            f"{size(free)} free; " + (f"{size(allowed)} allowed; " if allowed else "")
            + (f"{size(reserved - allocated)} cached)" if cached else f"{size(reserved)} reserved in total by PyTorch) If reserved memory is >> allocated memory try "
               "setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"))


def torch_async(asked, device, total, allocated, free, limit):
    return (f"Allocation on device {device} would exceed allowed memory. (out of memory)\nCurrently allocated     : {size(allocated)}\n"
            f"Requested               : {size(asked)}\nDevice limit            : {size(total)}\nFree (according to CUDA): {size(free)}\n"
            f"PyTorch limit (set by user-supplied memory fraction)\n                        : {size(limit)}")


SITE = "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py"


def traceback(*frames, error="", prefix=""):
    """A traceback of Python: (file, line, function, source) each."""
    lines = ["Traceback (most recent call last):"]
    for file, line, function, source in frames:
        lines += [f'  File "{file}", line {line}, in {function}', f"    {source}"]
    return "\n".join(prefix + line for line in lines + error.split("\n"))


def oom(text, *frames, kind="torch.OutOfMemoryError", prefix=""):
    frames = frames or (("/home/u/job/train.py", 90, "<module>", "main()"), ("/home/u/job/train.py", 61, "main", "y = model(x)"),
                        (SITE, 1751, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"))
    return traceback(*frames, error=f"{kind}: {text}", prefix=prefix)
