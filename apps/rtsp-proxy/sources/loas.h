// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The name of an element that takes AAC out of LOAS (codec/latm.h), and passes other AAC unchanged.
// It is in front of aacparse, which would lose the frames until the second configuration.
#define LOAS_ELEMENT "weirloas"

// Makes the element known to GStreamer, once a process.
void loas_register (void);
