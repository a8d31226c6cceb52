# SPDX-License-Identifier: MIT
"""Steps and phases of a training loop that somebody else wrote: PyTorch Lightning, transformers and Accelerate, Keras, any iterable.

    trainer = lightning.Trainer(callbacks=[stormlog_native.callbacks.lightning()])

Each makes the ranges step_N and, where the framework has hooks for them, forward, backward and optimizer.  A framework is imported
only when its callback is made.  Without the recorder a callback does nothing."""
from typing import Any, Iterable, Iterator, Optional, TypeVar

from . import agent

__all__ = ["Phases", "keras", "lightning", "steps", "transformers"]

Item = TypeVar("Item")


class Phases:
    """A numbered step and the phase inside it.  At most one step and one phase are open; a step left by an exception ends when the next begins."""

    def __init__(self, name: str = "step") -> None:
        self.name = name
        self._step = self._phase = False

    def step(self, number: int) -> None:
        self.end_step()
        agent.push(self.name, number)
        self._step = True

    def phase(self, name: Optional[str]) -> None:
        """Begin a phase.  None: end the open one without beginning another."""
        if self._phase:
            agent.pop()
        self._phase = name is not None and self._step
        if name is not None and self._step:
            agent.push(name)

    def end_step(self) -> None:
        self.phase(None)
        if self._step:
            agent.pop()
        self._step = False


def steps(items: Iterable[Item], name: str = "step", first: int = 0) -> Iterator[Item]:
    """for batch in steps(loader): each iteration is an entry of step_N and includes fetching the next batch.  For loops
    of JAX, Accelerate or plain PyTorch."""
    phases = Phases(name)
    try:
        for number, item in enumerate(items, first):
            phases.step(number)
            yield item
    finally:
        phases.end_step()


def lightning() -> Any:
    """A callback of PyTorch Lightning's Trainer."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    class Stormlog(Callback):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.train, self.validation = Phases(), Phases("validation")

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            self.train.step(trainer.fit_loop.total_batch_idx)
            self.train.phase("forward")

        def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
            self.train.phase("backward")

        def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
            self.train.phase(None)

        def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
            self.train.phase("optimizer")

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            self.train.end_step()

        def on_validation_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            self.validation.step(batch_idx)

        def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
                                    dataloader_idx: int = 0) -> None:
            self.validation.end_step()

    return Stormlog()


def transformers() -> Any:
    """A callback of transformers' Trainer, which runs on Accelerate."""
    from transformers import TrainerCallback

    class Stormlog(TrainerCallback):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.phases = Phases()

        def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self.phases.step(state.global_step)
            self.phases.phase("forward and backward")

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self.phases.phase("optimizer")

        def on_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self.phases.phase(None)

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self.phases.end_step()

    return Stormlog()


def keras() -> Any:
    """A callback of Keras' fit and evaluate, of any backend."""
    try:
        from keras.callbacks import Callback
    except ImportError:
        from tensorflow.keras.callbacks import Callback

    class Stormlog(Callback):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.train, self.validation, self.seen = Phases(), Phases("validation"), 0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.train.step(self.seen)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.train.end_step()
            self.seen += 1

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.validation.step(batch)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            self.validation.end_step()

    return Stormlog()
