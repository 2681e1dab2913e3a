// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_common.h"

#define NS_PER_S G_GINT64_CONSTANT (1000000000)
#define WAIT_NS (5 * NS_PER_S)       // of the media of a variant, for the others
#define NEAR_US (G_USEC_PER_SEC / 2) // by which variants have different times of arrival
#define KEPT 64                      // discontinuities

struct _HlsCommon {
  gatomicrefcount refs;
  HlsNumbers first;

  GMutex lock; // protects the fields below
  guint n_awaited;
  gint64 longest_ns;
  guint target_s;
  GArray *times;    // of gint64, in us: the newest discontinuities
  guint64 n_before; // of discontinuities before these
};

HlsCommon *
hls_common_new (guint n, gint64 segment_ns, const HlsNumbers *first)
{
  HlsCommon *self = g_new0 (HlsCommon, 1);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->first = *first;
  self->n_before = first->discontinuities;
  self->n_awaited = n;
  self->longest_ns = segment_ns;
  self->times = g_array_new (FALSE, FALSE, sizeof (gint64));
  return self;
}

HlsCommon *
hls_common_ref (HlsCommon *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
hls_common_unref (HlsCommon *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_array_unref (self->times);
  g_mutex_clear (&self->lock);
  g_free (self);
}

const HlsNumbers *
hls_common_get_first (const HlsCommon *self)
{
  return &self->first;
}

// ---- the target duration ----

// EXTINF is rounded (RFC 8216, 4.3.3.1). Call with the lock held.
static void
set_target (HlsCommon *self)
{
  if (self->target_s == 0)
    self->target_s = (guint) MAX ((self->longest_ns + NS_PER_S / 2) / NS_PER_S, 1);
}

void
hls_common_note_length (HlsCommon *self, gint64 length_ns)
{
  g_mutex_lock (&self->lock);
  self->longest_ns = MAX (self->longest_ns, length_ns);
  g_mutex_unlock (&self->lock);
}

void
hls_common_end_segment (HlsCommon *self, gint64 total_ns, gboolean first)
{
  g_mutex_lock (&self->lock);
  if (first)
    self->n_awaited--;
  if (self->n_awaited == 0 || total_ns >= WAIT_NS)
    set_target (self);
  g_mutex_unlock (&self->lock);
}

void
hls_common_leave (HlsCommon *self)
{
  g_mutex_lock (&self->lock);
  if (--self->n_awaited == 0)
    set_target (self);
  g_mutex_unlock (&self->lock);
}

guint
hls_common_get_target (HlsCommon *self)
{
  guint target_s;

  g_mutex_lock (&self->lock);
  target_s = self->target_s;
  g_mutex_unlock (&self->lock);
  return target_s;
}

// ---- discontinuities ----

// Call with the lock held.
static void
add_time (HlsCommon *self, gint64 wall_us)
{
  g_array_append_val (self->times, wall_us);
  if (self->times->len > KEPT) {
    g_array_remove_index (self->times, 0);
    self->n_before++;
  }
}

guint64
hls_common_count (HlsCommon *self, guint64 counted, gint64 wall_us, gboolean begins)
{
  guint64 n;

  g_mutex_lock (&self->lock);
  n = MAX (counted, self->n_before);
  while (n < self->n_before + self->times->len
         && g_array_index (self->times, gint64, n - self->n_before) <= wall_us + NEAR_US)
    n++;
  if (begins && n == counted) {
    if (n == self->n_before + self->times->len)
      add_time (self, wall_us);
    n++;
  }
  g_mutex_unlock (&self->lock);
  return n;
}
