/* SPDX-License-Identifier: MIT */
/* One pass over the lines: what failed, and what servers say of themselves. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

#define AHEAD	  48 /* lines that a sentence may look ahead */
#define RING	  64
#define WINDOW	  8192 /* and bytes */
#define NARROWEST 40   /* terminal */
#define STACKS	  32
#define NEAR	  64 /* lines between what belongs together */

/* A traceback of Python, IPython, pytest or rich, of one process. */
struct stack {
	struct sl_log_origin from;
	bool ended;		   /* its exception was printed */
	uint64_t last, end;	   /* numbers of its last line and of its exception */
	struct sl_log_frame inner; /* the innermost one; its file "": there is none */
	struct sl_log_trace outer; /* of all others */
};

struct reader {
	struct sl_log *log;
	struct sl_log_line line[RING]; /* the oldest one is at `at`; some before it are still there */
	unsigned at, count;
	struct stack stack[STACKS];
	int rank_of_file;
	unsigned card; /* of a row of nvidia-smi's table */
	char *window;  /* the line and what follows it */
	size_t room;
};

/* A text that is cut where it does not fit. */
#define COPY(to, from) snprintf(to, sizeof(to), "%.*s", (int)sizeof(to) - 1, from)

/* Installed packages, the standard library, scripts that pip made, Cython, generated code. */
static bool is_own(const char *file)
{
	static const char *const not_own[] = {"site-packages", "dist-packages",	      "/lib/python", "/lib64/python",
					      "lib/python3",   "torchinductor",	      "<frozen",     "<string>",
					      "<stdin>",       "<__array_function__", ".pyx",	     "python_embeded/"};
	char path[sizeof(((struct sl_log_frame *)0)->file)];
	const char *slash, *lib;

	for (size_t i = 0; i <= strlen(file); i++)
		path[i] = file[i] == '\\' ? '/' : file[i];
	for (size_t i = 0; i < SL_COUNT(not_own); i++)
		if (strcasestr(path, not_own[i]))
			return false;
	slash = strrchr(path, '/');
	lib = strcasestr(path, "/lib/");
	if (lib && lib + 4 == slash && (strcasestr(path, "conda") || strcasestr(path, "/python3")))
		return false; /* C:/Python311/Lib/runpy.py */
	return !(slash && slash - path >= 4 && !strncmp(slash - 4, "/bin", 4) && !strstr(slash, ".py"));
}

/* What the program does in a frame. */
static enum sl_log_doing doing_of(const struct sl_log_frame *frame)
{
	/* a name between blanks is of a function, else of source */
	static const char *const words[][9] = {
		[SL_LOG_DOING_weights] = {" convert ", " create_weights ", " load_model ", " from_pretrained ", " load_state_dict ",
					  " set_module_tensor_to_device "},
		[SL_LOG_DOING_pinned] = {" pin_memory ", "pin_memory"},
		[SL_LOG_DOING_save] = {" _save_checkpoint ", "state_dict("},
		[SL_LOG_DOING_optimizer] = {" _init_group ", "optim.step(", "optimizer.step("},
		[SL_LOG_DOING_backward] = {".backward("},
		[SL_LOG_DOING_logits] = {"cross_entropy", "log_softmax", "logits", "lm_head"},
		[SL_LOG_DOING_scores] = {".transpose(-2, -1)", ".transpose(-1, -2)", "k.mT", "scores"},
		[SL_LOG_DOING_decode] = {" decode_tiled ", "self._decode(", "vae.decode"},
	};
	char function[sizeof(frame->function) + 2];

	snprintf(function, sizeof(function), " %s ", frame->function);
	for (unsigned doing = 1; doing < SL_COUNT(words); doing++)
		for (const char *const *word = words[doing]; *word; word++)
			if (strstr(**word == ' ' ? function : frame->source, *word))
				return doing;
	return SL_LOG_DOING_unknown;
}

/* Adds a frame that is called by those of the traceback. */
static void add_frame(struct sl_log_trace *trace, const struct sl_log_frame *frame)
{
	trace->windows |= !strncmp(frame->file + 1, ":\\", 2);
	if (is_own(frame->file)) {
		if (trace->frames == SL_LOG_FRAMES)
			memmove(&trace->frame[1], &trace->frame[2], (--trace->frames - 1) * sizeof(*frame));
		trace->frame[trace->frames++] = *frame;
		trace->before = trace->doing;
		trace->doing = SL_LOG_DOING_unknown;
	}
	trace->doing = doing_of(frame) ?: trace->doing;
}

/*
 * The source text in the line behind a frame of Python, whose words begin at `at`.  Both lines have the same prefix, but for the
 * digits of times.  Where they do not, the second line has prefixes of its own.
 */
