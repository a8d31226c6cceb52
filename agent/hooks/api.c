/* SPDX-License-Identifier: MIT */
/* The table behind agent/include/stormlog.h.  Ranges and marks are labels, in a domain of their own. */
#define STORMLOG_TABLE_ONLY
#include "agent/include/stormlog.h"
#include "agent/process/plain.h"
#include "agent/file/file.h"
#include "agent/hooks/parts.h"
#include "agent/life/life.h"
#include "agent/stacks/stacks.h"
#include "common/text.h"

#define DOMAIN 0xffffu /* above NVTX's domain numbers, so that neither closes the other's ranges */

static void push(const char *name)
{
	if (sl_labels_wanted())
		sl_labels_push(SL_API_api_push, DOMAIN, sl_labels_intern(NULL, name));
}

/*
 * Steps are counted under a few names.  A thread keeps the labels of its last names, since finding a label costs a third of a
 * range. The text at an address may have changed, so it is compared too.
 */
#define KEPT 8u
struct counted_name {
	char name[48];
	uint16_t label; /* 0: this place is empty */
};
static __thread struct counted_name kept_steps[KEPT] __attribute__((tls_model("initial-exec")));

static struct sl_labels_entry step_label(const char *name)
{
	struct counted_name *counted = &kept_steps[(uintptr_t)name / 8 % KEPT];
	char numbered[SL_LABELS_TEXT_MAX];
	struct sl_text text;
	struct sl_labels_entry label;

	if (SL_LIKELY(counted->label && sl_plain_same(counted->name, name)))
		return (struct sl_labels_entry){.label = counted->label};
	text = sl_text_begin(numbered, sizeof(numbered));
	sl_text_add(&text, name);
	sl_text_add(&text, "_#");
	label = sl_labels_intern(NULL, numbered);
	if (text.used < sizeof(counted->name)) {
		counted->label = 0; /* a signal handler may use the place between these stores */
		atomic_signal_fence(memory_order_seq_cst);
		text = sl_text_begin(counted->name, sizeof(counted->name));
		sl_text_add(&text, name);
		atomic_signal_fence(memory_order_seq_cst);
		counted->label = label.label;
	}
	return label;
}

static void push_step(const char *name, uint64_t step)
{
	struct sl_labels_entry label;

	if (!sl_labels_wanted())
		return;
	label = step_label(name ? name : "");
	label.index = step;
	sl_labels_push(SL_API_api_push_step, DOMAIN, label);
}

static void pop(void)
{
	if (sl_labels_wanted())
		sl_labels_pop(SL_API_api_pop, DOMAIN);
}

static void mark(const char *text)
{
	if (sl_labels_wanted())
		sl_labels_mark(SL_API_api_mark, sl_labels_intern(NULL, text));
}

static bool recording(void)
{
	return atomic_load_explicit(&sl_agent->generation, memory_order_acquire) && sl_preload_running();
}

/* Records an event with a text as it was given.  It never begins a recording. */
static void tell(unsigned api, const char *text, uint64_t extra, struct sl_instant_details where)
{
	int saved = errno;
	uint32_t id;

	if (!recording() || sl_agent->options.labels == SL_LABELS_OFF)
		return;
	sl_agent_begin(&sl_thread);
	id = sl_stacks_text(text, sl_plain_length(text));
	sl_agent_end(&sl_thread);
	if (id)
		sl_instant_record(api, id, extra, where);
	errno = saved;
}

static void pair(const char *key, const char *value)
{
	char both[SL_LABELS_TEXT_MAX];
	struct sl_text text = sl_text_begin(both, sizeof(both));

	sl_text_add(&text, key ? key : "");
	sl_text_add(&text, "=");
	sl_text_add(&text, value ? value : "");
	tell(SL_API_api_pair, both, 0, (struct sl_instant_details){0});
}

static void name(const void *address, size_t bytes, const char *called)
{
	char cut[SL_LABELS_TEXT_MAX];
	struct sl_text text = sl_text_begin(cut, sizeof(cut));

	sl_text_add(&text, called ? called : "");
	tell(SL_API_api_name, cut, 0, (struct sl_instant_details){(uintptr_t)address, bytes});
}

static void hold(const void *address, size_t bytes, const char *variable, uint64_t look)
{
	tell(SL_API_api_hold, variable, look, (struct sl_instant_details){(uintptr_t)address, bytes});
}

/* A block from a pool of the program's own.  The driver's block around it is the pool's segment. */
static void block(const void *address, size_t bytes, const char *called)
{
	int saved = errno;
	uint32_t id;

	if (!address || !bytes || !recording() || sl_agent->options.tensors == SL_TENSORS_OFF)
		return;
	sl_agent_begin(&sl_thread);
	id = called && *called ? sl_labels_text(called) : 0;
	sl_agent_end(&sl_thread);
	sl_record_block(SL_API_api_block, (uintptr_t)address, bytes, -1, 0, 0, NULL, id);
	errno = saved;
}

static void block_gone(const void *address)
{
	if (address && recording() && sl_agent->options.tensors != SL_TENSORS_OFF)
		sl_record_block(SL_API_api_block_gone, (uintptr_t)address, 0, -1, 0, 0, NULL, 0);
}

static int flush(unsigned timeout_ms)
{
	struct sl_agent *agent = sl_agent;
	uint64_t deadline_ns, now_ns;
	uint32_t wanted;
	int saved = errno;

	if (!recording() || agent->no_writer)
		return recording() ? -1 : 0;
	sl_agent_unpark();
	wanted = atomic_fetch_add(&agent->flush, 1) + 1;
	sl_agent_call_writer(agent);
	deadline_ns = sl_agent_now() + timeout_ms * 1000000ull;
	for (;;) {
		uint32_t done = atomic_load(&agent->flushed);

		now_ns = sl_agent_now();
		if ((int32_t)(done - wanted) >= 0 || now_ns >= deadline_ns) {
			errno = saved;
			return (int32_t)(done - wanted) >= 0 ? 0 : -1;
		}
		sl_agent_sleep(&agent->flushed, done, deadline_ns - now_ns);
	}
}

static void record(int on)
{
	sl_early_notes_stacks(on);
	tell(SL_API_api_record, on ? "recording on" : "recording off: calls without stacks", 0, (struct sl_instant_details){0});
}

static size_t trace(char *path, size_t bytes)
{
	struct sl_text text;

	if (bytes)
		*path = 0;
	if (!recording())
		return 0;
	if (bytes) {
		text = sl_text_begin(path, bytes);
		sl_text_add(&text, sl_agent->store->trace);
	}
	return sl_plain_length(sl_agent->store->trace);
}

__attribute__((visibility("default"))) extern const struct stormlog_api stormlog_api_v1;
const struct stormlog_api stormlog_api_v1 = {
	.bytes = sizeof(stormlog_api_v1),
	.push = push,
	.push_step = push_step,
	.pair = pair,
	.pop = pop,
	.mark = mark,
	.metadata = sl_early_notes_metadata,
	.name = name,
	.flush = flush,
	.record = record,
	.trace = trace,
	.block = block,
	.block_gone = block_gone,
	.hold = hold,
	.within = sl_torch_within,
};
