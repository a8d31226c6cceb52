/* SPDX-License-Identifier: MIT */
/* One pass over the lines: what failed, and what servers say of themselves. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/terminal.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

#define AHEAD	  48 /* lines that a sentence may look ahead */
#define RING	  64
#define WINDOW	  8192 /* and bytes */
#define NARROWEST 40   /* terminal */
#define STACKS	  32
#define NEAR	  64 /* lines between what belongs together */

struct reader {
	struct sl_log *log;
	struct sl_log_line line[RING]; /* the oldest one is at `at`; some before it are still there */
	unsigned at, count;
	struct sl_log_stack stack[STACKS];
	unsigned stacks;
	int rank_of_file;
	unsigned card; /* of a row of nvidia-smi's table */
	char *window;  /* the line and what follows it */
	size_t room;
};

static bool is_same_process(const struct sl_log_line *a, const struct sl_log_line *b)
{
	return a->rank == b->rank && a->pid == b->pid;
}

/* i lines behind the oldest one. */
static struct sl_log_line *line_at(struct reader *reader, int i)
{
	return &reader->line[(reader->at + RING + (unsigned)i) % RING];
}

/* A line that a terminal broke, or a later one of a record, is of the process of the one before. */
static const struct sl_log_line *parted(struct reader *reader, int i)
{
	struct sl_log_line *line = line_at(reader, i);
	const struct sl_log_line *before;

	if (line->parted)
		return line;
	sl_log_line_part(line);
	if (line->content || line->number == 1 || line_at(reader, i - 1)->number + 1 != line->number)
		return line;
	before = parted(reader, i - 1);
	line->record = before->record || strstr(before->text + before->content, ": Traceback (most recent");
	if (line->goes_on || line->record) {
		line->rank = before->rank;
		line->pid = before->pid;
	}
	return line;
}

/* The following line of the same process. */
static const struct sl_log_line *next_line(struct reader *reader, const struct sl_log_line *line)
{
	for (unsigned i = 1; i < reader->count; i++)
		if (is_same_process(parted(reader, (int)i), line))
			return line_at(reader, (int)i);
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
static const char *look_ahead(struct reader *reader, const struct sl_log_line *line)
{
	const struct sl_log_line *last = line;
	size_t size = line->size, room = size + WINDOW, before = line_at(reader, -1)->size;

	if (reader->room < room + SL_LOG_SPARE)
		reader->window = sl_memory_must(realloc(reader->window, (reader->room = room + SL_LOG_SPARE)));
	memcpy(reader->window, line->text, size);
	for (unsigned i = 1; i < reader->count && size < room; i++) {
		const struct sl_log_line *next = parted(reader, (int)i);
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
	if (!SL_LOG_KNOWN(*figure))
		*figure = value;
}

/* Adds to `a` what it does not say. */
static void add_said(struct sl_log_said *a, const struct sl_log_said *b)
{
	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT; i++)
		set(&a->figure[i], b->figure[i]);
	for (unsigned i = 0; i < SL_LOG_TEXT_COUNT; i++)
		if (!*a->text[i])
			memcpy(a->text[i], b->text[i], SL_LOG_LONGEST);
	if (!a->others) {
		memcpy(a->other, b->other, sizeof(a->other));
		a->others = b->others;
	}
}

/* What a server says twice is said of the same; of several engines or ranks the first counts, and each device has its own. */
static void take_facts(struct sl_log *log, const struct sl_log_said *said)
{
	static const enum sl_log_figure lasting[] = {SL_LOG_allocated, SL_LOG_limit, SL_LOG_batch}; /* the last word counts */
	uint64_t device = said->figure[SL_LOG_device];

	for (unsigned i = 0; i < SL_COUNT(lasting); i++)
		if (SL_LOG_KNOWN(said->figure[lasting[i]]))
			log->said.figure[lasting[i]] = said->figure[lasting[i]];
	add_said(&log->said, said);
	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT && device < SL_LOG_DEVICES; i++)
		set(&log->on_device[device][i], said->figure[i]);
}

static bool is_equal(const struct sl_log_failure *a, const struct sl_log_failure *b, enum sl_log_figure figure)
{
	uint64_t one = a->said.figure[figure], other = b->said.figure[figure];

	return one == other || !SL_LOG_KNOWN(one) || !SL_LOG_KNOWN(other);
}

/*
 * True: both tell the same request, or requests of one process.  Processes differ by their ranks and files, or by their devices;
 * where another process copies a sentence, its figures are the same.
 */
static bool is_copy(const struct sl_log_failure *a, const struct sl_log_failure *b)
{
	static const enum sl_log_figure same[] = {SL_LOG_asked, SL_LOG_free, SL_LOG_allocated};
	bool figures = SL_LOG_KNOWN(a->said.figure[SL_LOG_asked]);

	for (unsigned i = 0; i < SL_COUNT(same); i++)
		figures &= a->said.figure[same[i]] == b->said.figure[same[i]];
	if (a->handled ||
	    (a->row->cause == SL_LOG_CAUSE_pinned_or_host_memory) != (b->row->cause == SL_LOG_CAUSE_pinned_or_host_memory))
		return false;
	if (a->rank >= 0 && b->rank >= 0)
		return a->rank == b->rank;
	if (a->file != b->file)
		return false;
	if (a->pid >= 0 && b->pid >= 0 && a->pid != b->pid)
		return figures && is_equal(a, b, SL_LOG_device);
	return is_equal(a, b, SL_LOG_device) || a->row->form == SL_LOG_FORM_host;
}

