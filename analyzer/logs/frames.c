/* SPDX-License-Identifier: MIT */
/* Tracebacks of Python, IPython, pytest and rich: forms.def finds the frames. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

static void copy(char *to, size_t room, const char *from, size_t size)
{
	snprintf(to, room, "%.*s", (int)(size < room ? size : room - 1), from);
}

static bool has(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

/* Installed packages, the standard library, scripts that pip made, Cython, generated code. */
static bool is_own(const char *file)
{
	static const char *const not_own[] = {"site-packages", "dist-packages",	      "/lib/python", "/lib64/python",
					      "lib/python3",   "torchinductor",	      "<frozen",     "<string>",
					      "<stdin>",       "<__array_function__", ".pyx",	     "python_embeded/"};
	char path[sizeof(((struct sl_log_frame *)0)->file)];
	const char *slash;

	for (size_t i = 0; i <= strlen(file); i++)
		path[i] = file[i] == '\\' ? '/' : file[i];
	for (size_t i = 0; i < SL_COUNT(not_own); i++)
		if (has(path, not_own[i]))
			return false;
	slash = strrchr(path, '/');
	if (has(path, "/lib/") && (has(path, "conda") || has(path, "/python3")) && !strchr(strcasestr(path, "/lib/") + 5, '/'))
		return false; /* C:/Python311/Lib/runpy.py */
	return !(slash && slash - path >= 4 && !strncmp(slash - 4, "/bin", 4) && !strstr(slash, ".py"));
}

static struct sl_log_frame *push(struct sl_log_stack *stack, const char *file, size_t size, uint64_t line)
{
	struct sl_log_frame *frame;

	if (stack->ended)
		stack->count = 0;
	stack->ended = false;
	stack->frame = stack->frame ?: sl_memory_must(malloc(SL_LOG_DEEPEST * sizeof(*frame)));
	if (stack->count == SL_LOG_DEEPEST) {
		unsigned keep = SL_LOG_DEEPEST / 4;

		memmove(&stack->frame[keep], &stack->frame[keep + 1], (SL_LOG_DEEPEST - keep - 1) * sizeof(*frame));
		stack->count--;
	}
	frame = &stack->frame[stack->count++];
	memset(frame, 0, sizeof(*frame));
	copy(frame->file, sizeof(frame->file), file, size);
	frame->line = line == SL_LOG_UNKNOWN ? 0 : (uint32_t)line; /* an arrow tells it */
	frame->own = is_own(frame->file);
	return frame;
}

/* A file with its line, or the line behind a colon. */
static struct sl_log_frame *push_file(struct sl_log_stack *stack, const struct sl_log_said *said)
{
	const char *file = said->text[SL_LOG_TEXT_file];
	size_t size = strlen(file), digits = size;

	if (said->figure[SL_LOG_line] != SL_LOG_UNKNOWN)
		return push(stack, file, size, said->figure[SL_LOG_line]);
	while (digits && sl_log_digit(file[digits - 1]))
		digits--;
	return digits && digits < size && file[digits - 1] == ':' ? push(stack, file, digits - 1, strtoul(file + digits, NULL, 10))
								  : NULL;
}

/* The text of the next line without what stands before the same line's frame: digits of times may differ. */
static const char *same_prefix(const char *line, size_t prefix, const struct sl_log_line *next)
{
	if (next->size < prefix)
		return next->text + next->content;
	for (size_t i = 0; i < prefix; i++)
		if (line[i] != next->text[i] && !(isdigit((unsigned char)line[i]) && isdigit((unsigned char)next->text[i])))
			return next->text + next->content;
	return next->text + prefix;
}

/* The source text in the line behind a frame of Python, whose words begin at `at`. */
static void take_source(struct sl_log_frame *frame, const struct sl_log_line *line, size_t at, const struct sl_log_line *next)
{
	const char *source;

	while (at && line->text[at - 1] == ' ')
		at--;
	source = same_prefix(line->text, at, next);
	source += strspn(source, " ");
	if (*source && strspn(source, "^~ -") != strlen(source) && strncmp(source, "File \"", 6))
		copy(frame->source, sizeof(frame->source), source, strlen(source));
}

/* What runs in the last frame: IPython's arrow and rich's point show the line. */
static bool take_running(struct sl_log_stack *stack, const struct sl_log_said *said)
{
	struct sl_log_frame *frame = stack->count && !stack->ended ? &stack->frame[stack->count - 1] : NULL;

	if (!frame || said->figure[SL_LOG_line] == SL_LOG_UNKNOWN)
		return false;
	frame->line = (uint32_t)said->figure[SL_LOG_line];
	copy(frame->source, sizeof(frame->source), said->text[SL_LOG_TEXT_source], SL_LOG_LONGEST);
	return true;
}

