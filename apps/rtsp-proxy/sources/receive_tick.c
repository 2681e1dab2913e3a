// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/receive_tick.h"

#include "sources/engine_tracks.h"
#include "sources/rtsp_loop.h"

void
receive_tick_set (guint us)
{
  engine_tracks_set_tick (us);
  rtsp_loop_set_round (us);
}
