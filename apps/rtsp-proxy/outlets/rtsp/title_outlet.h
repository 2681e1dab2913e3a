// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// How titles are served over RTSP: the operations that content/titles.h asks an outlet for. Their
// `data` is the GstRTSPMountPoints under which titles are published.

#include "content/titles.h"

extern const TitleOutlet title_outlet;