/* pytest's place, "tests/test_x.py:61: in test_step", and old IPython's, "/path/x.py in f(x)": a file stands before the words. */
static bool take_place(struct sl_log_stack *stack, const struct sl_log_line *line, const char *py, const struct sl_log_match *match)
{
	const char *at = line->text + line->content + strspn(line->text + line->content, " "), *behind = match->end;
	uint64_t number = match->said.figure[SL_LOG_line];
	bool pytest = py[3] == ':';

	if (at > py || memchr(at, ' ', (size_t)(py - at)) ||
	    (pytest ? number == SL_LOG_UNKNOWN : !strchr("/~", *at) || !strchr(behind, '(')))
		return false;
	if (pytest && *behind && strncmp(behind, " in ", 4) && !has(behind, "Error"))
		return false;
	push(stack, at, (size_t)(py + 3 - at), pytest ? number : 0);
	return true;
}

bool sl_log_stack_take(struct sl_log_stack *stack, const struct sl_log_line *line, size_t at, const struct sl_log_match *match,
		       const struct sl_log_line *next)
{
	const struct sl_log_said *said = &match->said;
	struct sl_log_frame *frame;
	bool taken = true;
	char cell[32];

	if (said->figure[SL_LOG_cell] != SL_LOG_UNKNOWN) {
		snprintf(cell, sizeof(cell), "Cell In[%llu]", (unsigned long long)said->figure[SL_LOG_cell]);
		push(stack, cell, strlen(cell), said->figure[SL_LOG_line]);
	} else if (*said->text[SL_LOG_TEXT_file]) {
		frame = push_file(stack, said);
		taken = frame != NULL;
		if (taken)
			copy(frame->function, sizeof(frame->function), said->text[SL_LOG_TEXT_function], SL_LOG_LONGEST);
		if (taken && next && line->text[at + 5] == '"')
			take_source(frame, line, at, next);
	} else if (line->text[at] == '.') {
		taken = take_place(stack, line, line->text + at, match);
	} else {
		taken = take_running(stack, said);
	}
	if (taken)
		stack->last = line->number;
	return taken;
}

/* "torch.OutOfMemoryError: ..." at the begin of a line */
bool sl_log_stack_end(struct sl_log_stack *stack, const struct sl_log_line *line)
{
	const char *at = line->text + line->content;
	size_t size = 0;

	while (isalnum((unsigned char)at[size]) || at[size] == '_' || at[size] == '.')
		size++;
	if (!stack->count || stack->ended || size < 5 || (at[size] && at[size] != ':') ||
	    !(memmem(at, size, "Error", 5) || memmem(at, size, "Exception", 9) || memmem(at, size, "Fail", 4)))
		return false;
	stack->ended = true;
	stack->end = line->number;
	return true;
}

enum sl_log_doing sl_log_stack_doing(const struct sl_log_stack *stack)
{
	static const struct {
		const char *functions, *sources[4]; /* of a frame; the first row that fits the innermost frame is taken */
	} rows[] = {
		[SL_LOG_DOING_weights] =
			{" convert caching_allocator_warmup create_weights load_model from_pretrained load_state_dict "
			 "set_module_tensor_to_device _load_parameter_into_model "},
		[SL_LOG_DOING_pinned] = {" pin_memory ", {"pin_memory"}},
		[SL_LOG_DOING_save] = {" _save_checkpoint ", {"state_dict("}},
		[SL_LOG_DOING_optimizer] = {" _init_group ", {"optim.step(", "optimizer.step("}},
		[SL_LOG_DOING_backward] = {"", {".backward("}},
		[SL_LOG_DOING_logits] = {"", {"cross_entropy", "log_softmax", "logits", "lm_head"}},
		[SL_LOG_DOING_scores] = {"", {".transpose(-2, -1)", ".transpose(-1, -2)", "k.mT", "scores"}},
		[SL_LOG_DOING_decode] = {" decode_tiled ", {"self._decode(", "vae.decode"}},
	};
	unsigned seen = 0;

	for (unsigned i = stack->count; i-- && seen < 2;) {
		const struct sl_log_frame *frame = &stack->frame[i];
		char function[sizeof(frame->function) + 2];

		seen += frame->own; /* the innermost own frame and its caller, and what they called */
		snprintf(function, sizeof(function), " %s ", frame->function);
		for (unsigned doing = 1; doing < SL_COUNT(rows); doing++) {
			if (*frame->function && strstr(rows[doing].functions, function))
				return doing;
			for (unsigned k = 0; k < SL_COUNT(rows[doing].sources) && rows[doing].sources[k]; k++)
				if (strstr(frame->source, rows[doing].sources[k]))
					return doing;
		}
	}
	return SL_LOG_DOING_unknown;
}
