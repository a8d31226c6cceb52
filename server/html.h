/* SPDX-License-Identifier: MIT */
/*
 * Writes a page.  Markup comes from the program; all other text is escaped (base/escape.h), so that it cannot be markup.
 *
 * 	sl_html_begin(&page, request, "Runs");
 * 	sl_html(&page, "<p title='$'><a href='/search?q=%'>$</a></p>", why, query, name);
 * 	sl_html_end(&page, 200);
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "server/request.h"

struct sl_html {
	struct sl_request *request;
	FILE *out;
	char *text;
	size_t size;
};

void sl_html_begin(struct sl_html *page, struct sl_request *request, const char *title); /* not moved until its end */
/*
 * Each $ is replaced by the next text, each % by the next text encoded for an address.  Pass as many `const char *` as there
 * are of both.  NULL is shown as a dash.
 */
void sl_html(struct sl_html *page, const char *markup, ...);
/* Numbers as texts for the above; an unknown one (below zero) is NULL.  `buffer` holds SL_FORMAT_BYTES. */
const char *sl_html_size(char *buffer, int64_t bytes);
const char *sl_html_number(char *buffer, int64_t number);
const char *sl_html_time(char *buffer, int64_t unix_ns);
/* The query that finds a project's runs, of at most `size` bytes.  NULL and "": runs without a project. */
void sl_html_project(char *query, size_t size, const char *project);
/* Sends the page. */
void sl_html_end(struct sl_html *page, unsigned status);

/* Sends a page that the browser loads again by itself, because `what` is still being computed. */
void sl_html_wait(struct sl_request *request, const char *what);
