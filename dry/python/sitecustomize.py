# SPDX-License-Identifier: MIT
"""Python starts this in a dry run (dry/README.md), and with --holders: it waits for PyTorch, and then starts the program's own sitecustomize, if it has one."""
import importlib.abc
import importlib.machinery
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DRY = os.path.isdir(os.environ.get("STORMLOG_DRY", ""))  # else a real run asks which variables hold blocks


def refuse_unknown(error):
    """PyTorch imports a function that no table of the dry libraries has (dry/stubs), or a library that is neither there nor ours."""
    function = re.search(r"undefined symbol: ((?:cu|nccl|nvshmem|nvml)\w*)", str(error))
    library = re.search(r"(lib(?:cu|nccl|nv)[\w.]*): cannot open shared object file", str(error))
    if function or library:
        print("stormlog: DRY RUN ended: this PyTorch needs %s, which the dry libraries do not know; %s"
              % ((function or library)[1], "take a newer stormlog or an older PyTorch" if function else "pip install nvidia's package of it"),
              file=sys.stderr, flush=True)
        os._exit(124)


class WaitsFor(importlib.abc.MetaPathFinder):
    """Calls then(module) once a module of that name has been loaded, whoever loads it."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def exec_module(module):
                if self in sys.meta_path:  # not before: a program may only ask whether the module is there
                    sys.meta_path.remove(self)
                try:
                    load(module)
                except (ImportError, OSError) as error:
                    if DRY:
                        refuse_unknown(error)
                    raise
                self.then(module)

            spec.loader.exec_module = exec_module
        return spec


def with_torch(torch):
    sys.path.append(HERE)
    import stormlog_dry
    import stormlog_dry_ranks
    import stormlog_dry_weights

    stormlog_dry_ranks.begin(torch)
    stormlog_dry_weights.begin(torch)
    stormlog_dry.begin(torch)
    with_holders(torch)


def with_holders(torch):
    """Tells which variables hold the blocks (python/stormlog_native/holders.py)."""
    sys.path.append(HERE)
    import stormlog_holders

    stormlog_holders.begin(torch)


def with_criteria(criteria):
    import stormlog_dry

    stormlog_dry.with_criteria(criteria)


def with_callbacks(module):
    import stormlog_dry

    stormlog_dry.with_callbacks(module)


def with_early_stopping(module):
    import stormlog_dry

    stormlog_dry.with_early_stopping(module)


def with_safetensors(module):
    import stormlog_dry_end

    job = stormlog_dry_end.begin.job
    job.mark(module, "save_file", job.saves)


def with_boxes(boxes):
    import stormlog_dry_values

    stormlog_dry_values.begin.with_boxes()


def with_starter(api):
    import stormlog_dry_ranks

    api.launch_agent = stormlog_dry_ranks.launch


def with_jax(plugin):
    """JAX would go on without the device, on the CPU."""
    real = plugin.initialize

    def initialize():
        wanted = sys.modules["jax"].config.jax_platforms
        if wanted and "cuda" not in wanted and "gpu" not in wanted:
            return real()
        print("stormlog: DRY RUN ended: JAX (%s) carries NVIDIA's CUDA runtime inside itself, which accepts only a real device: "
              "run the job with JAX_PLATFORMS=cpu if JAX only helps it, or record it on a GPU" % plugin.__name__, file=sys.stderr, flush=True)
        os._exit(124)

    plugin.initialize = initialize


def with_wandb(module):
    """An argument goes before WANDB_MODE."""
    real = module.init
    module.init = lambda *args, **kwargs: real(*args, **{**kwargs, "mode": "disabled"})


def with_mlflow(module):
    """A call goes before MLFLOW_TRACKING_URI."""
    module.set_tracking_uri = lambda uri: None


def with_zero(module):
    """DeepSpeed asks whether rank 0 has the same numbers, and rank 0 is absent."""
    module.assert_ints_same_as_other_ranks = lambda ints: None


def chain():
    """The sitecustomize that ours hides."""
    for folder in sys.path:
        path = os.path.join(folder or ".", "sitecustomize.py")
        if os.path.abspath(folder or ".") != HERE and os.path.isfile(path):
            with open(path) as file:
                exec(compile(file.read(), path, "exec"), {"__name__": "sitecustomize", "__file__": path})
            return


if DRY:
    sys.meta_path.insert(0, WaitsFor("torch", with_torch))
    sys.meta_path.insert(0, WaitsFor("torch.distributed.launcher.api", with_starter))
    sys.meta_path.insert(0, WaitsFor("transformers.generation.stopping_criteria", with_criteria))
    sys.meta_path.insert(0, WaitsFor("safetensors.torch", with_safetensors))
    sys.meta_path.insert(0, WaitsFor("transformers.trainer_callback", with_callbacks))
    for package in "lightning.pytorch", "pytorch_lightning":
        sys.meta_path.insert(0, WaitsFor(package + ".callbacks.early_stopping", with_early_stopping))
    sys.meta_path.insert(0, WaitsFor("deepspeed.runtime.zero.utils", with_zero))
    sys.meta_path.insert(0, WaitsFor("wandb.sdk.wandb_init", with_wandb))
    sys.meta_path.insert(0, WaitsFor("mlflow.tracking._tracking_service.utils", with_mlflow))
    import stormlog_dry_server

    for name, then in (("flashinfer.jit.core", stormlog_dry_server.with_flashinfer), ("vllm.v1.worker.gpu_worker", stormlog_dry_server.with_worker),
                       ("vllm.v1.engine.core", stormlog_dry_server.with_engine), ("vllm.engine.arg_utils", stormlog_dry_server.with_arguments),
                       ("vllm.config.parallel", stormlog_dry_server.with_parallel),
                       ("vllm.distributed.device_communicators.shm_broadcast", stormlog_dry_server.with_queue)):
        sys.meta_path.insert(0, WaitsFor(name, then))
    for plugin in "jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13":
        sys.meta_path.insert(0, WaitsFor(plugin, with_jax))
    if not os.environ.get("STORMLOG_DRY_NO_VALUES"):
        sys.meta_path.insert(0, WaitsFor("torchvision.ops.boxes", with_boxes))
    import stormlog_dry_weights

    for name, then in (("safetensors", stormlog_dry_weights.with_safetensors), ("transformers.modeling_utils", stormlog_dry_weights.with_models),
                       ("transformers.configuration_utils", stormlog_dry_weights.with_configurations),
                       ("timm.models._builder", stormlog_dry_weights.with_timm), ("datasets.load", stormlog_dry_weights.with_datasets)):
        sys.meta_path.insert(0, WaitsFor(name, then))
    if not os.environ.get("STORMLOG_DRY_INIT"):
        import stormlog_dry_init

        sys.meta_path.insert(0, WaitsFor("torch.nn.init", stormlog_dry_init.skip))
elif os.environ.get("STORMLOG_HOLDERS", "0") not in ("", "0"):
    sys.meta_path.insert(0, WaitsFor("torch", with_holders))
chain()
