// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cachepad.h"

#include "intervalcache_private.h"

enum { PROP_0, PROP_READER };

struct _WeirCachePad {
  GstPad parent;

  CacheReader reader;
};

G_DEFINE_FINAL_TYPE (WeirCachePad, weir_cache_pad, GST_TYPE_PAD)

CacheReader *
weir_cache_pad_reader (WeirCachePad *self)
{
  return &self->reader;
}

// Handles a seek within the window for this pad only. Drops QoS events: one slow reader must not
// make upstream skip pictures for all readers.
static gboolean
cache_pad_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  WeirCachePad *self = WEIR_CACHE_PAD (pad);

  if (GST_EVENT_TYPE (event) == GST_EVENT_QOS
      || (GST_EVENT_TYPE (event) == GST_EVENT_SEEK && cache_reader_seek (&self->reader, event))) {
    gst_event_unref (event);
    return TRUE;
  }
  if (GST_EVENT_TYPE (event) == GST_EVENT_RECONFIGURE)
    cache_reader_linked (&self->reader);
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
cache_pad_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  WeirCachePad *self = WEIR_CACHE_PAD (pad);

  return cache_reader_query (&self->reader, query) || gst_pad_query_default (pad, parent, query);
}

static gboolean
cache_pad_activate_mode (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  WeirCachePad *self = WEIR_CACHE_PAD (pad);

  return mode == GST_PAD_MODE_PUSH && cache_reader_activate (&self->reader, active);
}

static void
weir_cache_pad_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirCachePad *self = WEIR_CACHE_PAD (object);

  GstElement *cache = gst_pad_get_parent_element (GST_PAD (self));

  if (!cache_reader_set_property (&self->reader, id - PROP_READER, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  if (cache)
    interval_cache_apply_bounds (WEIR_INTERVAL_CACHE (cache));
  gst_clear_object (&cache);
}

static void
weir_cache_pad_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirCachePad *self = WEIR_CACHE_PAD (object);

  if (!cache_reader_get_property (&self->reader, id - PROP_READER, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

WeirCachePad *
weir_cache_pad_new (GstPadTemplate *template, const gchar *name, GstElement *cache)
{
  WeirCachePad *self = g_object_new (
      WEIR_TYPE_CACHE_PAD, "name", name, "direction", GST_PAD_SRC, "template", template, NULL);

  cache_reader_init (&self->reader, cache, GST_PAD (self), TRUE);
  return self;
}

static void
weir_cache_pad_init (WeirCachePad *self)
{
  GstPad *pad = GST_PAD (self);

  gst_pad_set_event_function (pad, cache_pad_event);
  gst_pad_set_query_function (pad, cache_pad_query);
  gst_pad_set_activatemode_function (pad, cache_pad_activate_mode);
  GST_PAD_SET_PROXY_CAPS (pad);
}

static void
weir_cache_pad_class_init (WeirCachePadClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);

  gobject_class->set_property = weir_cache_pad_set_property;
  gobject_class->get_property = weir_cache_pad_get_property;
  cache_reader_install_properties (gobject_class, PROP_READER);
}
