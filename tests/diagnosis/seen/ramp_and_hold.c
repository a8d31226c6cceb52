/* SPDX-License-Identifier: MIT */
/* A load test: users come one by one, each with its session; then all are held for a while, and leave.  Healthy. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

#define USERS 100

struct user {
	void *session, *answer;
};

static void *device_new(size_t bytes)
{
	void *pointer = NULL;

	if (cudaMalloc(&pointer, bytes)) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return pointer;
}

static void ask(struct user *user)
{
	user->answer = device_new(700000);
	cudaFree(user->answer);
}

int main(void)
{
	static struct user users[USERS];
	int logged_in = 0;

	for (int tick = 0; tick < 1000; tick++) {
		if (tick % 10 == 0)
			users[logged_in++].session = device_new(3000000);
		for (int i = tick % 7; i < logged_in; i += 7)
			ask(&users[i]);
		usleep(300);
	}
	for (int held = 0; held < 500; held++) {
		ask(&users[held % logged_in]);
		usleep(300);
	}
	for (int i = 0; i < logged_in; i++)
		cudaFree(users[i].session);
}
