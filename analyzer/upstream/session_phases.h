/* SPDX-License-Identifier: MIT */
/* Writes a process's ranges as phases of its session: phase_enter and phase_exit with their scope, as Stormlog does. */
#pragma once

#include "analyzer/upstream/maker.h"

/* `first`: the device of ranges that held nothing, may be NULL.  A range that never closed has an enter and no exit. */
void sl_session_phases_add(struct sl_maker *m, const struct sl_phase *phase, const struct sl_device_state *first);
