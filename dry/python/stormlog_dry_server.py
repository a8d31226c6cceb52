# SPDX-License-Identifier: MIT
"""Notes what vLLM's engine finds at its start: its budget, the memory that the profile run leaves for the cache, and the longest context for it.
The notes are metadata of the trace (analyzer/report/server.c).  Of tensor-parallel workers one runs."""
import ctypes
import logging
import os
import sys
import time

CODE = 200 << 20    # bytes that a card may load beside its context in the profile run: the widest span of dry/cards.def
GRAPHS = 300 << 20  # bytes that captured graphs may take in the driver: public logs have 130 to 270 MiB more than a dry run
WORKERS = 2 << 30   # bytes that NCCL and all-reduces of more than one worker may take: public logs of 2 and 4 H100 have 1.8 GiB more than of one
RING, LINKED = (48 << 20, 288 << 20), ((8, 0), (9, 0), (10, 0))  # connections that NCCL may make later than dry: by PCI, by NVLink of these cards (dry/nccl.c)
joined = 0.0        # when the workers' group was there
unsure = 0          # bytes of the budget that other workers' part may take


class Nothing:
    """A module of kernels that nvcc has not compiled."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def with_flashinfer(module):
    """FlashInfer compiles with nvcc at first use. The buffers are made in Python before."""
    module.JitSpec.build_and_load = lambda self, *args, **kwargs: Nothing()


def tell_user(text):
    print("stormlog: DRY RUN: " + text, file=sys.stderr, flush=True)


def with_arguments(module):
    """A folder with a configuration alone is enough, by two options of vLLM's."""
    real = module.EngineArgs.create_model_config

    def create(self, *args, **kwargs):
        files = os.listdir(self.model) if os.path.isdir(self.model) else ["token", "model.safetensors"]
        lacks = [("weights", "--load-format dummy")] if self.load_format == "auto" and not any(name.endswith((".safetensors", ".bin", ".pt")) for name in files) else []
        if not (self.skip_tokenizer_init or self.tokenizer or any("token" in name for name in files)):
            lacks.append(("tokenizer", "--skip-tokenizer-init"))
        if lacks:
            tell_user("%s has no %s: add %s" % (self.model, " and no ".join(what for what, _ in lacks), " ".join(option for _, option in lacks)))
        return real(self, *args, **kwargs)

    module.EngineArgs.create_model_config = create


def with_parallel(module):
    """Workers of one server are alike, so the first runs alone, as a rank whose others are absent (stormlog_dry_ranks.py)."""
    real = module.ParallelConfig.__post_init__

    def begun(self):
        workers = self.tensor_parallel_size
        if self.pipeline_parallel_size * self.data_parallel_size > 1:
            tell_user("ended: stages and replicas of a server are not sized: take --tensor-parallel-size alone, or one replica, which has cards of its own")
            os._exit(124)
        if workers > 1:
            tell_user("of %d workers the first runs, and the others are taken to be like it" % workers)
            self.distributed_executor_backend = "external_launcher"
            os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(workers), LOCAL_WORLD_SIZE=str(workers), STORMLOG_DRY_DEVICES=str(workers))
            os.environ.setdefault("MASTER_ADDR", "localhost")
            os.environ.setdefault("MASTER_PORT", "29500")
        real(self)

    module.ParallelConfig.__post_init__ = begun


def with_queue(module):
    """No reader of an absent worker is waited for."""
    module.MessageQueue.wait_until_ready = lambda self: None


def say(**facts):
    import stormlog_dry

    tell = stormlog_dry.metadata()
    for name, value in facts.items() if tell else ():
        tell(b"dry.server." + name.encode(), str(value).encode()[:190])


def with_worker(module):
    os.environ.setdefault("VLLM_DEEP_GEMM_WARMUP", "skip")  # it compiles a thousand kernels with nvcc, after the cache is sized
    real, join = module.Worker.determine_available_memory, module.init_worker_distributed_environment

    def joins(*args, **kwargs):
        global joined
        join(*args, **kwargs)
        joined = time.time()

    def determine(self):
        snapshot = self.init_snapshot
        if fuses(self.vllm_config):
            ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(fused(self.vllm_config)[0]))
        available = real(self)
        if self.parallel_config.tensor_parallel_size > 1:
            note_workers(self.vllm_config, snapshot.timestamp < joined)
        say(budget=int(self.requested_memory), free=int(snapshot.free_memory), total=int(snapshot.total_memory),
            weights=int(getattr(self.model_runner, "model_memory_usage", 0)),
            graphs=int(getattr(self, "cudagraph_memory_estimate", 0) or 0))
        return available

    module.Worker.determine_available_memory, module.init_worker_distributed_environment = determine, joins


