// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/rendition_sink.h"

#include "readers/totals.h"
#include "relay/feed.h"

struct _RenditionSink {
  guint users; // with `lock` held
  Presentation *presentation;
  Relay *relay;
  guint number; // of the track
  Feed *feed;
  GstElement *pipeline, *sink;
};

static GMutex lock;
static GHashTable *all; // Presentation: RenditionSink; use with `lock` held

static gint
find_video (Relay *relay, GstCaps **caps)
{
  for (guint i = 0; (*caps = relay_dup_caps (relay, i)); i++) {
    const gchar *media = gst_structure_get_string (gst_caps_get_structure (*caps, 0), "media");

    if (!g_strcmp0 (media, "video"))
      return (gint) i;
    gst_caps_unref (*caps);
  }
  return -1;
}

static void
begin (RenditionSink *self, GstCaps *caps)
{
  self->feed = feed_new (caps, FALSE);
  self->sink = gst_element_factory_make ("fanoutsink", NULL);
  self->pipeline = gst_object_ref_sink (gst_pipeline_new (NULL));
  g_object_set (self->sink, "sync", FALSE, "async", FALSE, "auto-multicast", FALSE, NULL);
  gst_bin_add_many (GST_BIN (self->pipeline), GST_ELEMENT (self->feed), self->sink, NULL);
  gst_element_link (GST_ELEMENT (self->feed), self->sink);
  totals_watch_sink (presentation_get_mount_path (self->presentation), self->sink);
  gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
  feed_attach (self->feed, self->relay, self->number);
}

RenditionSink *
rendition_sink_get (Presentation *presentation)
{
  RenditionSink *self;
  GstCaps *caps;
  gint number;

  g_mutex_lock (&lock);
  self = all ? g_hash_table_lookup (all, presentation) : NULL;
  if (self)
    self->users++;
  g_mutex_unlock (&lock);
  if (self || (number = find_video (presentation_get_relay (presentation), &caps)) < 0)
    return self;
  self = g_new0 (RenditionSink, 1);
  self->users = 1;
  self->presentation = presentation_ref (presentation);
  self->relay = presentation_get_relay (presentation);
  self->number = (guint) number;
  begin (self, caps);
  gst_caps_unref (caps);
  g_mutex_lock (&lock);
  if (!all)
    all = g_hash_table_new (NULL, NULL);
  g_hash_table_insert (all, presentation, self);
  g_mutex_unlock (&lock);
  return self;
}

static gboolean
end (gpointer data)
{
  RenditionSink *self = data;

  feed_detach (self->feed, self->relay);
  gst_element_set_state (self->pipeline, GST_STATE_NULL);
  gst_object_unref (self->pipeline);
  presentation_unref (self->presentation);
  g_free (self);
  return G_SOURCE_REMOVE;
}

void
rendition_sink_unref (RenditionSink *self)
{
  gboolean last;

  g_mutex_lock (&lock);
  last = --self->users == 0;
  if (last)
    g_hash_table_remove (all, self->presentation);
  g_mutex_unlock (&lock);
  if (last)
    g_main_context_invoke (NULL, end, self);
}

gboolean
rendition_sink_is_of (const RenditionSink *self, const Presentation *presentation)
{
  return self->presentation == presentation;
}

GstElement *
rendition_sink_get_element (const RenditionSink *self)
{
  return self->sink;
}

gboolean
rendition_sink_get_ahead (const RenditionSink *self, Relay *own, guint number, guint32 *ahead)
{
  return relay_get_ahead (own, number, self->relay, self->number, ahead);
}

void
rendition_sink_ask_key (RenditionSink *self, gint64 now)
{
  relay_ask_key (self->relay, self->number, now);
}
