/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames as definition maps (doc/trace-format.md, native_frame).  A pack contains them, so that it can be read
 * where the libraries are missing.
 */
#pragma once

#include "analyzer/symbols/symbols.h"
#include "analyzer/trace/trace.h"

/* Called with whole maps, at most about 1 MiB of them; false ends the search. */
typedef bool sl_native_names_take(void *context, const void *maps, size_t size, uint32_t count);

/*
 * Looks up on this machine what the trace does not say: the names of each address in its native stacks, and of each caller
 * of an event without a stack.  Reads the trace to its end.
 */
bool sl_native_names_each(struct sl_trace *trace, struct sl_symbols *symbols, sl_native_names_take *take, void *context);