def fuses(config):
    """FlashInfer's all-reduce with the norm behind it, of more than one worker: its kernels are not compiled dry, so vLLM goes on without them and their memory."""
    passes = config.compilation_config.pass_config
    return config.parallel_config.tensor_parallel_size > 1 and not config.model_config.enforce_eager and passes.fuse_allreduce_rms


def fused(config):
    """Its bytes, at least and at most: by multicast, and without (flashinfer 0.7, comm/trtllm_mnnvl_ar.py and trtllm_ar.py)."""
    workers, width = config.parallel_config.tensor_parallel_size, 2 * config.model_config.get_hidden_size()
    most = config.compilation_config.pass_config.flashinfer_max_size(workers) or 0
    message = min(most // width, config.scheduler_config.max_num_batched_tokens) * width
    return 3 * 2 * message, 4 * workers * message


def note_workers(config, counts):
    """From its pull request 25359 on, vLLM makes the group before its first look at the free memory.  counts: this one looks first, so its budget has the group."""
    global unsure
    if counts:
        unsure = WORKERS
        return say(wide="this vLLM counts NCCL's memory")
    from vllm.platforms import current_platform

    unsure = RING[current_platform.get_device_capability() in LINKED] * (1 if config.parallel_config.tensor_parallel_size == 2 else 2)  # and the switch
    if fuses(config):
        least, most = fused(config)
        unsure += most - least
        say(wide="FlashInfer's all-reduce takes more on cards without multicast")


def plan(configure, config, specs, *more, **named):
    """By vLLM's own plan for a card of 1 PiB: the bytes of a block of the cache, and a function from tokens to the blocks of a sequence."""
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config as concurrency

    model, cache = config.model_config, config.cache_config
    blocks = cache.num_gpu_blocks_override
    logging.disable(logging.INFO)
    cache.num_gpu_blocks_override = None
    try:
        pool = configure(config, specs, [1 << 50] * len(specs), *more, **named)[0]
    finally:
        cache.num_gpu_blocks_override = blocks
        logging.disable(logging.NOTSET)

    def blocks_of(tokens):
        before, model.max_model_len = model.max_model_len, tokens
        try:
            return round(pool.num_blocks / concurrency(config, pool))
        finally:
            model.max_model_len = before

    return (1 << 50) // pool.num_blocks, blocks_of


def note_cache(config, available, block, blocks_of):
    """For one sequence of the longest context, and the longest one that there is memory for: at least, and at most.  One block is vLLM's own."""
    workers, asked = config.parallel_config.tensor_parallel_size, config.model_config.max_model_len
    margin = CODE + (0 if config.model_config.enforce_eager else GRAPHS) + unsure
    room = min(min(available) // block, config.cache_config.num_gpu_blocks_override or 1 << 50)
    least = max(min(available) - margin, 0) // block

    def longest(blocks, sequences=1):
        low, high = 0, asked
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if sequences * blocks_of(middle) < blocks else (low, middle - 1)
        return low

    def tokens(blocks):
        return int(blocks / blocks_of(asked) * asked)

    say(workers=workers, cache=room * block, cache_low=least * block, context=asked, needs=(blocks_of(asked) + 1) * block, tokens=tokens(room), tokens_low=tokens(least),
        longest=longest(room), longest_low=longest(least), longest_of_4=longest(least, 4), utilization=config.cache_config.gpu_memory_utilization)


def with_engine(module):
    configure, begin = module.get_kv_cache_configs, module.EngineCore.__init__

    def configured(config, specs, available, *more, **named):
        planned = any(specs) and plan(configure, config, specs, *more, **named)
        try:
            return configure(config, specs, available, *more, **named)  # --max-model-len -1 is a number after it
        finally:
            if planned:
                note_cache(config, available, *planned)

    def begun(self, *args, **kwargs):
        import vllm

        say(name="vLLM " + vllm.__version__)
        try:
            begin(self, *args, **kwargs)
        except Exception as error:
            say(error=" ".join(str(error).split()))
            raise
        say(up=1)

    module.get_kv_cache_configs, module.EngineCore.__init__ = configured, begun
