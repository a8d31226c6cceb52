/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "analyzer/outputs/output.h"

extern const struct sl_output sl_output_json, sl_output_html, sl_output_markdown, sl_output_telemetry, sl_output_oom,
	sl_output_envelope;

const struct sl_output *const sl_outputs[] = {
	&sl_output_json, &sl_output_html, &sl_output_markdown, &sl_output_telemetry, &sl_output_oom, &sl_output_envelope, NULL,
};
