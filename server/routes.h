/* SPDX-License-Identifier: MIT */
/* The table of all routes. */
#pragma once

#include "server/request.h"

extern const struct sl_route sl_routes[]; /* ended by a path of NULL */
