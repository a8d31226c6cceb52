// SPDX-License-Identifier: MIT
// After a reload of its settings a server takes another branch, which forgets the reply's buffer.
extern "C" {
#include "../../apps/gpu.h"
}

struct Settings {
	bool compressed;
};

static void *reply(std::size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes)); // CULPRIT
	return p;
}

static void serve(const Settings &settings, int request)
{
	void *work, *out;
	OK(cudaMalloc(&work, 300000 + 7000 * (request % 40)));
	out = reply(229376); // CULPRIT
	OK(cudaFree(work));
	if (settings.compressed)
		return; // CULPRIT
	OK(cudaFree(out));
}

int main()
{
	Settings settings{false};
	for (int request = 0; request < 900; request++) {
		if (request == 700)
			settings.compressed = true;
		serve(settings, request);
	}
}
