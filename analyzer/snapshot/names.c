/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/names.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "common/base.h"

#define SHOWN_MAX 260

/* Beginnings of names of frames that are the interpreter's, the loader's, or of what took the stack. */
static const char *const left_out[] = {
	"torch::unwind",
	"torch::CapturedTraceback",
	"torch::cuda::gather",
	"unwind::",
	"gather_with_cpp",
	"_PyEval_",
	"PyEval_",
	"_PyObject_",
	"PyObject_",
	"_PyFunction_",
	"PyFunction_",
	"_PyRun_",
	"PyRun_",
	"PyVectorcall_",
	"_PyVectorcall_",
	"cfunction_",
	"method_vectorcall",
	"vectorcall_",
	"slot_tp_",
	"type_call",
	"property_descr_get",
	"_start",
	"__libc_",
	"start_thread",
	"clone",
	"Py_RunMain",
	"Py_BytesMain",
	"pymain_",
	"builtin_exec",
	"_PyCFunction_",
	"THPFunction_apply",
	"partial_call",
	"PyNumber_",
	"object_vacall",
	"cpp_function::",
	"pybind11::",
};

/* Functions that ask for a workspace, and its library. */
static const struct {
	const char *part, *name;
} workspaces[] = {
	{"CUDABlas", "cuBLAS workspace"},
	{"cublasLt", "cuBLAS workspace"},
	{"WorkspaceForHandle", "cuBLAS workspace"},
	{"raw_cudnn", "cuDNN workspace"},
	{"cudnn_convolution", "cuDNN workspace"},
	{"run_conv_plan", "cuDNN workspace"},
	{"run_single_conv", "cuDNN workspace"},
	{"miopen", "MIOpen workspace"},
	{"ProcessGroupNCCL", "NCCL"},
	{"CUDASolver", "cuSOLVER workspace"},
	{"CUDASparse", "cuSPARSE workspace"},
};

static const char *text_at(const struct sl_snapshot *s, uint32_t frame, unsigned which)
{
	size_t count;

	return sl_snapshot_text(s, sl_sequences_at(&s->frames, frame, &count)[which]) ?: "";
}

static const char *function_of(const struct sl_snapshot *s, uint32_t frame)
{
	return text_at(s, frame, 0);
}

bool sl_snapshot_is_python(const struct sl_snapshot *snapshot, uint32_t frame)
{
	const char *file = text_at(snapshot, frame, 1);
	size_t size = strlen(file);

	return file[0] == '<' || strstr(file, "ipykernel") || strstr(file, "ipython-input") || !strncmp(file, "Cell In[", 8) ||
	       (size > 3 && (!strcmp(file + size - 3, ".py") || !strcmp(file + size - 3, "pyx")));
}

static uint32_t add_frame(struct sl_snapshot *s, const char *function, uint32_t file, uint32_t line)
{
	uint32_t name = (uint32_t)sl_map_find(&s->text_ids, function), words[3];

	if (!name) {
		*SL_PUSH(&s->texts) = sl_map_intern(&s->text_ids, function);
		*SL_PUSH(&s->words) = 0;
		*sl_map_at(&s->text_ids, function) = name = (uint32_t)s->texts.count;
	}
	words[0] = name - 1;
	words[1] = file;
	words[2] = line;
	return sl_sequences_add(&s->frames, words, SL_COUNT(words));
}

/* "void at::native::fill<float>(at::Tensor&)" is at::native::fill. */
static void plain(const char *name, char *out, size_t size)
{
	size_t at = 0;
	int depth = 0;

	for (; *name && at + 1 < size; name++) {
		if (*name == '<')
			depth++;
		else if (*name == '>' && depth)
			depth--;
		else if (depth)
			continue;
		else if (!strncmp(name, "(anonymous namespace)::", 23))
			name += 22;
		else if (*name == '(')
			break;
		else if (*name == ' ' && (at < 8 || memcmp(out + at - 8, "operator", 8)))
			at = 0;
		else
			out[at++] = *name;
	}
	out[at] = 0;
}

static bool is_left_out(const char *function)
{
	if (!*function || !strcmp(function, "??"))
		return true;
	for (size_t i = 0; i < SL_COUNT(left_out); i++)
		if (!strncmp(function, left_out[i], strlen(left_out[i])))
			return true;
	return false;
}

/* The word behind `begin` in the name, up to "::". */
static bool word_behind(const char *function, const char *begin, char *out, size_t size)
{
	const char *at = strstr(function, begin), *end;

	if (!at)
		return false;
	at += strlen(begin);
	end = strstr(at, "::");
	if (!end || (size_t)(end - at) >= size)
		return false;
	memcpy(out, at, (size_t)(end - at));
	out[end - at] = 0;
	return true;
}

