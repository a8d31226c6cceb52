/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "tools/server/server.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"

/* Content policy: styles, scripts and data may come only from this server. */
static const char policy[] = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
			     " form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

void sl_html(struct sl_html *page, const char *markup, ...)
{
	va_list texts;

	va_start(texts, markup);
	while (*markup) {
		size_t plain = strcspn(markup, "$%");

		fwrite(markup, 1, plain, page->out);
		markup += plain;
		if (*markup) {
			const char *text = va_arg(texts, const char *);

			if (*markup++ == '%')
				sl_escape_address(page->out, text ? text : "", "-._~");
			else
				sl_escape_put(page->out, SL_ESCAPE_XML, text ? text : "\xe2\x80\x93");
		}
	}
	va_end(texts);
}

const char *sl_html_size(char *buffer, int64_t bytes)
{
	return bytes < 0 ? NULL : sl_format_size(buffer, (uint64_t)bytes);
}

const char *sl_html_number(char *buffer, int64_t number)
{
	snprintf(buffer, SL_FORMAT_BYTES, "%lld", (long long)number);
	return number < 0 ? NULL : buffer;
}

/* 2026-11-20T09:27:40Z */
static const char *format_time(char *out, uint64_t unix_ns)
{
	time_t s = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(out, SL_FORMAT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return out;
}

const char *sl_html_time(char *buffer, int64_t unix_ns)
{
	return unix_ns < 0 ? NULL : format_time(buffer, (uint64_t)unix_ns);
}

void sl_html_project(char *query, size_t size, const char *project)
{
	bool quotes = project && strchr(project, '"');

	if (!project || !*project)
		snprintf(query, size, "project=?");
	else
		snprintf(query, size, "project%c\"%s\"", quotes ? ':' : '=', project);
	for (char *at = strchr(query, '"') ? strchr(query, '"') + 1 : query; quotes && at + 1 < query + strlen(query); at++)
		if (*at == '"') /* a quote cannot be escaped in a query; the words around it still match */
			*at = ' ';
}

void sl_html_begin(struct sl_html *page, struct sl_request *request, const char *title)
{
	const char *query = sl_request_argument(request, "q");

	page->request = request;
	page->out = sl_memory_must(open_memstream(&page->text, &page->size));
	sl_html(page,
		"<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width,"
		" initial-scale=1'><link rel='icon' href='data:,'><link rel='stylesheet' href='/static/style.css'>"
		"<script src='/static/search.js' defer></script><title>$ \xe2\x80\x93 stormlog</title></head><body>"
		"<nav aria-label='Server'><a class='brand' href='/'>stormlog</a><a href='/search'>Runs</a><a "
		"href='/trends'>Trends</a>"
		"<form role='search' action='/search'><input type='search' name='q' id='q' value='$' autocomplete='off'"
		" aria-label='Search runs, functions, files, libraries' placeholder='project:ours peak&gt;20G when&gt;-7d'>"
		"<button>Search</button><ul id='names' hidden></ul></form></nav><main><h1>$</h1>",
		title, query ? query : "", title);
}

static void answer(struct sl_html *page, unsigned status, const char *const (*header)[2])
{
	struct sl_http_answer answer = {.status = status, .type = "text/html; charset=utf-8", .policy = policy, .header = header};

	sl_html(page, "</main></body></html>\n");
	fclose(page->out);
	sl_request_text(page->request, &answer, page->text, page->size);
}

void sl_html_end(struct sl_html *page, unsigned status)
{
	answer(page, status, NULL);
}

void sl_html_wait(struct sl_request *request, const char *what)
{
	static const char *const again[][2] = {{"Refresh", "1"}, {0}};
	struct sl_html page;

	sl_html_begin(&page, request, "One moment");
	sl_html(&page, "<p role='status' id='wait'>$</p>", what);
	answer(&page, 202, again);
}
