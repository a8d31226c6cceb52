/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "analyzer/analyses/analysis.h"

extern const struct sl_analysis sl_analysis_kept, sl_analysis_leaks, sl_analysis_growth, sl_analysis_accounts, sl_analysis_hidden,
	sl_analysis_ranks, sl_analysis_strays, sl_analysis_threads, sl_analysis_host, sl_analysis_spikes, sl_analysis_heuristics;

const struct sl_analysis *const sl_analyses[] = {
	&sl_analysis_kept, /* first: others do not repeat what it has reported */
	&sl_analysis_leaks,
	&sl_analysis_growth,
	&sl_analysis_accounts,
	&sl_analysis_hidden,
	&sl_analysis_ranks,
	&sl_analysis_strays,
	&sl_analysis_threads,
	&sl_analysis_host,
	&sl_analysis_spikes,
	&sl_analysis_heuristics, /* last: it is silent where others have explained the growth */
	NULL,
};
