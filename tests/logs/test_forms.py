#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_forms.py stormlog-analyze: every form, printed by its library's own format, has its figures, its verdict and its cause; and prefixes, encodings
and packings change none of it."""
import gzip
import json
import lzma
import os
import subprocess
import sys
import tempfile

from printed import GIB, MIB, SITE, oom, torch, torch_1, torch_async, traceback

ANALYZE = os.path.abspath(sys.argv[1])
FAILED = []
LOOK = sys.argv[2:]


def analyze(content, *options, name="job.log"):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, one in enumerate(content if isinstance(content, list) else [content]):
            paths.append(os.path.join(folder, f"rank{i}.log" if isinstance(content, list) else name))
            with open(paths[-1], "wb") as file:
                file.write(one if isinstance(one, bytes) else one.encode())
        run = subprocess.run([ANALYZE, *options, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, COLUMNS="80"))
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def near(got, want):
    return got == want or (isinstance(got, int) and isinstance(want, (int, float)) and abs(got - want) <= 0.006 * GIB)


def case(name, content, says=(), never=(), ledger=None, **wanted):
    if LOOK and name not in LOOK:
        return
    code, out, err = analyze(content, "--json")
    log = json.loads(out)["log"] if code == 0 else {}
    wrong = [f"{key} {log.get(key)!r}, not {value!r}" for key, value in wanted.items() if not near(log.get(key), value)]
    wrong += [f"ledger {key} {(log.get('ledger') or {}).get(key)}, not {value}" for key, value in (ledger or {}).items() if not near((log.get("ledger") or {}).get(key), value)]
    code, out, err = analyze(content)
    flat = " ".join(out.split())
    wrong += [f"does not say {word!r}" for word in says if word not in flat] + [f"says {word!r}" for word in never if word in flat]
    wrong += [f"{len(out.splitlines())} lines"] if len(out.splitlines()) > 24 else []
    wrong += [f"wide: {line}" for line in out.splitlines() if len(line) > 80]
    if LOOK:
        print(out, json.dumps(log))
    if wrong or code:
        FAILED.append(name)
        print(f"{name}: {'; '.join(wrong)} {err}")


CARD = 23.64 * GIB
FULL = dict(total_bytes=CARD, free_bytes=1.41 * GIB, allocated_bytes=21.38 * GIB)


def full(**more):
    return torch(**dict(dict(asked=int(2.25 * GIB), device=0, total=CARD, free=1.41 * GIB, allocated=21.38 * GIB, unallocated=391 * MIB, this=22.22 * GIB), **more))


# PyTorch
case("torch", oom(full()), form="torch", verdict="out_of_memory", cause="card_full_by_own_tensors", asked_bytes=2.25 * GIB, process_bytes=22.22 * GIB, count=1, device=0,
     line="/home/u/job/train.py:61", says=["train.py:61 asks 2.25 GiB, 1.41 GiB are free", "would not help"], **FULL)
case("torch 2.1, a process of a container", oom(full(word="capacty", this=None, others=[(99, 22.22 * GIB)]), kind="torch.cuda.OutOfMemoryError"), form="torch", process_bytes=22.22 * GIB,
     others=[], cause="card_full_by_own_tensors", never=["99"])
case("a neighbour and a container", oom(full(asked=GIB, allocated=8 * GIB, unallocated=100 * MIB, free=200 * MIB, this=None, others=[(7, 8.4 * GIB), (8, 14.6 * GIB)])), process_bytes=8.4 * GIB,
     cause="neighbour_processes", says=["process 8 holds 14.6 GiB"])
case("private pools", oom(full(private=96 * MIB)), reserved_unallocated_bytes=391 * MIB)
case("a limit", oom(full(asked=4 * GIB, free=12 * GIB, allowed=11 * GIB, allocated=9.5 * GIB, this=10.4 * GIB)), cause="own_limit_fraction", says=["set_per_process_memory_fraction", "11.0 GiB"])
case("larger than the card", oom(full(asked=144 * GIB)), cause="request_larger_than_card", says=["144 GiB", "23.6 GiB"])
case("in pieces", oom(full(asked=4 * GIB, allocated=12 * GIB, unallocated=8 * GIB, free=2 * GIB)), cause="reserved_but_fragmented", says=["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "pieces"])
case("a small request of a full card is not in pieces", oom(full(asked=20 * MIB, free=12 * MIB)), cause="card_full_by_own_tensors", says=["would not help"])
case("0 bytes free", oom(full(free=0)), free_bytes=0)
case("more than the card", oom(full(allocated=31 * GIB, free=0, this=32 * GIB), ("C:\\ai\\train.py", 61, "main", "y = model(x)"), ("C:\\Python311\\Lib\\site-packages\\torch\\x.py", 3, "f", "g()")),
     cause="windows_spill", line="C:\\ai\\train.py:61", says=["Windows"])
case("six lines of the program, 60 of a library", oom(full(), ("/home/u/job/run.py", 5, "<module>", "main()"), *[("/home/u/job/lost.py", i, "f", "g()") for i in (6, 7)],
     ("/home/u/job/kept.py", 8, "fit", "step()"), *[(SITE, i, "f", "g()") for i in range(60)], ("/home/u/job/step.py", 9, "step", "loss.backward()"), ("/home/u/job/op.py", 10, "op", "y()"),
     (SITE, 1, "f", "g()")), line="/home/u/job/op.py:10", says=["run.py:5", "kept.py:8", "step.py:9", "that the backward pass"], never=["lost.py"])
case("asleep", oom(full(allocated=40 * GIB, free=0, this=None)), cause="unknown", says=["23.6 GiB"])
case("old", oom(torch_1(2 * GIB, 1, 14.75 * GIB, 12.37 * GIB, 1.04 * GIB, 12.91 * GIB), kind="RuntimeError"), form="torch_old", device=1, asked_bytes=2 * GIB, reserved_unallocated_bytes=0.54 * GIB,
     process_bytes=None, cause="card_full_by_own_tensors")
case("older", oom(torch_1(20 * MIB, 0, 10.92 * GIB, 10.1 * GIB, 14 * MIB, 10.2 * GIB, cached=True), kind="RuntimeError"), form="torch_old", asked_bytes=20 * MIB, free_bytes=14 * MIB,
     reserved_unallocated_bytes=102.4 * MIB)
case("old with a limit", oom(torch_1(2 * GIB, 0, 14.75 * GIB, 5 * GIB, 9 * GIB, 5.1 * GIB, allowed=6 * GIB), kind="RuntimeError"), form="torch_old", cause="own_limit_fraction")
case("async", oom(torch_async(640 * MIB, 0, 11.59 * GIB, 9.43 * GIB, 7 * MIB, 2**64)), form="torch_async", asked_bytes=640 * MIB, allocated_bytes=9.43 * GIB, free_bytes=7 * MIB, total_bytes=11.59 * GIB,
     cause="card_full_by_own_tensors", never=["17179869184"])
case("HIP", oom(torch(GIB, 0, 191.98 * GIB, 500 * MIB, 180 * GIB, 2 * GIB, what="HIP"), kind="torch.OutOfMemoryError"), form="hip", total_bytes=191.98 * GIB, says=["180 GiB"])
case("1EB", oom("Tried to allocate more than 1EB memory.", kind="RuntimeError"), form="torch", asked_bytes=None, cause="unknown")
case("no figure", oom("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                      kind="torch.AcceleratorError"), form="figureless", cause="figureless", asked_bytes=None, says=["no figure"])
case("weights", oom(full(), ("/srv/app.py", 12, "<module>", "m = Model().to('cuda')"), (SITE, 1341, "to", "return self._apply(convert)"), (SITE, 1327, "convert", "return t.to(")),
     cause="weights_do_not_fit", line="/srv/app.py:12", says=["bfloat16"], never=["batch"])
case("pinned", oom("CUDA error: out of memory", ("/srv/load.py", 12, "fetch", "x = x.pin_memory()"), kind="RuntimeError"), verdict="host_memory", cause="pinned_or_host_memory")

case("no number behind GPU", oom(full().replace("GPU 0 has", "GPU  has")), form="torch", device=None, **FULL)
case("DirectML", oom("Could not allocate tensor with 1073741824 bytes. There is not enough GPU video memory available!", kind="RuntimeError"), form="torch", asked_bytes=GIB)
for name, text in (("CTranslate2", "RuntimeError: CUDA failed with error out of memory"), ("LMDeploy", "  what():  [TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/allocator.h:246"),
                   ("Vulkan", "InternalError: Check failed: (__e == VK_SUCCESS) is false: Vulkan Error, code=-2: VK_ERROR_OUT_OF_DEVICE_MEMORY"), ("SYCL", "Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"),
                   ("ExLlamaV2", "RuntimeError: Insufficient VRAM for model and cache")):
    case(name, text, form="figureless", verdict="out_of_memory", cause="figureless", asked_bytes=None)
case("a quantized model that is larger than the card", oom("Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.", kind="ValueError"),
     verdict="out_of_memory", cause="weights_do_not_fit", asked_bytes=None, line="/home/u/job/train.py:61", says=["device_map"], never=["bfloat16"])

case("of Windows, old", oom(torch_1(2 * GIB, 0, 8 * GIB, 19.84 * GIB, 0, 22.26 * GIB)), cause="windows_spill")
case("refused though free, and cached", oom(torch(2 * MIB, 7, 288 * GIB, 203 * GIB, 68 * GIB, 15 * GIB, what="HIP")), form="hip", cause="unknown", says=["203 GiB"])
case("refused though free", oom(torch(432 * MIB, 0, 15.92 * GIB, 7.12 * GIB, 8.08 * GIB, 321 * MIB, what="HIP")), form="hip", cause="unknown", says=["more than the 432 MiB"])
case("held by nobody in the list", oom(full(asked=GIB, free=300 * MIB, allocated=6 * GIB, unallocated=MIB, this=6.5 * GIB)), cause="neighbour_processes", others=[], says=["16.8 GiB of this card's 23.6 GiB"])
case("a pin thread", oom("CUDA error: out of memory", (SITE, 37, "do_one_step", "data = pin_memory(data, device)"), (SITE, 63, "pin_memory", "return type(data)"), kind="RuntimeError"), verdict="host_memory")

# Servers
VLLM = "/usr/lib/python3/dist-packages/vllm/"
LOADED = "(EngineCore_DP0 pid=126) INFO 10-05 08:23:19 [gpu_model_runner.py:3338] Model loading took 27.51 GiB memory and 12.1 seconds\n"
case("vllm budget", "ValueError: Free memory on device (3.27/15.98 GiB) on startup is less than desired GPU memory utilization (0.9, 14.39 GiB). Decrease GPU memory utilization or reduce GPU memory "
     "used by other processes.", form="vllm_budget", verdict="does_not_start", cause="server_budget_over_free", asked_bytes=14.39 * GIB, free_bytes=3.27 * GIB, total_bytes=15.98 * GIB, device=None,
     says=["0.18", "nvidia-smi"])
case("vllm cache", LOADED + "(EngineCore_DP0 pid=126) ERROR 10-05 08:23:56 [core.py:842] ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (9.31 GiB). Based on the available memory, the estimated maximum model length is 76256.", form="vllm_cache", asked_bytes=16 * GIB,
     ledger={"weights": 27.51 * GIB, "kv_cache": 9.31 * GIB}, says=["--max-model-len 76256", "131 072", "fp8, which needs 8.00 GiB of 9.31 GiB: full length fits"])
case("vllm cache of V0", "Loading model weights took 14.99 GB\nmodel weights take 14.99GiB; non_torch_memory takes 0.05GiB; PyTorch activation peak memory takes 0.22GiB; the rest of the memory reserved for "
     "KV Cache is 4.60GiB.\nValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (37696). Try increasing `gpu_memory_utilization` or "
     "decreasing `max_model_len` when initializing the engine.", form="vllm_cache", asked_bytes=None, ledger={"activations": 0.22 * GIB, "non_torch": 0.05 * GIB, "weights": 14.99 * GIB, "kv_cache": 4.6 * GIB},
     says=["--max-model-len 37696"])
case("vllm no cache", LOADED + "Available KV cache memory: -3.12 GiB\nValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
     form="vllm_cache", verdict="does_not_start", says=["--gpu-memory-utilization"], ledger={"kv_cache": None})
case("vllm sampler", "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the "
     "engine.", form="vllm_sampler", says=["--max-num-seqs 256"])
case("vllm worker", "\n".join(oom(full(device=d), prefix=f"(Worker_TP{d} pid={200 + d}) ERROR 10-05 08:23:5{3 - d} [multiproc_executor.py:671] ") for d in (0, 1)), form="torch", count=2, rank=1, device=1)
case("vllm serving", "Initializing a V1 LLM engine (v0.11.2)\nINFO:     Application startup complete.\n" + oom(full()), verdict="out_of_memory", form="torch")
case("vllm, a fatal error", "vLLM API server version 0.11.2\nERROR [core.py:718] EngineCore encountered a fatal error.\n" + traceback((VLLM + "v1/engine/core.py", 709, "run", "self.run_busy_loop()"), error="torch.OutOfMemoryError: " + full()),
     verdict="out_of_memory", line=None, says=["--gpu-memory-utilization"])
case("vllm wakes up", traceback(("/home/u/rl/rollout.py", 91, "begin", "self.llm.wake_up()"), (VLLM + "worker/worker.py", 140, "wake_up", "allocator.wake_up()"),
                                error="RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"), form="figureless", verdict="out_of_memory", line="/home/u/rl/rollout.py:91")
case("vllm loading", "Initializing a V1 LLM engine (v0.11.2)\n" + oom(full()), verdict="does_not_start", form="torch")
case("vllm log", LOADED + "Free memory on device (139.21/139.81 GiB) on startup. Desired GPU memory utilization is (0.9, 125.83 GiB). Actual usage is 74.28 GiB for weight, 5.58 GiB for peak activation, "
     "1.38 GiB for non-torch memory, and 2.37 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=45175492096` to fit\nINFO:     Application startup complete.",
     form="server_log", verdict="nothing_about_memory", count=0, ledger={"activations": 5.58 * GIB, "graphs": 2.37 * GIB, "non_torch": 1.38 * GIB})
case("vllm preempts", "vLLM API server version 0.6.1\nWARNING 05-30 Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.", form="server_log",
     verdict="nearly", count=0)
STATIC = "[2026-07-11 08:14:14 TP0] Load weight begin. avail mem=78.57 GB\n[2026-07-11 08:14:32 TP0] Load weight end. type=Q, dtype=torch.bfloat16, avail mem=18.63 GB, mem usage=59.94 GB.\n"
case("sglang", STATIC + "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", form="sglang_static", verdict="does_not_start", ledger={"weights": 59.94 * GIB},
     says=["raise --mem-fraction-static above 0.77"])
case("sglang graph", STATIC + "[08:15:00 TP0] KV Cache is allocated. #tokens: 947703, K size: 25.31 GB, V size: 25.31 GB\nException: Capture cuda graph failed: " + full() +
     "\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs to a smaller value (e.g., 16)", form="sglang_graph", asked_bytes=2.25 * GIB,
     verdict="does_not_start", cause="sampler_or_graph_after_cache", ledger={"kv_cache": 50.62 * GIB, "weights": 59.94 * GIB}, says=["--cuda-graph-max-bs"])
case("sglang serving", "The server is fired up and ready to roll!\n" + traceback(("/usr/lib/python3/dist-packages/sglang/srt/layers/logits_processor.py", 480, "_get_logits", "logits = torch.matmul(h, w)"),
                                                                         error="torch.OutOfMemoryError: " + full()), verdict="out_of_memory", says=["--mem-fraction-static"])
case("sglang, a rank's record", STATIC + "[2026-07-11 08:14:33 TP1] Scheduler hit an exception: " + oom(full(device=1), (SITE, 1751, "create_weights", "torch.empty(")) + "\n[2026-07-11 08:14:34] Received sigquit",
     rank=1, device=1, cause="weights_do_not_fit", verdict="does_not_start", count=1)
case("sglang retracts", "The server is fired up and ready to roll!\n[08:16:07] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.0980 -> 0.3487", form="server_log",
     verdict="nearly")
LAUNCHER = "2024-05-14T08:03:02.501Z ERROR text_generation_launcher: Method Warmup encountered an error.\n"
WARM_UP = "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`"
case("tgi", LAUNCHER + WARM_UP, form="figureless", verdict="does_not_start", asked_bytes=None, says=["--max-batch-prefill-tokens below 4 096"])
case("tgi, with PyTorch's text", LAUNCHER + oom(full(), (SITE, 1751, "f", "g()")) + "\n" + WARM_UP, form="torch", verdict="does_not_start", asked_bytes=2.25 * GIB, count=1, says=["--max-batch-prefill-tokens"])
case("tgi serves", "INFO text_generation_launcher: Setting max batch total tokens to 30816\n" + oom(full()), verdict="out_of_memory")
case("trtllm runtime", "[TensorRT-LLM][INFO] Loaded engine size: 13421 MiB\n[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mMemPool->getPool(), mCudaStream->get()): out of memory "
     "(/app/tensorrt_llm/cpp/tensorrt_llm/runtime/tllmBuffers.h:125)", form="trtllm", cause="figureless", asked_bytes=None, ledger={"weights": 13421 * MIB})
COMPONENT = ("RuntimeError: Executor creation failed due to insufficient GPU memory.\n\nThe following component could not be created: {}\nTotal GPU memory (GiB): 95.00\nFree GPU memory before component "
             "creation attempt (GiB): 16.95\n\nPreviously created components and free GPU memory before/after creation (GiB):\nModel: 94.30 / 47.83\n")
for name, cause in (("KV cache", "server_budget_over_free"), ("Model", "weights_do_not_fit"), ("Additional executor resources (temporary for KV cache size estimation)", "sampler_or_graph_after_cache")):
    case(f"trtllm: {name}", COMPONENT.format(name), form="trtllm", cause=cause, free_bytes=16.95 * GIB, total_bytes=95 * GIB)
case("trtllm: memory that came back while it loaded", COMPONENT.format("KV cache").replace("94.30 / 47.83", "47.30 / 47.83"), form="trtllm", ledger={"weights": None}, never=["17179869183"])
case("tensorrt's engine", "[TensorRT-LLM][INFO] Loaded engine size: 68370 MiB\n[TensorRT-LLM][ERROR] [defaultAllocator.cpp::allocate::31] Error Code 1: Cuda Runtime (out of memory)\n[TensorRT-LLM][WARNING] Requested "
     "amount of GPU memory (69568823808 bytes) could not be allocated. There may not be enough free memory for allocation to succeed.", form="trtllm", cause="weights_do_not_fit", asked_bytes=69568823808)
case("tensorrt's tactics", "[TRT] [W] Tactic Device request: 66048MB Available: 32510MB. Device memory is insufficient to use tactic.\n[TRT] [I] Engine generation completed in 88.3 seconds.", form="trtllm",
     verdict="not_an_error", count=0)
case("tensorrt", "[05/08/2026-20:47:56] [TRT] [E] [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory (Requested size was 3541041152 bytes.)", form="trtllm", asked_bytes=3541041152)

# llama.cpp and ollama
LLAMA = "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3060) - 11800 MiB free\n"
CUDA0 = "load_tensors:        CUDA0 model buffer size =  9871.10 MiB\nllama_context: n_ctx         = 65536\nllama_context: n_ubatch      = 2048\n"
REFUSED = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating {:.2f} MiB on device 0: cudaMalloc failed: out of memory\n"
case("llama weights", LLAMA + REFUSED.format(18000) + "alloc_tensor_range: failed to allocate CUDA0 buffer of size 18874368000\nllama_model_load: error loading model: unable to allocate CUDA0 buffer",
     form="ggml_buffer", cause="weights_do_not_fit", asked_bytes=18874368000, device=0, verdict="does_not_start", count=1, says=["-ngl"])
case("llama cache", LLAMA + CUDA0 + REFUSED.format(4480) + "llama_kv_cache_init: failed to allocate buffer for kv cache\nllama_init_from_model: failed", form="ggml_buffer", asked_bytes=4480 * MIB,
     cause="server_budget_too_small_for_cache", ledger={"weights": 9871.1 * MIB, "kv_cache": None}, says=["-ctk q8_0", "65 536"])
case("llama cache of the second card", CUDA0 + CUDA0.replace("CUDA0", "CUDA1") + "llama_kv_cache:      CUDA0 KV buffer size =  8192.00 MiB\n" + REFUSED.format(8192).replace("device 0", "device 1") +
     "alloc_tensor_range: failed to allocate CUDA1 buffer of size 8589934592\nllama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache", device=1,
     cause="server_budget_too_small_for_cache", asked_bytes=8 * GIB, ledger={"weights": 9871.1 * MIB, "kv_cache": None})
case("llama compute", LLAMA + CUDA0 + "llama_kv_cache:      CUDA0 KV buffer size =  2048.00 MiB\n" + REFUSED.format(4864) +
     "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 5100273664\nllama_init_from_model: failed to allocate compute pp buffers", form="ggml_buffer", cause="compute_buffer",
     asked_bytes=5100273664, ledger={"kv_cache": 2 * GIB}, says=["-ub 512 (2 048 are set)"])
case("llama retries", LLAMA + CUDA0 + "1.06.520.077 E " + REFUSED.format(51748) + "1.06.520.084 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 54262464512\n"
     "1.06.520.107 W sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism\n1.07.304.130 I srv    load_model: initializing, n_slots = 1\n"
     "main: server is listening on http://0.0.0.0:8080\nsrv  update_slots: all slots are idle", verdict="not_an_error", count=0)
case("llama.cpp in Python", LLAMA + REFUSED.format(144) + "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 150995968\nllama_init_from_model: failed to allocate compute pp buffers\n" +
     oom("Failed to create llama_context", kind="ValueError"), form="ggml_buffer", line="/home/u/job/train.py:61", count=1)
case("llama.cpp's pinned memory", "ggml_cuda_host_malloc: failed to allocate 1900,00 MiB of pinned memory: invalid argument\nmain: server is listening on http://127.0.0.1:8080", form="ggml_buffer",
     verdict="not_an_error")
case("ggml at run time", CUDA0 + "main: server is listening on http://0.0.0.0:8080\nCUDA error: out of memory\n  current device: 1, in function alloc at ggml-cuda.cu:529\n  cuMemCreate(&handle, reserve_size, &prop, 0)",
     form="ggml_runtime", verdict="out_of_memory", device=1, cause="figureless")
case("ollama", 'time=2026-01-02T10:00:00.000Z level=INFO source=server.go:138 msg="offload to cuda" memory.available="[7.1 GiB]" memory.weights.total="4.3 GiB"\n' + REFUSED.format(8137) +
     "Error: llama runner process has terminated: cudaMalloc failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 838447104", form="ollama", verdict="does_not_start",
     asked_bytes=838447104)
case("ollama lays out anew", "alloc_tensor_range: failed to allocate Vulkan0 buffer of size 4697620480\n" +
     'level=INFO source=server.go:914 msg="model layout did not fit, applying backoff" backoff=0.10\n' * 2 + 'level=INFO source=server.go:1291 msg="llama runner started in 7.81 seconds"\nserved 1\n',
     verdict="not_an_error", count=0)
case("ollama serves", 'source=server.go:1291 msg="llama runner started in 4.17 seconds"\nROCm error: out of memory\n  current device: 0, in function alloc at ggml-cuda.cu:420', form="ggml_runtime",
     verdict="out_of_memory", device=0)
case("ollama host", "Error: model requires more system memory (44.0 GiB) than is available (7.6 GiB)", form="ollama", verdict="host_memory", asked_bytes=44 * GIB, free_bytes=7.6 * GIB)

# XLA, TensorFlow, JAX
STATS = """BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    8.02GiB
              constant allocation:    38.7KiB
        maybe_live_out allocation:    8.02GiB
     preallocated temp allocation:   27.90GiB
                 total allocation:   35.93GiB
