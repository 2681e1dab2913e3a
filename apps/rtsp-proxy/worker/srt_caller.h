// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A caller over SRT in the worker process that has libsrt: carries bytes between its connection and
// a stream socket of the proxy. The thread of the job calls these functions.

#include <srt/srt.h>

#include "isolate/srt_wire.h"

typedef struct _SrtCaller SrtCaller;

// Nothing of the caller is read before srt_caller_begin(). `epoll` is libsrt's.
SrtCaller *srt_caller_new (SRTSOCKET socket, gint epoll);

// Begins to carry, for SRT_COMMAND_PUBLISH or SRT_COMMAND_READ. Takes ownership of `fd`.
void srt_caller_begin (SrtCaller *self, SrtCommand what, gint fd);

// Carries what can be carried now. Returns FALSE and sets `*end` when the caller has ended.
gboolean srt_caller_run (SrtCaller *self, SrtEnd *end);

void srt_caller_sample (SrtCaller *self, SrtSample *sample);
gint srt_caller_get_fd (const SrtCaller *self); // of a reader, or -1
void srt_caller_free (SrtCaller *self);
