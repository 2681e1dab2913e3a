// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_window_private.h"

#define NS_PER_S G_GINT64_CONSTANT (1000000000)
#define KEPT 3     // segments after they have left the playlist, for readers that are late
#define GAPS 7     // segments before the first one, which some players need to start
#define INITS 8    // initialization segments
#define AHEAD 2    // segments of the future that a request may wait for
#define PATIENCE 3 // target durations

static void
free_part (gpointer data)
{
  HlsPart *part = data;

  g_clear_pointer (&part->data, g_bytes_unref);
  g_free (part);
}

static void
free_segment (gpointer data)
{
  HlsSegment *segment = data;

  g_ptr_array_unref (segment->parts);
  g_free (segment);
}

void
hls_format_clear (SegmentFormat *self)
{
  g_clear_pointer (&self->codecs, g_free);
}

HlsWindow *
hls_window_ref (HlsWindow *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
drop_texts (HlsWindow *self)
{
  for (guint kind = 0; kind < HLS_N_KINDS; kind++) {
    g_clear_pointer (&self->texts[kind][0], g_bytes_unref);
    g_clear_pointer (&self->texts[kind][1], g_bytes_unref);
  }
}

void
hls_window_unref (HlsWindow *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  drop_texts (self);
  hls_format_clear (&self->format);
  g_ptr_array_unref (self->segments);
  g_ptr_array_unref (self->inits);
  g_hash_table_unref (self->waiters);
  hls_common_unref (self->common);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- waiting ----

// Call with the lock held.
static void
wake_all (HlsWindow *self)
{
  GHashTableIter iter;
  gpointer data, wake;

  g_hash_table_iter_init (&iter, self->waiters);
  while (g_hash_table_iter_next (&iter, &data, &wake))
    ((void (*) (gpointer)) wake) (data);
}

void
hls_window_wake (HlsWindow *self)
{
  g_mutex_lock (&self->lock);
  wake_all (self);
  g_mutex_unlock (&self->lock);
}

void
hls_window_wait (HlsWindow *self, void (*wake) (gpointer data), gpointer data)
{
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->waiters, data, (gpointer) wake);
  g_mutex_unlock (&self->lock);
}

void
hls_window_leave (HlsWindow *self, gpointer data)
{
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->waiters, data);
  g_mutex_unlock (&self->lock);
}

// ---- the writer ----

static void
set_part_target (SegmentOutput *output, gint64 part_ns)
{
  HlsWindow *self = (HlsWindow *) output;

  g_mutex_lock (&self->lock);
  self->part_target_ns = part_ns;
  g_mutex_unlock (&self->lock);
}

// Bandwidth is of whole segments.
static void
measure (HlsWindow *self)
{
  guint64 bytes = 0;
  gint64 duration = 0;

  self->format.peak = 0;
  for (guint i = 0; i < self->segments->len; i++) {
    const HlsSegment *segment = hls_window_nth (self, i);

    if (segment->ended && segment->duration_ns > 0) {
      bytes += segment->bytes;
      duration += segment->duration_ns;
      self->format.peak = MAX (self->format.peak,
          (guint64) ((gdouble) segment->bytes * 8e9 / (gdouble) segment->duration_ns));
    }
  }
  self->format.average = duration > 0 ? (guint64) ((gdouble) bytes * 8e9 / (gdouble) duration) : 0;
}

static HlsSegment *
add_segment (HlsWindow *self, gint64 wall_us)
{
  HlsSegment *segment = g_new0 (HlsSegment, 1);

  segment->msn = self->segments->len > 0 ? hls_window_nth (self, self->segments->len - 1)->msn + 1
                                         : hls_common_get_first (self->common)->msn;
  segment->parts = g_ptr_array_new_with_free_func (free_part);
  segment->init = self->first_init + MAX (self->inits->len, 1) - 1;
  segment->discontinuities = self->discontinuities;
  segment->wall_us = wall_us;
  g_ptr_array_add (self->segments, segment);
  return segment;
}

static void
begin_segment (SegmentOutput *output, GBytes *init, const SegmentFormat *format, gint64 wall_us,
    gboolean discontinuity)
{
  HlsWindow *self = (HlsWindow *) output;

  g_mutex_lock (&self->lock);
  if (init) {
    g_ptr_array_add (self->inits, g_bytes_ref (init));
    if (self->inits->len > INITS) {
      g_ptr_array_remove_index (self->inits, 0);
      self->first_init++;
    }
    hls_format_clear (&self->format);
    self->format = *format;
    self->format.codecs = g_strdup (format->codecs);
    measure (self);
  }
  self->discontinuities =
      hls_common_count (self->common, self->discontinuities, wall_us, discontinuity);
  for (guint i = 0; self->segments->len < GAPS; i++)
    add_segment (self, 0)->gap = TRUE;
  add_segment (self, wall_us);
  self->is_open = TRUE;
  g_mutex_unlock (&self->lock);
}

