/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <strings.h>

const char *sl_request_argument(const struct sl_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *sl_request_header(const struct sl_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* ---- answers */

static void send_response(struct sl_request *request, const struct sl_http_answer *answer, struct MHD_Response *response)
{
	static const char nothing[] = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

	if (!response)
		return; /* without an answer libmicrohttpd closes the connection */
	MHD_add_response_header(response, "Content-Type", answer->type);
	MHD_add_response_header(response, "Content-Security-Policy", answer->policy ? answer->policy : nothing);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "X-Frame-Options", "DENY");
	MHD_add_response_header(response, "Referrer-Policy",
				"same-origin"); /* with "no-referrer" our own forms would have Origin: null */
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(response, "Cache-Control", answer->keep ? "private, max-age=86400" : "private, no-cache");
	for (unsigned i = 0; answer->header && answer->header[i][0]; i++)
		MHD_add_response_header(response, answer->header[i][0], answer->header[i][1]);
	MHD_queue_response(request->connection, answer->status, response);
	MHD_destroy_response(response);
	request->answered = true;
}

void sl_request_text(struct sl_request *request, const struct sl_http_answer *answer, char *text, size_t size)
{
	send_response(request, answer, MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
}

void sl_request_static(struct sl_request *request, const struct sl_http_answer *answer, const void *text, size_t size)
{
	send_response(request, answer, MHD_create_response_from_buffer(size, (void *)text, MHD_RESPMEM_PERSISTENT));
}

void sl_request_file(struct sl_request *request, const struct sl_http_answer *answer, int fd, uint64_t size)
{
	send_response(request, answer, MHD_create_response_from_fd64(size, fd));
}

void sl_request_say(struct sl_request *request, unsigned status, const char *why, const char *const (*header)[2])
{
	bool api = !strncmp(request->path, "/api/", 5);
	struct sl_http_answer answer = {
		.status = status, .type = api ? "application/json" : "text/plain; charset=utf-8", .header = header};
	struct sl_json *json = sl_json_new(NULL, SL_JSON_COMPACT);
	size_t length;
	char *text;

	if (api) {
		sl_json_object(json, NULL);
		sl_json_int(json, "status", status);
		sl_json_string(json, status < 400 ? "message" : "error", why);
		sl_json_end(json);
		sl_json_newline(json);
		text = strdup(sl_json_text(json, &length));
	} else {
		length = (size_t)asprintf(&text, "%s\n", why);
	}
	sl_json_close(json);
	sl_request_text(request, &answer, text, length);
}
