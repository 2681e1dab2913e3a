// SPDX-License-Identifier: LGPL-2.1-or-later
// Lets readers have their packets from the window of another fanoutsink.
#include "fanoutsink_private.h"

#include "srtp.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

// The reader takes the place of the former one. Call with `control` held. Takes a reference.
static void
replace (WeirFanoutSink *self, Name *name, WeirReader *reader, WeirFanoutSink *at)
{
  WeirReader *old_reader = name->reader;
  WeirFanoutSink *old_at = name->guest_of;

  g_mutex_lock (&self->lock);
  name->reader = reader;
  name->guest_of = at == self ? NULL : g_object_ref (at);
  g_mutex_unlock (&self->lock);
  weir_reader_unref (old_reader);
  g_clear_object (&old_at);
}

// Call with `control` held. `fresh` has the same token and port, and gives its reader if that is
// taken.
static gboolean
splice (WeirFanoutSink *self, Name *name, Name *fresh, WeirFanoutSink *at, guint time_ahead)
{
  int r;

  fanout_readers_set_route (self, fresh);
  r = weir_fanout_splice (fanout_name_get_fanout (self, name), name->reader, at->fanout,
      fresh->reader, time_ahead, weir_now_ns ());
  if (r == 0)
    replace (self, name, g_steal_pointer (&fresh->reader), at);
  else if (r != -EAGAIN)
    GST_WARNING_OBJECT (self, "splice: %s: %s", name->shown, g_strerror (-r));
  return r == 0;
}

gboolean
fanout_readers_splice (
    WeirFanoutSink *self, const gchar *host, gint port, GstElement *sink, guint time_ahead)
{
  WeirFanoutSink *at = WEIR_IS_FANOUT_SINK (sink) ? WEIR_FANOUT_SINK (sink) : NULL;
  gboolean done = FALSE;
  Name *fresh, *name;

  if (!host || !at || !weir_srtp_is_token (host)) {
    GST_WARNING_OBJECT (
        self, "splice: %s", at ? "host is not a token of a WeirSrtp" : "sink is not a fanoutsink");
    return FALSE;
  }
  fresh = fanout_name_new (host, port, NULL, NULL);
  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name && fresh)
    done = fanout_name_get_fanout (self, name) == at->fanout
           || splice (self, name, fresh, at, time_ahead);
  g_mutex_unlock (&self->control);
  if (!name)
    fanout_actions_warn_no_reader (self, "splice", host, port);
  fanout_name_free (fresh);
  return done;
}
