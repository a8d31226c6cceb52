/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames, found offline: functions, inlined calls and lines.  They come from the objects on this machine (and
 * their separate debug files) if their build id is the recorded one.  C++ names are demangled where libstdc++ is installed, and
 * with them Rust's legacy names.
 *
 * One handle serves a whole run.  Each file is opened once, however many processes had it, and its descriptor is closed at
 * once; each address is looked up once.  So names do not depend on the limit of open files, and memory grows with the number of
 * different libraries. One thread per handle, and only one handle in use at a time; answers live as long as the handle.
 */
#pragma once

#include "analyzer/trace/defs.h"

struct sl_symbols;
struct sl_symbols *sl_symbols_new(void);
void sl_symbols_free(struct sl_symbols *symbols);

/* The function at pc and what it was inlined into, innermost first; returns how many, 0: not known. */
unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_module *module, uint64_t pc, struct sl_symbol *found,
			 unsigned max);

/*
 * Files whose frames have no names, and the reasons; those from number `from` on come by path, as threads ask in no order.  The
 * list is valid until the next question.
 */
struct sl_symbols_missed {
	const char *path, *why;
	bool absent; /* the file is not on this machine */
};
unsigned sl_symbols_missed(struct sl_symbols *symbols, unsigned from, const struct sl_symbols_missed **list);
