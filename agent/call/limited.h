/* SPDX-License-Identifier: MIT */
/* A recorded call where STORMLOG_INJECT_OOM or STORMLOG_LIMIT is set (gpu/limit.h): what is refused, claimed and counted. */
#pragma once

#include "agent/call/call.h"
#include "agent/process/hook_rows.h"

/* Before the real call: sets frame->inject and frame->refuse, and claims the call's bytes. */
void sl_limited_open(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *in);

/* After it; place: of the allocation or of the context, where the call succeeded. */
void sl_limited_close(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out, bool ok,
		      struct sl_vendor_context place);
