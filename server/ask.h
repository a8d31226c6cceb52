/* SPDX-License-Identifier: MIT */
/* Reads from a request's arguments what is asked of the catalogue. */
#pragma once

#include "server/request.h"
#include "server/runs.h"

#define SL_ASK_RUNS 200 /* runs per answer, unless limit= says otherwise; at most SL_ASK_MOST */
#define SL_ASK_MOST 1000

struct sl_ask {
	struct sl_store *store;
	struct sl_query query;
	struct sl_store_ask runs; /* from q, order (a field; -field: largest first), limit, skip */
	struct sl_query_error error;
	bool wrong; /* q could not be parsed; see error */
};

/* False: the store cannot be opened, or an argument is wrong (400); the request has been answered. */
bool sl_ask_begin(struct sl_ask *ask, struct sl_request *request);
void sl_ask_end(struct sl_ask *ask);
int64_t sl_ask_number(const struct sl_request *request, const char *name, int64_t absent, int64_t most);
