/* SPDX-License-Identifier: MIT */
/* Longer than other files: ranges, marks and backward passes share what is open on a thread. */
#include "agent/call/call.h"

#include <sys/prctl.h>

#include "agent/file/file.h"
#include "agent/stacks/stacks.h"

/* --- texts ----------------------------------------------------------------------------------------------
 *
 * Kept by us, since a label may be open before there is a trace to define it in, and a forked child defines
 * it again in its own.
 */

#define TEXTS	    4096u /* slots, of which at most 3/4 are used */
#define ARENA_BYTES (512u << 10)

struct text {
	uint64_t hash;
	_Atomic uint64_t id; /* its id in the trace of the recording whose tag is in the upper half; 0: not defined yet */
	uint64_t bytes;
	char text[]; /* zeroes to the end of its last word */
};

static _Atomic(struct text *) texts[TEXTS];
static _Atomic uint32_t text_count, arena_used;
static _Alignas(8) char arena[ARENA_BYTES];

/* Collapses the text's numbers in place; returns its length, and the last number as index. */
struct collapsed {
	char text[SL_LABELS_TEXT_MAX + 8]; /* zeroes to the end of its last word */
	uint32_t bytes;
	uint64_t index;
};

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

static const char *skip_number(const char *text, uint64_t *number)
{
	uint64_t value = 0;

	for (; is_digit(*text); text++)
		if (value < UINT64_MAX / 10 - 1)
			value = value * 10 + (uint64_t)(*text - '0');
	*number = value;
	return text;
}

/* stop: where to end before the end of the text; NULL: nowhere. */
static void collapse(struct collapsed *to, const char *text, const char *stop)
{
	char *out = to->text + to->bytes, *const end = to->text + SL_LABELS_TEXT_MAX, c;

	for (; (!stop || text < stop) && (c = *text) && out < end; out++) {
		if (is_digit(c)) {
			text = skip_number(text, &to->index);
			*out = '#';
		} else {
			*out = c;
			text++;
		}
	}
	memset(out, 0, 8);
	to->bytes = (uint32_t)(out - to->text);
}

/* --- XLA's ranges: "Thunk:#name=jit(step)/add,hlo_op=fusion.12#", "XlaModule:#hlo_module=jit_step,program_id=17#" ---------- */

#define XLA_KIND_MAX 64u   /* bytes before ":#" */
#define XLA_LIST_MAX 1024u /* bytes that are searched for a key */

/* The value of a key in such a list; NULL: there is none. */
static const char *xla_value(const char *list, const char *key)
{
	size_t bytes = strlen(key);

	for (unsigned i = 0; i < XLA_LIST_MAX && list[i]; i++)
		if ((!i || list[i - 1] == ',') && !strncmp(list + i, key, bytes))
			return list + i + bytes;
	return NULL;
}

/* True: this is the number of an instruction, ".12", which `*after` follows. */
static bool is_dotted_number(const char *at, const char **after)
{
	uint64_t number;

	if (*at != '.' || !is_digit(at[1]))
		return false;
	*after = skip_number(at + 1, &number);
	return !**after || strchr(".,/#", **after);
}

/*
 * Collapses a range of XLA's to its kind and the name of its module or operation, without their numbers: "Thunk add",
 * "XlaModule jit_step".  Each path of an instruction would be a label of its own else: its last part is the name.
 */
static bool collapse_xla(struct collapsed *to, const char *text)
{
	static const char *const keys[] = {"hlo_module=", "module=", "name=", "hlo_op="};
	const char *colon = text, *name = NULL, *end, *after = text;

	while (*colon && *colon != ':' && colon < text + XLA_KIND_MAX)
		colon++;
	if (colon[0] != ':' || colon[1] != '#')
		return false;
	for (unsigned i = 0; i < SL_COUNT(keys) && !name; i++)
		name = xla_value(colon + 2, keys[i]);
	if (!name)
		return false;
	for (end = name; *end && !strchr(",#", *end) && end - name < (ptrdiff_t)XLA_LIST_MAX; end++)
		if (*end == '/')
			name = end + 1;
	if (name == end)
		return false;
	collapse(to, text, colon);
	collapse(to, " ", NULL);
	for (const char *at = name; at < end; name = at) {
		while (at < end && !is_dotted_number(at, &after))
			at++;
		collapse(to, name, at);
		if (at < end)
			at = after;
	}
	to->index = 0;
	return true;
}

