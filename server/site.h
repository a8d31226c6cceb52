/* SPDX-License-Identifier: MIT */
/* The pages of the server for people; api.h is for programs. */
#pragma once

#include "server/request.h"

void sl_site_landing(struct sl_request *request); /* / */
void sl_site_search(struct sl_request *request);  /* /search?q= */
void sl_site_run(struct sl_request *request);	  /* /runs/N, /runs/N/report */
void sl_site_pack(struct sl_request *request);	  /* /packs/SHA256: the run of a pack that was just sent */
void sl_site_trends(struct sl_request *request);  /* /trends?q=&metric=N or &field=NAME */
void sl_site_change(struct sl_request *request);  /* POST /runs/N/pin, /runs/N/unpin, /runs/N/note */
void sl_site_static(struct sl_request *request);  /* /static/ */
