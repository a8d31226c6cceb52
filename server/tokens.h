/* SPDX-License-Identifier: MIT */
/*
 * Who may read and who may write: STORE/tokens, a line "NAME RIGHTS SHA256" each.  A file with another line is never rewritten; the
 * server takes the lines that are tokens.  A token is 256 random bits, so its SHA-256 alone gives nothing away and needs no salt.
 * The file is read again when it changed.  While it cannot be read, as where descriptors are short, the tokens are those of the
 * last reading.  Any thread.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "analyzer/base/vector.h"

enum sl_right { SL_RIGHT_READ = 1, SL_RIGHT_WRITE = 2 };

#define SL_TOKEN_NAME 64

struct sl_token {
	char name[SL_TOKEN_NAME + 1], digest[65];
	unsigned rights;
};

struct sl_tokens {
	int folder;
	pthread_mutex_t mutex;
	struct timespec changed;
	int said; /* why the file could not be read: each request tries again, but says it once; 0: it was read */
	SL_VECTOR(struct sl_token) token;
};

/* The rights of a presented token, and its name; 0: unknown token.  Takes the same time whichever token of the file it is. */
unsigned sl_tokens_rights(struct sl_tokens *tokens, const char *presented, char name[SL_TOKEN_NAME + 1]);

/* The command stormlog-server token add NAME --read|--write | list | remove NAME. */
enum sl_tokens_verb { SL_TOKENS_LIST, SL_TOKENS_ADD, SL_TOKENS_REMOVE };
struct sl_tokens_command {
	enum sl_tokens_verb verb;
	const char *name; /* of argv; NULL: list */
	unsigned rights;  /* of a token that is added */
};
/* The words after `token`.  False: not understood, which was said. */
bool sl_tokens_parse(struct sl_tokens_command *command, int argc, char **argv);
/* Returns an exit status. */
int sl_tokens_command(int folder, const struct sl_tokens_command *command);