static uint64_t hash_of(const struct collapsed *what)
{
	uint64_t hash = 0x9e3779b97f4a7c15u ^ what->bytes;

	for (uint32_t i = 0; i < what->bytes; i += 8)
		hash = sl_mix(hash ^ sl_load_le((const uint8_t *)what->text + i, 8), 0xa0761d6478bd642fu);
	return hash;
}

/* NULL: no room.  Texts are never freed, so no text is ever given to two threads. */
static struct text *new_text(uint64_t hash, const struct collapsed *from)
{
	uint32_t size = (uint32_t)(sizeof(struct text) + from->bytes + 7) & ~7u, at;
	struct text *text;

	if (atomic_load(&text_count) >= TEXTS / 4 * 3 || atomic_load(&arena_used) > ARENA_BYTES - size)
		return NULL;
	at = atomic_fetch_add(&arena_used, size);
	if (at > ARENA_BYTES - size)
		return NULL;
	text = (struct text *)(arena + at);
	text->hash = hash;
	text->bytes = from->bytes;
	memcpy(text->text, from->text, from->bytes);
	return text;
}

static bool same_text(const struct text *text, uint64_t hash, const struct collapsed *what)
{
	if (text->hash != hash || text->bytes != what->bytes)
		return false;
	for (uint32_t i = 0; i < what->bytes; i += 8)
		if (sl_load_le((const uint8_t *)text->text + i, 8) != sl_load_le((const uint8_t *)what->text + i, 8))
			return false;
	return true;
}

static void note_full(void)
{
	static atomic_flag noted;

	if (atomic_load(&sl_agent->generation) && !atomic_flag_test_and_set(&noted))
		sl_define_note("too many different labels: ranges with new ones are not recorded; a number at the end makes no "
			       "label a new one, any other difference does");
}

/* Slots are filled once, with a text that is complete, and never emptied: readers need no lock. */
static uint16_t find_text(const struct collapsed *what)
{
	uint64_t hash = hash_of(what);
	struct text *mine = NULL;

	for (uint32_t i = 0; i < TEXTS; i++) {
		uint32_t at = (uint32_t)(hash + i) & (TEXTS - 1);
		struct text *there = atomic_load_explicit(&texts[at], memory_order_acquire);

		if (!at)
			continue; /* id 0 is no label */
		if (!there) {
			if (!mine && !(mine = new_text(hash, what)))
				break;
			if (atomic_compare_exchange_strong(&texts[at], &there, mine)) {
				atomic_fetch_add(&text_count, 1);
				return (uint16_t)at;
			}
		}
		if (same_text(there, hash, what))
			return (uint16_t)at;
	}
	note_full();
	return 0;
}

struct sl_labels_entry sl_labels_intern(const char *domain, const char *text)
{
	struct collapsed what;
	struct sl_labels_entry label = {0};

	what.bytes = 0;
	what.index = 0;
	if (domain && *domain) {
		collapse(&what, domain, NULL);
		collapse(&what, ":", NULL);
	}
	if (!text || !collapse_xla(&what, text))
		collapse(&what, text ? text : "", NULL);
	label.label = find_text(&what);
	label.index = what.index;
	return label;
}

/* The label's id in the trace now being written. */
static uint32_t id_of(uint16_t label)
{
	struct text *text = atomic_load_explicit(&texts[label], memory_order_acquire);
	uint32_t tag = sl_agent_tag();
	uint64_t tagged_id;
	uint32_t id;
	int saved = errno;

	if (!text)
		return 0;
	tagged_id = atomic_load_explicit(&text->id, memory_order_relaxed);
	if (SL_LIKELY(tagged_id >> 32 == tag))
		return (uint32_t)tagged_id;
	sl_agent_begin(&sl_thread);
	id = sl_stacks_text(text->text, text->bytes);
	sl_agent_end(&sl_thread);
	if (id)
		atomic_store_explicit(&text->id, (uint64_t)tag << 32 | id, memory_order_relaxed);
	errno = saved;
	return id;
}

