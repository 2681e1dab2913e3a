// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/opening.h"

// rtspsrc needs a few milliseconds to clean up; it may hang.
#define CLEAN_UP_LIMIT G_TIME_SPAN_SECOND

void
opening_init (Opening *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->ended);
}

// Called in the thread that posts the message, which is the thread that opens.
static void
on_progress (GstBus *bus, GstMessage *message, gpointer data)
{
  Opening *self = data;
  GstProgressType type;
  gchar *code;

  gst_message_parse_progress (message, &type, &code, NULL);
  g_mutex_lock (&self->lock);
  if (type == GST_PROGRESS_TYPE_START || type == GST_PROGRESS_TYPE_CONTINUE)
    self->opens |= g_str_equal (code, "open") || g_str_equal (code, "connect");
  else if (g_str_equal (code, "open"))
    self->opens = FALSE;
  g_cond_signal (&self->ended);
  g_mutex_unlock (&self->lock);
  g_free (code);
}

static void
on_error (GstBus *bus, GstMessage *message, gpointer data)
{
  Opening *self = data;

  g_mutex_lock (&self->lock);
  self->failed = TRUE;
  g_mutex_unlock (&self->lock);
}

void
opening_watch (Opening *self, GstBus *bus)
{
  g_signal_connect (bus, "sync-message::progress", G_CALLBACK (on_progress), self);
  g_signal_connect (bus, "sync-message::error", G_CALLBACK (on_error), self);
}

void
opening_wait_for_clean_up (Opening *self)
{
  gint64 until = g_get_monotonic_time () + CLEAN_UP_LIMIT;

  g_mutex_lock (&self->lock);
  while (self->opens && self->failed && g_cond_wait_until (&self->ended, &self->lock, until))
    ;
  g_mutex_unlock (&self->lock);
}

void
opening_clear (Opening *self)
{
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->ended);
}
