/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A reader that looks at a flag of 4 octets after each instruction of its writer, on x86-64: the
 * trap flag is set meanwhile, and the signal's handler is the reader.
 */
#ifndef STEPPER_H
#define STEPPER_H

#include <signal.h>
#include <stdint.h>

static volatile struct {
	const volatile uint32_t *flag;
	uint32_t old, new;		/* all that may be seen */
	uint32_t steps, torn;
} stepper;

static void stepper_look(int sig)
{
	uint32_t flag = *stepper.flag;

	(void)sig;
	stepper.steps++;
	if (flag != stepper.old && flag != stepper.new)
		stepper.torn++;
}

static inline __attribute__((always_inline)) void stepper_begin(const uint32_t *flag, uint32_t new)
{
	stepper.flag = flag;
	stepper.old = *flag;
	stepper.new = new;
	stepper.steps = stepper.torn = 0;
	signal(SIGTRAP, stepper_look);
	/* Below the red zone. */
	__asm__ volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp"
			 ::: "memory", "cc");
}

static inline __attribute__((always_inline)) void stepper_end(void)
{
	__asm__ volatile("subq $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; addq $128, %%rsp"
			 ::: "memory", "cc");
	signal(SIGTRAP, SIG_DFL);
}

#endif
