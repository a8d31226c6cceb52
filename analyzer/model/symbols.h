/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames, offline: functions, inlined calls and lines from the objects on this machine (and their
 * separate debug files) when their build id is the recorded one.  C++ names are demangled where libstdc++ is
 * installed, Rust's legacy names with them.  One thread per handle; answers live as long as it.
 */
#ifndef ANALYZER_MODEL_SYMBOLS_H
#define ANALYZER_MODEL_SYMBOLS_H

#include "analyzer/trace/defs.h"

struct sl_symbol {
	const char *function, *file; /* NULL: unknown */
	uint32_t line;
};

struct sl_symbols;
struct sl_symbols *sl_symbols_new(void);
void sl_symbols_free(struct sl_symbols *symbols);

/* The function at pc and what it was inlined into, innermost first; returns how many, 0: not known. */
unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_module *module, uint64_t pc, struct sl_symbol *found,
			 unsigned max);

/* Objects whose build id did not match, said once each; NULL-terminated by count. */
unsigned sl_symbols_mismatches(const struct sl_symbols *symbols, const char *const **paths);

#endif
