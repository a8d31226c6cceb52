/* SPDX-License-Identifier: MIT */
/* The card of a dry run, as the launcher wrote it into STORMLOG_DRY_CARD: one `name=value` a line (fields.def, and `name`). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_DRY_FOLDER "STORMLOG_DRY" /* the run's folder, which the launcher makes and removes: without it there is no dry run */
#define SL_DRY_CARD   "STORMLOG_DRY_CARD"
/* A file in that folder: the name of a runtime that the job asked for and a dry run does not have, of CUDA 11 or ROCm. */
#define SL_DRY_MISSING "runtime"
#define SL_DRY_FORCE   "STORMLOG_DRY_FORCE" /* set: a real device does not stop a dry run */

struct sl_dry_card {
	char name[256]; /* as cudaDeviceProp has it */
#define FIELD(name, scale, attribute) int64_t name;
#include "dry/fields.def"
#undef FIELD
};

/* Reads lines of `name=value`; a line that it cannot read is returned, NULL: it could read all. What is not named stays. */
const char *sl_dry_card_read(struct sl_dry_card *card, const char *lines);

/* False: this process is in no dry run, or a real device is here that the user did not allow to be hidden. */
bool sl_dry_card_here(void);
