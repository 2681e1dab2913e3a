// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where MediaMTX listens, for each protocol.

#include "import/mtx_file.h"

// Appends `listen`, `tls`, `http`, `hls`, `rtmp`, `srt`, `webrtc`, `api` and `limits`.
void mtx_servers_append (MtxFile *self, GString *out);
