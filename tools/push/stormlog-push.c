/* SPDX-License-Identifier: MIT */
/*
 * stormlog-push [--json] URL FILE...: sends packs to a stormlog-server (doc/server.md).  It prints the address of each, or one
 * object of all (schemas/done.schema.json).  An upload that stopped earlier goes on where it stopped.  The token is in
 * STORMLOG_TOKEN, or in the file that STORMLOG_TOKEN_FILE names.  To this program a pack is just bytes; it parses no trace.
 * stormlog-analyze push starts it.  Exit status: 0 all are there, 2 usage, 4 one is not.
 */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/host_header.h"
#include "analyzer/base/json.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/hash.h"

enum {
	TRIES = 8, /* over a minute: a server gives up a torn upload within one */
	ANSWER_MAX = 4096,
	CONNECT_S = 20,
	STALLED_S = 30,
	READ_S = 60, /* so long a pack may take to be read before its address is printed */
};

struct push {
	CURL *curl;
	struct curl_slist *headers;
	const char *name; /* file name, for messages */
	char url[2048], sha[65];
	const char *bytes;
	uint64_t size, at; /* bytes of the file, and how many of them have been read */
	char answer[ANSWER_MAX + 1];
	size_t answered;
	uint64_t offset;	      /* how many bytes the server has */
	char run[257];		      /* what became of the pack's run: "kept", "waiting", or why it cannot be kept; "": not said */
	char error[ANSWER_MAX + 256]; /* the reason of a failure */
	bool tty, sends;	      /* sends: a file, and does not only ask */
};

/* Keeps and prints the reason of a failure. */
static bool __attribute__((format(printf, 2, 3))) fail(struct push *push, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(push->error, sizeof(push->error), format, list);
	va_end(list);
	return sl_escape_fail("stormlog-push", false, "%s: %s", push->name, push->error);
}

static size_t give(char *to, size_t one, size_t count, void *context)
{
	struct push *push = context;
	size_t size = one * count < push->size - push->at ? one * count : push->size - push->at;

	memcpy(to, push->bytes + push->at, size);
	push->at += size;
	return size;
}

static size_t take_answer(char *from, size_t one, size_t count, void *context)
{
	struct push *push = context;
	size_t size = one * count, room = ANSWER_MAX - push->answered;

	memcpy(push->answer + push->answered, from, size < room ? size : room);
	push->answered += size < room ? size : room;
	push->answer[push->answered] = 0;
	return size;
}

static size_t take_header(char *line, size_t one, size_t count, void *context)
{
	struct push *push = context;
	char text[300];

	snprintf(text, sizeof(text), "%.*s", (int)(one * count), line);
	text[strcspn(text, "\r\n")] = 0;
	if (!strncasecmp(text, "Upload-Offset:", 14))
		push->offset = strtoull(text + 14, NULL, 10);
	else if (!strncasecmp(text, "Run: ", 5))
		snprintf(push->run, sizeof(push->run), "%.256s", text + 5);
	return one * count;
}

static int show(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct push *push = context;

	if (push->tty && push->sends && push->size)
		sl_escape_print(stderr, "\r%s: %llu %%", push->name, (unsigned long long)(push->at * 100 / push->size));
	return 0;
}

