// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "request.h"

struct ib_uverbs_attr *rl_attr_find(struct rl_request *r, u16 id)
{
	u32 i;

	for (i = 0; i < r->hdr.num_attrs; i++)
		if (r->attr[i].attr_id == id)
			return &r->attr[i];
	return NULL;
}

const void *rl_attr_input(const struct ib_uverbs_attr *a, size_t *len)
{
	*len = a ? a->len : 0;
	if (!a)
		return NULL;
	return a->len <= sizeof(a->data) ? &a->data : (const void *)(uintptr_t)a->data;
}

void *rl_attr_output(const struct ib_uverbs_attr *a, size_t *len)
{
	*len = a ? a->len : 0;
	return a ? (void *)(uintptr_t)a->data : NULL;
}

int rl_attr_answer(struct rl_request *r, u16 id, const void *from, size_t len)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, id);

	if (!a)
		return 0;
	return a->len < len ? -ENOSPC : rl_copy_out((void *)(uintptr_t)a->data, from, len);
}

int rl_attr_answer_number(struct rl_request *r, u16 id, s64 number)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, id);

	return a ? rl_copy_out(&r->at[a - r->attr].data_s64, &number, sizeof(number)) : -EINVAL;
}

u32 rl_attr_word(struct rl_request *r, u16 id)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, id);

	return a ? a->data : 0;
}

u64 rl_attr_number(struct rl_request *r, u16 id)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, id);

	return a ? a->data : 0;
}
