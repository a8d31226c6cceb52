/* SPDX-License-Identifier: MIT */
/* Shared by the files of one dry library. */
#pragma once

#include "dry/card.h"

extern struct sl_dry_card sl_dry_card; /* read when the process first calls the library */
