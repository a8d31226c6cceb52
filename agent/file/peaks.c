/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

/* Two entries for each device, side by side: highest by allocated and by reserved. */
static struct sl_peak peak[SL_PEAKS_MAX];
static unsigned count;

void sl_peaks_prepare(void)
{
	count = 0;
}

static struct sl_peak *peaks_of(int64_t device)
{
	for (unsigned i = 0; i < count; i += 2)
		if (peak[i].device == device)
			return &peak[i];
	if (count == SL_PEAKS_MAX)
		return NULL;
	memset(&peak[count], 0, 2 * sizeof(*peak));
	peak[count].device = peak[count + 1].device = device;
	count += 2;
	return &peak[count - 2];
}

static void raise_to(struct sl_peak *at, uint64_t peak_bytes, uint64_t of_those, uint64_t ns)
{
	bool higher = peak_bytes > at->peak_bytes || (peak_bytes == at->peak_bytes && of_those > at->of_those);

	if (higher || (peak_bytes == at->peak_bytes && of_those == at->of_those && ns < at->ns))
		*at = (struct sl_peak){at->device, ns, peak_bytes, of_those};
}

void sl_peaks_note(const struct sl_event *events, unsigned how_many)
{
	for (const struct sl_event *event = events; event < events + how_many; event++) {
		struct sl_peak *peaks;

		/* totals smaller than the block itself cannot be right */
		if (event->api >= sl_hook_count || sl_hooks[event->api].verb != SL_VERB_BLOCK_ALLOC || !event->bytes ||
		    event->extra < event->bytes)
			continue;
		peaks = peaks_of(event->device);
		if (!peaks)
			continue;
		raise_to(&peaks[0], event->extra, 0, event->time_ns);
		raise_to(&peaks[1], event->extra2, event->extra, event->time_ns);
	}
}

unsigned sl_peaks_copy(struct sl_peak peaks[SL_PEAKS_MAX])
{
	unsigned copied = 0;

	for (unsigned i = 0; i < count; i++)
		if (!(i & 1) || peak[i].ns != peak[i - 1].ns)
			peaks[copied++] = peak[i];
	return copied;
}
