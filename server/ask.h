/* SPDX-License-Identifier: MIT */
/* What the arguments of a request ask of the catalogue. */
#ifndef SERVER_ASK_H
#define SERVER_ASK_H

#include "server/request.h"
#include "server/runs.h"

#define SL_ASK_RUNS 200 /* at once, unless limit= says less; at most SL_ASK_MOST */
#define SL_ASK_MOST 1000

struct sl_ask {
	struct sl_store *store;
	struct sl_query query;
	struct sl_store_ask runs; /* of q, order (a field; -field: the largest first), limit, skip */
	struct sl_query_error error;
	bool wrong; /* the query is none: error */
};

/* false: the store cannot be opened, and that is answered. */
bool sl_ask_begin(struct sl_ask *ask, struct sl_request *request);
void sl_ask_end(struct sl_ask *ask);
int64_t sl_ask_number(const struct sl_request *request, const char *name, int64_t absent, int64_t most);

#endif