Peak buffers:
\tBuffer 1:
\t\tSize: 12.00GiB
\t\tOperator: op_name="jit(step)/dot_general" source_file="/home/l/net/attend.py" source_line=61
\t\tXLA Label: fusion
\t\tShape: f32[4,48,4096,4096]
\t\t==========================
"""
case("xla", oom("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 29957395456 bytes.\n" + STATS, ("/home/l/train.py", 142, "main", "s = step(s)"), kind="jaxlib.xla_extension.XlaRuntimeError"),
     form="xla", asked_bytes=29957395456, cause="executable_too_large", line="/home/l/train.py:142", says=["attend.py:61", "27.9 GiB of temporaries", "12.0 GiB, f32[4,48,4096,4096]"])
case("xla, no buffers", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.", form="xla", asked_bytes=2147483648,
     cause="card_full_by_own_tensors")
case("xla, more than the device", "hlo_rematerialization.cc:2202] Can't reduce memory use below 23.81GiB (25567444992 bytes) by rematerialization; only reduced to 86.14GiB (92489619062 bytes), down from 95.71GiB "
     "(102770769072 bytes) originally\nRESOURCE_EXHAUSTED: Out of memory while trying to allocate 92198188384 bytes.", form="xla", asked_bytes=92198188384, cause="executable_too_large")
case("xla request", "RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 3", form="xla", asked_bytes=2147483648, device=3)
case("tpu", "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.93G of 15.48G hbm. Exceeded hbm capacity by 5.45G.", form="xla", asked_bytes=20.93 * GIB,
     total_bytes=15.48 * GIB, cause="executable_too_large")
WARN = "2026-04-22 08:20:11.000000: W external/local_xla/xla/tsl/framework/bfc_allocator.cc:{}] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
case("xla, old", "RuntimeError: Resource exhausted: Out of memory while trying to allocate 9437184 bytes.\nBufferAssignment OOM Debugging.", form="xla", asked_bytes=9437184)
case("tf's sessions", "Stats: \nLimit:                 10625279591\nInUse:                  7350513920\nMaxInUse:               7464792320\n" +
     oom("OOM when allocating tensor with shape[16,1,892800,8] and type float on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc", kind="ResourceExhaustedError"), form="tf", device=1,
     cause="card_full_by_own_tensors", asked_bytes=None, allocated_bytes=7350513920, says=["[16,1,892800,8]"])
case("tf's cublas", "cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\n" + oom("Blas GEMM launch failed : a.shape=(1, 25088), b.shape=(25088, 512)", kind="InternalError"), form="cublas",
     count=1, line="/home/u/job/train.py:61")
case("tpu at run time", "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 196.00M. That was not possible. There are 134.44M free.; (1x0x0_HBM0)", form="xla", asked_bytes=196 * MIB,
     free_bytes=134.44 * MIB)
case("a warning of the BFC", "Epoch 1/10\n" + WARN.format(310) + "2.31GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if "
     "more memory were available.\n100/100 [====] - 6s - loss: 1.1\n", form="bfc_warning", verdict="not_an_error", cause="harmless_warning", count=0)
case("tensorflow", WARN.format(491) + "3.36GiB (rounded to 3607101440)requested by op model/conv/Conv2D\nI tensorflow/core/common_runtime/bfc_allocator.cc:1100] Stats: \nLimit:                      7889747968\n"
     "InUse:                      6412345600\nMaxInUse:                   6500000000\nNumAllocs:                        9000\n" +
     oom("{{function_node __wrapped}} OOM when allocating tensor with shape[32,256,224,224] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
         ("/home/t/fit.py", 33, "<module>", "model.fit(x)"), kind="tensorflow.python.framework.errors_impl.ResourceExhaustedError"), form="tf", asked_bytes=3607101440, line="/home/t/fit.py:33", count=1,
     says=["32,256,224,224"])

# ONNX Runtime, RMM, CuPy, NCCL, cuBLAS, ComfyUI
case("ort", "onnxruntime_pybind11_state.RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node. Status Message: "
     "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 4585490524328388608",
     form="ort", asked_bytes=None, cause="unknown", never=["458549"])
case("rmm's tests", "[ RUN      ] Source.Bgzip\n[2025-01-23 14:33:04.213] [RMM] [error] [A][Stream 0x1][Upstream 67108864B][FAILURE maximum pool size exceeded]\n[       OK ] Source.Bgzip (4175 ms)\n[  PASSED  ] 8 tests.",
     form="rmm", verdict="not_an_error", count=0)
case("rmm pool", "MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/r/pool_memory_resource_impl.cpp:73: Maximum pool size exceeded (failed to allocate 10.371208 GiB): Not enough room to grow, "
     "current/max/try size = 78.000000 GiB, 78.000000 GiB, 10.371208 GiB", form="rmm", asked_bytes=10.371208 * GIB, cause="own_limit_fraction", says=["78.0 GiB", "maximum_pool_size"])
case("rmm", "MemoryError: std::bad_alloc: out_of_memory: CUDA error (failed to allocate 17179869184 bytes) at: /c/include/rmm/mr/device/cuda_memory_resource.hpp:62: cudaErrorMemoryAllocation out of memory",
     form="rmm", asked_bytes=16 * GIB, cause="card_full_by_own_tensors", count=1)
case("rmm, old", "MemoryError: std::bad_alloc: CUDA error at: ../include/rmm/mr/device/cuda_memory_resource.hpp68: cudaErrorMemoryAllocation out of memory", form="rmm", cause="figureless")
case("cupy limit", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so far: 3,221,225,472 bytes, limit set to: 4,000,000,000 bytes).", form="cupy",
     asked_bytes=GIB, allocated_bytes=3 * GIB, cause="own_limit_fraction")
case("nccl", "ng:39:298 [3] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\nng:39:298 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes\n" +
     oom("NCCL error in: /p/ProcessGroupNCCL.cpp:77, unhandled cuda error (run with NCCL_DEBUG=INFO for details)\nLast error:\nCuda failure 2 'out of memory'", kind="torch.distributed.DistBackendError"),
     form="nccl", cause="collective", asked_bytes=6291456, verdict="out_of_memory")
case("nccl, a rank behind it", "ng:39:298 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes\n" + oom("NCCL error in: ../c10d/ProcessGroupNCCL.cpp:1691, unhandled cuda error (run with NCCL_DEBUG=INFO "
     "for details), NCCL version 2.19.3", kind="torch.distributed.DistBackendError", prefix="[rank3]: "), form="nccl", rank=3, line="/home/u/job/train.py:61", asked_bytes=6291456)
case("cublas", oom("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", kind="RuntimeError"), form="cublas", cause="handle_creation", asked_bytes=None)
case("comfy", "got prompt\n!!! Exception during processing !!! Allocation on device \n" + oom("Allocation on device ", ("/app/ComfyUI/execution.py", 496, "execute", "output = f()"),
     ("/app/ComfyUI/nodes.py", 61, "decode", "images = vae.decode(latents)")) + "\n\nGot an OOM, unloading all loaded models.\nPrompt executed in 22.10 seconds", form="comfy", verdict="out_of_memory",
     cause="figureless", line="/app/ComfyUI/nodes.py:61", count=1)
case("comfy's report", "# ComfyUI Error Report\n- **Exception Type:** torch.OutOfMemoryError\n- **Exception Message:** Allocation on device \n## Stack Trace\n" +
     "\n\n".join(oom("", ("/app/ComfyUI/execution.py", 317, "execute", "get()"), ("/app/ComfyUI/nodes.py", 61, "decode", "vae.decode(latents)"), kind="").split("\n")[1:-1]), form="comfy", line="/app/ComfyUI/nodes.py:61")
case("comfy retries", "got prompt\nWarning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.\nPrompt executed in 22.10 seconds", verdict="not_an_error")

# RMM before 0.14, and dask-cuda
case("an old RMM", "ERROR: RMM call in line 68of file managed_allocator.cuh failed with result RMM_ERROR_OUT_OF_MEMORY (4) Attempted to allocate: 4000000000 bytes.", form="rmm", asked_bytes=4000000000)
case("dask-cuda", "distributed.worker - ERROR - RMM allocation of 605.37 MiB failed, spill-on-demand couldn't find any device memory to spill: <ProxyManager dev_limit=13.97 GiB>", form="rmm", asked_bytes=605.37 * MIB)
case("PaddlePaddle", "ResourceExhaustedError:\n\nOut of memory error on GPU 2. Cannot allocate 3.621826GB memory on GPU 2, 21.184814GB memory has been allocated and available memory is only 2.814575GB.", form="paddle",
     device=2, asked_bytes=3.621826 * GIB, allocated_bytes=21.184814 * GIB, free_bytes=2.814575 * GIB)
case("PaddlePaddle before 2.0", "Out of memory error on GPU 0. Cannot allocate 25.002197MB memory on GPU 0, available memory is only 15.187500MB.", form="paddle", allocated_bytes=None, free_bytes=15.1875 * MIB)

# Libraries without a form of their own
case("XGBoost", "xgboost.core.XGBoostError: device_helpers.cuh:428: Memory allocation error on worker 0: bad_alloc: cudaErrorMemoryAllocation: out of memory\n- Free memory: 1638400\n- Requested memory: 9427968",
     form="figureless", asked_bytes=9427968, free_bytes=1638400)
case("FAISS", "Error: 'err == cudaSuccess' failed: StandardGpuResources: alloc fail type IVFLists dev 2 space Device stream 0x5581 size 12288000000 bytes (cudaMalloc error out of memory [2])",
     asked_bytes=12288000000, device=2, verdict="out_of_memory")
case("MLX", oom("[metal::malloc] Attempting to allocate 11811160064 bytes which is greater than the maximum allowed buffer size of 9534832640 bytes.", kind="RuntimeError"), asked_bytes=11811160064,
     cause="request_larger_than_card", line="/home/u/job/train.py:61", says=["8.88 GiB"])
case("Warp", "RuntimeError: Failed to allocate 12884901888 bytes on device 'cuda:1'\nWarp CUDA error 2: out of memory (in function wp_alloc_device_async)", asked_bytes=12 * GIB, device=1, count=1)
case("Triton's pool", "W0410 13:51:44.743979 1 memory.cc:212] Failed to allocate CUDA memory with byte size 102236160 on GPU 0: CNMEM_STATUS_OUT_OF_MEMORY, falling back to pinned system memory", count=0,
     verdict="not_an_error")
for name, text in (("bitsandbytes", "  1%| | 12/1875 [00:41<1:46:40]Error out of memory at line 380 in file /g/bitsandbytes/csrc/pythonInterface.c"), ("PyCUDA", "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory"),
                   ("MXNet", "mxnet.base.MXNetError: src/storage/./pooled_storage_manager.h:161: cudaMalloc retry failed: out of memory"),
                   ("OpenCV", "gpu_mat.cu:116: error: (-217:Gpu API call) out of memory in function 'allocate'"), ("Isaac Gym", "[carb.gym.plugin] Gym cuda error: out of memory: GymPhysX.cpp: 1721")):
    case(name, text, form="figureless", verdict="out_of_memory", cause="figureless", count=1)

# Host memory
case("kernel", "Nov 29 10:21:13 gpu7 kernel: Out of memory: Killed process 4711 (python3) total-vm:93123456kB, anon-rss:62914560kB, file-rss:0kB", form="host", verdict="host_memory",
     cause="pinned_or_host_memory", asked_bytes=None)
case("allocator of the host", oom("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 48318382080 bytes. Error code 12 (Cannot allocate memory)",
                                  kind="RuntimeError"), form="host", asked_bytes=45 * GIB, verdict="host_memory", line="/home/u/job/train.py:61")
case("slurm, old", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0 cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.", form="host", count=1,
     verdict="host_memory", says=["--mem"])
case("kubernetes", "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137", form="host", verdict="host_memory", says=["resources.limits.memory"])
for name, text in (("ray's worker", "(raylet) node_manager.cc:3084: 4 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: b287)"),
                   ("ray, old", "RayOutOfMemoryError: More than 95% of the memory on node n7 is used (11.8 / 12.3 GB). The top 5 memory consumers are:"),
                   ("an eviction", "Message:      The node was low on resource: memory. Threshold quantity: 100Mi, available: 89392Ki."),
                   ("C++", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)"),
                   ("Windows", "OSError: The paging file is too small for this operation to complete. (os error 1455)"),
                   ("Kaggle", "Your notebook tried to allocate more memory than is available. It has restarted."),
                   ("Colab", "Your session crashed after using all available RAM."),
                   ("Python", traceback(("/home/u/job/read.py", 12, "<module>", "rows = list(f)"), error="MemoryError"))):
    case(name, text, form="host", verdict="host_memory", count=1)
for name, text in (("DeepSpeed", "[2024-01-22 16:50:49,560] [ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9"),
                   ("torchrun", "E torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 438) of binary: python")):
    case(name, text, form="host", verdict="host_memory", count=1, says=["signal 9", "dmesg"])
case("torchrun, then Slurm", "failed (exitcode: -9) local_rank: 0\nslurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", form="host", count=1, says=["--mem"])
case("a container ends behind a failure", full() + "\ntrainer-1 exited with code 137", form="torch", verdict="out_of_memory", count=1)
case("a tensor of TensorFlow's on the host", "OOM when allocating tensor with shape[500000,4096] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu", verdict="host_memory")
case("Arrow", "pyarrow.lib.ArrowMemoryError: malloc of size 8589934592 failed", form="host", asked_bytes=8 * GIB, verdict="host_memory")
case("a worker's memory of its container", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", form="host", says=["--shm-size"])
case("Java", "java.lang.OutOfMemoryError: Java heap space", form="host", says=["-Xmx"])
case("worker", "RuntimeError: DataLoader worker (pid 3345) is killed by signal: Killed.", form="host", verdict="host_memory", says=["--shm-size"])
case("a thread that pins", oom("Caught RuntimeError in pin memory thread for device 0.\nOriginal " + traceback((SITE.replace("module", "pin_memory"), 41, "do_one_step", "data = pin_memory(data, device)"),
                                error="RuntimeError: CUDA error: out of memory"), kind="RuntimeError"), verdict="host_memory", line="/home/u/job/train.py:61", count=1)

# What is no failure
case("words", "epoch 1 gpu_mem 18.2GiB\nlow memory mode, memory efficient attention\ntests/test_memory.py::test_oom PASSED [ 50%]\n== 12 passed in 3.20s ==", form="none", verdict="nothing_about_memory", cause="none",
     count=0)
case("a test", "tests/test_memory.py::test_oom_is_raised \nWARNING root: " + full() + "\nPASSED [ 50%]\n== 12 passed in 3.20s ==", verdict="not_an_error", count=0)
case("retries", "WARNING bs 64: " + full() + "\nDecreasing batch size to: 32.\nepoch 0 loss 1\nTraining finished", verdict="not_an_error", cause="harmless_warning", count=0, says=["32"])
case("Ultralytics retries", "WARNING CUDA out of memory with batch=32. Reducing to batch=16 and retrying (1/3).\n 1/100  7.2G  1.2", form="torch", verdict="not_an_error", says=["16"])
case("a warning of logging", f"step 4\nWARNING:root:step 5: {full()}\nWARNING:root:skipped\nstep 6\nstep 7\n", verdict="not_an_error", count=0)
case("the last retry fails", "WARNING bs 2: " + full() + "\nDecreasing batch size to: 1.\n" + oom(full(asked=3 * GIB)), verdict="out_of_memory", count=1, asked_bytes=3 * GIB)
case("a skipped batch", oom(full()) + "\nERROR ran out of memory, skipping batch\nstep 101 loss 2.1\nstep 102 loss 2.0\nTraining finished", verdict="not_an_error", count=0)

# Ranks
TWO = oom(full(device=1), prefix="[rank1]: ") + "\n" + oom(full(device=0, asked=GIB), prefix="[rank0]: ")
case("two ranks", TWO, count=2, rank=1)
case("torchrun's root cause", TWO + "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-09-21_03:31:12\n  host      : g\n  rank      : 0 (local_rank: 0)\n", count=2, rank=0, first_rank=0, device=0)
case("clocks", f"[2026-09-21 03:31:13][rank1] ERROR {full(device=1)}\n[2026-09-21 03:31:12][rank0] ERROR {full(device=0)}", count=2, rank=0)
case("files of ranks", ["step 1\n", oom(full(device=1))], count=1, rank=1)

# Any text
ONE = oom(full())
BASE = dict(form="torch", asked_bytes=2.25 * GIB, line="/home/u/job/train.py:61", count=1, **FULL)
case("CRLF", ONE.replace("\n", "\r\n"), **BASE)
case("UTF-16", b"\xff\xfe" + ONE.encode("utf-16-le"), **BASE)
case("colours", "\n".join(f"\x1b[31m{line}\x1b[0m" for line in ONE.split("\n")), **BASE)
case("a progress bar", " 10%|#  |\r 20%|## |\r 30%|###|" + "\n" + ONE, says=[f" {ONE.count(chr(10)) + 2} lines"], **BASE)
case("docker's JSON", "\n".join(json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-10-05T08:23:56.1Z"}) for line in ONE.split("\n")), says=[f" {ONE.count(chr(10)) + 1} lines"], **BASE)
case("journald's JSON", "\n".join(json.dumps({"__REALTIME_TIMESTAMP": "1", "MESSAGE": line}) for line in ONE.split("\n")), **BASE)
case("journald's bytes", "\n".join(json.dumps({"__REALTIME_TIMESTAMP": "1", "MESSAGE": list(line.encode())}) for line in ONE.split("\n")), **BASE)
case("an error in JSON", json.dumps({"level": "error", "msg": ONE}), **BASE)
for name, prefix in (("docker compose", "trainer-1  | "), ("kubectl", "[pod/train-0/main] "), ("Actions", "2026-10-05T08:23:56.1234567Z "), ("CRI", "2026-10-05T08:23:56.123Z stderr F "),
                     ("journald", "Oct 05 08:23:56 gpu7 python[123]: "), ("ray", "(RayTrainWorker pid=77, ip=10.0.0.1) "), ("srun -l", "0: "), ("mpirun", "[1,0]<stderr>:"),
                     ("quoted", "> "), ("logging", "2026-10-05 08:23:56,123 ERROR "), ("glog", "E1005 08:23:56.123456 140231 main.cc:145] "), ("unknown", "<job 17> @@ ")):
    case(name, "\n".join(prefix + line for line in ONE.split("\n")), **BASE)
words = oom(full()).split("\n")
sentence = words[-1].split(" ")
for prefix, rank in (("[1,mpirank:6,algo-2]<stderr>:", 6), ("[default3]:", 3), ("[1,5]<stderr>:", 5)):
    case(f"behind {prefix}", "\n".join(prefix + line for line in ONE.split("\n")), rank=rank, **BASE)
case("wrapped by a chat", "\n".join(words[:-1]) + "\n" + "\n".join(" ".join(sentence[i:i + 7]) for i in range(0, len(sentence), 7)), **BASE)
for word in ("2.25", "21.38"):
    case(f"wrapped before {word}", ONE.replace(f" {word} ", f"\n{word} "), **BASE)
case("wrapped before bytes", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate\n29957395456 bytes.", form="xla", asked_bytes=29957395456)
for width in (66, 73, 80):
    case(f"broken by a terminal of {width}", "\n".join(line[i:i + width] for line in words for i in range(0, len(line), width)), **BASE)
case("broken behind a prefix", "\n".join(line[i:i + 80] for line in oom(full(), prefix="[rank3]: ").split("\n") for i in range(0, len(line), 80)), rank=3, **BASE)
case("JSON with a traceback", json.dumps({"level": "error", "message": "job failed", "exc_info": ONE}), **BASE)
case("JSON behind a prefix", "trainer-1  | " + json.dumps({"level": "error", "msg": ONE}), **BASE)
case("escaped", repr(ONE), **BASE)
case("a traceback of IPython", "OutOfMemoryError                          Traceback (most recent call last)\nCell In[3], line 7\n      5 model.eval()\n----> 7     y = model(x)\n\n"
     "File /usr/local/lib/python3.10/dist-packages/torch/nn/modules/module.py:1501, in Module._call_impl(self, *args)\n-> 1501     return f(*args)\n\nOutOfMemoryError: " + full(), line="Cell In[3]:7")
case("a traceback of an old IPython", "MemoryError                Traceback (most recent call last)\n<ipython-input-2-05bad8b65c06> in <module>\n      2 import cudf\n----> 4 s = cudf.Series([1]).repeat(n)\n\n"
     "/opt/conda/lib/python3.7/site-packages/cudf/core/frame.py in repeat(self, repeats, axis)\n   1583             )\n-> 1585         return self._repeat(repeats)\n   1586 \n   1587     def _repeat(self, count):\n"
     "\ncudf/_lib/filling.pyx in cudf._lib.filling.repeat()\n\nMemoryError: std::bad_alloc: RMM failure at: ../pool_memory_resource.hpp:167: Maximum pool size exceeded", form="rmm", line="Cell In[2]:4")
case("a box of rich", "╭──── Traceback (most recent call last) ────╮\n│ /home/u/job/train.py:61 in main          │\n│                                          │\n│    60                                    │\n│ ❱  61 │   y = model(x)                   │\n"
     "│ /opt/v/lib/python3.10/site-packages/torch/m.py:9 in f │\n│ ❱   9 │   return g()                     │\n╰──────╯\nOutOfMemoryError: " + full(), line="/home/u/job/train.py:61", says=["y = model(x)"])
case("pytest", "    def test_step():\n>       y = model(x)\nE       torch.OutOfMemoryError: " + full() + "\n\ntests/test_step.py:61: OutOfMemoryError\n=== 1 failed in 3.2s ===", line="tests/test_step.py:61",
     verdict="out_of_memory")
case("a long line", "it " * 1000000 + "\n" + ONE, **BASE)
for name, packed in (("gzip", gzip.compress), ("xz", lzma.compress)):
    case(name, packed(ONE.encode()), **BASE)
CUT = [(f"a log in {name} that is cut off", packed((ONE + "step 2\n" * 99).encode())[:-1]) for name, packed in (("gzip", gzip.compress), ("xz", lzma.compress))]
for name, content in (("a core file", b"\x7fELF\2\1\1" + bytes(500)), ("an image", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(99)), *CUT):
    code, out, err = analyze(content)
    if code != 3 or len(err.splitlines()) != 1 or out:
        FAILED.append(name)
        print(f"{name}: {code} {out} {err}")
code, out, err = analyze('{"schema_version": 3, "event_type": "sample", "timestamp_ns": 1, \n', name="events.jsonl")
if code != 3 or "events.jsonl:1:" not in err:
    FAILED.append("damaged telemetry")
    print(f"damaged telemetry: {code} {out} {err}")
def ledger(weights, cache):
    return f"Model loading took {weights} GiB memory\nAvailable KV cache memory: {cache} GiB\nINFO:     Application startup complete.\n"


if not LOOK:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("old.log", ledger("14.98", "5.19")), ("new.log", ledger("15.49", "4.60"))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)
        pair = [os.path.join(folder, name) for name in ("old.log", "new.log")]
        out = subprocess.run([ANALYZE, "diff", "--json", *pair], stdout=subprocess.PIPE).stdout
        told = json.loads(out)
        text = subprocess.run([ANALYZE, "diff", *pair], stdout=subprocess.PIPE).stdout.decode()
        if told["grew"] != "weights" or not near(told["after"]["ledger"]["weights"], 15.49 * GIB) or "15.5 GiB   <- grew most" not in text:
            FAILED.append("diff")
            print(out, text)
        for content, status in ((full(), 1), ("step 1 loss 2.5\n", 0)):
            with open(pair[0], "w", encoding="utf-8") as file:
                file.write(content)
            done = subprocess.run([ANALYZE, "check", "--no-oom", pair[0]], cwd=folder, stdout=subprocess.PIPE)
            if done.returncode != status or not done.stdout:
                FAILED.append("check")
                print("check", status, done)
GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
for folder, _, names in os.walk(GOLDEN):  # what had a reader keeps it
    for name in names:
        if name.endswith((".json", ".jsonl", ".csv")) and not LOOK:
            out = subprocess.run([ANALYZE, "--json", os.path.join(folder, name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            if b'"stormlog.log"' in out[:200]:
                FAILED.append(name)
                print(f"{folder}/{name} is taken for a log")
sys.exit(f"{len(FAILED)} wrong: {', '.join(FAILED)}" if FAILED else 0)
