// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/publisher.h"

#include "relay/feed.h"

// A stage starts at the newest join point, so the window must reach back to it.
#define MAX_TIME (15 * GST_SECOND)
#define MAX_BYTES (32 * 1024 * 1024)

struct _Publisher {
  guint refs;
  Relay *relay;
  GstElement *pipeline, *feed;
};

Publisher *
publisher_new (Relay *relay, guint track, const gchar *channel)
{
  GstElement *cache = gst_element_factory_make ("intervalcache", NULL);
  g_autoptr (GstCaps) caps = relay_dup_caps (relay, track);
  Publisher *self;

  if (!cache || !caps) {
    gst_clear_object (&cache);
    return NULL;
  }
  self = g_new0 (Publisher, 1);
  self->refs = 1;
  self->relay = relay_ref (relay);
  self->pipeline = gst_pipeline_new (NULL);
  self->feed = GST_ELEMENT (feed_new (caps, TRUE));
  g_object_set (cache, "channel", channel, "max-time", (guint64) MAX_TIME, "max-bytes",
      (guint64) MAX_BYTES, NULL);
  gst_bin_add_many (GST_BIN (self->pipeline), self->feed, cache, NULL);
  gst_element_link (self->feed, cache);
  gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
  feed_attach ((Feed *) self->feed, relay, track);
  return self;
}

Publisher *
publisher_ref (Publisher *self)
{
  self->refs++;
  return self;
}

gboolean
publisher_unref (Publisher *self)
{
  if (--self->refs > 0)
    return FALSE;
  feed_detach ((Feed *) self->feed, self->relay);
  gst_element_set_state (self->pipeline, GST_STATE_NULL);
  gst_object_unref (self->pipeline);
  relay_unref (self->relay);
  g_free (self);
  return TRUE;
}
