/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames, offline: functions, inlined calls and lines from the objects on this machine (and their
 * separate debug files) when their build id is the recorded one.  C++ names are demangled where libstdc++ is
 * installed, Rust's legacy names with them.
 *
 * One handle serves a whole run: a file is opened once, whatever number of processes had it, and its descriptor closed
 * at once; an address is looked up once.  So names do not depend on how many files may be open, and memory follows the
 * number of different libraries.  One thread per handle, and one at a time of the program; answers live as long as it.
 */
#ifndef ANALYZER_MODEL_SYMBOLS_H
#define ANALYZER_MODEL_SYMBOLS_H

#include "analyzer/trace/defs.h"

struct sl_symbols;
struct sl_symbols *sl_symbols_new(void);
void sl_symbols_free(struct sl_symbols *symbols);

/* The function at pc and what it was inlined into, innermost first; returns how many, 0: not known. */
unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_module *module, uint64_t pc, struct sl_symbol *found,
			 unsigned max);

/* Files whose frames have no names, in the order in which they were asked about, and why; the list lives until the next question. */
struct sl_symbols_missed {
	const char *path, *why;
	bool absent; /* simply not on this machine */
};
unsigned sl_symbols_missed(const struct sl_symbols *symbols, const struct sl_symbols_missed **list);

#endif
