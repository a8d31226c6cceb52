# SPDX-License-Identifier: MIT
"""CuPy: its pool, its pinned pool, its stream-ordered allocator, a matrix product and a Fourier transform."""
import cupy

from finish import finish

pool = cupy.get_default_memory_pool()
arrays = [cupy.ones((1 << 20) * n, dtype=cupy.uint8) for n in (1, 5, 40)]
product = cupy.ones((512, 512), dtype=cupy.float32) @ cupy.ones((512, 512), dtype=cupy.float32)
spectrum = cupy.fft.fft(cupy.arange(4096, dtype=cupy.complex64))
pinned = cupy.cuda.alloc_pinned_memory(3 << 20)
used, held = pool.used_bytes(), pool.total_bytes()
cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
stream_ordered = cupy.empty(9 << 20, dtype=cupy.uint8)
cupy.cuda.Device().synchronize()
finish(cupy=cupy.__version__, used_bytes=used, held_bytes=held, sum=float(product.sum()))
