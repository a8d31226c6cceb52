/* SPDX-License-Identifier: MIT */
/* Ranges of a process as phases of its session: upstream's phase_enter and phase_exit with their scope. */
#ifndef ANALYZER_UPSTREAM_SESSION_PHASES_H
#define ANALYZER_UPSTREAM_SESSION_PHASES_H

#include "analyzer/upstream/maker.h"

/* `first`: the device of ranges that held nothing, may be NULL.  A range that never closed is entered and not left. */
void sl_session_phases_add(struct sl_maker *m, const struct sl_phase *phase, const struct sl_device_state *first);

#endif
