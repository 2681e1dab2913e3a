// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Parts of reader.c in files of their own: setting up tracks from a description, and receiver
// reports.

#include "reader.h"

// Enters `state` and sends its request.
void reader_go_on (Reader *self, ReaderState state, gint64 now);

// reader_setup.c
void reader_on_description (Reader *self, const GstRTSPMessage *answer, gint64 now);
void reader_on_set_up (Reader *self, const GstRTSPMessage *answer, gint64 now);

// reader_report.c
// Returns a random time to the next report, in ns.
gint64 reader_report_gap (Reader *self);
// Sends a receiver report for each track.
void reader_report (Reader *self, gint64 now);
