// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The job of the worker process that has libsrt: takes SRT callers on a UDP port, and carries their
// media. The proxy decides about each of them (isolate/srt_wire.h).

#include <glib.h>

#define SRT_JOB_FDS 3 // the socket of commands, that of questions, the port

// Starts the job, in threads of its own, and takes ownership of the descriptors. It ends, with all
// callers, when the proxy closes its socket of commands.
void srt_job_start (const guint8 *message, gsize len, const gint *fds);
