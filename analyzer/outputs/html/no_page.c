/* SPDX-License-Identifier: MIT */
/* The page of a build without node: the terminal's summary, and the data as always. */
#include "analyzer/outputs/html/template.h"

const char sl_html_before[] =
	"<meta charset=\"utf-8\">\n<p>This build of stormlog-analyze had no Node.js, so this page has no pictures.  "
	"timeline.png and report.json are beside it.</p>\n";
const char sl_html_after[] = "\n";
const size_t sl_html_before_size = sizeof(sl_html_before) - 1, sl_html_after_size = sizeof(sl_html_after) - 1;
