/* SPDX-License-Identifier: MIT */
/* What a process calls the GPU through, and how that runtime names what advice names. */
#pragma once

#include "analyzer/model/state/model.h"

/* "rocm" or "cuda", by the first kind of call that the process made; static. */
const char *sl_api_names_backend(const struct sl_model *model);

/* Takes an advice in CUDA's words and returns it in those of the process.  Both on the heap; NULL stays NULL. */
char *sl_api_names_translate(const struct sl_model *model, char *advice);