uint32_t sl_labels_text(const char *text)
{
	return sl_agent_attached() ? id_of(sl_labels_intern(NULL, text).label) : 0;
}

/* --- what is open on a thread ----------------------------------------------------------------------------
 */

struct open_range {
	uint64_t index;
	uint16_t label, api, domain, api_pop; /* api_pop not 0: this is a backward pass, which only its own end closes */
};

static __thread struct {
	struct open_range ranges[SL_LABELS_DEPTH];
	uint32_t depth, deeper, passes; /* passes: backward passes, one inside the other */
	bool lends;			/* the backward pass here is counted in `lent` */
	uint8_t autograd;		/* 0 not known, 1 no, 2 this is one of autograd's threads */
} open_here __attribute__((tls_model("initial-exec")));

atomic_bool sl_labels_used;

/* Open ranges that belong to the process, for a recording that starts while they are open. */
#define STARTED 64
static struct started {
	_Atomic uint64_t id;
	uint64_t numbered;
	uint16_t label, api;
} started[STARTED];
static _Atomic uint64_t started_for; /* recording that has been given them */

bool sl_labels_wanted(void)
{
	return !atomic_load_explicit(&sl_agent->generation, memory_order_relaxed) || sl_agent->options.labels != SL_LABELS_OFF;
}

static bool recording(void)
{
	return atomic_load_explicit(&sl_agent->generation, memory_order_acquire) && sl_agent->options.labels != SL_LABELS_OFF;
}

/* The thread's open ranges precede the event, also in slot order. */
static void event(unsigned api, uint16_t label, uint64_t extra, struct sl_instant_details details)
{
	if (label && recording() && !sl_unwound_inside() && sl_agent_attached())
		sl_instant_record(api, id_of(label), extra, details);
}

static const struct sl_instant_details no_details;

static int depth_of(unsigned domain)
{
	int depth = (int)open_here.deeper;

	for (uint32_t i = 0; i < open_here.depth; i++)
		depth += open_here.ranges[i].domain == domain;
	return depth;
}

int sl_labels_push(unsigned api, unsigned domain, struct sl_labels_entry what)
{
	int depth = depth_of(domain);

	if (SL_UNLIKELY(open_here.depth == SL_LABELS_DEPTH)) {
		open_here.deeper++;
		return depth;
	}
	atomic_store_explicit(&sl_labels_used, true, memory_order_relaxed);
	event(api, what.label, what.index, what.details);
	sl_thread.has_label = false; /* before and after: a signal handler may come between and look */
	open_here.ranges[open_here.depth++] =
		(struct open_range){.index = what.index, .label = what.label, .api = (uint16_t)api, .domain = (uint16_t)domain};
	atomic_signal_fence(memory_order_seq_cst);
	sl_thread.has_label = false;
	return depth;
}

static void close_at(uint32_t at, unsigned api)
{
	struct open_range range = open_here.ranges[at];

	sl_thread.has_label = false;
	memmove(&open_here.ranges[at], &open_here.ranges[at + 1], (open_here.depth - at - 1) * sizeof(open_here.ranges[0]));
	open_here.depth--;
	atomic_signal_fence(memory_order_seq_cst);
	sl_thread.has_label = false;
	event(api, range.label, range.index, no_details);
}

int sl_labels_pop(unsigned api, unsigned domain)
{
	int depth = depth_of(domain) - 1;

	if (open_here.deeper) {
		open_here.deeper--;
		return depth;
	}
	for (uint32_t at = open_here.depth; at-- > 0;)
		if (open_here.ranges[at].domain == domain && !open_here.ranges[at].api_pop) {
			close_at(at, api);
			return depth;
		}
	return -1;
}

/* --- ranges of the process, marks ------------------------------------------------------------------------
 */

uint64_t sl_labels_start(unsigned api, struct sl_labels_entry what, uint64_t id)
{
	static _Atomic uint64_t last;

	if (!id)
		id = atomic_fetch_add(&last, 1) + 1;
	what.details.numbered = what.index + 1;
	event(api, what.label, id, what.details);
	for (unsigned i = 0; i < STARTED; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&started[i].id, &none, UINT64_MAX)) {
			started[i].label = what.label;
			started[i].numbered = what.index + 1;
			started[i].api = (uint16_t)api;
			atomic_store(&started[i].id, id);
			break;
		}
	}
	return id;
}

