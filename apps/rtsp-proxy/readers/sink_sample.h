// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the statistics that a fanoutsink has of one of its readers (its signal `get-stats`), and
// sets the reader's layers.

#include "readers/readers.h"

// Adds them to a sample. NULL, or an empty structure: the sink serves the reader no more.
void sink_sample_add (const GstStructure *stats, ReaderSample *sample);

// Reads the layers of a reader whom the sink serves.
void sink_sample_layers (const GstStructure *stats, ReaderLayers *layers);

// Reads what adaptation goes by, without the reader's reports. Returns FALSE, and zeros, if the
// sink serves the reader no more.
gboolean sink_sample_video (const GstStructure *stats, ReaderVideo *sample);

// Reads the bit rates of the layers in the sink's stream.
void sink_sample_rates (GstElement *sink, WeirRates *rates);

// Sets the layers of a reader. Returns FALSE if the sink does not serve it.
gboolean sink_set_layers (GstElement *sink, const gchar *host, gint port, WeirLayerSet layers);

// Restricts a reader to a state, an index in reader_state_names. Returns FALSE if the sink does not
// serve it.
gboolean sink_restrict (GstElement *sink, const gchar *host, gint port, guint state);

// Returns the index of a state in reader_state_names; that of "closed" for NULL or another text.
guint sink_sample_find_state (const gchar *name);

// Returns a field of type guint64, or 0 if it is missing.
guint64 sink_sample_get (const GstStructure *stats, const gchar *field);
