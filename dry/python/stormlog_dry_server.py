# SPDX-License-Identifier: MIT
"""What vLLM's engine finds at its start: its budget, what the profile run leaves for the cache, and how long a context that holds.
The notes are metadata of the trace (analyzer/report/server.c)."""

CODE = 200 << 20    # bytes that a card may load beside its context in the profile run: the widest span of dry/cards.def
GRAPHS = 200 << 20  # bytes that captured graphs may take in the driver: with CODE, above the largest difference to a public ledger


class Nothing:
    """A module of kernels that nvcc has not compiled."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def with_flashinfer(module):
    """FlashInfer compiles with nvcc at first use. The buffers are made in Python before."""
    module.JitSpec.build_and_load = lambda self, *args, **kwargs: Nothing()


def say(**facts):
    import stormlog_dry

    tell = stormlog_dry.metadata()
    for name, value in facts.items() if tell else ():
        tell(b"dry.server." + name.encode(), str(value).encode()[:190])


def with_worker(module):
    real = module.Worker.determine_available_memory

    def determine(self):
        available = real(self)
        snapshot = self.init_snapshot
        say(budget=int(self.requested_memory), free=int(snapshot.free_memory), total=int(snapshot.total_memory),
            weights=int(getattr(self.model_runner, "model_memory_usage", 0)),
            graphs=int(getattr(self, "cudagraph_memory_estimate", 0) or 0))
        return available

    module.Worker.determine_available_memory = determine


def note_cache(config, specs, available):
    """For one sequence of the longest context, and the longest one that there is memory for: at least, and at most."""
    model, asked = config.model_config, config.model_config.max_model_len
    margin = CODE + (0 if model.enforce_eager else GRAPHS)

    def needs(tokens):
        model.max_model_len = tokens
        try:
            return max(sum(spec.max_memory_usage_bytes(config) for spec in one.values()) for one in specs)
        finally:
            model.max_model_len = asked

    def longest(room):
        low, high = 0, asked
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if needs(middle) <= room else (low, middle - 1)
        return low

    room = min(available)
    least = max(room - margin, 0)
    say(cache=room, cache_low=least, context=asked, needs=needs(asked), longest=longest(room), longest_low=longest(least),
        sequences=config.scheduler_config.max_num_seqs, utilization=config.cache_config.gpu_memory_utilization)


def with_engine(module):
    configure, begin = module.get_kv_cache_configs, module.EngineCore.__init__

    def configured(config, specs, available, *more, **named):
        if any(specs):
            note_cache(config, specs, available)
        return configure(config, specs, available, *more, **named)

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
