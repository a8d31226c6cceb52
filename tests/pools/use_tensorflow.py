# SPDX-License-Identifier: MIT
"""Tensors on the CPU, whose allocator TF_CPU_ALLOCATOR_USE_BFC=1 makes the one of devices.  Prints their bytes."""
import tensorflow

a, b = tensorflow.fill([512, 1024], 1.5), tensorflow.fill([1024, 256], 2.5)
c = tensorflow.linalg.matmul(a, b)
for tensor in (a, b, c):
    print(tensor.shape.num_elements() * 4)
