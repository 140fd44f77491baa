// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "next.h"

void *rl_next_function(const char *library, const char *name)
{
	void *f = dlsym(RTLD_NEXT, name), *handle;

	if (f)
		return f;
	handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	f = handle ? dlsym(handle, name) : NULL;
	if (f)
		return f;
	fprintf(stderr, "weft: %s has no %s\n", library, name);
	abort();
}
