/* SPDX-License-Identifier: MIT */
/*
 * What the analyses work on: the events of one session in time order, whole or one rank's, as pointers into the
 * session. Made once per session, so that nothing goes through all events once per rank.
 */
#pragma once

#include "analyzer/upstream/records/session.h"

struct sl_series {
	const struct sl_v3_event **events;
	size_t count;
};

struct sl_rank_series {
	int32_t rank;
	struct sl_series all, samples; /* samples: event_type "sample", trimmed and in any case */
};

struct sl_session_series {
	struct sl_arena arena;
	struct sl_series all;
	struct sl_rank_series *ranks; /* by rank */
	size_t rank_count;
};

void sl_series_init(struct sl_session_series *series, const struct sl_session *session);
void sl_series_free(struct sl_session_series *series);
