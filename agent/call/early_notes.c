/* SPDX-License-Identifier: MIT */
#include "agent/call/call.h"
#include "agent/file/file.h"
#include "agent/stacks/stacks.h"
#include "common/text.h"

static struct pair {
	atomic_bool filled;
	char key[SL_EARLY_NOTES_KEY], value[SL_EARLY_NOTES_VALUE];
} pairs[SL_EARLY_NOTES_PAIRS];
static atomic_uint pair_count;
static atomic_bool no_stacks;
static _Atomic uint64_t free_asked_ns; /* when the program asked how much is free; 0: never */
static _Atomic uint64_t reported_for;  /* the recording that has been given all this */

static void copy(char *to, size_t size, const char *from)
{
	struct sl_text text = sl_text_begin(to, size);

	sl_text_add(&text, from ? from : "");
}

static void define(const char *key, const char *value)
{
	uint8_t bytes[512];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "metadata");

	sl_definition_bytes(&map, "key", key, strnlen(key, SL_EARLY_NOTES_KEY));
	sl_definition_bytes(&map, "value", value, strnlen(value, SL_EARLY_NOTES_VALUE));
	sl_definition_uint(&map, "ns", sl_agent_now());
	sl_define_publish(&map);
}

static bool recording(void)
{
	return atomic_load(&sl_agent->generation) && !sl_unwound_inside() && sl_agent_attached();
}

void sl_early_notes_metadata(const char *key, const char *value)
{
	struct pair now = {0};
	unsigned at;

	copy(now.key, sizeof(now.key), key);
	copy(now.value, sizeof(now.value), value);
	if (recording())
		define(now.key, now.value);
	at = atomic_fetch_add(&pair_count, 1);
	if (at >= SL_EARLY_NOTES_PAIRS) {
		atomic_store(&pair_count, SL_EARLY_NOTES_PAIRS);
		return;
	}
	copy(pairs[at].key, SL_EARLY_NOTES_KEY, now.key);
	copy(pairs[at].value, SL_EARLY_NOTES_VALUE, now.value);
	atomic_store_explicit(&pairs[at].filled, true, memory_order_release);
}

/* Kinds of stacks that were not asked for at the start are not captured, whatever this says. */
static void apply_stacks(void)
{
	__atomic_store_n(&sl_agent->options.stacks, atomic_load(&no_stacks) ? 0 : SL_STACKS_PYTHON | SL_STACKS_NATIVE,
			 __ATOMIC_RELAXED);
}

void sl_early_notes_stacks(bool wanted)
{
	atomic_store(&no_stacks, !wanted);
	if (recording())
		apply_stacks();
}

static void define_free_asked(void)
{
	char text[32];
	struct sl_text when = sl_text_begin(text, sizeof(text));

	sl_text_add_number(&when, atomic_load(&free_asked_ns));
	sl_capability_write("free_memory_asked", text);
}

void sl_early_notes_free_asked(void)
{
	uint64_t never = 0;

	if (!atomic_load_explicit(&free_asked_ns, memory_order_relaxed) &&
	    atomic_compare_exchange_strong(&free_asked_ns, &never, sl_agent_now()) && recording())
		define_free_asked();
}

void sl_early_notes_attached(void)
{
	uint64_t generation = atomic_load(&sl_agent->generation), before = atomic_load(&reported_for);

	if (before == generation || !atomic_compare_exchange_strong(&reported_for, &before, generation))
		return;
	for (unsigned i = 0; i < SL_EARLY_NOTES_PAIRS; i++)
		if (atomic_load_explicit(&pairs[i].filled, memory_order_acquire))
			define(pairs[i].key, pairs[i].value);
	if (atomic_load(&free_asked_ns))
		define_free_asked();
	if (atomic_load(&no_stacks))
		apply_stacks();
}
