/* SPDX-License-Identifier: MIT */
/* Telemetry in a screenful: the sessions, what was found in the selected one, the issues, what could not be read. */
#pragma once

#include "analyzer/upstream/answers/emit.h"

void sl_telemetry_summary(FILE *out, const struct sl_telemetry *t, const struct sl_emit_options *options);