/* What two sentences of one request have, in `a`. */
static void merge(struct sl_log_failure *a, const struct sl_log_failure *b)
{
	bool heavier = sl_log_forms[b->row->form].weight > sl_log_forms[a->row->form].weight;
	struct sl_log_said said = a->said;

	if (heavier) {
		a->said = b->said;
		add_said(&a->said, &said);
	} else if (is_equal(a, b, SL_LOG_asked)) { /* a later request does not change the figures of the first one */
		add_said(&a->said, &b->said);
	}
	if (heavier || a->cause == SL_LOG_CAUSE_none || a->cause == SL_LOG_CAUSE_figureless)
		a->cause = b->cause ?: a->cause;
	if (heavier)
		a->row = b->row;
	if (!a->frames) {
		memcpy(a->frame, b->frame, sizeof(a->frame));
		a->frames = b->frames;
	}
	a->doing = a->doing ?: b->doing;
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

	failure->frames = 0;
	for (unsigned i = 0; i < stack->count; i++) {
		own += stack->frame[i].own;
		failure->windows |= !strncmp(stack->frame[i].file + 1, ":\\", 2);
	}
	for (unsigned i = 0; i < stack->count; i++)
		if (stack->frame[i].own && (!seen++ || own - seen < SL_LOG_FRAMES - 1))
			failure->frame[failure->frames++] = stack->frame[i];
	failure->doing = sl_log_stack_doing(stack);
}

static void take_frame(struct reader *reader, const struct sl_log_line *line, size_t at, const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct sl_log_stack *stack = stack_of(reader, line);
	struct sl_log_failure *failure = log->failures ? &log->failure[log->failures - 1] : NULL;
	bool report = failure && failure->row->form == SL_LOG_FORM_comfy && !failure->raised;

	if (!sl_log_stack_take(stack, line, at, match, next_line(reader, line)) || !failure || failure->last + NEAR < line->number)
		return;
	/* pytest tells the place behind the error, and ComfyUI's report has the whole stack there */
	if (report || (!failure->frames && strstr(line->text, "Error"))) {
		take_frames(failure, stack);
		failure->raised = !report;
	}
}

static void add_failure(struct reader *reader, const struct sl_log_line *line, const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct sl_log_stack *stack = stack_of(reader, line);
	struct sl_log_failure failure = {.row = match->row,
					 .cause = match->row->cause,
					 .said = match->said,
					 .rank = line->rank < 0 ? reader->rank_of_file : line->rank,
					 .pid = line->pid,
					 .time_ms = line->time_ms,
					 .last = line->number,
					 .file = log->files,
					 .severity = line->severity,
					 .late = log->last[SL_LOG_SERVE] > 0};

	if (stack->count && line->number - stack->last < NEAR && (!stack->ended || stack->end + 4 >= line->number)) {
		take_frames(&failure, stack);
		failure.raised = true;
	}
	failure.handled = !failure.raised && log->last[SL_LOG_RETRY] && log->last[SL_LOG_RETRY] + 2 >= line->number;
	for (unsigned i = log->failures; i--;)
		if (is_copy(&log->failure[i], &failure) &&
		    (match->row->means == SL_LOG_FAIL || log->failure[i].row->form == match->row->form)) {
			merge(&log->failure[i], &failure);
			return;
		}
	/* a launcher's word of signal 9 has no form: behind a failure it tells its end */
	if (log->failures < SL_LOG_FAILURES && match->row->means == SL_LOG_FAIL && (match->row->form || !log->failures))
		log->failure[log->failures++] = failure;
}

/* "|   3  NVIDIA ...", then "|  30%  33C  P8  22W / 300W |  4MiB / 49140MiB |": a card that nothing uses. */
static void find_idle(struct reader *reader, const struct sl_log_line *line)
{
	const char *used = strstr(line->text, "MiB /"), *digits = used;

	if (line->text[0] != '|' || !(used || strstr(line->text, "Off")))
		return;
	while (used && sl_log_digit(digits[-1]))
		digits--;
	if (used && reader->card < 64 && strtoul(digits, NULL, 10) < 1000)
		reader->log->idle |= 1ull << reader->card;
	reader->card = used ? 64 : (unsigned)strtoul(line->text + 1, NULL, 10);
}

