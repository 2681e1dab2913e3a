// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Why libsrt refuses a handshake by itself. It tells the caller, but its own program only in a line
// of its log.

#include <glib.h>

typedef enum {
  SRT_PROBLEM_UNKNOWN,
  SRT_PROBLEM_SECRET_WRONG,
  SRT_PROBLEM_SECRET_MISSING,
  SRT_PROBLEM_SECRET_UNEXPECTED, // the listener has none
  SRT_PROBLEMS,
} SrtProblem;

// Reads a line of libsrt's log.
SrtProblem srt_problem_find (const gchar *line);

// Returns what the log says of it.
const gchar *srt_problem_text (SrtProblem problem);
