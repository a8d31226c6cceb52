# SPDX-License-Identifier: MIT
"""use_callbacks.py FRAMEWORK: five steps of a real framework's own loop.  Step n takes n + 1 MiB in the forward pass and
frees them in the backward pass, which takes 16 MiB for a moment, or at the step's end if the loop has none."""
import ctypes
import sys

from stormlog_native import callbacks

cudart = ctypes.CDLL("libcudart.so.13")
STEPS = 5
seen = 0


def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p


def forward():
    global seen
    seen += 1
    return take(seen)


def give(p):
    assert cudart.cudaFree(p) == 0


def torch_model():
    import torch

    class Passes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.block = forward()
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            give(take(16))
            give(ctx.block)
            return gradient
    return torch, torch.nn.Linear(4, 1), Passes


def lightning():
    torch, layer, passes = torch_model()
    import lightning
    torch.cuda.device_count = lambda: 0  # NVIDIA's own runtime does not take the simulated device

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def training_step(self, batch, index):
            return passes.apply(self.layer(batch[0])).mean()

        def validation_step(self, batch, index):
            give(take(2))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(STEPS, 4)))
    lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False, num_sanity_val_steps=0, callbacks=[callbacks.lightning()]).fit(Model(), data, data)
    print("validation", STEPS)


def transformers():
    torch, layer, passes = torch_model()
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, labels):
            return {"loss": passes.apply(self.layer(x)).mean()}
    data = [{"x": torch.ones(4), "labels": torch.ones(1)} for _ in range(STEPS)]
    settings = TrainingArguments("out", per_device_train_batch_size=1, num_train_epochs=1, report_to=[], use_cpu=True,
                                 save_strategy="no", disable_tqdm=True, remove_unused_columns=False)
    Trainer(model=Model(), args=settings, train_dataset=data, callbacks=[callbacks.transformers()]).train()


def accelerate():
    torch, layer, passes = torch_model()
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(STEPS, 4)))
    layer, optimizer, data = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), 0.1), data)
    for (batch,) in callbacks.steps(data):
        accelerator.backward(passes.apply(layer(batch)).mean())
        optimizer.step()


def keras():
    import keras
    import numpy

    class Layer(keras.layers.Layer):
        def call(self, x):
            give(forward())
            return x
    model = keras.Sequential([keras.layers.Input((4,)), Layer(), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)

    class Count(keras.callbacks.Callback):
        """Sets `seen` to the batch, because Keras also calls the layer to learn its shape."""

        def on_train_batch_begin(self, batch, logs=None):
            global seen
            seen = batch
    data = numpy.ones((STEPS, 4), "float32")
    model.fit(data, numpy.ones((STEPS, 1)), batch_size=1, epochs=1, verbose=0, shuffle=False, callbacks=[Count(), callbacks.keras()])


def jax():
    import jax

    @jax.jit
    def update(x):
        return x * 0.9
    x = jax.numpy.ones(4)
    for _ in callbacks.steps(range(STEPS)):
        block = forward()
        x = update(x).block_until_ready()
        give(block)


globals()[sys.argv[1]]()
