// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Serves titles over RTSP: the functions that mounts/titles.h needs from an outlet. Their `data`
// is the GstRTSPMountPoints that publish the titles.

#include "mounts/titles.h"

extern const TitleOutlet title_outlet;
