/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames, found offline: functions, inlined calls and lines.  They come from the objects on this machine (and their
 * separate debug files) if their build id is the recorded one.  C++ names are demangled where libstdc++ is installed, and with them
 * Rust's legacy names.
 *
 * One handle serves a whole run.  Each file is opened once, however many processes had it, and its descriptor is closed at once, so
 * that the limit of open files does not matter.  Each address is looked up once.  Memory grows with the number of different
 * libraries.  One thread per handle, and only one handle in use at a time; answers live as long as the handle.
 */
#pragma once

#include "analyzer/trace/defs.h"

struct sl_symbols;
struct sl_symbols *sl_symbols_new(void);
void sl_symbols_free(struct sl_symbols *symbols);

/*
 * Finds the function at pc, which is in the module, and those into which it was inlined, innermost first; returns their number,
 * 0: not known.  A file without a build id counts as another one if it has changed since the module was there.
 */
unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_defs *defs, const struct sl_module *module, uint64_t pc,
			 struct sl_symbol *found, unsigned max);

/*
 * Files whose frames have no names, with the reasons, from number `from` on, sorted by path.  The list is valid until the next
 * call.
 */
struct sl_symbols_missed {
	const char *path, *why;
	bool absent; /* the file is not on this machine */
};
unsigned sl_symbols_missed(struct sl_symbols *symbols, unsigned from, const struct sl_symbols_missed **list);
