/* SPDX-License-Identifier: MIT */
/* One pass over the lines: what failed, and what servers say of themselves. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/logs/forms.h"
#include "analyzer/logs/frames.h"
#include "analyzer/logs/lines.h"
#include "common/base.h"

#define AHEAD	  48   /* lines that a sentence may look ahead */
#define WINDOW	  8192 /* and bytes */
#define BOUNDARY  64
#define NARROWEST 40 /* terminal */
#define STACKS	  32
#define NEAR	  64 /* lines between what belongs together */

struct reader {
	struct sl_log *log;
	struct sl_log_line line[AHEAD]; /* a ring; the oldest one is at `at` */
	unsigned at, count;
	size_t before;		    /* size of the line before the oldest one */
	struct sl_log_stack *stack; /* of STACKS */
	unsigned stacks;
	int rank_of_file;
	char *window; /* the line and what follows it */
	size_t window_room;
};

static bool is_same_process(const struct sl_log_line *a, const struct sl_log_line *b)
{
	return a->rank == b->rank && a->pid == b->pid;
}

static const struct sl_log_line *ahead(const struct reader *reader, unsigned i)
{
	return &reader->line[(reader->at + i) % AHEAD];
}

static const struct sl_log_line *next_of(const struct reader *reader, const struct sl_log_line *line)
{
	for (unsigned i = 1; i < reader->count; i++)
		if (is_same_process(ahead(reader, i), line))
			return ahead(reader, i);
	return NULL;
}

static struct sl_log_stack *stack_of(struct reader *reader, const struct sl_log_line *line)
{
	struct sl_log_stack *oldest = reader->stack;

	for (unsigned i = 0; i < reader->stacks; i++) {
		struct sl_log_stack *stack = &reader->stack[i];

		if (stack->rank == line->rank && stack->pid == line->pid)
			return stack;
		oldest = stack->last < oldest->last ? stack : oldest;
	}
	if (reader->stacks < STACKS)
		oldest = &reader->stack[reader->stacks++];
	oldest->rank = line->rank;
	oldest->pid = line->pid;
	oldest->count = 0;
	oldest->ended = false;
	return oldest;
}

/* True: a terminal broke the text between two lines, also within a word: they are as wide as one that stands before or behind. */
static bool is_broken(const struct sl_log_line *line, const struct sl_log_line *next, size_t before)
{
	return line->size >= NARROWEST && (next->size == line->size || (before == line->size && next->size < before));
}

/* The line and the following ones of the same process, without their prefixes. */
static char *look_ahead(struct reader *reader, const struct sl_log_line *line)
{
	const struct sl_log_line *last = line;
	size_t size = line->size, room = size + WINDOW, before = reader->before;

	if (reader->window_room < room + 1)
		reader->window = sl_memory_must(realloc(reader->window, (reader->window_room = room + 1)));
	memcpy(reader->window, line->text, size);
	for (unsigned i = 1; i < reader->count && size < room; i++) {
		const struct sl_log_line *next = ahead(reader, i);
		size_t part = next->size - next->content;

		if (!is_same_process(next, line))
			continue;
		if (!is_broken(last, next, before))
			reader->window[size++] = '\n';
		before = last->size;
		last = next;
		part = part < room - size ? part : room - size;
		memcpy(reader->window + size, next->text + next->content, part);
		size += part;
	}
	reader->window[size] = 0;
	return reader->window;
}

static void set(uint64_t *figure, uint64_t value)
{
	if (*figure == SL_LOG_UNKNOWN)
		*figure = value;
}

static const char *text_at(struct sl_log *log, const struct sl_log_match *match, enum sl_log_text text)
{
	size_t size = match->text[text].size;

	while (size && strchr(" \t\n", match->text[text].at[size - 1]))
		size--;
	return match->text[text].at && size ? sl_arena_strndup(&log->arena, match->text[text].at, size < 120 ? size : 120) : NULL;
}

/* What a server says twice is said of the same; of several engines or ranks the first counts, and each device has its own. */
static void take_facts(struct sl_log *log, const struct sl_log_match *match)
{
	uint64_t device = match->figure[SL_LOG_device];

	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT; i++) {
		if (match->figure[i] == SL_LOG_UNKNOWN)
			continue;
		if (i == SL_LOG_allocated || i == SL_LOG_limit) /* the last word counts */
			log->fact[i] = match->figure[i];
		set(&log->fact[i], match->figure[i]);
		if (device < SL_LOG_DEVICES)
			set(&log->on_device[device][i], match->figure[i]);
	}
	for (unsigned i = 0; i < SL_LOG_TEXT_COUNT; i++)
		log->text[i] = log->text[i] ? log->text[i] : text_at(log, match, i);
}

