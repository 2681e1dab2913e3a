// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "load.h"

// Adds up what the readers have so far, keeps it for the time line, and shows it on a terminal.
void report_sample (Load *load, gint64 now);

// Leaves the line that was shown.
void report_end_live (void);

// The result as a table on stdout.
void report_table (Load *load);

// The result as JSON on stdout.
void report_json (Load *load);
