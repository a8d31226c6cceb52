/* SPDX-License-Identifier: MIT */
/* The table of all routes. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server/request.h"

extern const struct sl_route sl_routes[]; /* ended by a path of NULL */

#endif