static bool is_equal(const struct sl_log_failure *a, const struct sl_log_failure *b, enum sl_log_figure figure)
{
	return a->figure[figure] == b->figure[figure] || a->figure[figure] == SL_LOG_UNKNOWN || b->figure[figure] == SL_LOG_UNKNOWN;
}

/*
 * True: both tell the same request, or requests of one process.  Processes differ by their ranks and files, or by their devices;
 * where another process copies a sentence, its figures are the same.
 */
static bool is_copy(const struct sl_log_failure *a, const struct sl_log_failure *b)
{
	bool figures = a->figure[SL_LOG_asked] != SL_LOG_UNKNOWN && a->figure[SL_LOG_asked] == b->figure[SL_LOG_asked] &&
		       a->figure[SL_LOG_free] == b->figure[SL_LOG_free] &&
		       a->figure[SL_LOG_allocated] == b->figure[SL_LOG_allocated];

	if (a->handled || (a->form == SL_LOG_FORM_host) != (b->form == SL_LOG_FORM_host))
		return false;
	if (a->rank >= 0 && b->rank >= 0)
		return a->rank == b->rank;
	if (a->file != b->file)
		return false;
	if (a->pid >= 0 && b->pid >= 0 && a->pid != b->pid)
		return figures && is_equal(a, b, SL_LOG_device);
	return is_equal(a, b, SL_LOG_device) || a->form == SL_LOG_FORM_host;
}

/* What two sentences of one request have, in `a`. */
static void merge(struct sl_log_failure *a, const struct sl_log_failure *b)
{
	bool heavier = sl_log_form_weight(b->form) > sl_log_form_weight(a->form);
	/* a later request of the same process does not change the figures of the first one */
	bool same = is_equal(a, b, SL_LOG_asked) || heavier;

	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT && same; i++)
		if (a->figure[i] == SL_LOG_UNKNOWN || (heavier && b->figure[i] != SL_LOG_UNKNOWN))
			a->figure[i] = b->figure[i];
	for (unsigned i = 0; i < SL_LOG_TEXT_COUNT && same; i++)
		a->text[i] = a->text[i] ? a->text[i] : b->text[i];
	if (heavier)
		a->form = b->form, a->source = b->source, a->pattern = b->pattern;
	if (heavier || a->cause == SL_LOG_CAUSE_none || a->cause == SL_LOG_CAUSE_figureless)
		a->cause = b->cause ? b->cause : a->cause;
	if (!a->frames) {
		memcpy(a->frame, b->frame, sizeof(a->frame));
		a->frames = b->frames;
	}
	a->doing = a->doing ? a->doing : b->doing;
	if (!a->others) {
		memcpy(a->other, b->other, sizeof(a->other));
		a->others = b->others;
	}
	a->rank = a->rank < 0 ? b->rank : a->rank;
	a->pid = a->pid < 0 ? b->pid : a->pid;
	a->raised |= b->raised;
	a->windows |= b->windows;
	a->severity = b->severity > a->severity ? b->severity : a->severity;
	a->last = b->last;
}

/* Own frames: the outermost one, and the innermost ones. */
static void take_frames(struct sl_log_failure *failure, const struct sl_log_stack *stack)
{
	unsigned own = 0, seen = 0;

	for (unsigned i = 0; i < stack->count; i++)
		own += stack->frame[i].own;
	for (unsigned i = 0; i < stack->count; i++) {
		if (!stack->frame[i].own)
			continue;
		if (!seen++ || own - seen < SL_LOG_FRAMES - 1)
			failure->frame[failure->frames++] = stack->frame[i];
	}
	for (unsigned i = 0; i < stack->count; i++)
		failure->windows |= stack->frame[i].file[1] == ':' && stack->frame[i].file[2] == '\\';
	failure->doing = sl_log_stack_doing(stack);
}

/* pytest tells the place behind the error, and ComfyUI's report has the whole stack there. */
static void add_place(struct sl_log_failure *failure, const struct sl_log_stack *stack, const struct sl_log_line *line)
{
	bool report = failure->form == SL_LOG_FORM_comfy && !failure->raised;

	if ((failure->frames && !report) || failure->last + NEAR < line->number || (!report && !strstr(line->text, "Error")))
		return;
	failure->frames = 0;
	take_frames(failure, stack);
	failure->raised = !report;
}