// Begins the playlists if there is a segment and the target is known. Call with the lock held.
static void
begin_playlists (HlsWindow *self)
{
  if (self->target_s > 0 || self->total_ns == 0)
    return;
  self->target_s = hls_common_get_target (self->common);
  for (guint i = 0; i < GAPS; i++)
    hls_window_nth (self, i)->duration_ns = self->target_s * NS_PER_S;
}

static void
add_part (SegmentOutput *output, GBytes *data, gint64 duration_ns, gboolean independent)
{
  HlsWindow *self = (HlsWindow *) output;
  HlsPart *part = g_new (HlsPart, 1);
  HlsSegment *segment;

  g_mutex_lock (&self->lock);
  *part = (HlsPart) { data, self->next_part++, duration_ns, independent };
  segment = hls_window_nth (self, self->segments->len - 1);
  segment->independent |= independent && segment->bytes == 0;
  g_ptr_array_add (segment->parts, part);
  segment->duration_ns += duration_ns;
  segment->bytes += data ? g_bytes_get_size (data) : 0;
  hls_common_note_length (self->common, segment->duration_ns);
  begin_playlists (self);
  drop_texts (self);
  wake_all (self);
  g_mutex_unlock (&self->lock);
}

static void
end_segment (SegmentOutput *output)
{
  HlsWindow *self = (HlsWindow *) output;
  HlsSegment *segment;

  g_mutex_lock (&self->lock);
  segment = hls_window_nth (self, self->segments->len - 1);
  segment->ended = TRUE;
  segment->gap = segment->bytes == 0;
  self->is_open = FALSE;
  self->total_ns += segment->duration_ns;
  if (self->target_s == 0)
    hls_common_end_segment (self->common, self->total_ns, !self->counted);
  self->counted = TRUE;
  begin_playlists (self);
  while (self->target_s > 0 && self->segments->len > self->settings.n_segments + KEPT)
    g_ptr_array_remove_index (self->segments, 0);
  measure (self);
  drop_texts (self);
  wake_all (self);
  g_mutex_unlock (&self->lock);
}

static gint64
get_segment_max (SegmentOutput *output)
{
  guint target_s = hls_common_get_target (((HlsWindow *) output)->common);

  return target_s > 0 ? target_s * NS_PER_S + NS_PER_S / 2 - 1 : 0;
}

static void
ref_output (SegmentOutput *output)
{
  hls_window_ref ((HlsWindow *) output);
}

static void
unref_output (SegmentOutput *output)
{
  hls_window_unref ((HlsWindow *) output);
}

static const SegmentOutputOps output_ops = { "hls", "HLS", FALSE, set_part_target, begin_segment,
  add_part, end_segment, get_segment_max, ref_output, unref_output };

SegmentOutput *
hls_window_get_output (HlsWindow *self)
{
  return &self->output;
}

void
hls_window_give_up (HlsWindow *self)
{
  g_mutex_lock (&self->lock);
  if (!self->counted)
    hls_common_leave (self->common);
  self->counted = TRUE;
  g_mutex_unlock (&self->lock);
}

HlsWindow *
hls_window_new (const HlsSettings *settings, HlsCommon *common, gboolean of_sound)
{
  const HlsNumbers *first = hls_common_get_first (common);
  HlsWindow *self = g_new0 (HlsWindow, 1);

  self->output.ops = &output_ops;
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->settings = *settings;
  self->common = hls_common_ref (common);
  self->counted = of_sound;
  self->next_part = first->part;
  self->first_init = first->init;
  self->discontinuities = first->discontinuities;
  self->segments = g_ptr_array_new_with_free_func (free_segment);
  self->inits = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  self->waiters = g_hash_table_new (NULL, NULL);
  return self;
}

// ---- readers ----

// Reports whether playlists can be had. Call with the lock held.
static gboolean
has_begun (HlsWindow *self)
{
  return self->target_s > 0 && self->inits->len > 0;
}

// Reports whether the playlist has got as far as the request says. `next` is set to the number of
// the first segment that has not ended.
static gboolean
has_reached (HlsWindow *self, const HlsAsk *ask, gint64 *next)
{
  const HlsSegment *last = hls_window_nth (self, self->segments->len - 1);

  *next = (gint64) last->msn + last->ended;
  if (ask->msn < *next)
    return TRUE;
  return ask->kind == HLS_LIVE && ask->part >= 0 && ask->msn == *next && !last->ended
         && ask->part < last->parts->len;
}

