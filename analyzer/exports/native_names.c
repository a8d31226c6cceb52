/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#define PART (1u << 20) /* bytes of maps passed on at once; a reader refuses frames above 64 MB */

struct names {
	struct sl_trace *trace;
	struct sl_symbols *symbols;
	const char *only;
	struct sl_idmap seen;
	msgpack_sbuffer maps;
	uint32_t count;
	sl_native_names_take *take;
	void *context;
	bool fine;
};

static void put_text(msgpack_packer *pk, const char *text)
{
	msgpack_pack_str(pk, strlen(text));
	msgpack_pack_str_body(pk, text, strlen(text));
}

static void put_symbol(msgpack_packer *pk, const struct sl_symbol *symbol)
{
	msgpack_pack_map(pk, (size_t) !!symbol->function + !!symbol->file + !!symbol->line);
	if (symbol->function) {
		put_text(pk, "function");
		put_text(pk, symbol->function);
	}
	if (symbol->file) {
		put_text(pk, "file");
		put_text(pk, symbol->file);
	}
	if (symbol->line) {
		put_text(pk, "line");
		msgpack_pack_uint32(pk, symbol->line);
	}
}

static void put_map(struct names *names, uint64_t pc, const struct sl_symbol *found, unsigned count)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, &names->maps, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 3);
	put_text(&pk, "def");
	put_text(&pk, "native_frame");
	put_text(&pk, "pc");
	msgpack_pack_uint64(&pk, pc);
	put_text(&pk, "functions");
	msgpack_pack_array(&pk, count);
	for (unsigned i = 0; i < count; i++)
		put_symbol(&pk, &found[i]);
	names->count++;
}

static void hand_over(struct names *names)
{
	if (names->count && names->fine)
		names->fine = names->take(names->context, names->maps.data, names->maps.size, names->count);
	msgpack_sbuffer_clear(&names->maps);
	names->count = 0;
}

static void name(struct names *names, uint64_t pc)
{
	const struct sl_defs *defs = &names->trace->defs;
	int module = sl_defs_module(defs, pc);
	struct sl_symbol found[SL_SYMBOL_DEPTH];
	unsigned count;

	if (module < 0 || sl_idmap_get(&names->seen, pc, 0) || sl_defs_named(defs, pc))
		return;
	sl_idmap_set(&names->seen, pc, 1);
	count = sl_symbols_find(names->symbols, defs, &defs->modules.item[module], pc, found, SL_SYMBOL_DEPTH);
	for (unsigned i = 0; names->only && i < count; i++)
		if (found[i].function && strstr(found[i].function, names->only)) {
			found[0] = (struct sl_symbol){.function = (char *)names->only};
			put_map(names, pc, found, 1);
			break;
		}
	if (count && !names->only)
		put_map(names, pc, found, count);
	if (names->maps.size >= PART)
		hand_over(names);
}

/* An address in a stack is where the call returns to; the call is before it. */
bool sl_native_names_each(struct sl_trace *trace, struct sl_symbols *symbols, const char *only, sl_native_names_take *take,
			  void *context)
{
	struct names names = {.trace = trace, .symbols = symbols, .only = only, .take = take, .context = context, .fine = true};
	struct sl_order *order = sl_order_new(trace);
	const struct sl_item *item;

	msgpack_sbuffer_init(&names.maps);
	for (size_t i = 0; i < trace->defs.natives.count; i++)
		for (uint32_t k = 0; k < trace->defs.natives.item[i].count; k++)
			name(&names, trace->defs.natives.item[i].pcs[k] - 1);
	while (names.fine && (item = sl_order_next(order)))
		if (item->kind == SL_ITEM_EVENT && item->event->caller && !item->event->native && !item->event->python)
			name(&names, item->event->caller - 1);
	hand_over(&names);
	sl_order_free(order);
	msgpack_sbuffer_destroy(&names.maps);
	sl_idmap_free(&names.seen);
	return names.fine;
}
