/* SPDX-License-Identifier: MIT */
/* --fits: would the run have fit on a device of this capacity?  analyzer/fit answers. */
#pragma once

#include "analyzer/report/report.h"

enum sl_fits_verdict { SL_FITS_YES, SL_FITS_NO, SL_FITS_UNKNOWN };

/* The answer for one device of a process. */
struct sl_fits {
	enum sl_fits_verdict verdict;
	char subject[120], message[400]; /* subject: which device; message: one line that begins with the numbers */
	char file[400];			 /* source file of the request that fails; "": none */
	uint32_t line;
};

/* An answer for every device of every process of the report; the caller frees the array. */
struct sl_fits *sl_fits_of(struct sl_report *report, uint64_t capacity, unsigned *count);
