// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

// The name of an element that takes AAC out of LOAS (codec/latm.h), and passes other AAC unchanged.
// It is in front of aacparse, which would lose the frames until the second configuration. If RTP
// has no form for the first configuration, the stream ends: a pipeline that prerolls would wait for
// it.
#define LOAS_ELEMENT "weirloas"
#define LOAS_NAME "loas" // in its branch

// Lets the element of a branch, if there is one, go on: the configuration of a live stream may
// change.
void loas_set_live (GstElement *branch);

// Makes the element known to GStreamer, once a process.
void loas_register (void);
