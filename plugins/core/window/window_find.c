// SPDX-License-Identifier: LGPL-2.1-or-later
// Looks up packets of a window, and reads them.
#include "window/window.h"

// Packets without a sequence number (RTCP) do not come in rows this long.
#define RTP_NEAR 64

int64_t
weir_window_next_join (const WeirWindow *window, int64_t position)
{
  if (window->last_join == WEIR_NO_POSITION || position > window->last_join)
    return WEIR_NO_POSITION;
  if (position < window->tail)
    position = window->tail;
  while (!(weir_window_at (window, position)->flags & WEIR_PACKET_JOIN))
    position++;
  return position;
}

int64_t
weir_window_join_before (const WeirWindow *window, int64_t position)
{
  if (window->last_join == WEIR_NO_POSITION)
    return WEIR_NO_POSITION;
  if (position >= window->last_join)
    return window->last_join;
  while (position >= window->tail && !(weir_window_at (window, position)->flags & WEIR_PACKET_JOIN))
    position--;
  return position >= window->tail ? position : WEIR_NO_POSITION;
}

int64_t
weir_window_after (const WeirWindow *window, int64_t arrival_ns)
{
  int64_t from = window->tail, to = window->head;

  while (from < to) {
    int64_t middle = from + (to - from) / 2;

    if (weir_window_at (window, middle)->arrival_ns <= arrival_ns)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

int64_t
weir_window_edge (const WeirWindow *window, int64_t end)
{
  int64_t position = end;

  if (position == window->tail
      || (weir_window_at (window, position - 1)->flags & (WEIR_PACKET_MARKER | WEIR_PACKET_RTP))
             != WEIR_PACKET_RTP)
    return position;
  while (position > window->tail
         && !(weir_window_at (window, position - 1)->flags & WEIR_PACKET_START))
    position--;
  return position > window->tail ? position - 1 : position;
}

int64_t
weir_window_live (const WeirWindow *window)
{
  return weir_window_edge (window, window->head);
}

const WeirPacket *
weir_window_next_rtp (const WeirWindow *window, int64_t position)
{
  int64_t near = position + RTP_NEAR, end = window->head < near ? window->head : near;

  for (; position < end; position++) {
    if (weir_window_at (window, position)->flags & WEIR_PACKET_RTP)
      return weir_window_at (window, position);
  }
  return NULL;
}

int64_t
weir_window_rtp_before (const WeirWindow *window, int64_t position)
{
  int64_t end = position - RTP_NEAR > window->tail ? position - RTP_NEAR : window->tail;

  for (int64_t at = position; at > end; at--) {
    if (weir_window_at (window, at - 1)->flags & WEIR_PACKET_RTP)
      return at - 1;
  }
  return position;
}

bool
weir_window_seq_at (const WeirWindow *window, int64_t position, uint16_t *seq)
{
  int64_t first = position < window->tail ? window->tail : position;
  const WeirPacket *packet = weir_window_next_rtp (window, first);
  int64_t before = packet ? first : weir_window_rtp_before (window, first);

  if (packet)
    *seq = packet->seq;
  else
    *seq = before < first ? (uint16_t) (weir_window_at (window, before)->seq + 1) : 0;
  return packet || before < first;
}

int64_t
weir_window_find (const WeirWindow *window, int64_t position)
{
  int64_t from = window->tail, to = window->head;

  while (from < to) {
    int64_t middle = from + (to - from) / 2;

    if (weir_window_at (window, middle)->position < position)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

// ---- reading ----

void
weir_window_span (const WeirWindow *window, int64_t position, int64_t end, WeirSpan *span)
{
  const WeirPacket *first = weir_window_at (window, position);
  size_t bytes = 0;

  span->block = weir_window_block_ref (first->block);
  span->first = position;
  span->n = 0;
  if (end > window->head)
    end = window->head;
  for (; position < end && span->n < WEIR_STAGE_PACKETS; position++) {
    const WeirPacket *packet = weir_window_at (window, position);

    // Packets that were staged and dropped leave a gap.
    if (packet->block != first->block || packet->offset != first->offset + bytes
        || bytes + packet->length > WEIR_PACKET_MAX)
      break;
    bytes += packet->length;
    span->packets[span->n++] = *packet;
  }
}

void
weir_span_clear (WeirSpan *span)
{
  weir_window_block_unref (span->block);
  span->block = NULL;
  span->n = 0;
}

void
weir_span_read_ahead (const WeirSpan *span)
{
  if (span->n > 0 && span->packets[0].offset == 0)
    weir_window_block_read_ahead (span->block);
}

const uint8_t *
weir_packet_data (const WeirPacket *packet)
{
  return packet->block->data + packet->offset;
}
