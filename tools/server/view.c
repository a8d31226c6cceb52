/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define TIME_MAX_NS (INT64_MAX >> 3)

static const char *const again[][2] = {{"Retry-After", "1"}, {0}};

/* Sends what a child made, unchanged; false: it is not there. */
static bool send_made(struct sl_request *request, const char *path)
{
#if SL_REPORT_PAGE
	static const char *const zipped[][2] = {{"Content-Encoding", "gzip"}, {0}};
	struct sl_http_answer answer = {.status = 200, .type = "application/msgpack", .header = zipped};
#else
	/* the page may draw but not contact anything, not even this server, since its contents are not trusted */
	static const char policy[] = "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
				     " frame-ancestors 'none'";
	struct sl_http_answer answer = {.status = 200, .type = "text/html; charset=utf-8", .policy = policy};
#endif
	int fd = openat(request->server->packs.folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return false;
	}
	if (st.st_size) {
		sl_request_file(request, &answer, fd, (uint64_t)st.st_size);
	} else {
		close(fd);
		sl_request_say(request, 422, "this could not be computed from the packs that are here", NULL);
	}
	return true;
}

static void send_run(struct sl_request *request, const struct sl_card *card)
{
	char path[SL_PACKS_NAME + 64];

	sl_places_of(card->identity, SL_PLACES_PAGE, path);
	if (!send_made(request, path))
		sl_request_say(request, 404, "there is no report of this run", NULL);
}

/* False: the request has been answered with an error. */
static bool find_two(struct sl_request *request, struct sl_card *before, struct sl_card *after)
{
	const int64_t number[2] = {sl_ask_number(request, "before", 0, INT64_MAX), sl_ask_number(request, "after", 0, INT64_MAX)};
	struct sl_store *store = sl_runs_store(request->server);

	if (!number[0] || !number[1])
		sl_request_say(request, 400, "before=N and after=N name two runs", NULL);
	else if (!store)
		sl_request_say(request, 500, "the catalogue cannot be opened", NULL);
	else if (!sl_store_card(store, number[0], before) || !sl_store_card(store, number[1], after))
		sl_request_say(request, 404, "there is no such run", NULL);
	return !request->answered;
}

static void send_comparison(struct sl_request *request, const struct sl_card *before, const struct sl_card *after)
{
	char path[2 * SL_PACKS_NAME + 64];

	sl_places_compare(before->identity, after->identity, path);
	if (send_made(request, path))
		;
	else if (!sl_work_compare(request->server->work, before->identity, after->identity))
		sl_request_say(request, 503, "too many runs are being compared: try again", NULL);
	else if (SL_REPORT_PAGE)
		sl_request_say(request, 202, "These two are being compared.", again);
	else
		sl_html_wait(request, "These two are being compared.");
}

/* answer: called if both runs are known. */
static void answer_two(struct sl_request *request,
		       void (*answer)(struct sl_request *request, const struct sl_card *before, const struct sl_card *after))
{
	struct sl_card before, after;

	sl_card_init(&before);
	sl_card_init(&after);
	if (find_two(request, &before, &after))
		answer(request, &before, &after);
	sl_card_free(&before);
	sl_card_free(&after);
}

#if SL_REPORT_PAGE

/* Several zooms share one window: it starts at a multiple of half a power of two and is one and a half times that power wide. */
static void widen(uint64_t *from, uint64_t *to)
{
	uint64_t width = 2048;

	while (width < *to - *from)
		width *= 2;
	*from -= *from % (width / 2);
	*to = *from + width + width / 2;
}

void sl_view_data(struct sl_request *request, const struct sl_card *card)
{
	bool part = sl_request_argument(request, "from") || sl_request_argument(request, "to");
	uint64_t from = (uint64_t)sl_ask_number(request, "from", sl_request_argument(request, "from") ? TIME_MAX_NS : 0,
						TIME_MAX_NS),
		 to = (uint64_t)sl_ask_number(request, "to", 0, TIME_MAX_NS);
	char path[SL_PACKS_NAME + 64];

	if (!part) {
		send_run(request, card);
		return;
	}
	if (from >= to) {
		sl_request_say(request, 400, "from= must be before to=, both in ns since the run began", NULL);
		return;
	}
	widen(&from, &to);
	sl_places_window(card->identity, from, to, path);
	if (send_made(request, path))
		return;
	if (sl_work_window(request->server->work, card->identity, from, to))
		sl_request_say(request, 202, "This part of the run is being looked at.", again);
	else
		sl_request_say(request, 503, "too much is being computed: try again", NULL);
}

/* The page as it is in the program, unpacked; NULL: no memory for it. */
static char *unpack_page(size_t *size)
{
	z_stream stream = {.next_in = (unsigned char *)sl_served_page, .avail_in = (uInt)sl_served_page_size};
	uint32_t bytes; /* gzip ends with the size, least byte first */
	char *page;

	memcpy(&bytes, sl_served_page + sl_served_page_size - sizeof(bytes), sizeof(bytes));
	page = malloc(*size = le32toh(bytes));
	stream.next_out = (unsigned char *)page;
	stream.avail_out = le32toh(bytes);
	if (page && inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK) {
		inflate(&stream, Z_FINISH);
		inflateEnd(&stream);
	}
	return page;
}

static void send_page(struct sl_request *request)
{
	static const char *const zipped[][2] = {{"Content-Encoding", "gzip"}, {"Vary", "Accept-Encoding"}, {0}};
	const char *accepts = sl_request_header(request, "Accept-Encoding");
	struct sl_http_answer answer = {
		.status = 200, .type = "text/html; charset=utf-8", .policy = sl_served_policy, .header = zipped};
	size_t size;
	char *page;

	if (accepts && strstr(accepts, "gzip")) {
		sl_request_static(request, &answer, sl_served_page, sl_served_page_size);
		return;
	}
	answer.header = zipped + 1;
	page = unpack_page(&size);
	if (page)
		sl_request_text(request, &answer, page, size);
	else
		sl_request_say(request, 503, "too little memory: try again", NULL);
}

void sl_view_report(struct sl_request *request, const struct sl_card *card)
{
	send_page(request);
}

static void send_page_of_two(struct sl_request *request, const struct sl_card *before, const struct sl_card *after)
{
	send_page(request);
}

void sl_view_compare(struct sl_request *request)
{
	answer_two(request, send_page_of_two);
}

void sl_view_changes(struct sl_request *request)
{
	answer_two(request, send_comparison);
}

#else

static const char plain[] = "this server was built without the interactive page: its pages have their data inside";

void sl_view_data(struct sl_request *request, const struct sl_card *card)
{
	sl_request_say(request, 404, plain, NULL);
}

void sl_view_report(struct sl_request *request, const struct sl_card *card)
{
	send_run(request, card);
}

void sl_view_compare(struct sl_request *request)
{
	answer_two(request, send_comparison);
}

void sl_view_changes(struct sl_request *request)
{
	sl_request_say(request, 404, plain, NULL);
}

#endif
