/* SPDX-License-Identifier: MIT */
/* Who may do what: tokens, and whether a browser was sent by another site. */
#ifndef SERVER_ACCESS_H
#define SERVER_ACCESS_H

#include "server/request.h"

/* The Host is ours, and what changes something comes from no page of another site. */
struct sl_http_outcome sl_access_site(const struct sl_request *request);
/* "Authorization: Bearer TOKEN", or Basic with the token as password, which browsers ask for.  401, 403 or 429. */
struct sl_http_outcome sl_access_right(struct sl_request *request, enum sl_right right);

#endif