void sl_labels_end(unsigned api, uint64_t id)
{
	uint16_t label = 0;

	for (unsigned i = 0; i < STARTED; i++) {
		uint64_t mine = id;

		if (atomic_load_explicit(&started[i].id, memory_order_acquire) != id)
			continue;
		label = started[i].label;
		if (atomic_compare_exchange_strong(&started[i].id, &mine, 0))
			break;
	}
	if (recording() && !sl_unwound_inside() && sl_agent_attached())
		sl_instant_record(api, label ? id_of(label) : 0, id, no_details);
}

void sl_labels_mark(unsigned api, struct sl_labels_entry what)
{
	event(api, what.label, what.index, what.details);
}

/* --- backward passes -------------------------------------------------------------------------------------
 */

/* What the running pass lends to autograd's threads; void in another recording than `generation`. */
static struct {
	_Atomic uint64_t generation;
	_Atomic uint64_t running_stack; /* passes that run << 32 | Python stack, 0 where several run */
	_Atomic uint16_t label;
	_Atomic uint32_t text; /* the label's id */
	char name[16];	       /* name of the thread that lends; of two that begin at once either's */
} lent;

static bool has_frames(void)
{
	bool frames;

	sl_agent_begin(&sl_thread);
	frames = sl_stacks_capture(SL_STACKS_PYTHON).python != 0;
	sl_agent_end(&sl_thread);
	return frames;
}

/*
 * Is this a thread of autograd's?  Recent versions name theirs.  Before that they have the name of the thread that made
 * them, as all unnamed threads do: of those, one without Python frames at its first request during a pass is taken for
 * autograd's.
 */
static bool is_autograd(bool during_pass)
{
	char name[sizeof(lent.name)] = "";

	if (SL_LIKELY(open_here.autograd))
		return open_here.autograd == 2;
	prctl(PR_GET_NAME, name);
	if (!strncmp(name, "pt_autograd", strlen("pt_autograd")))
		open_here.autograd = 2;
	else if (during_pass)
		open_here.autograd = strcmp(name, lent.name) || has_frames() ? 1 : 2;
	return open_here.autograd == 2;
}

static bool lending(void)
{
	uint64_t generation = atomic_load_explicit(&lent.generation, memory_order_acquire);

	return generation && generation == atomic_load_explicit(&sl_agent->generation, memory_order_relaxed);
}

static bool lend(uint16_t label)
{
	uint64_t generation = atomic_load(&sl_agent->generation), now, next;
	uint32_t stack;

	if (!recording() || sl_unwound_inside() || !sl_agent_attached())
		return false;
	prctl(PR_GET_NAME, lent.name);
	open_here.autograd = 1;
	sl_agent_begin(&sl_thread);
	stack = sl_stacks_capture(sl_agent->options.stacks & SL_STACKS_PYTHON).python;
	sl_agent_end(&sl_thread);
	if (atomic_load(&lent.generation) != generation) {
		atomic_store(&lent.running_stack, 0);
		atomic_store(&lent.label, label);
		atomic_store(&lent.generation, generation);
	}
	atomic_store_explicit(&lent.label, label, memory_order_relaxed);
	atomic_store_explicit(&lent.text, id_of(label), memory_order_relaxed);
	now = atomic_load(&lent.running_stack);
	do
		next = now >> 32 ? ((now >> 32) + 1) << 32 : (uint64_t)1 << 32 | stack;
	while (!atomic_compare_exchange_weak(&lent.running_stack, &now, next));
	return true;
}

static void take_back(void)
{
	uint64_t now = atomic_load(&lent.running_stack), next;

	if (!lending())
		return;
	do {
		if (!(now >> 32))
			return;
		/* Two passes ran at once, so the owner of this stack is unknown. */
		next = now >> 32 == 1 ? 0 : ((now >> 32) - 1) << 32;
	} while (!atomic_compare_exchange_weak(&lent.running_stack, &now, next));
}