static void take_source(struct sl_log_frame *frame, const struct sl_log_line *line, size_t at, const struct sl_log_line *next)
{
	const char *source, *a = line->text, *b = next->text;
	size_t same = 0;

	while (at && a[at - 1] == ' ')
		at--;
	while (same < at && (a[same] == b[same] || (SL_LOG_IS_DIGIT(a[same]) && SL_LOG_IS_DIGIT(b[same]))))
		same++;
	source = b + (same == at ? at : next->content);
	source += strspn(source, " ");
	if (*source && strspn(source, "^~ -") != strlen(source) && strncmp(source, "File \"", 6))
		COPY(frame->source, source);
}

/*
 * Takes what a FRAME row found at `at` of the line.  False: no frame.
 * - A row has a file with its line, or with the line behind a colon.
 * - pytest's "tests/test_x.py:61: OutOfMemoryError" and old IPython's "/path/x.py in f(x)" have the file before the words.
 * - IPython's arrow and rich's point show the line of the last frame.
 */
static bool take_words(struct stack *stack, const struct sl_log_line *line, size_t at, const struct sl_log_match *match)
{
	const struct sl_log_facts *facts = &match->facts;
	const char *file = facts->text[SL_LOG_TEXT_file], *colon = strrchr(file, ':'), *py = line->text + at, *behind = match->end;
	uint64_t cell = facts->figure[SL_LOG_cell], number = facts->figure[SL_LOG_line];
	size_t size = strlen(file);
	struct sl_log_frame *inner = &stack->inner;
	char name[32];

	if (SL_LOG_KNOWN(cell)) {
		size = (size_t)snprintf(name, sizeof(name), "Cell In[%llu]", (unsigned long long)cell);
		file = name;
		number = sl_log_known_or(number, 0); /* an arrow tells it */
	} else if (size && !SL_LOG_KNOWN(number)) {
		if (!colon || !colon[1] || colon[1 + strspn(colon + 1, SL_LOG_DIGITS)])
			return false;
		size = (size_t)(colon - file);
		number = strtoul(colon + 1, NULL, 10);
	} else if (*py == '.') {
		file = line->text + line->content + strspn(line->text + line->content, " ");
		size = (size_t)(py + 3 - file);
		if (file > py || memchr(file, ' ', size) ||
		    (py[3] == ':' ? !SL_LOG_KNOWN(number) || (*behind && !strcasestr(behind, "Error"))
				  : !strchr("/~", *file) || !strchr(behind, '(')))
			return false;
		number = sl_log_known_or(number, 0);
	} else if (!size) {
		if (!*inner->file || stack->ended || !SL_LOG_KNOWN(number))
			return false;
		inner->line = (uint32_t)number;
		COPY(inner->source, facts->text[SL_LOG_TEXT_source]);
		return true;
	}
	if (stack->ended)
		memset(&stack->outer, 0, sizeof(stack->outer));
	else if (*inner->file)
		add_frame(&stack->outer, inner);
	stack->ended = false;
	*inner = (struct sl_log_frame){.line = (uint32_t)number};
	snprintf(inner->file, sizeof(inner->file), "%.*s", (int)size, file);
	COPY(inner->function, facts->text[SL_LOG_TEXT_function]);
	return true;
}

/* True: the line is the exception that ends the traceback: "torch.OutOfMemoryError: ..." at its begin. */
static bool ends(struct stack *stack, const struct sl_log_line *line)
{
	const char *at = line->text + line->content;
	size_t size = strspn(at, SL_LOG_WORD);

	if (!*stack->inner.file || stack->ended || size < 5 || (at[size] && at[size] != ':') ||
	    !(memmem(at, size, "Error", 5) || memmem(at, size, "Exception", 9) || memmem(at, size, "Fail", 4)))
		return false;
	stack->ended = true;
	stack->end = line->number;
	return true;
}

static bool is_same_process(const struct sl_log_origin *a, const struct sl_log_origin *b)
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
		line->from.rank = before->from.rank;
		line->from.pid = before->from.pid;
	}
	return line;
}

/* The following line of the same process, behind the one at *i. */
static const struct sl_log_line *next_line(struct reader *reader, const struct sl_log_line *line, unsigned *i)
{
	while (++*i < reader->count)
		if (is_same_process(&parted(reader, (int)*i)->from, &line->from))
			return line_at(reader, (int)*i);
	return NULL;
}

static struct stack *stack_of(struct reader *reader, const struct sl_log_line *line)
{
	struct stack *oldest = reader->stack;

	for (struct stack *stack = reader->stack; stack < reader->stack + STACKS; stack++) {
		if (is_same_process(&stack->from, &line->from))
			return stack;
		oldest = stack->last < oldest->last ? stack : oldest;
	}
	*oldest = (struct stack){.from = line->from};
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
	const struct sl_log_line *last = line, *next;
	size_t size = line->size, room = size + WINDOW, before = line_at(reader, -1)->size;

