// SPDX-License-Identifier: LGPL-2.1-or-later
#include "life.h"

#include "weir-rtsp.h"

struct _Life {
  GMutex lock;
  GstRTSPSession *session; // NULL after its disposal, which waits for the lock
  gint heard;              // atomic
};

static void
clear_life (gpointer life)
{
  g_mutex_clear (&((Life *) life)->lock);
}

void
weir_life_unref (Life *self)
{
  g_atomic_rc_box_release_full (self, clear_life);
}

static void
on_session_disposed (gpointer data, GObject *session)
{
  Life *self = data;

  g_mutex_lock (&self->lock);
  self->session = NULL;
  g_mutex_unlock (&self->lock);
  weir_life_unref (self);
}

static Life *
life_new (GstRTSPSession *session)
{
  Life *self = g_atomic_rc_box_new0 (Life);

  g_mutex_init (&self->lock);
  self->session = session;
  return self;
}

Life *
weir_life_of (GstRTSPSession *session)
{
  static GMutex making;
  GQuark quark = g_quark_from_static_string ("weir-life");
  Life *self;

  g_mutex_lock (&making);
  self = g_object_get_qdata (G_OBJECT (session), quark);
  if (!self) {
    self = life_new (session);
    g_object_set_qdata (G_OBJECT (session), quark, self);
    g_object_weak_ref (G_OBJECT (session), on_session_disposed, self);
  }
  g_atomic_rc_box_acquire (self);
  g_mutex_unlock (&making);
  return self;
}

void
weir_life_touch (Life *self)
{
  g_mutex_lock (&self->lock);
  if (self->session)
    gst_rtsp_session_touch (self->session);
  g_mutex_unlock (&self->lock);
}

void
weir_life_set_heard (Life *self, gboolean heard)
{
  g_atomic_int_set (&self->heard, heard);
}

gboolean
weir_session_is_heard (GstRTSPSession *session)
{
  Life *self = weir_life_of (session);
  gboolean heard = g_atomic_int_get (&self->heard);

  weir_life_unref (self);
  return heard;
}
