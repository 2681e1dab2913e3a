// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the statistics that a fanoutsink has of one of its readers (its signal `get-stats`).

#include "readers/readers.h"

// Adds them to a sample. NULL, or an empty structure: the sink serves the reader no more.
void sink_sample_add (const GstStructure *stats, ReaderSample *sample);

// Returns the index of a state in reader_state_names; that of "closed" for NULL or another text.
guint sink_sample_find_state (const gchar *name);

// Returns a field of type guint64, or 0 if it is missing.
guint64 sink_sample_get (const GstStructure *stats, const gchar *field);
