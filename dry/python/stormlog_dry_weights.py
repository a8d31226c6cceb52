# SPDX-License-Identifier: MIT
"""Weights without values, of which only the shapes count: `--weights shapes` reads no more of a checkpoint than its header, and a
checkpoint of transformers, timm or torchvision that is absent gets the shapes of the model's configuration.  A model that becomes
another type on the CPU does so without its values.  An absent dataset or file ends the job with a sentence that names it."""
import errno
import functools
import glob
import json
import os
import re
import struct
import sys
import tempfile

LARGE = 100_000  # elements, above which no value of a checkpoint is read
TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
         "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}
NAMES = {value: key for key, value in TYPES.items()}
shapes = os.environ.get("STORMLOG_DRY_WEIGHTS") == "shapes"


def say(text):
    if os.environ.get("STORMLOG_QUIET", "0") == "0":
        print("stormlog: DRY RUN: " + text, file=sys.stderr, flush=True)


@functools.lru_cache(None)
def header(path):
    """(facts of each tensor, whether the file ends before their bytes do)"""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        facts = json.loads(file.read(length))
    end = max((fact["data_offsets"][1] for name, fact in facts.items() if name != "__metadata__"), default=0)
    return facts, os.path.getsize(path) < 8 + length + end


class Slice:
    def __init__(self, opened, name):
        self.opened, self.name = opened, name

    def get_shape(self):
        return list(self.opened.facts[self.name]["shape"])

    def get_dtype(self):
        return self.opened.facts[self.name]["dtype"]

    def __getitem__(self, index):
        import torch

        whole = self.opened.get_tensor(self.name)
        part = whole[index]
        return part if whole.numel() <= LARGE or part.shape == whole.shape else torch.empty(part.shape, dtype=part.dtype, device=part.device)


class Opened:
    """In place of safetensors' safe_open, for files of which the header is enough."""

    def __init__(self, real, path, device):
        self.path, self.device = path, "cuda:%d" % device if isinstance(device, int) else device
        self.facts, self.cut = header(path)
        self.real = None if self.cut else real(path, framework="pt", device=device)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        pass

    def keys(self):
        return [name for name in self.facts if name != "__metadata__"]

    offset_keys = keys

    def metadata(self):
        return self.facts.get("__metadata__")

    def get_tensor(self, name):
        import torch

        fact, elements = self.facts[name], 1
        for side in fact["shape"]:
            elements *= side
        if self.real is not None and elements <= LARGE:
            return self.real.get_tensor(name)
        return torch.empty(fact["shape"], dtype=getattr(torch, TYPES[fact["dtype"]]), device=self.device)

    def get_tensors(self):
        return {name: self.get_tensor(name) for name in self.keys()}

    def get_slice(self, name):
        return Slice(self, name)


def with_safetensors(module):
    real = module.safe_open

    def safe_open(filename, framework="pt", device="cpu", **kwargs):
        path = os.fspath(filename)
        try:
            wanted = framework in ("pt", "torch", "pytorch") and (shapes or header(path)[1])
        except (OSError, ValueError, struct.error):
            wanted = False  # safetensors says why
        return Opened(real, path, device) if wanted else real(filename, framework=framework, device=device, **kwargs)

    module.safe_open = safe_open


def empty_checkpoint(cls, name, config, kwargs):
    """A folder with the configuration and a file that ends after its header; None: there is no configuration."""
    import torch

    if os.path.isdir(name) and [*glob.glob(os.path.join(name, "*.safetensors")), *glob.glob(os.path.join(name, "*.bin"))]:
        return None
    if not hasattr(config, "save_pretrained"):
        asked = {key: kwargs[key] for key in ("cache_dir", "revision", "subfolder") if key in kwargs}
        try:
            config = cls.config_class.from_pretrained(config or name, **asked)
        except Exception:  # transformers has said why
            return None
    with torch.device("meta"):
        model = cls(config)
    wanted = getattr(config, "dtype", None) or torch.float32
    facts, at = {"__metadata__": {"format": "pt"}}, 0
    for key, tensor in model.state_dict().items():
        dtype = wanted if tensor.is_floating_point() else tensor.dtype
        bytes_ = tensor.numel() * dtype.itemsize
        facts[key] = {"dtype": NAMES[str(dtype).replace("torch.", "")], "shape": list(tensor.shape), "data_offsets": [at, at + bytes_]}
        at += bytes_
    folder = tempfile.mkdtemp(dir=os.environ["STORMLOG_DRY"])
    config.save_pretrained(folder)
    text = json.dumps(facts).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
    return folder


def with_configurations(module):
    kind = getattr(module, "PreTrainedConfig", None) or module.PretrainedConfig
    real = kind.get_config_dict.__func__

    def get_config_dict(cls, name, **kwargs):
        try:
            return real(cls, name, **kwargs)
        except OSError as why:
            why.stormlog_absent = "the model %s: download its config.json and tokenizer; its weights are not needed" % name
            raise

    kind.get_config_dict = classmethod(get_config_dict)


