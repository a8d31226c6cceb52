/* SPDX-License-Identifier: MIT */
/* fit --changes: every change that was tried on a recording, best first. */

#include "analyzer/base/json.h"
#include "analyzer/base/terminal.h"
#include "analyzer/commands/fit.h"
#include "analyzer/report/dry.h"

static void put_changes(const struct sl_fit_proof *proof, const struct sl_terminal *to)
{
	struct sl_cells table = {.columns = "lw"};
	char text[300], words[300];

	for (unsigned i = 0; i < proof->count; i++) {
		const struct sl_change *c = &proof->changes[i];

		sl_cells_put(&table, c->passes == SL_PASSES ? SL_COLOUR_GREEN : SL_COLOUR_NONE, "%s", sl_change_passes[c->passes]);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", sl_change_text(text, sizeof(text), c, NULL));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", "");
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", sl_change_words(words, sizeof(words), c));
	}
	sl_cells_print(&table, to, 2);
	if (!proof->count && !proof->why_not)
		sl_terminal_line(to, 2, 4, "every change that is known leaves it as it is");
	if (proof->untried)
		sl_terminal_line(to, 2, 4, "%u more kinds were not tried: there was no time", proof->untried);
}

void sl_fit_changes_print(const struct sl_fit_result *result)
{
	struct sl_terminal to = sl_terminal_here();

	if (!result->proof_count)
		sl_terminal_line(&to, 0, 4, "no change was tried: PyTorch's allocator was not recorded");
	for (unsigned i = 0; i < result->proof_count; i++) {
		const struct sl_fit_proof *proof = &result->proofs[i];
		const struct sl_fit_recording *r = proof->recording;

		if (proof->why_not)
			sl_terminal_line(&to, 0, 4, "changes were not tried: %s", proof->why_not);
		else
			sl_terminal_line(&to, 0, 4, "what a change lets pass, with %s for %s", SL_SIZE(proof->capacity),
					 proof->of_allocator ? "PyTorch's allocator" : "the device");
		put_changes(proof, &to);
		sl_terminal_line(&to, 0, 4, "of %s, device %d, PyTorch %u.%u, %s requests", r->session, r->device, r->release / 100,
				 r->release % 100, SL_NUMBER(r->requests));
	}
}

void sl_fit_changes_json(const struct sl_fit_result *result)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.fit_changes", 1);
	sl_json_string(j, "dry", sl_dry_card(&result->processes[0].trace->header));
	sl_json_array(j, "recordings");
	for (unsigned i = 0; i < result->proof_count; i++) {
		const struct sl_fit_proof *proof = &result->proofs[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "process", proof->recording->session);
		sl_json_int(j, "device", proof->recording->device);
		sl_json_uint(j, "capacity_bytes", proof->capacity);
		sl_json_string(j, "not_tried_because", proof->why_not);
		sl_json_uint(j, "kinds_left_out", proof->untried);
		sl_json_array(j, "changes");
		for (unsigned c = 0; c < proof->count; c++)
			sl_change_write(j, &proof->changes[c]);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_finish(j);
}
