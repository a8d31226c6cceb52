/* SPDX-License-Identifier: MIT */
/* One tracepoint of LTTng-UST, in the form its macros want: this file is read several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./bench_lttng.h"

#if !defined(BENCH_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bench, call, LTTNG_UST_TP_ARGS(void *, address, size_t, bytes),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(unsigned long, address, (unsigned long)address)
						       lttng_ust_field_integer(size_t, bytes, bytes)))
#endif
#include <lttng/tracepoint-event.h>
