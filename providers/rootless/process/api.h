/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What libweft-rootless.so exports to libweft-sockets.so: these functions of process/, and those of
 * host/ulp.h. All others are hidden. A file that defines one includes this header.
 */
#ifndef RL_API_H
#define RL_API_H

#include "file.h"
#include "gate.h"
#include "guard.h"
#include "handlers.h"
#include "lock.h"
#include "options.h"
#include "thread.h"

/* Protected: the library's own calls of it stay direct. */
#ifdef RL_USES_API
#define RL_API(f) extern __typeof__(f) f __attribute__((visibility("default")))
#else
#define RL_API(f) extern __typeof__(f) f __attribute__((visibility("protected")))
#endif

/* The table of descriptors */
RL_API(rl_call_begin);
RL_API(rl_call_end);
RL_API(rl_fd_are_short);
RL_API(rl_fd_attach);
RL_API(rl_fd_close_hidden);
RL_API(rl_fd_copy_hidden);
RL_API(rl_fd_each);
RL_API(rl_fd_forget);
RL_API(rl_fd_forget_all);
RL_API(rl_fd_forks);
RL_API(rl_fd_hidden_were_still);
RL_API(rl_fd_is_borrowed);
RL_API(rl_fd_is_hidden);
RL_API(rl_fd_is_used);
RL_API(rl_fd_name_of);
RL_API(rl_file_put);

/* The gate */
RL_API(rl_gate_call_late);
RL_API(rl_gate_enter);
RL_API(rl_gate_is_inside);
RL_API(rl_gate_leave);
RL_API(rl_gate_step_out);

/* Handlers */
RL_API(rl_handlers_deferred);

/* Locks */
RL_API(rl_lock_wait);
RL_API(rl_lock_wake);

/* The program's memory */
RL_API(rl_guard_add_text);
RL_API(rl_guard_begin);
RL_API(rl_guard_copy);
RL_API(rl_guard_mask_changed);
RL_API(rl_guard_readable);
RL_API(rl_guard_run);

/* The progress thread */
RL_API(rl_thread_do);
RL_API(rl_thread_end_watch);
RL_API(rl_thread_watch);

/* Options and complaints */
RL_API(rl_complain);
RL_API(rl_options);

#endif
