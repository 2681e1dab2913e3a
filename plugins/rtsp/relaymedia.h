// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "weir-rtsp.h"

// Reports whether a media is a WEIR_TYPE_RELAY_MEDIA.
gboolean weir_is_relay_media (GstRTSPMedia *media);
