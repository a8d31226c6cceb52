/* SPDX-License-Identifier: MIT */
#include "server/server.h"

const struct sl_route sl_routes[] = {
	{"PUT", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_PACK, NULL},
	{"HEAD", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_NONE, sl_upload_head},
	{"GET", "/api/v1/packs/", SL_RIGHT_READ, SL_BODY_NONE, sl_upload_download},
	{"GET", "/api/v1/runs", SL_RIGHT_READ, SL_BODY_NONE, sl_api_runs},
	{"GET", "/api/v1/runs/", SL_RIGHT_READ, SL_BODY_NONE, sl_api_run},
	{"GET", "/api/v1/names", SL_RIGHT_READ, SL_BODY_NONE, sl_api_names},
	{"GET", "/api/v1/metrics", SL_RIGHT_READ, SL_BODY_NONE, sl_api_metrics},
	{"GET", "/api/v1/history", SL_RIGHT_READ, SL_BODY_NONE, sl_api_history},
	{"GET", "/api/v1/worse", SL_RIGHT_READ, SL_BODY_NONE, sl_api_worse},
	{"GET", "/api/v1/compare", SL_RIGHT_READ, SL_BODY_NONE, sl_view_changes},
	{"GET", "/", SL_RIGHT_READ, SL_BODY_NONE, sl_site_landing},
	{"GET", "/search", SL_RIGHT_READ, SL_BODY_NONE, sl_site_search},
	{"GET", "/trends", SL_RIGHT_READ, SL_BODY_NONE, sl_trends_page},
	{"GET", "/compare", SL_RIGHT_READ, SL_BODY_NONE, sl_view_compare},
	{"GET", "/packs/", SL_RIGHT_READ, SL_BODY_NONE, sl_run_of_pack},
	{"GET", "/runs/", SL_RIGHT_READ, SL_BODY_NONE, sl_run_page},
	{"POST", "/runs/", SL_RIGHT_WRITE, SL_BODY_SMALL, sl_run_change},
	{"GET", "/static/", SL_RIGHT_READ, SL_BODY_NONE, sl_site_static},
	{0},
};
