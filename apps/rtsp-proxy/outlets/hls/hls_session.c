// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_session.h"

#include "access/secrets.h"
#include "base/log.h"
#include "readers/reader_limit.h"
#include "readers/readers.h"
#include "readers/totals.h"

#define UNUSED_US (10 * G_USEC_PER_SEC) // and as long as a request may wait in a running stream

struct _HlsSession {
  gatomicrefcount refs;
  gchar *id, *target, *mount;
  GInetAddress *address;
  HlsGroup *group;
  Reader *reader; // has a reference to `self`, until the end
  guint64 bytes;  // atomic
  gint64 used_us; // atomic
  gint n_asked;   // atomic: requests whose answers have not ended
  gint closed;    // atomic
};

// ---- the reader ----

static void
sample (gpointer served, ReaderSample *sample)
{
  sample->bytes = __atomic_load_n (&((HlsSession *) served)->bytes, __ATOMIC_RELAXED);
}

static gchar *
dup_left_out (gpointer served)
{
  return hls_group_dup_left_out (((HlsSession *) served)->group);
}

static void
close_reader (gpointer served, const gchar *reason)
{
  HlsSession *self = served;

  log_event ("reader %s out: %s", reader_get_peer (self->reader), reason);
  g_atomic_int_set (&self->closed, TRUE);
}

static void
free_served (gpointer served)
{
  hls_session_unref (served);
}

// ---- construction ----

static void
note_use (HlsSession *self)
{
  __atomic_store_n (&self->used_us, g_get_monotonic_time (), __ATOMIC_RELAXED);
}

HlsSession *
hls_session_new (const gchar *id, const gchar *target, const gchar *mount, GInetAddress *address,
    const gchar *peer, HlsGroup *group)
{
  static const ReaderOps ops = {
    .sample = sample, .dup_left_out = dup_left_out, .close = close_reader, .free = free_served
  };
  HlsSession *self = g_new0 (HlsSession, 1);

  g_atomic_ref_count_init (&self->refs);
  self->id = id ? g_strdup (id) : secrets_dup_random (HLS_SESSION_DIGITS / 2);
  self->target = g_strdup (target);
  self->mount = g_strdup (mount);
  self->address = g_object_ref (address);
  self->group = group;
  note_use (self);
  self->reader = reader_new (&ops, hls_session_ref (self), mount, peer, "HLS");
  readers_add (self->reader);
  return self;
}

HlsSession *
hls_session_ref (HlsSession *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
hls_session_unref (HlsSession *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  hls_group_unref (self->group);
  g_object_unref (self->address);
  g_free (self->mount);
  g_free (self->target);
  g_free (self->id);
  g_free (self);
}

void
hls_session_end (HlsSession *self)
{
  g_atomic_int_set (&self->closed, TRUE);
  readers_remove (self->reader);
  reader_unref (self->reader);
}

// ---- use ----

const gchar *
hls_session_get_id (HlsSession *self)
{
  return self->id;
}

const gchar *
hls_session_get_target (HlsSession *self)
{
  return self->target;
}

GInetAddress *
hls_session_get_address (HlsSession *self)
{
  return self->address;
}

const gchar *
hls_session_get_mount (HlsSession *self)
{
  return self->mount;
}

HlsGroup *
hls_session_get_group (HlsSession *self)
{
  return self->group;
}

void
hls_session_enter (HlsSession *self)
{
  g_atomic_int_inc (&self->n_asked);
}

void
hls_session_leave (HlsSession *self)
{
  note_use (self);
  g_atomic_int_add (&self->n_asked, -1);
}

void
hls_session_add_bytes (HlsSession *self, gsize n)
{
  __atomic_add_fetch (&self->bytes, n, __ATOMIC_RELAXED);
  totals_add_bytes (self->mount, n);
}

gboolean
hls_session_is_closed (HlsSession *self)
{
  return g_atomic_int_get (&self->closed);
}

gboolean
hls_session_is_over (HlsSession *self)
{
  // In this order: a request that ends meanwhile notes its use first.
  gboolean is_asked = g_atomic_int_get (&self->n_asked) > 0;
  gint64 unused = g_get_monotonic_time () - __atomic_load_n (&self->used_us, __ATOMIC_RELAXED);
  // All streams have the same target duration.
  gint64 patience =
      hls_window_get_patience (hls_stream_get_window (hls_group_get_stream (self->group, 0), 0));

  return g_atomic_int_get (&self->closed) || (!is_asked && unused > UNUSED_US + patience / 1000);
}

GBytes *
hls_session_write_master (HlsSession *self, HlsKind kind)
{
  g_autofree gchar *folder = g_strconcat ("~", self->id, NULL);

  return hls_group_write_master (self->group, folder, kind);
}
