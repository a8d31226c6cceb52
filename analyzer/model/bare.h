/* SPDX-License-Identifier: MIT */
/*
 * A process's first calls may have no native stack: the unwinder was not open yet, which on a busy machine takes a while.  Only the
 * address to which they return is known.
 */
#pragma once

#include "analyzer/model/model.h"

/*
 * After the replay: a site without a stack gets that of later calls which returned to the same address and asked for blocks of the
 * same size, if these have one stack only.
 */
void sl_bare_name(struct sl_model *model);
