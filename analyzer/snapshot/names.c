/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/names.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "common/base.h"

#define SHOWN_MAX 260

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

/* The word behind `begin` in the name, which "::" ends. */
static bool word_behind(const char *function, const char *begin, char *out, size_t size)
{
	const char *at = strstr(function, begin);
	size_t length;

	if (!at)
		return false;
	at += strlen(begin);
	length = strcspn(at, ":(<");
	if (at[length] != ':' || length >= size)
		return false;
	memcpy(out, at, length);
	out[length] = 0;
	return true;
}

/* The innermost of these frames that has the text in its name; count: none. */
static size_t frame_with(const struct sl_snapshot *s, const uint32_t *frames, size_t count, const char *text)
{
	size_t at = 0;

	while (at < count && !strstr(function_of(s, frames[at]), text))
		at++;
	return at;
}

#define WORD 256

/* The node of the backward pass that these frames ran. */
static bool node_of(const struct sl_snapshot *s, const uint32_t *frames, size_t count, char out[WORD])
{
	for (size_t i = 0; i < count; i++)
		if (word_behind(function_of(s, frames[i]), "torch::autograd::generated::", out, WORD) &&
		    strcmp(out, "details") != 0)
			return true; /* a helper of a node, generated::details::f, is below the node's own frame */
	return frame_with(s, frames, count, "AccumulateGrad") < count && snprintf(out, WORD, "AccumulateGrad");
}

/* The innermost operator that did more than ask for an empty tensor, or the outermost of all. */
static bool operator_of(const struct sl_snapshot *s, const uint32_t *frames, size_t count, bool outermost, char out[WORD])
{
	for (size_t i = 0; i < count; i++)
		if (word_behind(function_of(s, frames[outermost ? count - 1 - i : i]), "at::_ops::", out, WORD) &&
		    (outermost || !strstr(out, "empty")))
			return true;
	return false;
}

/*
 * What C++ frames did for their caller, innermost first: the library of a workspace, or the operator inside the node of the
 * backward pass or inside the operator that was called.  Returns how many names there are.
 */
static unsigned operations_of(const struct sl_snapshot *s, const uint32_t *frames, size_t count, char out[2][WORD])
{
	unsigned found;

	for (size_t w = 0; w < SL_COUNT(workspaces); w++)
		if (frame_with(s, frames, count, workspaces[w].part) < count)
			return snprintf(out[0], WORD, "%s", workspaces[w].name) > 0;
	found = operator_of(s, frames, count, false, out[0]);
	found += node_of(s, frames, count, out[found]) || operator_of(s, frames, count, true, out[found]);
	return found == 2 && !strcmp(out[0], out[1]) ? 1 : found;
}

/* The name of the innermost frame that is none of the allocator's. */
static unsigned asker_of(const struct sl_snapshot *s, const uint32_t *frames, size_t count, char out[WORD])
{
	static const char *const below[] = {"torch::unwind", "torch::CapturedTraceback", "torch::cuda::gather",
					    "c10::", "at::detail::"};

	for (size_t i = 0; i < count; i++) {
		bool is_below = false;

		plain(function_of(s, frames[i]), out, WORD);
		for (size_t b = 0; b < SL_COUNT(below); b++)
			is_below |= !strncmp(out, below[b], strlen(below[b]));
		if (!is_below && *out && strcmp(out, "??") != 0 && !strstr(out, "empty"))
			return 1;
	}
	return 0;
}

uint32_t sl_snapshot_shown(struct sl_snapshot_names *names, uint32_t stack)
{
	static const char engine[] = "torch::autograd::Engine";
	struct sl_snapshot *s = names->snapshot;
	uint32_t frames[SHOWN_MAX], shown[SHOWN_MAX + 2], made;
	size_t count, left = 0, native = 0;
	const uint32_t *all;
	char name[2][WORD];
	unsigned words;

	if (stack == SL_SNAPSHOT_NONE)
		return stack;
	while (names->of.count <= stack)
		*SL_PUSH(&names->of) = 0;
	if (names->of.item[stack])
		return names->of.item[stack] - 1;
	all = sl_sequences_at(&s->stacks, stack, &count);
	count = count < SHOWN_MAX ? count : SHOWN_MAX;
	if (count)
		memcpy(frames, all, count * sizeof(*frames));
	while (native < count && !sl_snapshot_is_python(s, frames[native]))
		native++;
	words = operations_of(s, frames, native, name);
	if (!words && (native == 1 || native == count))
		words = asker_of(s, frames, native, name[0]);
	for (unsigned i = 0; i < words; i++)
		shown[left++] = add_frame(s, name[i], SL_SNAPSHOT_NONE, 0);
	for (size_t i = 0; i < count;) {
		size_t from = i;

		while (i < count && !sl_snapshot_is_python(s, frames[i]))
			i++;
		if (frame_with(s, frames + from, i - from, engine) < i - from)
			shown[left++] = add_frame(s, engine, SL_SNAPSHOT_NONE, 0);
		while (i < count && sl_snapshot_is_python(s, frames[i]))
			shown[left++] = frames[i++];
	}
	made = sl_sequences_add(&s->stacks, shown, left);
	names->of.item[stack] = made + 1;
	return made;
}

static uint32_t with_frame(struct sl_snapshot *s, uint32_t stack, const char *name, bool inside)
{
	uint32_t words[SHOWN_MAX + 1], frame = add_frame(s, name, SL_SNAPSHOT_NONE, 0);
	size_t count = 0;
	const uint32_t *frames = stack == SL_SNAPSHOT_NONE ? NULL : sl_sequences_at(&s->stacks, stack, &count);

	count = count < SHOWN_MAX ? count : SHOWN_MAX;
	if (count)
		memcpy(words + inside, frames, count * sizeof(*words));
	words[inside ? 0 : count] = frame;
	return sl_sequences_add(&s->stacks, words, count + 1);
}

uint32_t sl_snapshot_around(struct sl_snapshot *s, uint32_t stack, const char *name)
{
	return with_frame(s, stack, name, false);
}

uint32_t sl_snapshot_inside(struct sl_snapshot *s, uint32_t stack, const char *name)
{
	return with_frame(s, stack, name, true);
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
