// SPDX-License-Identifier: LGPL-2.1-or-later
// Drops packets that nobody needs before the window's bounds do.
#include "fanout/fanout_private.h"

// Time in ns between two searches, for each reader: 1000 readers are searched at most once a
// second.
#define SEARCH_PAUSE_NS 1000000

// Returns the cursor of the slowest reader, or INT64_MAX. Cursors that move meanwhile move forward.
static int64_t
slowest (const WeirFanout *fanout)
{
  int64_t slowest = INT64_MAX;

  for (const Shard *shard = fanout->shards; shard; shard = shard->next) {
    for (size_t i = 0; shard->list && i < shard->list->n; i++) {
      const WeirReader *reader = shard->list->readers[i];
      int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

      if (cursor < slowest && !reader_is (reader, WEIR_READER_CLOSED)
          && !atomic_load_explicit (&reader->removed, memory_order_relaxed))
        slowest = cursor;
    }
  }
  return slowest;
}

// Returns the position of the first packet of the frame that holds `position`, because layer sets
// are made from whole frames.
static int64_t
frame_of (const Layers *layers, int64_t position)
{
  int64_t frame;

  if (position >= layers->covered)
    return layers->covered;
  frame = weir_layer_streams_frame_at (layers, position);
  return frame >= 0 ? layers_frame (layers, frame)->from : position;
}

static int64_t
least (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

// Returns the position of the oldest packet that somebody may need.
static int64_t
oldest_needed (const WeirFanout *fanout, int64_t now_ns)
{
  const WeirWindow *window = &fanout->window;
  int64_t oldest;

  // Readers join at the live edge with the frame in progress, which may also turn out to be a join
  // point. After a whole frame they need the sequence number of the newest RTP packet.
  if (window->in_frame && window->frame_start < window->head)
    oldest = window->frame_start;
  else
    oldest = weir_window_rtp_before (window, window->head);
  if (fanout->settings.join_at_keyframe)
    oldest = least (oldest, window->last_join); // WEIR_NO_POSITION is the greatest
  oldest = least (oldest, slowest (fanout));
  if (fanout->n_resending > 0)
    oldest = least (oldest, weir_window_after (window, now_ns - RESEND_NS));
  return fanout->layers.on ? frame_of (&fanout->layers, oldest) : oldest;
}

void
weir_fanout_trim (WeirFanout *fanout)
{
  WeirWindow *window = &fanout->window;
  Trim *last = &fanout->trim;
  int64_t now_ns, oldest;

  if (!fanout->settings.trim || fanout->settings.keep_window || window->tail == window->head
      || (last->last_join == window->last_join && last->n_blocks == window->n_blocks))
    return;
  now_ns = weir_window_at (window, window->head - 1)->arrival_ns;
  if (now_ns <= fanout->planned_until_ns || fanout->left_at >= window->tail
      || now_ns - last->at_ns < (int64_t) fanout->n_readers * SEARCH_PAUSE_NS)
    return;
  oldest = least (oldest_needed (fanout, now_ns), window->head - 1);
  if (oldest > window->tail)
    weir_window_trim (window, oldest);
  *last = (Trim) { now_ns, window->last_join, window->n_blocks };
}

void
weir_fanout_trim_without (WeirFanout *fanout, const WeirReader *reader)
{
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);

  if (reader_paused (reader) && cursor > fanout->left_at)
    fanout->left_at = cursor;
  fanout->trim.n_blocks = 0; // it may have been the slowest: search again
}