/* What the sentence says that begins at `at` of the line. */
static void obey(struct reader *reader, const struct sl_log_line *line, size_t at, const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct sl_log_stack *stack = stack_of(reader, line);
	const struct sl_log_row *row = match->row;

	log->last[row->means] = line->number;
	switch (row->means) {
	case SL_LOG_FAIL:
	case SL_LOG_ECHO:
		add_failure(reader, line, match);
		return;
	case SL_LOG_LOOK:
		find_idle(reader, line);
		return;
	case SL_LOG_COMMAND: /* "$ vllm serve ...": the program as its user started it */
		if (!*log->command && at == strspn(line->text, " ") && line->size - at < sizeof(log->command))
			strcpy(log->command, line->text + at + 2);
		return;
	case SL_LOG_TRACE:
		if (stack->count && !stack->ended)
			log->last_exception = line->number;
		stack->ended = !strstr(line->text, "Original Traceback"); /* of another thread, behind that of its caller */
		stack->last = line->number;
		return;
	case SL_LOG_FRAME:
		take_frame(reader, line, at, match);
		return;
	case SL_LOG_RETRY:
		for (unsigned i = 0; i < log->failures; i++)
			log->failure[i].handled |= log->failure[i].last + NEAR > line->number;
		/* fall through */
	case SL_LOG_HARMLESS:
		log->warned = log->warned ?: row->form;
		break;
	default:
		break;
	}
	take_facts(log, &match->said);
	if (row->form && row->means != SL_LOG_HARMLESS && sl_log_forms[row->form].weight >= sl_log_forms[log->server].weight)
		log->server = row->form;
}

static void take_oldest(struct reader *reader)
{
	struct sl_log *log = reader->log;
	const struct sl_log_line *line = line_at(reader, 0);
	const char *next = reader->count > 1 && line_at(reader, 1)->goes_on ? line_at(reader, 1)->text : NULL, *window = NULL;
	struct sl_log_match match;
	size_t from;
	bool far;

	for (size_t at = 0; (from = sl_log_find(line->text, line->size, at, next, &far)) != SIZE_MAX;) {
		at = from + 1;
		if (far && !window) {
			window = look_ahead(reader, parted(reader, 0));
			log->conf |= strstr(window, "expandable_segments:True to avoid") != NULL;
		}
		if (!sl_log_match((far ? window : line->text) + from, &match))
			continue;
		if (sl_log_stack_end(stack_of(reader, parted(reader, 0)), line))
			log->last_exception = line->number;
		obey(reader, line, from, &match);
		if (far && match.row->means < SL_LOG_LOOK && match.end > window + at)
			at = (size_t)(match.end - window);
	}
	reader->at = (reader->at + 1) % RING;
	reader->count--;
}

static void take_line(void *context, const char *text, size_t size)
{
	struct reader *reader = context;
	int count = (int)reader->count;
	struct sl_log_line *line = line_at(reader, count), *before = line_at(reader, count - 1);

	if (line->room < size + SL_LOG_SPARE)
		line->text = sl_memory_must(realloc(line->text, (line->room = size + 128)));
	memcpy(line->text, text, size + 1);
	line->size = size;
	line->parted = line->record = false;
	line->number = ++reader->log->lines;
	line->goes_on = before->number && is_broken(before, line, line_at(reader, count - 2)->size);
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
	struct reader *reader = sl_memory_must(calloc(1, sizeof(*reader)));
	const char *why;

	reader->log = log;
	reader->rank_of_file = rank_of_name(name);
	reader->card = 64;
	why = sl_log_lines(file, take_line, reader, progress, &log->written);
	while (reader->count)
		take_oldest(reader);
	for (unsigned i = 0; i < RING; i++)
		free(reader->line[i].text);
	for (unsigned i = 0; i < reader->stacks; i++)
		free(reader->stack[i].frame);
	free(reader->window);
	free(reader);
	log->files++;
	return why;
}

struct sl_log *sl_log_new(void)
{
	struct sl_log *log = sl_memory_must(calloc(1, sizeof(*log)));

	memset(log->said.figure, 0xff, sizeof(log->said.figure));
	memset(log->on_device, 0xff, sizeof(log->on_device));
	return log;
}

static uint64_t file_size; /* of the log that is read */

static void show_progress(uint64_t read)
{
	if (file_size)
		fprintf(stderr, "\r\033[Kreading: %3.0f %%", 100 * (double)read / (double)file_size);
}

struct sl_log *sl_log_of(char *const *paths, bool quiet)
{
	struct sl_log *log = sl_log_new();
	bool shown = !quiet && sl_terminal_rewrites(STDERR_FILENO);

	for (; *paths; paths++) {
		FILE *file = strcmp(*paths, "-") ? sl_paths_open_file(*paths) : stdin;
		const char *why = "";
		struct stat st;

		if (file) {
			file_size = !fstat(fileno(file), &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
			why = sl_log_read(log, file, *paths, shown ? show_progress : NULL);
		} else {
			sl_paths_failed(*paths);
		}
		if (shown)
			fputs("\r\033[K", stderr);
		if (file && file != stdin)
			fclose(file);
		if (!why)
			continue;
		if (*why)
			sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", *paths, why);
		free(log);
		return NULL;
	}
	sl_log_judge(log);
	return log;
}