static void add_failure(struct reader *reader, const struct sl_log_line *line, const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct sl_log_stack *stack = stack_of(reader, line);
	struct sl_log_failure failure = {.form = match->row->form,
					 .cause = match->row->cause,
					 .rank = line->rank < 0 ? reader->rank_of_file : line->rank,
					 .pid = line->pid,
					 .time_ms = line->time_ms,
					 .first = line->number,
					 .last = line->number,
					 .file = log->files,
					 .severity = line->severity,
					 .source = match->row->source,
					 .pattern = match->row->pattern,
					 .late = log->serves,
					 .others = match->others};

	memcpy(failure.figure, match->figure, sizeof(failure.figure));
	for (unsigned i = 0; i < SL_LOG_TEXT_COUNT; i++)
		failure.text[i] = text_at(log, match, i);
	for (unsigned i = 0; i < match->others; i++) {
		failure.other[i].pid = match->other[i].pid;
		failure.other[i].bytes = match->other[i].bytes;
	}
	if (stack->count && line->number - stack->last < NEAR && (!stack->ended || stack->end + 4 >= line->number)) {
		take_frames(&failure, stack);
		failure.raised = true;
	}
	failure.handled = !failure.raised && log->last_retry && log->last_retry + 2 >= line->number;
	for (unsigned i = log->failures; i--;)
		if (is_copy(&log->failure[i], &failure) &&
		    (match->row->means == SL_LOG_FAIL || log->failure[i].form == failure.form)) {
			merge(&log->failure[i], &failure);
			return;
		}
	if (log->failures < SL_LOG_FAILURES && match->row->means == SL_LOG_FAIL)
		log->failure[log->failures++] = failure;
}

static void handle_failures(struct sl_log *log, const struct sl_log_line *line)
{
	for (unsigned i = 0; i < log->failures; i++)
		if (log->failure[i].last + NEAR > line->number)
			log->failure[i].handled = true;
	log->last_retry = line->number;
}

static void obey(struct reader *reader, const struct sl_log_line *line, const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;

	switch (match->row->means) {
	case SL_LOG_FAIL:
	case SL_LOG_ECHO:
		add_failure(reader, line, match);
		break;
	case SL_LOG_SAY:
		take_facts(log, match);
		break;
	case SL_LOG_SERVE:
		log->serves = true;
		break;
	case SL_LOG_RETRY:
		handle_failures(log, line);
		log->warned = log->warned ? log->warned : match->row->form;
		if (match->figure[SL_LOG_batch] != SL_LOG_UNKNOWN)
			log->fact[SL_LOG_batch] = match->figure[SL_LOG_batch];
		break;
	case SL_LOG_HARMLESS:
		log->warned = match->row->form;
		set(&log->fact[SL_LOG_asked], match->figure[SL_LOG_asked]);
		break;
	case SL_LOG_PRESS:
		log->pressure = line->number;
		break;
	case SL_LOG_WELL:
		log->last_well = line->number;
		break;
	case SL_LOG_ROOT:
		log->root = match->figure[SL_LOG_rank] < 1u << 20 ? (int)match->figure[SL_LOG_rank] : log->root;
	}
	if (match->row->form != SL_LOG_FORM_none && match->row->means > SL_LOG_ECHO && match->row->means != SL_LOG_HARMLESS &&
	    sl_log_form_weight(match->row->form) >= sl_log_form_weight(log->server))
		log->server = match->row->form;
}

/* Sentences that begin in this line, or at its end where a terminal or a chat has broken them. */
static void find_sentences(struct reader *reader, const struct sl_log_line *line)
{
	const struct sl_log_line *next = next_of(reader, line);
	char boundary[2 * BOUNDARY + 2];
	size_t begin = line->size > BOUNDARY ? line->size - BOUNDARY : 0, size = line->size - begin, more, at = 0, from,
	       broken = SIZE_MAX, glue = 1;
	const char *window = NULL;
	struct sl_log *log = reader->log;

	for (;;) {
		struct sl_log_match match;

		from = at;
		at = sl_log_find(line->text, line->size, from, line->size);
		if (at == SIZE_MAX && broken == SIZE_MAX && next) {
			memcpy(boundary, line->text + begin, size);
			glue = !is_broken(line, next, reader->before);
			boundary[size] = ' ';
			more = next->size - next->content < BOUNDARY ? next->size - next->content : BOUNDARY;
			memcpy(boundary + size + glue, next->text + next->content, more);
			broken = sl_log_find(boundary, size + glue + more, from > begin ? from - begin : 0, size);
			at = broken == SIZE_MAX ? SIZE_MAX : begin + broken;
		}
		if (at == SIZE_MAX)
			return;
		window = window ? window : look_ahead(reader, line);
		log->conf |= strstr(window, "expandable_segments:True to avoid") != NULL;
		if (broken != SIZE_MAX && glue)
			((char *)window)[line->size] = ' ';
		if (sl_log_match(window + at, &match)) {
			obey(reader, line, &match);
			at += match.end > window + at ? (size_t)(match.end - window) - at : 1;
		} else {
			at++;
		}
		if (at >= line->size)
			return;
	}
}

