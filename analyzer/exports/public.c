/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include "analyzer/exports/known.h"

static const char words[] =
	" usr lib lib64 local opt bin sbin site-packages dist-packages x86_64-linux-gnu aarch64-linux-gnu <module> <lambda> "
	"<listcomp> main _start torch cuda cupy jax jaxlib xla triton tensorflow numpy nvidia forward backward step hip rocm "
	"nvml amdgpu kfd hipMemGetInfo cuMemGetInfo c10 or not seen true false exit _exit exec return signal NVIDIA AMD "
	"Instinct GeForce RTX Tesla Radeon Simulated GPU PCIe HBM3 HBM3e SXM4 SXM5 NVL linux-vdso.so.1 header text frame "
	"python_stack native_stack thread module eval_range device communicator capability note gap sample oom checkpoint slept "
	"metadata "
	"<asleep> footer block cuda_runtime cuda_driver hsa nccl label process [vdso] . .. - -- & * > # __init__ __new__ "
	"__post_init__ __call__ py pyc so c cc cpp cu h zst ring wrapper wrapped _wrapper inner decorated _wrapped_call_impl "
	"<locals> xla_cuda_plugin.so _ctypes ";

/* Ranges of NCCL, RCCL and torch.distributed: "NCCL:ncclAllReduce", "nccl:all_reduce" (calls that are hooked are in known.c). */
static const char collectives[] =
	" NCCL RCCL nccl ncclAllReduce ncclAllGather ncclReduceScatter ncclBroadcast ncclReduce ncclAllToAll ncclAlltoAll "
	"ncclGather "
	"ncclScatter ncclSend ncclRecv ncclGroup ncclGroupStart ncclGroupEnd all_reduce all_gather _all_gather_base reduce_scatter "
	"_reduce_scatter_base broadcast reduce all_to_all gather scatter send recv coalesced ";

/* lib*.so: the C library, the vendors' and the frameworks'. */
static const char libraries[] =
	" cuda cudart cublas cublasLt cudnn cudnn_ops cudnn_cnn cudnn_adv cudnn_graph cufft curand cusolver cusparse cusparseLt "
	"cufile nvrtc nvJitLink nvToolsExt nvidia-ml nccl nvshmem rccl amdhip64 hsa-runtime64 hiprtc rocblas hipblas hipblaslt "
	"hipfft rocfft hipsparse rocsparse hiprand rocrand hipsolver rocsolver rocm_smi64 roctx64 MIOpen c10 c10_cuda c10_hip "
	"torch torch_cpu torch_cuda torch_hip torch_python torch_global_deps tensorflow_framework tensorflow_cc c m dl pthread "
	"rt stdc++ gcc_s ffi gomp stormlog_preload ";

/* Folders of site-packages that packages of PyPI and of NVIDIA's containers bring. */
static const char packages[] =
	" accelerate apex bitsandbytes cupy cupyx dask datasets deepspeed diffusers distributed einops equinox faiss fairscale "
	"flash_attn flashinfer flax fsspec functorch haiku huggingface_hub ignite IPython ipykernel jax jax_plugins jaxlib "
	"jupyter_client "
	"keras lightning lightning_fabric lightning_utilities lm_eval matplotlib megatron mpi4py numba numpy nvidia onnx "
	"onnxruntime optax orbax pandas peft pytorch_lightning ray rmm safetensors scipy sentence_transformers sglang sklearn "
	"tensorboard tensorflow tensorrt tensorrt_llm timm tokenizers torch torch_geometric torchao torchaudio torchdata "
	"torchmetrics torchrec torchtitan torchtune torchvision tqdm transformer_engine transformers triton trl ultralytics "
	"unsloth vllm wandb xformers xgboost ";

const char sl_public_capabilities[] =
	" pytorch stacks memory_fraction free_memory_asked visible_devices device_source device_processes "
	"exec_failed recorded before_attach_bytes watcher_cpu_ns ";

