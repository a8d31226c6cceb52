/* SPDX-License-Identifier: MIT */
/*
 * The copies of PJRT's tables that are handed out, one for each plugin, and our functions in them, expanded from pjrt.def.  A
 * table that differs from the interface's header is handed out unchanged, and the trace says so.
 */

#include "agent/hooks/parts.h"
#include "agent/hooks/pjrt_abi.h"
#include "agent/symbols/symbols.h"

#define BYTES_MAX 4096 /* of a table; version 0.116 has 1.1 KiB */

static struct plugin {
	_Atomic(const struct sl_pjrt_api *) real;
	_Atomic uint32_t ready;
	_Alignas(8) unsigned char copy[BYTES_MAX];
} plugins[SL_PJRT_PLUGINS];

const struct sl_pjrt_api *sl_pjrt_real(unsigned plugin)
{
	return atomic_load_explicit(&plugins[plugin].real, memory_order_relaxed);
}

#define HAS(args, member) ((args)->struct_size >= (size_t)((const char *)(&(args)->member + 1) - (const char *)(args)))

#define FUNCTION(number, name, type, last, before, after, plugin_)                                                                 \
	static void *name##__##plugin_(void *given)                                                                                \
	{                                                                                                                          \
		const struct sl_pjrt_##type *args = given;                                                                         \
		const unsigned plugin = plugin_, api = SL_API_##name;                                                              \
		void *error;                                                                                                       \
                                                                                                                                   \
		(void)plugin, (void)api;                                                                                           \
		if (HAS(args, last) && sl_tensors_wanted_anywhere())                                                               \
			before;                                                                                                    \
		error = sl_pjrt_real(plugin_)->slot[number](given);                                                                \
		if (!error && HAS(args, last) && sl_tensors_wanted_anywhere()) /* the recording may have begun in it */            \
			after;                                                                                                     \
		return error;                                                                                                      \
	}
#define HAND(...)
#define FRAMEWORK(...)
#define SLOT(verb, number, name, type, last, before, after)                                                                        \
	FUNCTION(number, name, type, last, before, after, 0)                                                                       \
	FUNCTION(number, name, type, last, before, after, 1)                                                                       \
	FUNCTION(number, name, type, last, before, after, 2)                                                                       \
	FUNCTION(number, name, type, last, before, after, 3)
#include "agent/hooks/pjrt.def"
#undef SLOT

static const struct {
	unsigned number;
	sl_pjrt_function *of[SL_PJRT_PLUGINS];
} slots[] = {
#define SLOT(verb, number, name, ...) {number, {name##__0, name##__1, name##__2, name##__3}},
#include "agent/hooks/pjrt.def"
#undef SLOT
};
#undef HAND
#undef FRAMEWORK

/* A number that says what differs from the interface's header; 0: nothing. */
static unsigned strangeness(const struct sl_pjrt_api *real)
{
	size_t count;

	if (real->struct_size < sizeof(*real) || real->version.struct_size != sizeof(real->version) || real->version.major ||
	    real->version.minor < 57)
		return SL_HOLE_PJRT_VERSION;
	if (real->struct_size > BYTES_MAX || real->struct_size % sizeof(real->slot[0]))
		return SL_HOLE_PJRT_TABLE;
	count = (real->struct_size - sizeof(*real)) / sizeof(real->slot[0]);
	for (size_t i = 0; i < SL_COUNT(slots); i++)
		if (slots[i].number < count && real->slot[slots[i].number] &&
		    !sl_resolve_loaded((void *)real->slot[slots[i].number]))
			return SL_HOLE_PJRT_TABLE;
	for (size_t i = 0; i < sl_pjrt_questions; i++)
		if (sl_pjrt_question[i] >= count || !real->slot[sl_pjrt_question[i]])
			return SL_HOLE_PJRT_TABLE;
	return 0;
}

static void fill(struct plugin *plugin, const struct sl_pjrt_api *real)
{
	struct sl_pjrt_api *copy = (struct sl_pjrt_api *)plugin->copy;
	size_t count = (real->struct_size - sizeof(*real)) / sizeof(real->slot[0]);

	memcpy(copy, real, real->struct_size);
	for (size_t i = 0; i < SL_COUNT(slots); i++)
		if (slots[i].number < count && real->slot[slots[i].number])
			copy->slot[slots[i].number] = slots[i].of[plugin - plugins];
	atomic_store_explicit(&plugin->ready, 1, memory_order_release);
}

const void *sl_pjrt_table(const void *given)
{
	const struct sl_pjrt_api *real = given;
	unsigned strange = real ? strangeness(real) : 0;

	if (!real || strange) {
		sl_objects_hole(strange);
		return given;
	}
	for (unsigned i = 0; i < SL_PJRT_PLUGINS; i++) {
		const struct sl_pjrt_api *there = NULL;

		if (atomic_compare_exchange_strong(&plugins[i].real, &there, real))
			fill(&plugins[i], real);
		else if (there != real)
			continue;
		/* Another thread may be filling the copy right now; then the unchanged table is handed out. */
		return atomic_load_explicit(&plugins[i].ready, memory_order_acquire) ? plugins[i].copy : given;
	}
	return given;
}
