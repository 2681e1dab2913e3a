// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Prints the results of a run.

#include "load.h"

// Adds up the readers' counters, adds a point to the time line, and prints a live line if stderr is
// a terminal.
void report_sample (Load *load, gint64 now);

// Ends the live line.
void report_end_live (void);

// Prints the result as a table on stdout.
void report_table (Load *load);

// Prints the result as JSON on stdout.
void report_json (Load *load);