	if (reader->room < room + SL_LOG_SPARE)
		reader->window = sl_memory_must(realloc(reader->window, (reader->room = room + SL_LOG_SPARE)));
	memcpy(reader->window, line->text, size);
	for (unsigned i = 0; size < room && (next = next_line(reader, line, &i));) {
		size_t part = next->size - next->content;

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

/* Adds to `a` what it does not say. */
static void add_facts(struct sl_log_facts *a, const struct sl_log_facts *b)
{
	for (unsigned i = 0; i < SL_LOG_FIGURE_COUNT; i++)
		a->figure[i] = sl_log_known_or(a->figure[i], b->figure[i]);
	for (unsigned i = 0; i < SL_LOG_TEXT_COUNT; i++)
		if (!*a->text[i])
			memcpy(a->text[i], b->text[i], SL_LOG_LONGEST);
	if (!a->others)
		memcpy(a->other, b->other, sizeof(a->other));
	a->others = a->others ?: b->others;
}

/* A figure stays as its first sentence has it, of several engines or ranks too.  Each device has figures of its own. */
static void take_facts(struct sl_log *log, const struct sl_log_match *match)
{
	static const enum sl_log_figure lasting[] = {SL_LOG_allocated, SL_LOG_limit, SL_LOG_batch}; /* the last word counts */
	const uint64_t *figure = match->facts.figure;
	enum sl_log_form form = match->row->form;

	for (unsigned i = 0; i < SL_COUNT(lasting); i++)
		log->facts.figure[lasting[i]] = sl_log_known_or(figure[lasting[i]], log->facts.figure[lasting[i]]);
	add_facts(&log->facts, &match->facts);
	if (figure[SL_LOG_device] < SL_LOG_DEVICES)
		add_facts(&log->on[figure[SL_LOG_device]], &match->facts);
	if (form && match->row->means != SL_LOG_HARMLESS && sl_log_forms[form].weight >= sl_log_forms[log->server].weight)
		log->server = form;
}

static bool is_equal(const struct sl_log_failure *a, const struct sl_log_failure *b, enum sl_log_figure figure)
{
	uint64_t one = a->facts.figure[figure], other = b->facts.figure[figure];

	return one == other || !SL_LOG_KNOWN(one) || !SL_LOG_KNOWN(other);
}

/*
 * True: both tell the same request, or requests of one process.  Processes differ by their ranks and files, or by their devices;
 * where another process copies a sentence, its figures are the same.
 */
static bool is_copy(const struct sl_log_failure *a, const struct sl_log_failure *b)
{
	bool host = a->row->cause == SL_LOG_CAUSE_pinned_or_host_memory, figures = SL_LOG_KNOWN(OF(a, asked));

	figures = figures && OF(a, asked) == OF(b, asked) && OF(a, free) == OF(b, free) && OF(a, allocated) == OF(b, allocated);
	if (a->handled || host != (b->row->cause == SL_LOG_CAUSE_pinned_or_host_memory))
		return false;
	if (a->from.rank >= 0 && b->from.rank >= 0)
		return a->from.rank == b->from.rank;
	if (a->file != b->file)
		return false;
	if (a->from.pid >= 0 && b->from.pid >= 0 && a->from.pid != b->from.pid)
		return figures && is_equal(a, b, SL_LOG_device);
	return is_equal(a, b, SL_LOG_device) || a->row->form == SL_LOG_FORM_host;
}

/* What two sentences of one request have, in `a`. */
static void merge(struct sl_log_failure *a, const struct sl_log_failure *b)
{
	bool heavier = sl_log_forms[b->row->form].weight > sl_log_forms[a->row->form].weight;
	struct sl_log_facts facts = a->facts;
	struct sl_log_trace trace = a->trace.frames ? a->trace : b->trace;

	if (heavier) {
		a->row = b->row;
		a->facts = b->facts;
	}
	if (heavier || is_equal(a, b, SL_LOG_asked)) /* a later request does not change the figures of the first one */
		add_facts(&a->facts, heavier ? &facts : &b->facts);
	if (heavier || a->cause == SL_LOG_CAUSE_none || a->cause == SL_LOG_CAUSE_figureless)
		a->cause = b->cause ?: a->cause;
	trace.doing = a->trace.doing ?: b->trace.doing;
	trace.windows = a->trace.windows || b->trace.windows;
	a->trace = trace;
	a->from.rank = a->from.rank < 0 ? b->from.rank : a->from.rank;
	a->from.pid = a->from.pid < 0 ? b->from.pid : a->from.pid;
	a->raised |= b->raised;
	a->from.severity = b->from.severity > a->from.severity ? b->from.severity : a->from.severity;
	a->last = b->last;
}

static void take_trace(struct sl_log_failure *failure, const struct stack *stack)
{
	failure->trace = stack->outer;
	add_frame(&failure->trace, &stack->inner);
	failure->trace.doing = failure->trace.doing ?: failure->trace.before;
}

static void take_frame(struct reader *reader, struct stack *stack, const struct sl_log_line *line, size_t at,
		       const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct sl_log_failure *failure = log->failures ? &log->failure[log->failures - 1] : NULL;
	bool report = failure && failure->row->form == SL_LOG_FORM_comfy && !failure->raised;
	const struct sl_log_line *next = NULL;

	if (!take_words(stack, line, at, match))
		return;
	if (!strncmp(line->text + at, "File \"", 6) && (next = next_line(reader, line, &(unsigned){0})))
		take_source(&stack->inner, line, at, next);
	stack->last = line->number;
	if (!failure || failure->last + NEAR < line->number)
		return;
	/* pytest tells the place behind the error, and ComfyUI's report has the whole stack there */
	if (report || (!failure->trace.frames && strstr(line->text, "Error"))) {
		take_trace(failure, stack);
		failure->raised = !report;
	}
}

static void add_failure(struct reader *reader, const struct stack *stack, const struct sl_log_line *line,
			const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct sl_log_failure failure = {match->row, match->row->cause, match->facts, line->from, line->number, log->files};

	failure.late = log->last[SL_LOG_SERVE] > 0;
	failure.from.rank = line->from.rank < 0 ? reader->rank_of_file : line->from.rank;
	if (*stack->inner.file && line->number - stack->last < NEAR && (!stack->ended || stack->end + 4 >= line->number)) {
		take_trace(&failure, stack);
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
	while (used && SL_LOG_IS_DIGIT(digits[-1]))
		digits--;
	if (used && reader->card < 64 && strtoul(digits, NULL, 10) < 1000)
		reader->log->idle |= 1ull << reader->card;
	reader->card = used ? 64 : (unsigned)strtoul(line->text + 1, NULL, 10);
}

/* What the sentence says that begins at `at` of the line. */
static void obey(struct reader *reader, const struct sl_log_line *line, size_t at, const struct sl_log_match *match)
{
	struct sl_log *log = reader->log;
	struct stack *stack = stack_of(reader, line);
	enum sl_log_means means = match->row->means;

	log->last[means] = line->number;
	if (means == SL_LOG_FAIL || means == SL_LOG_ECHO) {
		add_failure(reader, stack, line, match);
	} else if (means == SL_LOG_FRAME) {
		take_frame(reader, stack, line, at, match);
	} else if (means == SL_LOG_LOOK) {
		find_idle(reader, line);
	} else if (means == SL_LOG_COMMAND) { /* "$ vllm serve ...": the program as its user started it */
		if (!*log->command && at == strspn(line->text, " ") && line->size - at < sizeof(log->command))
			strcpy(log->command, line->text + at + 2);
	} else if (means == SL_LOG_TRACE) {
		if (*stack->inner.file && !stack->ended)
			log->last_exception = line->number;
		stack->ended = !strstr(line->text, "Original Traceback"); /* of another thread, behind that of its caller */
		stack->last = line->number;
	} else {
		for (unsigned i = 0; i < log->failures && means == SL_LOG_RETRY; i++)
			log->failure[i].handled |= log->failure[i].last + NEAR > line->number;
		if (means == SL_LOG_RETRY || means == SL_LOG_HARMLESS)
			log->warned = log->warned ?: match->row->form;
		take_facts(log, match);
	}
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
		if (ends(stack_of(reader, parted(reader, 0)), line))
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
	*line = (struct sl_log_line){line->text, size, line->room, ++reader->log->lines};
	line->goes_on = before->number && is_broken(before, line, line_at(reader, count - 2)->size);
	if (++reader->count == AHEAD)
		take_oldest(reader);
}

/* rank5.log, 5.err: the rank that a launcher put into the name; -1: none. */
static int rank_of_name(const char *name)
{
	const char *base = sl_paths_name(name), *rank = strcasestr(base, "rank");

	rank = rank ? rank + 4 + strspn(rank + 4, "-_.") : base;
	return strspn(rank, SL_LOG_DIGITS) && strspn(rank, SL_LOG_DIGITS) < 6 ? (int)strtol(rank, NULL, 10) : -1;
}

const char *sl_log_read(struct sl_log *log, FILE *file, const char *name, bool shown)
{
	struct reader reader = {.log = log, .rank_of_file = rank_of_name(name), .card = 64};
	const char *why = sl_log_lines(file, take_line, &reader, shown ? name : NULL, &log->written);

	while (reader.count)
		take_oldest(&reader);
	for (unsigned i = 0; i < RING; i++)
		free(reader.line[i].text);
	free(reader.window);
	log->files++;
	return why;
}
