/* SPDX-License-Identifier: MIT */
/* A network service registers each message's buffer for fast copies, and frees the message without telling the driver. */
#include "../../apps/gpu.h"

struct message {
	char *body;
	size_t length;
};

static void pin(struct message *m)
{
	OK(cudaHostRegister(m->body, m->length, 0)); /* CULPRIT */
}

static struct message receive(int number)
{
	struct message m = {.length = 256 * 1024};
	CHECK(!posix_memalign((void **)&m.body, 4096, m.length));
	memset(m.body, number, 4096);
	pin(&m); /* CULPRIT */
	return m;
}

int main(void)
{
	void *inbox;
	OK(cudaMalloc(&inbox, 8 * MB));
	for (int i = 0; i < 200; i++) {
		struct message m = receive(i);
		CHECK(m.body[0] == (char)i);
	}
	OK(cudaFree(inbox));
	return 0;
}
