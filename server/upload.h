/* SPDX-License-Identifier: MIT */
/* PUT and HEAD of /api/v1/packs/SHA256 (doc/server.md): a pack comes in one piece or in several. */
#pragma once

#include "server/request.h"

/* Called before the body: checks the headers. */
struct sl_http_outcome sl_upload_begin(struct sl_request *request);
/* Called after the body. */
void sl_upload_answer(struct sl_request *request);
void sl_upload_head(struct sl_request *request);
void sl_upload_download(struct sl_request *request);
