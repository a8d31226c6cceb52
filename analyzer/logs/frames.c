/* SPDX-License-Identifier: MIT */
#include "analyzer/logs/frames.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

#define BAR   "\xe2\x94\x82" /* the frame of rich's box */
#define POINT "\xe2\x9d\xb1" /* its mark of the line that runs */

static void copy(char *to, size_t room, const char *from, size_t size)
{
	while (size && (from[size - 1] == ' ' || from[size - 1] == '\t'))
		size--;
	if (size >= room)
		size = room - 1;
	memcpy(to, from, size);
	to[size] = 0;
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

static struct sl_log_frame *push(struct sl_log_stack *stack, const char *file, size_t size, unsigned long line)
{
	struct sl_log_frame *frame;

	if (stack->ended)
		stack->count = 0;
	stack->ended = false;
	if (stack->count == SL_LOG_DEEPEST) {
		unsigned keep = SL_LOG_DEEPEST / 4;

		memmove(&stack->frame[keep], &stack->frame[keep + 1], (SL_LOG_DEEPEST - keep - 1) * sizeof(*frame));
		stack->count--;
	}
	frame = &stack->frame[stack->count++];
	memset(frame, 0, sizeof(*frame));
	copy(frame->file, sizeof(frame->file), file, size);
	frame->line = (uint32_t)line;
	frame->own = is_own(frame->file);
	return frame;
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

static bool is_text(const char *source)
{
	return *source && strspn(source, "^~ -") != strlen(source) && strncmp(source, "File \"", 6) != 0;
}

/* File "PATH", line N, in FUNCTION */
static bool take_python(struct sl_log_stack *stack, const struct sl_log_line *line, const struct sl_log_line *next)
{
	const char *begin = strstr(line->text, "File \""), *quote = begin ? strchr(begin + 6, '"') : NULL, *in, *source;
	struct sl_log_frame *frame;
	size_t prefix;
	char *end;
	unsigned long number;

	if (!quote || strncmp(quote, "\", line ", 8) || !isdigit((unsigned char)quote[8]))
		return false;
	number = strtoul(quote + 8, &end, 10);
	frame = push(stack, begin + 6, (size_t)(quote - begin - 6), number);
	in = strncmp(end, ", in ", 5) ? "" : end + 5;
	copy(frame->function, sizeof(frame->function), in, strlen(in));
	for (prefix = (size_t)(begin - line->text); prefix && line->text[prefix - 1] == ' '; prefix--)
		;
	if (!next)
		return true;
	source = same_prefix(line->text, prefix, next);
	source += strspn(source, " \t");
	if (is_text(source))
		copy(frame->source, sizeof(frame->source), source, strlen(source));
	return true;
}

/* Cell In[3], line 7; File PATH:N, in f(x); <ipython-input-3-...> in f(x); /path/x.py in f(x) */
static bool take_ipython(struct sl_log_stack *stack, const char *at)
{
	if (!*at || !strchr("CI<F/~", *at)) /* most lines end here */
		return false;
	const char *cell = strstr(at, "In[") ? strstr(at, "In[") + 3 : strstr(at, "In [") ? strstr(at, "In [") + 4 : NULL;
	const char *in = strstr(at, " in "), *colon, *line;
	char name[32];

	if (!strncmp(at, "<ipython-input-", 15) && in)
		cell = at + 15;
	else if (cell && strncmp(at, "Cell In", 7) && strncmp(at, "Input In", 8))
		cell = NULL;
	if (cell && isdigit((unsigned char)*cell)) {
		line = strstr(cell, "line");
		snprintf(name, sizeof(name), "Cell In[%lu]", strtoul(cell, NULL, 10));
		push(stack, name, strlen(name), line ? strtoul(line + 4 + strspn(line + 4, ": "), NULL, 10) : 0);
		return true;
	}
	if (!strncmp(at, "File ", 5) && at[5] != '"' && (colon = strstr(at, ", in ")) != NULL) {
		const char *digits = colon;

		while (digits > at && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == colon || digits[-1] != ':')
			return false;
		push(stack, at + 5, (size_t)(digits - 1 - at - 5), strtoul(digits, NULL, 10));
		return true;
	}
	if ((*at == '/' || *at == '~') && in && in - at > 3 && !strncmp(in - 3, ".py", 3) && strchr(in, '(')) {
		push(stack, at, (size_t)(in - at), 0);
		return true;
	}
	return false;
}

/* ----> 7     source of the line that runs, in the frame before */
static bool take_arrow(struct sl_log_stack *stack, const char *at)
{
	size_t dashes = strspn(at, "-");
	struct sl_log_frame *frame = stack->count ? &stack->frame[stack->count - 1] : NULL;
	const char *number = at + dashes + 1;
	char *end;

	if (!dashes || at[dashes] != '>' || !frame || stack->ended)
		return false;
	number += strspn(number, " ");
	if (!isdigit((unsigned char)*number))
		return false;
	frame->line = (uint32_t)strtoul(number, &end, 10);
	end += strspn(end, " ");
	copy(frame->source, sizeof(frame->source), end, strlen(end));
	return true;
}

/* In rich's box: /path/x.py:61 in step, and its line with a point */
static bool take_rich(struct sl_log_stack *stack, const char *at)
{
	const char *in, *digits, *bar;
	struct sl_log_frame *frame;
	char *end;

	if (strncmp(at, BAR, 3))
		return false;
	at += 3 + strspn(at + 3, " ");
	if (!strncmp(at, POINT, 3) && stack->count) {
		frame = &stack->frame[stack->count - 1];
		bar = strstr(at, BAR);
		if (bar && strtoul(at + 3, NULL, 10) == frame->line) {
			bar += 3 + strspn(bar + 3, " ");
			copy(frame->source, sizeof(frame->source), bar,
			     strstr(bar, BAR) ? (size_t)(strstr(bar, BAR) - bar) : strlen(bar));
		}
		return true;
	}
	in = strstr(at, " in ");
	for (digits = in; digits && digits > at && isdigit((unsigned char)digits[-1]); digits--)
		;
	if (in && digits > at && digits < in && digits[-1] == ':') {
		frame = push(stack, at, (size_t)(digits - 1 - at), strtoul(digits, &end, 10));
		copy(frame->function, sizeof(frame->function), in + 4, strcspn(in + 4, " "));
	}
	return true;
}

/* tests/test_x.py:61: in test_step, or OutOfMemoryError, or nothing */
static bool take_pytest(struct sl_log_stack *stack, const char *at)
{
	const char *py = memmem(at, strcspn(at, " "), ".py:", 4);
	char *end;
	unsigned long number = py ? strtoul(py + 4, &end, 10) : 0;

	if (!number || *end != ':')
		return false;
	end += 1 + strspn(end + 1, " ");
	if (*end && strncmp(end, "in ", 3) && !has(end, "Error"))
		return false;
	push(stack, at, (size_t)(py + 3 - at), number);
	return true;
}

/* "torch.OutOfMemoryError: ..." at the begin of a line */
static bool is_exception(const char *at)
{
	size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	return size > 4 && (at[size] == ':' || !at[size]) &&
	       (memmem(at, size, "Error", 5) || memmem(at, size, "Exception", 9) || memmem(at, size, "Fail", 4));
}

bool sl_log_stack_take(struct sl_log_stack *stack, const struct sl_log_line *line, const struct sl_log_line *next)
{
	const char *at = line->text + line->content, *bare = at + strspn(at, " ");
	bool part;

	if (!strncmp(bare, "Traceback (most recent", 22) || !strncmp(bare, "ray::", 5)) {
		stack->ended = true;
		stack->last = line->number;
		return true;
	}
	part = take_python(stack, line, next) || take_ipython(stack, bare) || take_arrow(stack, bare) || take_rich(stack, bare) ||
	       take_pytest(stack, bare);
	if (part) {
		stack->last = line->number;
	} else if (stack->count && !stack->ended && is_exception(at)) {
		stack->ended = true;
		stack->end = line->number;
	}
	return part;
}

enum sl_log_doing sl_log_stack_doing(const struct sl_log_stack *stack)
{
	static const struct {
		const char *function, *source; /* of a frame; NULL: any.  The first row that fits the innermost frame is taken */
		enum sl_log_doing doing;
	} rows[] = {{"convert", NULL, SL_LOG_DOING_WEIGHTS},
		    {"caching_allocator_warmup", NULL, SL_LOG_DOING_WEIGHTS},
		    {"create_weights", NULL, SL_LOG_DOING_WEIGHTS},
		    {"load_model", NULL, SL_LOG_DOING_WEIGHTS},
		    {"from_pretrained", NULL, SL_LOG_DOING_WEIGHTS},
		    {"load_state_dict", NULL, SL_LOG_DOING_WEIGHTS},
		    {"set_module_tensor_to_device", NULL, SL_LOG_DOING_WEIGHTS},
		    {"_load_parameter_into_model", NULL, SL_LOG_DOING_WEIGHTS},
		    {NULL, "pin_memory", SL_LOG_DOING_PINNED},
		    {"pin_memory", NULL, SL_LOG_DOING_PINNED},
		    {NULL, "state_dict(", SL_LOG_DOING_SAVE},
		    {"_save_checkpoint", NULL, SL_LOG_DOING_SAVE},
		    {NULL, "optim.step(", SL_LOG_DOING_OPTIMIZER},
		    {NULL, "optimizer.step(", SL_LOG_DOING_OPTIMIZER},
		    {"_init_group", NULL, SL_LOG_DOING_OPTIMIZER},
		    {NULL, ".backward(", SL_LOG_DOING_BACKWARD},
		    {NULL, "cross_entropy", SL_LOG_DOING_LOGITS},
		    {NULL, "log_softmax", SL_LOG_DOING_LOGITS},
		    {NULL, "logits", SL_LOG_DOING_LOGITS},
		    {NULL, "lm_head", SL_LOG_DOING_LOGITS},
		    {NULL, ".transpose(-2, -1)", SL_LOG_DOING_SCORES},
		    {NULL, ".transpose(-1, -2)", SL_LOG_DOING_SCORES},
		    {NULL, "k.mT", SL_LOG_DOING_SCORES},
		    {NULL, "scores", SL_LOG_DOING_SCORES},
		    {"decode_tiled", NULL, SL_LOG_DOING_DECODE},
		    {NULL, "self._decode(", SL_LOG_DOING_DECODE},
		    {NULL, "vae.decode", SL_LOG_DOING_DECODE}};
	unsigned seen = 0;

	for (unsigned i = stack->count; i-- && seen < 2;) {
		const struct sl_log_frame *frame = &stack->frame[i];

		seen += frame->own; /* the innermost own frame and its caller, and what they called */
		for (size_t k = 0; k < SL_COUNT(rows); k++)
			if ((!rows[k].function || !strcmp(frame->function, rows[k].function)) &&
			    (!rows[k].source || strstr(frame->source, rows[k].source)))
				return rows[k].doing;
	}
	return SL_LOG_DOING_UNKNOWN;
}
