/* SPDX-License-Identifier: MIT */
/*
 * Finds the commit that is run: from git's files in the working folder, and where these do not say (a checkout without a
 * branch, or no checkout) from the CI system's variables.  It only reads files; it starts no program.
 */
#include "launcher/launcher.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 512

struct git {
	char commit[72], branch[TEXT_MAX], repository[TEXT_MAX];
};

static FILE *open_file(const char *folder, const char *name)
{
	char path[PATH_MAX + TEXT_MAX];
	struct stat st;
	int file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (file >= 0 && !fstat(file, &st) && S_ISREG(st.st_mode))
		return fdopen(file, "r");
	if (file >= 0)
		close(file);
	return NULL;
}

/* The first line of a file; "": there is none. */
static bool read_line(const char *folder, const char *name, char *line, size_t size)
{
	FILE *file = open_file(folder, name);
	bool got = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (!got)
		*line = 0;
	line[strcspn(line, "\r\n")] = 0;
	return *line;
}

static bool is_commit(const char *text)
{
	size_t size = strspn(text, "0123456789abcdef");

	return (size == 40 || size == 64) && (!text[size] || text[size] == ' ');
}

/* Looks up a reference in packed-refs, where git keeps many in one file. */
static bool find_packed(const char *common, const char *reference, char *line, size_t size)
{
	FILE *file = open_file(common, "packed-refs");
	bool found = false;

	while (file && !found && fgets(line, (int)size, file)) {
		line[strcspn(line, "\r\n")] = 0;
		found = is_commit(line) && strchr(line, ' ') && !strcmp(strchr(line, ' ') + 1, reference);
	}
	if (file)
		fclose(file);
	return found;
}

/* Reads the path that stands after `prefix` in the file `name`; a relative one counts from the folder. */
static bool follow(const char *folder, const char *name, const char *prefix, char *to, size_t size)
{
	char line[PATH_MAX];
	size_t skip = strlen(prefix);
	int length;

	if (!read_line(folder, name, line, sizeof(line)) || strncmp(line, prefix, skip) != 0)
		return false;
	length = line[skip] == '/' ? snprintf(to, size, "%s", line + skip) : snprintf(to, size, "%s/%s", folder, line + skip);
	return length > 0 && (size_t)length < size;
}

/* The folder of git's files.  `common` is the main repository's where this is a linked worktree, else the same. */
static bool find_folder(char *folder, char *common)
{
	char at[PATH_MAX], inside[PATH_MAX + 8];
	struct stat st;

	if (!getcwd(at, sizeof(at) - 8))
		return false;
	for (;; *strrchr(at, '/') = 0) {
		snprintf(inside, sizeof(inside), "%s/.git", at);
		if (!stat(inside, &st))
			break;
		if (!strrchr(at, '/'))
			return false;
	}
	if (S_ISDIR(st.st_mode))
		snprintf(folder, PATH_MAX, "%.*s", PATH_MAX - 1, inside);
	else if (!follow(at, ".git", "gitdir: ", folder, PATH_MAX))
		return false;
	if (!follow(folder, "commondir", "", common, PATH_MAX))
		strcpy(common, folder);
	return true;
}

/* The repository is named after its folder. */
static void name_repository(struct git *git, const char *common)
{
	char whole[PATH_MAX], *slash;

	if (!realpath(common, whole))
		return;
	slash = strrchr(whole, '/');
	if (slash && !strcmp(slash, "/.git"))
		*slash = 0;
	slash = strrchr(whole, '/');
	if (slash)
		snprintf(git->repository, sizeof(git->repository), "%.500s", slash + 1);
}

static void ask_folder(struct git *git)
{
	char folder[PATH_MAX], common[PATH_MAX], line[PATH_MAX], reference[TEXT_MAX];

	if (!find_folder(folder, common) || !read_line(folder, "HEAD", line, sizeof(line)))
		return;
	name_repository(git, common);
	if (strncmp(line, "ref: ", 5) == 0) {
		snprintf(reference, sizeof(reference), "%.500s", line + 5);
		if (!strncmp(reference, "refs/heads/", 11))
			snprintf(git->branch, sizeof(git->branch), "%s", reference + 11);
		if (!strncmp(reference, "refs/", 5) && !strstr(reference, "..") &&
		    !read_line(folder, reference, line, sizeof(line)) && !read_line(common, reference, line, sizeof(line)) &&
		    !find_packed(common, reference, line, sizeof(line)))
			return;
	}
	if (is_commit(line))
		snprintf(git->commit, sizeof(git->commit), "%.*s", (int)strspn(line, "0123456789abcdef"), line);
}

/* GitHub, GitLab, Jenkins, Buildkite, CircleCI */
static void ask_environment(char *value, size_t size, const char *const *names)
{
	for (; !*value && *names; names++) {
		const char *text = getenv(*names);

		if (text && strlen(text) < size && !strpbrk(text, "\r\n"))
			strcpy(value, text);
	}
}

/* Adds one line of metadata, unless the user or an outer launcher has set that key. */
static void add(const char *key, const char *value)
{
	const char *before = getenv("STORMLOG_META");
	char *said, *joined;
	bool is_said;

	if (!*value || asprintf(&said, "\n%s=", key) < 0)
		return;
	if (asprintf(&joined, "\n%s\n%s=%s", before ? before : "", key, value) >= 0) {
		is_said = strstr(joined, said) != joined + strlen(joined) - strlen(value) - strlen(said);
		if (!is_said)
			setenv("STORMLOG_META", joined + (before && *before ? 1 : 2), 1);
		free(joined);
	}
	free(said);
}

void sl_git_tell(void)
{
	static const char *const commits[] = {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1", NULL};
	static const char *const branches[] = {"GITHUB_HEAD_REF",
					       "GITHUB_REF_NAME",
					       "CI_COMMIT_REF_NAME",
					       "GIT_BRANCH",
					       "BUILDKITE_BRANCH",
					       "CIRCLE_BRANCH",
					       NULL};
	static const char *const repositories[] = {"GITHUB_REPOSITORY", "CI_PROJECT_PATH", NULL};
	struct git git = {"", "", ""};

	ask_folder(&git);
	ask_environment(git.commit, sizeof(git.commit), commits);
	ask_environment(git.branch, sizeof(git.branch), branches);
	ask_environment(git.repository, sizeof(git.repository), repositories);
	add("git.commit", git.commit);
	add("git.branch", git.branch);
	add("git.repository", git.repository);
}