/* Makes one request; returns the HTTP status, or 0 with curl's message for a network error. */
static long ask(struct push *push, bool put, uint64_t offset, char error[CURL_ERROR_SIZE])
{
	char range[128];
	struct curl_slist *headers = NULL;
	long status = 0;

	push->at = offset;
	push->sends = put;
	push->answered = push->answer[0] = 0;
	for (const struct curl_slist *h = push->headers; h; h = h->next)
		headers = curl_slist_append(headers, h->data);
	snprintf(range, sizeof(range), "Content-Range: bytes %llu-%llu/%llu", (unsigned long long)offset,
		 (unsigned long long)push->size - 1, (unsigned long long)push->size);
	if (put && offset)
		headers = curl_slist_append(headers, range);
	curl_easy_setopt(push->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(push->curl, CURLOPT_NOBODY, put ? 0L : 1L);
	curl_easy_setopt(push->curl, CURLOPT_UPLOAD, put ? 1L : 0L);
	if (put)
		curl_easy_setopt(push->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)(push->size - offset));
	curl_easy_setopt(push->curl, CURLOPT_ERRORBUFFER, error);
	*error = 0;
	if (!curl_easy_perform(push->curl))
		curl_easy_getinfo(push->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	return status;
}

/* True: the same request may succeed a moment later. */
static bool passes(long status)
{
	return !status || status == 409 || status == 423 || status == 429 || (status >= 500 && status != 507);
}

static void pause_before(unsigned try)
{
	struct timespec pause = {.tv_sec = try < 2 ? 0 : 1 << (try - 2), .tv_nsec = 200000000};

	nanosleep(&pause, NULL);
}

/* Extracts the sentence of {"status":404,"error":"..."} in place; leaves any other text whole. */
static const char *sentence(char *answer)
{
	char *at = strstr(answer, "\"error\":\""), *end;

	if (!at)
		return answer;
	at += strlen("\"error\":\"");
	end = strchr(at, '"');
	if (end)
		*end = 0;
	return at;
}

static bool send_file(struct push *push)
{
	char error[CURL_ERROR_SIZE] = "";
	long status = 0;

	for (unsigned try = 0; try < TRIES; try++) {
		if (try)
			pause_before(try);
		push->offset = 0;
		status = ask(push, false, 0, error);
		if (status == 404)
			status = ask(push, true, push->offset < push->size ? push->offset : 0, error);
		else if (status == 401 || status == 403)
			status = ask(push, true, 0, error); /* ask again with GET for its sentence: an answer to HEAD has no body */
		if (!passes(status))
			break;
		if (try == 1)
			sl_escape_print(stderr, "stormlog-push: %s: %s; trying again for a minute\n", push->name,
					status ? sentence(push->answer) : error);
	}
	if (push->tty)
		fputs("\r", stderr);
	if (status == 200 || status == 201)
		return true;
	if (!status)
		return fail(push, "%s", *error ? error : "the server cannot be reached");
	return fail(push, "the server says %ld: %s%s", status, sentence(push->answer),
		    status == 401 ? " (STORMLOG_TOKEN, or the file that STORMLOG_TOKEN_FILE names)" : "");
}

/* Waits until the server has read the pack.  False: it cannot keep the run, and the user was told. */
static bool is_kept(struct push *push)
{
	char error[CURL_ERROR_SIZE] = "";
	long status = 200;

	for (unsigned look = 0; look < 2 * READ_S && status == 200; look++) {
		*push->run = 0;
		status = ask(push, false, 0, error);
		if (status != 200 || strcmp(push->run, "waiting") != 0)
			break;
		nanosleep(&(struct timespec){.tv_nsec = look < 4 ? 50000000 : 500000000}, NULL);
	}
	if (status == 404)
		snprintf(push->run, sizeof(push->run), "it was read and removed again: its project is full");
	if (!*push->run || !strcmp(push->run, "kept"))
		return true;
	if (!strcmp(push->run, "waiting"))
		return sl_escape_print(stderr, "stormlog-push: %s: the server has it and reads it later\n", push->name), true;
	return fail(push, "the server cannot keep this run: %s", push->run);
}

/* Names a file by its hash; false: failed, and the user was told. */
static bool push_file(struct push *push, const char *base, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *slash = strrchr(path, '/');
	void *bytes = MAP_FAILED;
	struct stat st;
	bool fine;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	push->name = slash ? slash + 1 : path;
	push->size = 0;
	if (bytes == MAP_FAILED)
		return fail(push, "%s", fd < 0 ? strerror(errno) : "is no file with something in it");
	push->bytes = bytes;
	push->size = (uint64_t)st.st_size;
	sl_hash_sha256_hex(bytes, push->size, 64, push->sha);
	snprintf(push->url, sizeof(push->url), "%s/api/v1/packs/%s", base, push->sha);
	curl_easy_setopt(push->curl, CURLOPT_URL, push->url);
	fine = send_file(push) && is_kept(push);
	munmap(bytes, push->size);
	snprintf(push->url, sizeof(push->url), "%s/packs/%s", base, push->sha);
	return fine;
}

static void tell(struct sl_json *j, const struct push *push, bool fine)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "name", push->name);
	sl_json_uint(j, "bytes", push->size);
	sl_json_string(j, "url", fine ? push->url : NULL);
	sl_json_bool(j, "waiting", fine && !strcmp(push->run, "waiting"));
	sl_json_string(j, "error", fine ? NULL : push->error);
	sl_json_end(j);
}

