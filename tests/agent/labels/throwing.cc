/* SPDX-License-Identifier: MIT */
/* An exception through the wrapper of Engine::execute, which C can neither throw nor catch. */
extern "C" void throwing(void);
extern "C" void catching(int (*call)(int, void (*)(void)), int passes, void (*inside)(void));

void throwing(void)
{
	throw 1;
}

void catching(int (*call)(int, void (*)(void)), int passes, void (*inside)(void))
{
	try {
		call(passes, inside);
	} catch (int) {
	}
}