/* The caller in a stack without Python: the library of a workspace, the node of the backward pass, the operator. */
static bool operation_of(const struct sl_snapshot *s, const uint32_t *frames, size_t count, char *out, size_t size)
{
	for (size_t i = 0; i < count; i++)
		for (size_t w = 0; w < SL_COUNT(workspaces); w++)
			if (strstr(function_of(s, frames[i]), workspaces[w].part)) {
				snprintf(out, size, "%s", workspaces[w].name);
				return true;
			}
	for (size_t i = 0; i < count; i++)
		if (word_behind(function_of(s, frames[i]), "torch::autograd::generated::", out, size) &&
		    strcmp(out, "details") != 0)
			return true; /* a helper of a node, generated::details::f, is below the node's own frame */
	for (size_t i = 0; i < count; i++)
		if (word_behind(function_of(s, frames[i]), "torch::autograd::AccumulateGrad", out, size) ||
		    strstr(function_of(s, frames[i]), "AccumulateGrad")) {
			snprintf(out, size, "AccumulateGrad");
			return true;
		}
	for (size_t i = count; i--;)
		if (word_behind(function_of(s, frames[i]), "at::_ops::", out, size))
			return true;
	for (size_t i = 0; i < count; i++) {
		const char *name = function_of(s, frames[i]);

		if (strncmp(name, "c10::", 5) && strncmp(name, "at::detail::", 12) && !strstr(name, "empty")) {
			snprintf(out, size, "%s", name);
			return true;
		}
	}
	return false;
}

uint32_t sl_snapshot_shown(struct sl_snapshot_names *names, uint32_t stack)
{
	struct sl_snapshot *s = names->snapshot;
	uint32_t shown[SHOWN_MAX], *kept = shown + 1;
	size_t count, left = 0;
	const uint32_t *frames;
	uint32_t made;
	bool python = false;
	char name[512], short_name[1024];

	if (stack == SL_SNAPSHOT_NONE)
		return stack;
	while (names->of.count <= stack)
		*SL_PUSH(&names->of) = 0;
	if (names->of.item[stack])
		return names->of.item[stack] - 1;
	frames = sl_sequences_at(&s->stacks, stack, &count);
	for (size_t i = 0; i < count && left < SHOWN_MAX - 1; i++) {
		uint32_t frame = frames[i];
		size_t three;
		const uint32_t *words = sl_sequences_at(&s->frames, frame, &three);

		if (sl_snapshot_is_python(s, frame)) {
			python = true;
			kept[left++] = frame;
			continue;
		}
		plain(sl_snapshot_text(s, words[0]) ?: "", short_name, sizeof(short_name));
		if (!is_left_out(short_name)) {
			kept[left++] = add_frame(s, short_name, SL_SNAPSHOT_NONE, 0);
			frames = sl_sequences_at(&s->stacks, stack, &count); /* they may have moved */
		}
	}
	if (!python && operation_of(s, kept, left, name, sizeof(name))) {
		shown[0] = add_frame(s, name, SL_SNAPSHOT_NONE, 0);
		kept = shown;
		left++;
	}
	made = sl_sequences_add(&s->stacks, kept, left);
	names->of.item[stack] = made + 1;
	return made;
}

uint32_t sl_snapshot_around(struct sl_snapshot *s, uint32_t stack, const char *name)
{
	uint32_t words[SHOWN_MAX + 1], frame = add_frame(s, name, SL_SNAPSHOT_NONE, 0);
	size_t count = 0;
	const uint32_t *frames = stack == SL_SNAPSHOT_NONE ? NULL : sl_sequences_at(&s->stacks, stack, &count);

	count = count < SHOWN_MAX ? count : SHOWN_MAX;
	if (count)
		memcpy(words, frames, count * sizeof(*words));
	words[count++] = frame;
	return sl_sequences_add(&s->stacks, words, count);
}

enum sl_snapshot_freed sl_snapshot_freed_by(const struct sl_snapshot *s, uint32_t stack)
{
	size_t count = 0;
	const uint32_t *frames = stack == SL_SNAPSHOT_NONE ? NULL : sl_sequences_at(&s->stacks, stack, &count);
	enum sl_snapshot_freed found = SL_SNAPSHOT_UNSAID;

	for (size_t i = 0; i < count; i++) {
		const char *name = function_of(s, frames[i]);

		if (strstr(name, "emptyCache") || !strcmp(name, "empty_cache"))
			return SL_SNAPSHOT_BY_PROGRAM;
		if (strstr(name, "::malloc(") || strstr(name, "::alloc_block") || strstr(name, "empty_cuda") ||
		    strstr(name, "::raw_alloc") || strstr(name, "Allocator::allocate"))
			found = SL_SNAPSHOT_BY_REQUEST;
	}
	return found;
}
