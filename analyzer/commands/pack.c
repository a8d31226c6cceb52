/* SPDX-License-Identifier: MIT */
/* stormlog-analyze pack PATH...: a run as one file, to attach to a report of a bug. */
#include <sys/random.h>

#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"

static const char about[] =
	"One file that stormlog-analyze opens like the folder.  Masked names keep their length and stay the same within a pack;\n"
	"names of vendors' libraries, sizes, addresses and times stay.  Unless names are masked, names and lines of native\nframes "
	"are looked up now and go into the pack, so that it opens without the libraries.";

struct settings {
	const char *path, *run;
	uint8_t key[SL_REDACT_KEY];
	bool redact, json;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--output", 'o', "FILE", "where it goes (default: traces.stormlog); \"-\" is standard output", SL_TO_TEXT(path)},
	{"--redact", 0, NULL, "mask all names but those that everybody knows, and print which stayed", SL_TO_FLAG(redact)},
	SL_OPTION_RUN(run),
	SL_OPTION_SYMBOLS,
	{"--json", 0, NULL, "print the result as one JSON object (schemas/done.schema.json)", SL_TO_FLAG(json)},
	{0},
};

static void tell(const struct settings *s, const struct sl_images *images)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.pack", 1);
	sl_native_tell_file(j, s->path);
	sl_json_uint(j, "traces", images->image_count);
	sl_json_bool(j, "redacted", s->redact);
	sl_json_finish(j);
}

static int run(struct sl_arguments *parsed)
{
	struct settings s = {.path = "traces.stormlog"};
	struct sl_images images = {0};
	struct sl_archived packed;
	int status = sl_arguments_parse(parsed, NULL, &s), chosen;

	if (status < 0 && s.json && sl_save_is_standard(s.path))
		status = sl_command_fail(SL_EXIT_USAGE, "--json and -o - both go to standard output");
	if (status < 0 && s.redact && getrandom(s.key, sizeof(s.key), 0) != sizeof(s.key))
		status = sl_command_fail(SL_EXIT_UNSAVED, "no random numbers to mask with: %m");
	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){
			.inputs = parsed->paths, .writes = {s.path}, .packs = true, .symbols = parsed->symbols});
	if (status < 0)
		status = sl_native_images(&images, parsed->paths);
	if (status < 0) {
		chosen = sl_images_choose(&images, s.run);
		status = chosen < -1 ? SL_EXIT_USAGE : sl_native_pack(&images, chosen, s.path, s.redact ? s.key : NULL, &packed);
		if (s.json && status == SL_EXIT_FINE)
			tell(&s, &images);
		if (status == SL_EXIT_FINE)
			status = sl_native_left_out(&images, &packed, s.path);
	}
	sl_images_free(&images);
	return status;
}

const struct sl_command sl_command_pack = {
	"pack", "a run as one file, for a bug report; names masked on request", "pack [options] PATH...", about, table, run};
