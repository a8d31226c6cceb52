/* SPDX-License-Identifier: MIT */
/* The page of a build without node: the data as always, and a sentence in the place of the script. */
#include "analyzer/outputs/html/template.h"

const char sl_html_before[] = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>stormlog</title>\n"
			      "<p>This build of stormlog-analyze has no page: Node.js was missing. summary.md, report.json and the "
			      "pictures have the figures.</p>\n"
			      "<script id=\"data\" type=\"text/plain\">";
const char sl_html_after[] = "</script>\n";
const size_t sl_html_before_size = sizeof(sl_html_before) - 1, sl_html_after_size = sizeof(sl_html_after) - 1;