def with_models(module):
    real = module.PreTrainedModel.from_pretrained.__func__

    def from_pretrained(cls, name, *args, config=None, **kwargs):
        try:
            return real(cls, name, *args, config=config, **kwargs)
        except OSError:
            folder = name is not None and empty_checkpoint(cls, os.fspath(name), config, kwargs)
            if not folder:
                raise
        say("the weights of %s are not here; their shapes are those of its config.json" % name)
        kwargs.pop("subfolder", None)
        return real(cls, folder, *args, config=config, **kwargs)

    module.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


def with_timm(module):
    real = module.load_pretrained

    def load_pretrained(model, *args, **kwargs):
        try:
            return real(model, *args, **kwargs)
        except OSError:
            say("timm's pretrained weights are not here; the model has its own shapes")

    module.load_pretrained = load_pretrained


def with_datasets(module):
    real = module.load_dataset

    @functools.wraps(real)
    def load_dataset(path, *args, **kwargs):
        try:
            return real(path, *args, **kwargs)
        except Exception as why:
            why.stormlog_absent = "the dataset %s" % path
            raise

    module.load_dataset = load_dataset


class Absent(dict):
    """The state of a model that torch.hub could not fetch."""


def refused(why):
    """The path that the job was not allowed to write; None: it failed otherwise."""
    if isinstance(why, OSError) and why.errno in (errno.EACCES, errno.EXDEV) and why.filename:
        readable = not os.path.exists(why.filename) or os.access(why.filename, os.R_OK)  # else it may be for reading
        return os.path.abspath(why.filename) if readable else None
    trace, path = why.__traceback__, None
    while trace and re.search("Permission denied|cannot be opened", str(why)):  # torch.save's writer in C++ does not say where; 2.6 not why
        if trace.tb_frame.f_code is torch_save:
            path = trace.tb_frame.f_locals.get("f")
        trace = trace.tb_next
    return os.path.abspath(path) if isinstance(path, (str, os.PathLike)) else None


def ends(hook):
    def end(kind, why, trace):
        hook(kind, why, trace)
        seen = why
        while seen is not None:
            absent = getattr(seen, "stormlog_absent", None) or (isinstance(seen, FileNotFoundError) and seen.filename)
            path = refused(seen)
            if path:
                print("stormlog: DRY RUN ended: it must not write %s: --allow-writes DIR opens a folder" % path, file=sys.stderr, flush=True)
                import stormlog_dry

                if stormlog_dry.say:
                    stormlog_dry.say(b"dry.refused", os.fsencode(path))
                return
            if type(seen).__name__ == "OfflineModeIsEnabled":
                print("stormlog: DRY RUN ended: hubs are offline in it, and the job uploads, or needs a file that is not on this machine", file=sys.stderr, flush=True)
                return
            if absent:
                print("stormlog: DRY RUN ended: not on this machine: %s" % absent, file=sys.stderr, flush=True)
                return
            seen = seen.__cause__ or seen.__context__

    return end


def begin(torch):
    global torch_save
    torch_save = torch.save.__code__
    sys.excepthook = ends(sys.excepthook)
    module, parameter = torch.nn.Module, torch.nn.Parameter
    fetch, take, apply, load, copy = torch.hub.load_state_dict_from_url, module.load_state_dict, module._apply, torch.load, torch.Tensor.copy_

    def load_state_dict_from_url(url, *args, **kwargs):
        try:
            return fetch(url, *args, **kwargs)
        except OSError:
            say("%s is not here; the model has its own shapes" % url)
            return Absent()

    def load_state_dict(self, state_dict, *args, **kwargs):
        return torch.nn.modules.module._IncompatibleKeys([], []) if isinstance(state_dict, Absent) else take(self, state_dict, *args, **kwargs)

    def of_another_type(fn, tensor):
        """A large tensor of the CPU that only becomes another type there has no values to convert."""
        lazy = isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin)  # it has no size yet
        if not lazy and tensor.device.type == "cpu" and tensor.numel() > LARGE and tensor.is_floating_point():
            probe = fn(torch.empty(0, dtype=tensor.dtype))
            if probe.device.type == "cpu" and probe.dtype != tensor.dtype:
                return torch.empty_like(tensor, dtype=probe.dtype)
        return fn(tensor)

    torch.hub.load_state_dict_from_url, module.load_state_dict = load_state_dict_from_url, load_state_dict
    if not os.environ.get("STORMLOG_DRY_INIT"):
        module._apply = lambda self, fn, *args, **kwargs: apply(self, functools.partial(of_another_type, fn), *args, **kwargs)
    if shapes:
        def load_lazily(file, *args, **kwargs):
            if isinstance(file, (str, os.PathLike)) and kwargs.get("mmap") is None:
                try:
                    return load(file, *args, **{**kwargs, "mmap": True})
                except RuntimeError:  # a file of before PyTorch 1.6
                    pass
            return load(file, *args, **kwargs)

        def copy_(self, source, *args, **kwargs):
            large = isinstance(self, parameter) and self.numel() > LARGE and self.device.type == "cpu" and source.device.type == "cpu"
            return self if large else copy(self, source, *args, **kwargs)

        torch.load, torch.Tensor.copy_ = load_lazily, copy_
