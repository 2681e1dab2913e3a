// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What reader.c does in files of its own: from a description to tracks that are set up, and the
// receiver reports.

#include "reader.h"

// Goes into that state and sends the request that it is about.
void reader_go_on (Reader *self, ReaderState state, gint64 now);

// reader_setup.c
void reader_on_description (Reader *self, const GstRTSPMessage *answer, gint64 now);
void reader_on_set_up (Reader *self, const GstRTSPMessage *answer, gint64 now);

// reader_report.c
gint64 reader_report_gap (Reader *self); // to the next report; drawn
void reader_report (Reader *self, gint64 now);
