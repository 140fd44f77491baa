// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The names of the RTR's kinds in both hosts' options (core/rtr.h). */
#include "../../kernel/core/rtr.h"
#include "test.h"

static void words_name_kinds_in_any_order(void **state)
{
	static const struct {
		const char *words;
		u8 rtr;
	} t[] = {
		{ "send", WEFT_RTR_SEND },
		{ "write\n", WEFT_RTR_WRITE },
		{ "read,send", WEFT_RTR_READ | WEFT_RTR_SEND },
		{ " read ,, write send \n", WEFT_RTR_ALL },
		{ "send send", WEFT_RTR_SEND },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(weft_rtr_parse(t[i].words), t[i].rtr);
}

static void other_words_name_nothing(void **state)
{
	static const char *const words[] = {
		"", " ,\n", "sen", "sends", "send writ", "none send", "Send", "send;write",
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(weft_rtr_parse(words[i]), 0);
}

static void kinds_are_named_as_words_are_read(void **state)
{
	char text[WEFT_RTR_TEXT];
	u8 rtr;

	weft_rtr_format(0, text);
	assert_string_equal(text, "");
	weft_rtr_format(WEFT_RTR_ALL, text);
	assert_string_equal(text, "send write read");
	for (rtr = 1; rtr <= WEFT_RTR_ALL; rtr++) {
		weft_rtr_format(rtr, text);
		assert_int_equal(weft_rtr_parse(text), rtr);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_name_kinds_in_any_order),
		cmocka_unit_test(other_words_name_nothing),
		cmocka_unit_test(kinds_are_named_as_words_are_read),
	};

	return RUN_TESTS("stacks: rtr", tests);
}
