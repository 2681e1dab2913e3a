// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads packets of the window for others than readers.
#include "fanout/fanout_private.h"

static bool
is_before (const WeirWindow *window, int64_t position, uint16_t seq)
{
  const WeirPacket *packet = weir_window_at (window, position);

  return packet->flags & WEIR_PACKET_RTP && (int16_t) (packet->seq - seq) < 0;
}

// Returns the position of the first RTP packet whose sequence number is not before `seq`. Starts
// where it would be if all packets were RTP and none were missing.
static int64_t
find_seq (const WeirWindow *window, uint16_t seq)
{
  int64_t newest = weir_window_rtp_before (window, window->head), position;
  uint16_t ahead;

  if (newest == window->head || is_before (window, newest, seq))
    return window->head;
  ahead = (uint16_t) (weir_window_at (window, newest)->seq - seq);
  position = newest - ahead > window->tail ? newest - ahead : window->tail;
  while (position > window->tail && !is_before (window, position - 1, seq))
    position--;
  while (position < newest && is_before (window, position, seq))
    position++;
  return position;
}

int64_t
weir_fanout_find (WeirFanout *fanout, int seq)
{
  const WeirWindow *window = &fanout->window;
  int64_t position;

  pthread_mutex_lock (&fanout->lock);
  if (seq < 0)
    position = window->last_join == WEIR_NO_POSITION ? window->head : window->last_join;
  else
    position = find_seq (window, (uint16_t) seq);
  pthread_mutex_unlock (&fanout->lock);
  return position;
}

bool
weir_fanout_span (WeirFanout *fanout, int64_t position, WeirSpan *span)
{
  const WeirWindow *window = &fanout->window;
  bool any;

  pthread_mutex_lock (&fanout->lock);
  if (position < window->tail)
    position = window->tail;
  any = position < window->head;
  if (any)
    weir_window_span (window, position, window->head, span);
  pthread_mutex_unlock (&fanout->lock);
  return any;
}
