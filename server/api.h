/* SPDX-License-Identifier: MIT */
/* The part of /api/v1/ besides packs, as schemas/server.schema.json describes it. */
#pragma once

#include "server/request.h"

void sl_api_runs(struct sl_request *request);	 /* runs?q= */
void sl_api_run(struct sl_request *request);	 /* runs/N, runs/N/report, runs/N/page */
void sl_api_names(struct sl_request *request);	 /* names?begins= */
void sl_api_metrics(struct sl_request *request); /* metrics?q=&of=&text= */
void sl_api_history(struct sl_request *request); /* history?q=&metric=N or &field=NAME */
void sl_api_worse(struct sl_request *request);	 /* worse */
