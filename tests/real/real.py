# SPDX-License-Identifier: MIT
"""Python packages from PyPI in environments of their own, and programs run in them with and without the agent."""
import contextlib
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import e2e

VENVS = os.environ.get("STORMLOG_REAL_VENVS", os.path.join(e2e.BUILD, "tests", "real"))
WATCH = os.path.join(e2e.BUILD, "tests", "agent", "hooks", "libwatch.so")
LIBRARY = os.path.basename(e2e.PRELOAD)
SETS = {
    "small": ["cuda-bindings==13.*", "numba-cuda", "nvidia-cuda-runtime==13.*", "numpy"],
    "cuda13": ["torch==2.14.1", "numpy", "cuda-bindings", "numba-cuda", "cupy-cuda13x", "nvidia-ml-py", "jax",
               "jax-cuda13-plugin", "jax-cuda13-pjrt"],
    "cupti": ["nvidia-cuda-cupti-cu12==12.9.*"],
    "ggml": ["pywhispercpp==1.5.1"],
    "pjrt": ["jax==0.10.2", "xla-cpu-pjrt==0.0.1"],
    "jax12": ["jax==0.10.2", "jax-cuda12-plugin==0.10.2", "jax-cuda12-pjrt==0.10.2"],
    "jax13": ["jax==0.10.2", "jax-cuda13-plugin==0.10.2", "jax-cuda13-pjrt==0.10.2"],
    "tensorflow": ["tensorflow-cpu"],
    "tensorflow-gpu": ["tensorflow==2.21.*"],
    "rmm": ["rmm-cu12==26.*", "cupy-cuda12x==14.*", "numpy"],
    "vllm": ["--no-deps", "vllm==0.33.0", "msgspec", "msgpack", "pyzmq"],
    "nccl": ["nvidia-nccl-cu13"],
    "loops": ["torch==2.13.0", "lightning", "transformers", "accelerate", "keras", "jax", "numpy", "ray", "dask[distributed]", "nbclient",
              "ipykernel"],
    "cpu": ["torch==2.13.0", "numpy"],
    "stormlog": ["stormlog==0.4.3", "jsonschema"],
}


def python_of(name):
    """The interpreter of that environment, which is made if need be; None if PyPI does not give the packages."""
    folder = os.path.join(VENVS, name)
    python, ready = os.path.join(folder, "bin", "python"), os.path.join(folder, "ready")
    wanted = "\n".join(SETS[name])
    if os.path.exists(ready):
        with open(ready) as file:
            if file.read() == wanted:
                return python
    try:
        # Take python3 of the PATH, for which PyPI has wheels: our own interpreter may be too old or too new.
        subprocess.run(["python3", "-m", "venv", "--clear", folder], check=True, capture_output=True, timeout=120)
        # fail soon where there is no network
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:", "--retries", "1", "--timeout", "30",
                        *SETS[name]], check=True, capture_output=True, timeout=300 if name in ("small", "cupti") else 3000)
    except (OSError, subprocess.SubprocessError) as error:
        print("no environment %s: %s" % (name, getattr(error, "stderr", None) or error), file=sys.stderr)
        return None
    with open(ready, "w") as file:
        file.write(wanted)
    return python


def driver_only():
    """A folder with the simulated driver and NVML and without a simulated runtime: packages bring the real one."""
    folder = os.path.join(e2e.BUILD, "tests", "real", "driver")
    os.makedirs(folder, exist_ok=True)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        link = os.path.join(folder, name)
        with contextlib.suppress(FileExistsError):
            os.symlink(os.path.relpath(os.path.join(e2e.SIM, name), folder), link)
    return folder


def recording(python, program, *arguments, machine="none", agent=True, watch=None, preload=(), **environment):
    """Runs a program of programs/.  machine: "none" has no driver, "driver" has the simulated driver, "all" also simulated runtimes."""
    preload = [WATCH] * bool(watch) + [e2e.PRELOAD] * agent + list(preload)
    environment.setdefault("LD_LIBRARY_PATH", {"none": "", "driver": driver_only(), "all": e2e.SIM}[machine])
    if watch:
        environment.update(WATCH_LOG=watch, WATCH_DLSYM=1)
        if agent:
            environment["WATCHED"] = e2e.PRELOAD
    if preload:
        environment["LD_PRELOAD"] = ":".join(preload)
    return e2e.Recording(python, "-B", os.path.join(HERE, "programs", program), *arguments, preload=False, code=None,
                         TF_CPP_MIN_LOG_LEVEL=2, **environment)


def said(run):
    """Exit code and both streams, without what differs between any two runs: times, process ids, addresses, folders."""
    text = [stream.decode(errors="replace").replace(run.folder, "FOLDER") for stream in (run.done.stdout, run.done.stderr)]
    return [run.done.returncode] + [re.sub(r"0x[0-9a-f]{6,}|\b[IWEF]\d{4} \d\d:\S+( +\d+)?|\b\d{10}\.\d+\b", "*", part) for part in text]


def wrappers():
    """{offset in the library: the export that the wrapper there stands for}."""
    found = {}
    for line in subprocess.run(["nm", e2e.PRELOAD], capture_output=True, text=True, check=True).stdout.splitlines():
        match = re.fullmatch(r"([0-9a-f]+) [tT] (\w+?)__[123]", line)
        if match:
            found[int(match.group(1), 16)] = match.group(2)
    return found


def answers(log):
    """The look-ups of a log, (name, how, flags, result, status, object, offset, export): sorted and without duplicates, since programs
    look up in several threads, and some repeat it for as long as they run."""
    with open(log) as lines:
        return sorted({tuple(line.split()) for line in lines})


def wrong_answers(before, after):
    """(sentences about look-ups with a wrong answer, exports that were handed out wrapped)."""
    stands_for, wrong, wrapped = wrappers(), [], set()
    rows = set(stands_for.values())
    asked = [[entry[:5] for entry in log] for log in (before, after)]
    if asked[0] != asked[1]:
        gone, new = set(asked[0]) - set(asked[1]), set(asked[1]) - set(asked[0])
        return ["other look-ups with us: %s instead of %s" % (sorted(new)[:8], sorted(gone)[:8])], wrapped
    for was, now in zip(before, after):
        export = was[0] if was[1] == "dlsym" else was[7]
        if now[5] != LIBRARY:
            if export in rows:
                wrong.append("not wrapped: %s" % " ".join(was))
            elif now != was:
                wrong.append("changed: %s, was %s" % (" ".join(now), " ".join(was)))
        elif stands_for.get(int(now[6], 16)) != export:
            wrong.append("wrapper of %s for %s" % (stands_for.get(int(now[6], 16)), " ".join(was)))
        else:
            wrapped.add(export)
    return wrong, wrapped


def find_hip():
    return sorted(glob.glob("/usr/lib/*/libamdhip64.so.5") + glob.glob("/opt/rocm*/lib/libamdhip64.so.5"))
