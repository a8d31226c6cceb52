/* SPDX-License-Identifier: MIT */

#include "analyzer/outputs/output.h"

extern const struct sl_output sl_output_json, sl_output_html, sl_output_markdown, sl_output_telemetry, sl_output_oom,
	sl_output_envelope;
#if SL_PICTURES
extern const struct sl_output sl_output_timeline_png, sl_output_timeline_svg, sl_output_ranks_png;
#endif

const struct sl_output *const sl_outputs[] = {
	&sl_output_oom,
	&sl_output_json,
	&sl_output_html,
	&sl_output_markdown,
	&sl_output_telemetry,
	&sl_output_envelope,
#if SL_PICTURES
	&sl_output_timeline_png,
	&sl_output_timeline_svg,
	&sl_output_ranks_png,
#endif
	NULL,
};
