/* SPDX-License-Identifier: MIT */
#include "server/routes.h"

#include "server/upload.h"

const struct sl_route sl_routes[] = {
	{"PUT", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_PACK, NULL},
	{"HEAD", "/api/v1/packs/", SL_RIGHT_WRITE, SL_BODY_NONE, sl_upload_head},
	{"GET", "/api/v1/packs/", SL_RIGHT_READ, SL_BODY_NONE, sl_upload_download},
	{0},
};
