/* SPDX-License-Identifier: MIT */
/*
 * A page of ours as text.  Markup is in the program; whatever else comes in goes through the door and can be nothing but text.
 *
 *	sl_html_begin(&page, request, "Runs");
 *	sl_html(&page, "<p title='$'><a href='/search?q=%'>$</a></p>", why, query, name);
 *	sl_html_end(&page, 200);
 */
#ifndef SERVER_HTML_H
#define SERVER_HTML_H

#include <stdint.h>
#include <stdio.h>

#include "server/request.h"

struct sl_html {
	struct sl_request *request;
	FILE *out;
	char *text;
	size_t size;
};

void sl_html_begin(struct sl_html *page, struct sl_request *request, const char *title); /* page stays where it is until its end */
/* Each $ is the next text, each % the next one as part of an address; as many `const char *` as there are of both.  NULL is a dash. */
void sl_html(struct sl_html *page, const char *markup, ...);
/* Texts of numbers, for the above: unknown, below zero, is NULL.  `buffer` holds SL_FORMAT_BYTES. */
const char *sl_html_size(char *buffer, int64_t bytes);
const char *sl_html_number(char *buffer, int64_t number);
const char *sl_html_time(char *buffer, int64_t unix_ns);
/* The query of a project's runs, of at most `size` bytes; NULL and "": of those without one. */
void sl_html_project(char *query, size_t size, const char *project);
/* The answer. */
void sl_html_end(struct sl_html *page, unsigned status);

/* The rest of a page that a browser asks for again: what is computed now. */
void sl_html_wait(struct sl_request *request, const char *what);

#endif
