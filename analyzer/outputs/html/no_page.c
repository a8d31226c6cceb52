/* SPDX-License-Identifier: MIT */
/* The page of a build without node: the terminal's summary, and the data as always. */
#include "analyzer/outputs/html/template.h"

const char sl_html_before[] = "<p>This build of stormlog-analyze had no Node.js, so this page has no pictures.  timeline.png and "
			      "report.json are beside it."
			      "</p>\n<script id=\"data\" type=\"text/plain\">";
const char sl_html_after[] = "</script>\n";
const size_t sl_html_before_size = sizeof(sl_html_before) - 1, sl_html_after_size = sizeof(sl_html_after) - 1;
const bool sl_html_is_text = true;
