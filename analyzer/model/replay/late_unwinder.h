/* SPDX-License-Identifier: MIT */
/*
 * Finds stacks for a process's first calls.  They have none where the unwinder was not open yet, which takes a while on a busy
 * machine; only the address to which they return is known.
 */
#pragma once

#include "analyzer/model/state/model.h"

/*
 * After the replay: a site without a stack gets that of later calls which returned to the same address and asked for blocks of the
 * same size, if these have one stack only.
 */
void sl_late_unwinder_name(struct sl_model *model);
