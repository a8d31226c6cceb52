/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "analyzer/base/escape.h"

#define FILE_NAME "tokens"
#define SECRET	  32 /* bytes */

static bool is_name(const char *name)
{
	return *name && strlen(name) <= SL_TOKEN_NAME &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name);
}

static bool read_token(struct sl_token *token, const char *line, size_t size)
{
	char rights[3];
	int end = 0;

	if (sscanf(line, "%64[^ ] %2[rw] %64[0-9a-f]%n", token->name, rights, token->digest, &end) != 3 || !is_name(token->name) ||
	    strlen(token->digest) != 64 || (size_t)end + (line[end] == '\n') != size)
		return false;
	token->rights = (strchr(rights, 'r') ? SL_RIGHT_READ : 0) | (strchr(rights, 'w') ? SL_RIGHT_WRITE : 0);
	return true;
}

/* True: the file may be as good as before; it cannot be read now. */
static bool passes(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == ESTALE;
}

/*
 * False: it is not understood, which was printed; the tokens are those of the lines that are.  They stay where it cannot be read
 * now.
 */
static bool read_tokens(struct sl_tokens *tokens)
{
	int fd = openat(tokens->folder, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* waits at no FIFO */
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	size_t before = tokens->token.count, room = 0;
	unsigned number = 0, wrong = 0;
	struct sl_token token;
	char *line = NULL;
	ssize_t size;
	int error;

	for (; in && (size = getline(&line, &room, in)) > 0; number++)
		if (read_token(&token, line, (size_t)size))
			*SL_PUSH(&tokens->token) = token;
		else if (*line != '\n')
			wrong = wrong ? wrong : number + 1;
	error = in && feof(in) ? 0 : errno;
	if (error && error != tokens->reported_error)
		sl_escape_print(stderr, "stormlog-server: tokens: %s\n", error == ELOOP ? "a link" : strerror(error));
	else if (wrong && !error)
		sl_escape_print(stderr, "stormlog-server: tokens: line %u is not NAME RIGHTS SHA256\n", wrong);
	free(line);
	if (in)
		fclose(in);
	else if (fd >= 0)
		close(fd);
	tokens->reported_error = error;
	if (passes(error)) {
		tokens->token.count = before;
		tokens->changed = (struct timespec){0};
	} else if (before) {
		tokens->token.count -= before;
		memmove(tokens->token.item, tokens->token.item + before, tokens->token.count * sizeof(token));
	}
	return !error && !wrong;
}

/* The same, if the file changed. */
static bool refresh(struct sl_tokens *tokens)
{
	struct stat st = {0};
	bool is_there = !fstatat(tokens->folder, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW), is_missing = !is_there && errno == ENOENT;

	/* kernels before 6.13 stamp files each 4 ms; token add and remove make a new file */
	if (is_there && st.st_ctim.tv_sec == tokens->changed.tv_sec && st.st_ctim.tv_nsec == tokens->changed.tv_nsec &&
	    st.st_ino == tokens->file)
		return true;
	tokens->changed = is_there ? st.st_ctim : (struct timespec){0};
	tokens->file = st.st_ino;
	if (is_missing)
		tokens->token.count = 0;
	return is_missing || read_tokens(tokens);
}

unsigned sl_tokens_rights(struct sl_tokens *tokens, const char *presented, char name[SL_TOKEN_NAME + 1])
{
	char digest[65];
	unsigned rights = 0;

	sl_hash_sha256_hex(presented, strlen(presented), 64, digest);
	pthread_mutex_lock(&tokens->mutex);
	refresh(tokens);
	for (size_t i = 0; i < tokens->token.count; i++) {
		unsigned differs = 0;

		for (unsigned k = 0; k < 64; k++) /* compares all digits, so that the time does not tell where they differ */
			differs |= (unsigned char)(digest[k] ^ tokens->token.item[i].digest[k]);
		rights |= differs ? 0 : tokens->token.item[i].rights;
		if (!differs)
			memcpy(name, tokens->token.item[i].name, SL_TOKEN_NAME + 1);
	}
	pthread_mutex_unlock(&tokens->mutex);
	return rights;
}

/* What root writes belongs to the store's owner: the server reads it as that user. */
static bool give_away(int folder, int fd)
{
	struct stat st;

	return !fstat(folder, &st) && (st.st_uid == geteuid() || !fchown(fd, st.st_uid, st.st_gid));
}

/* Writes all tokens except `without`, then `with`, to a new file and renames that. */
static bool rewrite(struct sl_tokens *tokens, const char *without, const struct sl_token *with)
{
	int fd = openat(tokens->folder, FILE_NAME ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	bool fine;

	if (!out)
		return false;
	if (with)
		*SL_PUSH(&tokens->token) = *with;
	for (size_t i = 0; i < tokens->token.count; i++) {
		const struct sl_token *token = &tokens->token.item[i];

		if (!without || strcmp(token->name, without))
			sl_escape_print(out, "%s %s%s %s\n", token->name, token->rights & SL_RIGHT_READ ? "r" : "",
					token->rights & SL_RIGHT_WRITE ? "w" : "", token->digest);
	}
	fine = give_away(tokens->folder, fd) && !fflush(out) && !ferror(out) && !fsync(fd);
	fine = !fclose(out) && fine;
	return fine && !renameat(tokens->folder, FILE_NAME ".new", tokens->folder, FILE_NAME);
}

static const struct sl_token *find(const struct sl_tokens *tokens, const char *name)
{
	for (size_t i = 0; i < tokens->token.count; i++)
		if (!strcmp(tokens->token.item[i].name, name))
			return &tokens->token.item[i];
	return NULL;
}

static int add(struct sl_tokens *tokens, const char *name, unsigned rights)
{
	struct sl_token token = {.rights = rights};
	uint8_t secret[SECRET];
	char text[2 * SECRET + 1];

	if (find(tokens, name))
		return sl_escape_fail("stormlog-server", 2, "there is a token %s: token remove %s first", name, name);
	if (getrandom(secret, sizeof(secret), 0) != SECRET)
		return 4;
	for (unsigned i = 0; i < SECRET; i++)
		sprintf(text + 2 * i, "%02x", secret[i]);
	snprintf(token.name, sizeof(token.name), "%s", name);
	sl_hash_sha256_hex(text, strlen(text), 64, token.digest);
	sl_escape_print(stdout, "%s\n", text);
	if (fflush(stdout)) /* a token that nobody has seen is not kept; main() says why */
		return 4;
	if (!rewrite(tokens, NULL, &token))
		return sl_escape_fail("stormlog-server", 4, "tokens: %m; this token is not valid");
	return sl_escape_fail("stormlog-server", 0, "shown this once; the store keeps its hash");
}

static int remove_token(struct sl_tokens *tokens, const char *name)
{
	if (!find(tokens, name))
		return sl_escape_fail("stormlog-server", 2, "there is no token %s", name);
	return rewrite(tokens, name, NULL) ? 0 : sl_escape_fail("stormlog-server", 4, "tokens: %m");
}

bool sl_tokens_parse(struct sl_tokens_command *command, int argc, char **argv)
{
	static const char *const verbs[] = {[SL_TOKENS_LIST] = "list", [SL_TOKENS_ADD] = "add", [SL_TOKENS_REMOVE] = "remove"};
	size_t verb = 0, names = 0, strange = 0;

	while (verb < SL_COUNT(verbs) && (!argc || strcmp(argv[0], verbs[verb])))
		verb++;
	*command = (struct sl_tokens_command){.verb = (enum sl_tokens_verb)verb};
	for (int i = 1; i < argc; i++) {
		unsigned right = !strcmp(argv[i], "--read") ? SL_RIGHT_READ : !strcmp(argv[i], "--write") ? SL_RIGHT_WRITE : 0;

		command->rights |= right;
		strange += !right && verb == SL_TOKENS_ADD && *argv[i] == '-';
		if (!right && !names++)
			command->name = argv[i];
	}
	if (verb == SL_COUNT(verbs) || strange || names != (verb != SL_TOKENS_LIST) || (command->rights && verb != SL_TOKENS_ADD)) {
		fputs("usage: stormlog-server --store DIR token add NAME --read|--write | list | remove NAME\n", stderr);
		return false;
	}
	if (verb != SL_TOKENS_ADD || (is_name(command->name) && command->rights))
		return true;
	return sl_escape_fail("stormlog-server", false,
			      "token add NAME --read|--write: NAME is of letters, digits, '.', '_' and '-'");
}

int sl_tokens_command(int folder, const struct sl_tokens_command *command)
{
	struct sl_tokens tokens = {.folder = folder};
	int status = 0, lock = openat(folder, "packs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock >= 0)
		flock(lock, LOCK_EX); /* two commands at once lose no token; the store's own lock belongs to the server */
	if (!refresh(&tokens))
		status = 4;
	else if (command->verb == SL_TOKENS_ADD)
		status = add(&tokens, command->name, command->rights);
	else if (command->verb == SL_TOKENS_REMOVE)
		status = remove_token(&tokens, command->name);
	else
		for (size_t i = 0; i < tokens.token.count; i++)
			sl_escape_print(stdout, "%s%s%s\n", tokens.token.item[i].name,
					tokens.token.item[i].rights & SL_RIGHT_READ ? " --read" : "",
					tokens.token.item[i].rights & SL_RIGHT_WRITE ? " --write" : "");
	if (lock >= 0)
		close(lock);
	SL_DROP(&tokens.token);
	return status;
}