HlsState
hls_window_get_playlist (HlsWindow *self, const HlsAsk *ask, GBytes **text)
{
  HlsState state = HLS_LATER;
  gint64 next;

  g_mutex_lock (&self->lock);
  begin_playlists (self);
  if (has_begun (self)) {
    if (has_reached (self, ask, &next)) {
      GBytes **kept = &self->texts[ask->kind][ask->skips];

      if (!*kept)
        *kept = hls_playlist_write (self, ask->kind, ask->skips);
      *text = g_bytes_ref (*kept);
      state = HLS_READY;
    } else if (ask->msn >= next + AHEAD) {
      state = HLS_WRONG;
    }
  }
  g_mutex_unlock (&self->lock);
  return state;
}

HlsState
hls_window_get_init (HlsWindow *self, guint64 number, GBytes **data)
{
  HlsState state = HLS_GONE;

  g_mutex_lock (&self->lock);
  if (number >= self->first_init && number - self->first_init < self->inits->len) {
    *data = g_bytes_ref (g_ptr_array_index (self->inits, number - self->first_init));
    state = HLS_READY;
  }
  g_mutex_unlock (&self->lock);
  return state;
}

HlsState
hls_window_get_part (HlsWindow *self, guint64 number, GBytes **data)
{
  HlsState state;

  g_mutex_lock (&self->lock);
  // Only the part that EXT-X-PRELOAD-HINT names can be waited for.
  state = number == self->next_part ? HLS_LATER : HLS_GONE;
  for (guint i = self->segments->len; i-- > 0 && number < self->next_part;) {
    const HlsSegment *segment = hls_window_nth (self, i);
    const HlsPart *first = segment->parts->len > 0 ? g_ptr_array_index (segment->parts, 0) : NULL;

    if (first && number >= first->number) {
      guint64 at = number - first->number;

      if (at < segment->parts->len) {
        const HlsPart *part = g_ptr_array_index (segment->parts, at);

        *data = part->data ? g_bytes_ref (part->data) : NULL;
        state = part->data ? HLS_READY : HLS_GONE;
      }
      break;
    }
  }
  g_mutex_unlock (&self->lock);
  return state;
}

HlsState
hls_window_get_segment (HlsWindow *self, guint64 msn, GPtrArray **blocks)
{
  HlsState state = HLS_GONE;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->segments->len; i++) {
    const HlsSegment *segment = hls_window_nth (self, i);

    if (segment->msn != msn || segment->gap)
      continue;
    state = segment->ended ? HLS_READY : HLS_LATER;
    if (!segment->ended)
      break;
    *blocks = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
    for (guint k = 0; k < segment->parts->len; k++) {
      const HlsPart *part = g_ptr_array_index (segment->parts, k);

      if (part->data)
        g_ptr_array_add (*blocks, g_bytes_ref (part->data));
    }
  }
  g_mutex_unlock (&self->lock);
  return state;
}

gboolean
hls_window_has_begun (HlsWindow *self)
{
  gboolean begun;

  g_mutex_lock (&self->lock);
  begun = has_begun (self);
  g_mutex_unlock (&self->lock);
  return begun;
}

void
hls_window_add_report (HlsWindow *self, GString *text, const gchar *uri)
{
  const HlsSegment *last;

  g_mutex_lock (&self->lock);
  last = hls_window_nth (self, self->segments->len - 1);
  // A segment that has just begun has no part yet.
  if (last->parts->len == 0)
    last = hls_window_nth (self, self->segments->len - 2);
  g_string_append_printf (text,
      "#EXT-X-RENDITION-REPORT:URI=\"%s\",LAST-MSN=%" G_GUINT64_FORMAT ",LAST-PART=%u\n", uri,
      last->msn, last->parts->len - 1);
  g_mutex_unlock (&self->lock);
}

gboolean
hls_window_dup_format (HlsWindow *self, SegmentFormat *format)
{
  gboolean known;

  g_mutex_lock (&self->lock);
  begin_playlists (self);
  known = has_begun (self) && self->format.average > 0;
  if (known) {
    *format = self->format;
    format->codecs = g_strdup (self->format.codecs);
  }
  g_mutex_unlock (&self->lock);
  return known;
}

void
hls_window_raise (HlsWindow *self, HlsNumbers *numbers)
{
  g_mutex_lock (&self->lock);
  if (self->segments->len > 0) {
    numbers->msn = MAX (numbers->msn, hls_window_nth (self, self->segments->len - 1)->msn + 1);
    numbers->part = MAX (numbers->part, self->next_part);
    numbers->init = MAX (numbers->init, self->first_init + self->inits->len);
    numbers->discontinuities = MAX (numbers->discontinuities, self->discontinuities + 1);
  }
  g_mutex_unlock (&self->lock);
}

gint64
hls_window_get_patience (HlsWindow *self)
{
  gint64 patience;

  g_mutex_lock (&self->lock);
  patience = PATIENCE * MAX (self->target_s, 1) * NS_PER_S;
  g_mutex_unlock (&self->lock);
  return patience;
}
