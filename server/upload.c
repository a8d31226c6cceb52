/* SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <inttypes.h>
#include <unistd.h>

#include "analyzer/base/escape.h"

/* "bytes 100-199/5000", or "/ *" where the whole is not known. */
static bool read_range(const char *text, uint64_t *first, uint64_t *end, uint64_t *total)
{
	char star = 0;
	int past = 0;

	if (strspn(text, "bytes 0123456789-*/") != strlen(text))
		return false;
	if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%n", first, end, total, &past) == 3 && !text[past]) {
		*end += 1;
		return *end > *first && *end <= *total;
	}
	past = 0;
	if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%c%n", first, end, &star, &past) != 3 || star != '*' || text[past])
		return false;
	*end += 1;
	*total = UINT64_MAX;
	return *end > *first;
}

struct sl_http_outcome sl_upload_begin(struct sl_request *request)
{
	const char *range = sl_request_header(request, "Content-Range"), *length = sl_request_header(request, "Content-Length");
	struct sl_incoming *in = &request->incoming;
	uint64_t offset = 0, bytes = length ? strtoull(length, NULL, 10) : 0;

	if (!sl_packs_is_name(request->rest))
		return (struct sl_http_outcome){400, "a pack is named by its SHA-256, 64 digits in lower case"};
	snprintf(in->name, sizeof(in->name), "%s", request->rest);
	in->end = bytes;
	in->total = length ? bytes : UINT64_MAX;
	if (range && (!length || !read_range(range, &offset, &in->end, &in->total) || in->end - offset != bytes))
		return (struct sl_http_outcome){400, "Content-Range does not agree with itself or with Content-Length"};
	if (request->server->project_bytes && sl_quota_refuses(request->server, sl_runs_store(request->server), in->name))
		return (struct sl_http_outcome){507, SL_QUOTA_FULL};
	return sl_packs_begin(&request->server->packs, in, offset);
}

static void say(struct sl_request *request, struct sl_http_outcome outcome, uint64_t offset)
{
	char number[24], place[SL_PACKS_NAME + 32];
	const char *const header[][2] = {{"Upload-Offset", number}, {outcome.status == 201 ? "Location" : NULL, place}, {0}};

	snprintf(number, sizeof(number), "%" PRIu64, offset);
	snprintf(place, sizeof(place), "/api/v1/packs/%s", request->incoming.name);
	sl_request_say(request, outcome.status, outcome.why, header);
}

void sl_upload_answer(struct sl_request *request)
{
	struct sl_incoming *in = &request->incoming;
	struct sl_http_outcome outcome = request->outcome;

	if (!outcome.status)
		outcome = sl_packs_end(&request->server->packs, in);
	if (outcome.status == 201) {
		sl_escape_print(stderr, "stormlog-server: pack %s, %" PRIu64 " bytes\n", in->name, in->size);
		sl_work_index(request->server->work, in->name);
	}
	say(request, outcome, outcome.status >= 400 ? sl_packs_begun(&request->server->packs, in->name) : in->size);
}

/* Run: "kept", "waiting" while the pack is read, or why its run cannot be kept. */
static void say_stored(struct sl_request *request, uint64_t size)
{
	char number[24], run[257] = "waiting";
	const char *const header[][2] = {{"Upload-Offset", number}, {"Run", run}, {0}};
	bool known;

	snprintf(number, sizeof(number), "%" PRIu64, size);
	if (sl_runs_known(request->server, request->rest, &known) && known)
		snprintf(run, sizeof(run), "kept");
	else
		sl_runs_unreadable(request->server, request->rest, run, sizeof(run));
	sl_request_say(request, 200, "stored", header);
}

void sl_upload_head(struct sl_request *request)
{
	struct stat st;
	int fd = -1;

	if (!sl_packs_is_name(request->rest)) {
		sl_request_say(request, 400, "a pack is named by its SHA-256, 64 digits in lower case", NULL);
		return;
	}
	fd = sl_packs_read(&request->server->packs, request->rest, &st);
	snprintf(request->incoming.name, sizeof(request->incoming.name), "%s", request->rest);
	if (fd >= 0) {
		close(fd);
		say_stored(request, (uint64_t)st.st_size);
	} else {
		say(request, (struct sl_http_outcome){404, "not stored"}, sl_packs_begun(&request->server->packs, request->rest));
	}
}

void sl_upload_download(struct sl_request *request)
{
	static const char *const header[][2] = {{"Content-Disposition", "attachment; filename=\"run.stormlog\""}, {0}};
	struct sl_http_answer answer = {.status = 200, .type = "application/octet-stream", .header = header, .keep = true};
	struct stat st;
	int fd = sl_packs_is_name(request->rest) ? sl_packs_read(&request->server->packs, request->rest, &st) : -1;

	if (fd < 0)
		sl_request_say(request, 404, "there is no such pack", NULL);
	else
		sl_request_file(request, &answer, fd, (uint64_t)st.st_size);
}