/* The outermost pass has ended: close its range.  Ranges that were pushed inside and never popped stay open. */
static void backward_over(void)
{
	for (uint32_t at = open_here.depth; at-- > 0;)
		if (open_here.ranges[at].api_pop) {
			close_at(at, open_here.ranges[at].api_pop);
			if (open_here.lends)
				take_back();
			open_here.lends = false;
			break;
		}
}

static void begin_step(unsigned api, unsigned api_pop)
{
	static _Atomic uint64_t steps;
	struct sl_labels_entry label;

	/* A pass made by autograd's own thread is part of another pass (checkpointing) and no step. */
	if (is_autograd(false) || open_here.depth == SL_LABELS_DEPTH)
		return;
	label = sl_labels_intern(NULL, "backward_#");
	label.index = atomic_fetch_add(&steps, 1);
	sl_labels_push(api, 0, label);
	open_here.ranges[open_here.depth - 1].api_pop = (uint16_t)api_pop;
	open_here.lends = lend(label.label);
}

void sl_labels_backward_begin(unsigned api, unsigned api_pop)
{
	int saved = errno;

	if (!open_here.passes++ && sl_labels_wanted())
		begin_step(api, api_pop);
	errno = saved;
}

void sl_labels_backward_end(void)
{
	int saved = errno;

	if (open_here.passes && !--open_here.passes)
		backward_over();
	errno = saved;
}

/* --- what events carry ------------------------------------------------------------------------------------
 */

static uint64_t lent_to_this_thread(void)
{
	uint64_t now = atomic_load_explicit(&lent.running_stack, memory_order_relaxed);

	return now >> 32 == 1 && lending() && is_autograd(true) ? now : 0;
}

uint32_t sl_labels_borrowed_stack(void)
{
	return (uint32_t)lent_to_this_thread();
}

uint32_t sl_labels_innermost(void)
{
	if (sl_agent->options.labels == SL_LABELS_OFF)
		return 0;
	for (uint32_t at = open_here.depth; at-- > 0;)
		if (SL_LIKELY(open_here.ranges[at].label))
			return id_of(open_here.ranges[at].label);
	return lent_to_this_thread() ? id_of(atomic_load_explicit(&lent.label, memory_order_relaxed)) : 0;
}

SL_HOT uint64_t sl_labels_of_block(void)
{
	struct sl_agent_thread *thread = &sl_thread;
	uint64_t now;
	uint32_t text;

	if (SL_LIKELY(open_here.autograd == 2 && !open_here.depth && sl_agent->options.labels != SL_LABELS_OFF)) {
		now = lending() ? atomic_load_explicit(&lent.running_stack, memory_order_relaxed) : 0;
		text = atomic_load_explicit(&lent.text, memory_order_relaxed);
		return now >> 32 == 1 ? (uint64_t)text << 32 | (uint32_t)now : 0;
	}
	text = sl_labels_innermost();
	if (open_here.autograd == 1 || (open_here.depth && open_here.autograd != 2)) {
		thread->label = text;
		atomic_signal_fence(memory_order_seq_cst);
		thread->has_label = true;
	}
	return (uint64_t)text << 32 | sl_labels_borrowed_stack();
}

/* The ranges get a time from before other threads see `started_for`, so that what those threads record is inside the ranges. */
static void tell_started(void)
{
	uint64_t now_ns = sl_clock_after(&sl_agent->clock);
	uint64_t generation = atomic_load(&sl_agent->generation), before = atomic_load(&started_for);

	if (before == generation || !atomic_compare_exchange_strong(&started_for, &before, generation))
		return;
	for (unsigned i = 0; i < STARTED; i++) {
		uint64_t id = atomic_load_explicit(&started[i].id, memory_order_acquire);

		if (id && id != UINT64_MAX && started[i].label)
			sl_instant_record(started[i].api, id_of(started[i].label), id,
					  (struct sl_instant_details){.numbered = started[i].numbered, .time_ns = now_ns});
	}
}

void sl_labels_attached(void)
{
	sl_thread.has_label = false;
	if (sl_agent->options.labels == SL_LABELS_OFF)
		return;
	tell_started();
	for (uint32_t i = 0; i < open_here.depth; i++) {
		const struct open_range *range = &open_here.ranges[i];

		if (range->label)
			sl_instant_record(range->api, id_of(range->label), range->index, no_details);
	}
}
