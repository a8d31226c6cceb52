/* SPDX-License-Identifier: MIT */
/* What is where. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server/request.h"

extern const struct sl_route sl_routes[]; /* a path of NULL ends them */

#endif