/* "$ vllm serve ...": the program as its user started it. */
static void find_command(struct sl_log *log, const struct sl_log_line *line)
{
	const char *at = line->text + strspn(line->text, " ");

	if (log->command || (strncmp(at, "$ ", 2) && strncmp(at, "+ ", 2)) || strlen(at) < 8 || strlen(at) > 1000)
		return;
	at += 2;
	if (strstr(at, "python") == at || strstr(at, "vllm") == at || strstr(at, "torchrun") == at ||
	    strstr(at, "accelerate") == at || strstr(at, "llama-") || strstr(at, "trtllm") == at || !strncmp(at, "./", 2) ||
	    strstr(at, "deepspeed") == at)
		log->command = sl_arena_strdup(&log->arena, at);
}

/* "|   3  NVIDIA ...", then "|  30%  33C  P8  22W / 300W |  4MiB / 49140MiB |": a card that nothing uses. */
static void find_idle(struct sl_log *log, const struct sl_log_line *line)
{
	static unsigned card; /* of the row before */
	const char *used = strstr(line->text, "MiB /"), *digits = used;
	unsigned long index = line->text[0] == '|' && line->text[1] == ' ' ? strtoul(line->text + 1, NULL, 10) : SL_LOG_DEVICES;

	if (line->text[0] != '|')
		return;
	if (!used) {
		card = index < 64 && strstr(line->text, "Off") ? (unsigned)index : card;
		return;
	}
	while (digits > line->text && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	if (card < 64 && strtoul(digits, NULL, 10) < 1000)
		log->idle |= 1ull << card;
	card = 64;
}

static void take_oldest(struct reader *reader)
{
	struct sl_log *log = reader->log;
	struct sl_log_line *line = &reader->line[reader->at];
	struct sl_log_stack *stack = stack_of(reader, line);
	bool open = stack->count && !stack->ended, part;

	part = sl_log_stack_take(stack, line, next_of(reader, line));
	if (part && log->failures)
		add_place(&log->failure[log->failures - 1], stack, line);
	if (open && stack->ended)
		log->last_exception = line->number;
	find_sentences(reader, line);
	find_command(log, line);
	find_idle(log, line);
	reader->before = line->size;
	reader->at = (reader->at + 1) % AHEAD;
	reader->count--;
}

static void take_line(void *context, char *text, size_t size)
{
	struct reader *reader = context;
	struct sl_log_line *line = &reader->line[(reader->at + reader->count) % AHEAD];
	const struct sl_log_line *before = reader->count > 1 ? ahead(reader, reader->count - 1) : NULL;

	if (line->room < size + 1)
		line->text = sl_memory_must(realloc(line->text, (line->room = size + 128)));
	memcpy(line->text, text, size + 1);
	line->size = size;
	line->number = ++reader->log->lines;
	sl_log_line_part(line);
	if (before && !line->content && is_broken(before, line, ahead(reader, reader->count - 2)->size)) {
		line->rank = before->rank;
		line->pid = before->pid;
	}
	if (++reader->count == AHEAD)
		take_oldest(reader);
}

/* rank5.log, 5.err: the rank that a launcher put into the name; -1: none. */
static int rank_of_name(const char *name)
{
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name, *rank = strcasestr(base, "rank");

	rank = rank ? rank + 4 + strspn(rank + 4, "-_.") : base;
	return strspn(rank, "0123456789") && strspn(rank, "0123456789") < 6 ? (int)strtol(rank, NULL, 10) : -1;
}

const char *sl_log_read(struct sl_log *log, FILE *file, const char *name, void (*progress)(uint64_t read))
{
	struct reader reader = {.log = log, .rank_of_file = rank_of_name(name)};
	const char *why;

	reader.stack = sl_memory_must(calloc(STACKS, sizeof(*reader.stack)));
	why = sl_log_lines(file, take_line, &reader, progress, &log->written);
	while (reader.count)
		take_oldest(&reader);
	for (unsigned i = 0; i < AHEAD; i++)
		free(reader.line[i].text);
	free(reader.stack);
	free(reader.window);
	log->files++;
	return why;
}

struct sl_log *sl_log_new(void)
{
	struct sl_log *log = sl_memory_must(calloc(1, sizeof(*log)));

	log->failure = sl_memory_must(calloc(SL_LOG_FAILURES, sizeof(*log->failure)));
	memset(log->fact, 0xff, sizeof(log->fact));
	memset(log->on_device, 0xff, sizeof(log->on_device));
	memset(log->ledger, 0xff, sizeof(log->ledger));
	log->root = -1;
	return log;
}

void sl_log_free(struct sl_log *log)
{
	if (!log)
		return;
	sl_arena_free(&log->arena);
	free(log->failure);
	free(log);
}