static bool push_all(struct push *push, const char *base, char *const *paths, bool json)
{
	struct sl_json *j = json ? sl_json_new(stdout, SL_JSON_COMPACT) : NULL;
	bool all = true;

	if (j) {
		sl_json_document(j, "stormlog.push", 1);
		sl_json_array(j, "packs");
	}
	for (; *paths; paths++) {
		bool fine = push_file(push, base, *paths);

		all = all && fine;
		if (j)
			tell(j, push, fine);
		else if (fine)
			sl_escape_print(stdout, "%s\n", push->url);
	}
	if (j)
		sl_json_end(j);
	return (!j || sl_json_finish(j)) && all;
}

/* "Authorization: Bearer ..." where there is a token; false: failed, and the user was told. */
static bool add_token(struct push *push)
{
	const char *token = getenv("STORMLOG_TOKEN"), *path = getenv("STORMLOG_TOKEN_FILE");
	char line[256] = "", header[300];
	struct stat st;
	int fd = !(token && *token) && path && *path ? sl_paths_open_regular(path, &st) : -1; /* a pipe might never be written to */
	FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (in && !fgets(line, sizeof(line), in))
		*line = 0;
	if (in)
		fclose(in);
	else if (!(token && *token) && path && *path)
		return sl_escape_fail("stormlog-push", false, "%s: %m", path);
	if (token && *token)
		snprintf(line, sizeof(line), "%s", token);
	line[strcspn(line, "\r\n")] = 0;
	snprintf(header, sizeof(header), "Authorization: Bearer %s", line);
	if (*line)
		push->headers = curl_slist_append(push->headers, header);
	return true;
}

/* Whoever shares the network could read the token and write with it. */
static void warn_of_plain(const struct push *push, const char *base)
{
	char host[SL_HOST_HEADER_MAX];

	if (strncmp(base, "http://", 7) || !push->headers)
		return;
	sl_host_header_name(base + 7, host);
	if (strcmp(host, "localhost") && strncmp(host, "127.", 4) && strcmp(host, "[::1]"))
		sl_escape_print(stderr,
				"stormlog-push: the token goes to %s unencrypted: put a proxy with TLS in front, and use https\n",
				host);
}

static bool set_up(struct push *push)
{
	push->curl = curl_easy_init();
	if (!push->curl || !add_token(push))
		return false;
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(push->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(push->curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(push->curl, CURLOPT_USERAGENT, "stormlog/" SL_VERSION);
	curl_easy_setopt(push->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(push->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	curl_easy_setopt(push->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(push->curl, CURLOPT_LOW_SPEED_TIME, (long)STALLED_S);
	curl_easy_setopt(push->curl, CURLOPT_READFUNCTION, give);
	curl_easy_setopt(push->curl, CURLOPT_READDATA, push);
	curl_easy_setopt(push->curl, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(push->curl, CURLOPT_WRITEDATA, push);
	curl_easy_setopt(push->curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(push->curl, CURLOPT_HEADERDATA, push);
	curl_easy_setopt(push->curl, CURLOPT_XFERINFOFUNCTION, show);
	curl_easy_setopt(push->curl, CURLOPT_XFERINFODATA, push);
	curl_easy_setopt(push->curl, CURLOPT_NOPROGRESS, 0L);
	return true;
}

int main(int argc, char **argv)
{
	struct push push = {.tty = isatty(STDERR_FILENO)};
	char base[1024];
	bool fine, json = argc > 1 && !strcmp(argv[1], "--json");

	argc -= json;
	argv += json;
	if (argc < 3 || strlen(argv[1]) >= sizeof(base) || (strncmp(argv[1], "http://", 7) && strncmp(argv[1], "https://", 8))) {
		fputs("usage: stormlog-push [--json] http[s]://HOST[:PORT][/PATH] FILE...\n", stderr);
		return 2;
	}
	snprintf(base, sizeof(base), "%s", argv[1]);
	while (base[strlen(base) - 1] == '/')
		base[strlen(base) - 1] = 0;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !set_up(&push))
		return 4;
	warn_of_plain(&push, base);
	fine = push_all(&push, base, argv + 2, json);
	curl_slist_free_all(push.headers);
	curl_easy_cleanup(push.curl);
	return fflush(stdout) || !fine ? 4 : 0;
}
