# SPDX-License-Identifier: MIT
"""Tensors on the CPU, where TF_CPU_ALLOCATOR_USE_BFC=1 selects the allocator of devices.  Prints their bytes and their ops."""
import tensorflow

a, b = tensorflow.fill([512, 1024], 1.5), tensorflow.fill([1024, 256], 2.5)
c = tensorflow.linalg.matmul(a, b)
for tensor, op in ((a, "Fill"), (b, "Fill"), (c, "MatMul")):
    print(tensor.shape.num_elements() * 4, op, "output")


@tensorflow.function
def graph(x):
    with tensorflow.name_scope("layer_1"):
        return tensorflow.tanh(x)


print(graph(a).shape.num_elements() * 4, "layer_#/Tanh", "output")