bool sl_public_is_one_of(const char *word, size_t size, const char *list)
{
	size_t all = strlen(list);

	for (const char *at = list; size && (at = memmem(at, all - (size_t)(at - list), word, size)); at++)
		if (at > list && at[-1] == ' ' && at[size] == ' ')
			return !memchr(word, ' ', size);
	return false;
}

size_t sl_public_span(const char *text, size_t size, const char *accept)
{
	size_t at = 0;

	while (at < size && text[at] && strchr(accept, text[at]))
		at++;
	return at;
}

bool sl_public_numbers(const char *text, size_t size, size_t digits_max, size_t in_all)
{
	if (size > in_all)
		return false;
	for (size_t at = size && *text == '.'; at < size; at++) {
		size_t digits = sl_public_span(text + at, size - at, "0123456789");

		at += digits;
		if (!digits || digits > digits_max || (at < size && text[at] != '.'))
			return false;
	}
	return true;
}

/* 3.11, 2.36 */
static bool is_release(const char *text, size_t size)
{
	return sl_public_numbers(text, size, 2, 4);
}

/* libcublas.so.13, libcuda.so.535.54.03, libc-2.36.so, libpython3.11.so.1.0; of a dry run: dry-cublas-13.so */
static bool is_library(const char *word, size_t size)
{
	size_t begin = size < 7 ? 0 : !memcmp(word, "lib", 3) ? 3 : !memcmp(word, "dry-", 4) ? 4 : 0, stem, version;
	const char *name = word + begin, *so = memmem(name, size - begin, ".so", 3);

	if (!begin || !so)
		return false;
	stem = (size_t)(so - name);
	version = size - begin - stem - 3;
	if (stem > 6 && !memcmp(name, "python", 6))
		return is_release(name + 6, stem - 6) && is_release(so + 3, version);
	for (size_t dash = stem; dash && !version; dash--)
		if (name[dash] == '-' && is_release(name + dash + 1, stem - dash - 1) && sl_public_is_one_of(name, dash, libraries))
			return true;
	return sl_public_is_one_of(name, stem, libraries) && sl_public_numbers(so + 3, version, 3, strlen(".12.5.10.65"));
}

bool sl_public_is(const char *word, size_t size)
{
	if (sl_public_is_one_of(word, size, words) || sl_public_is_one_of(word, size, sl_public_capabilities) ||
	    sl_public_is_one_of(word, size, collectives) || sl_known_as(word, size) == SL_KNOWN_CALL || is_library(word, size))
		return true;
	if (size >= 9 && !memcmp(word, "backward_", 9)) /* PyTorch's range of a backward pass */
		return sl_public_span(word + 9, size - 9, "0123456789") == size - 9;
	return size >= 6 && !memcmp(word, "python", 6) && is_release(word + 6, size - 6);
}

bool sl_public_version(const char *text, size_t size)
{
	size_t dots = 0;

	for (size_t i = 0; i < size; i++)
		dots += text[i] == '.';
	return size && text[0] != '.' && text[size - 1] != '.' && dots >= 1 && dots <= 2 && sl_public_numbers(text, size, 2, 8);
}

/* .../site-packages/torch/nn/functional.py, .../dist-packages/torch.py */
size_t sl_public_file(const char *path, size_t size)
{
	static const char folder[] = "-packages/";
	const char *end = path + size;

	for (const char *at = path; (at = memmem(at, (size_t)(end - at), folder, strlen(folder)));) {
		const char *name = at + strlen(folder), *slash = memchr(name, '/', (size_t)(end - name));
		const char *last = slash ? slash : end;

		if (!slash && last - name > 3 && !memcmp(last - 3, ".py", 3))
			last -= 3;
		if (at - path >= 5 && (!memcmp(at - 5, "/site", 5) || !memcmp(at - 5, "/dist", 5)) &&
		    sl_public_is_one_of(name, (size_t)(last - name), packages))
			return (size_t)(name - path);
		at = name;
	}
	return size;
}
