/* SPDX-License-Identifier: MIT */
/* Prints telemetry on one screen: the sessions, the selected one's findings, the issues, what could not be read. */
#pragma once

#include "analyzer/upstream/answers/emit.h"

void sl_telemetry_summary(FILE *out, const struct sl_telemetry *t, const struct sl_emit_options *options);
