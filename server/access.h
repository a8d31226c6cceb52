/* SPDX-License-Identifier: MIT */
/* Access control: tokens, and whether another site sent the browser. */
#pragma once

#include "server/request.h"

/* Fine: the Host is one of ours, and a request that changes something was not sent by a page of another site. */
struct sl_http_outcome sl_access_site(const struct sl_request *request);
/* Checks "Authorization: Bearer TOKEN", or Basic with the token as password, which browsers ask for.  Failure: 401, 403 or 429. */
struct sl_http_outcome sl_access_right(struct sl_request *request, enum sl_right right);
