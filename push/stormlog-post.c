/* SPDX-License-Identifier: MIT */
/* stormlog-post URL: sends the JSON on stdin by POST.  Exit status 0: the server took it (2xx); 1: it did not; 2: usage. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_S 10l
#define MOST	  (1 << 20)

static size_t drop(char *bytes, size_t size, size_t count, void *context)
{
	return size * count;
}

static int post(CURL *curl, const char *url, const char *body, size_t size)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	char why[CURL_ERROR_SIZE] = "";
	long status = 0;
	CURLcode code;

	curl_easy_setopt(curl, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)size);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, LONGEST_S);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1l);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "stormlog/" SL_VERSION);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	if (code != CURLE_OK)
		fprintf(stderr, "stormlog-post: %s\n", *why ? why : curl_easy_strerror(code));
	else if (status / 100 != 2)
		fprintf(stderr, "stormlog-post: the server answers %ld\n", status);
	return code != CURLE_OK || status / 100 != 2;
}

int main(int argc, char **argv)
{
	char *body = malloc(MOST);
	size_t size = body ? fread(body, 1, MOST, stdin) : 0;
	CURL *curl = curl_easy_init();
	int status;

	if (argc != 2 || !body || !curl) {
		fputs("usage: stormlog-post URL < JSON\n", stderr);
		return 2;
	}
	status = post(curl, argv[1], body, size);
	curl_easy_cleanup(curl);
	free(body);
	return status;
}
