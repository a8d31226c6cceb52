/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames as maps of the trace's own format (doc/trace-format.md, native_frame), so that a pack has them
 * where the libraries are not.
 */
#pragma once

#include "analyzer/model/symbols.h"
#include "analyzer/trace/trace.h"

/* Takes whole maps, about 1 MiB of them at most; false ends it. */
typedef bool sl_native_names_take(void *context, const void *maps, size_t size, uint32_t count);

/*
 * Looks up on this machine what the trace does not say: the names of each address in its native stacks, and of each caller
 * of an event without a stack.  Reads the trace to its end.
 */
bool sl_native_names_each(struct sl_trace *trace, struct sl_symbols *symbols, sl_native_names_take *take, void *context);
