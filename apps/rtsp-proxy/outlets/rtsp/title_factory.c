// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/title_factory.h"

typedef struct {
  GstRTSPMediaFactory parent;
  GstRTSPMedia *media;
} TitleFactory;

typedef struct {
  GstRTSPMediaFactoryClass parent_class;
} TitleFactoryClass;

GType title_factory_get_type (void);
G_DEFINE_TYPE (TitleFactory, title_factory, GST_TYPE_RTSP_MEDIA_FACTORY)

static GstRTSPMedia *
title_factory_construct (GstRTSPMediaFactory *factory, const GstRTSPUrl *url)
{
  return g_object_ref (((TitleFactory *) factory)->media);
}

static void
title_factory_finalize (GObject *object)
{
  g_object_unref (((TitleFactory *) object)->media);
  G_OBJECT_CLASS (title_factory_parent_class)->finalize (object);
}

static void
title_factory_init (TitleFactory *self)
{
}

static void
title_factory_class_init (TitleFactoryClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = title_factory_finalize;
  GST_RTSP_MEDIA_FACTORY_CLASS (klass)->construct = title_factory_construct;
}

GstRTSPMediaFactory *
title_factory_new (GstRTSPMedia *media)
{
  TitleFactory *self = g_object_new (title_factory_get_type (), NULL);
  GstRTSPMediaFactory *factory = GST_RTSP_MEDIA_FACTORY (self);

  self->media = g_object_ref (media);
  gst_rtsp_media_factory_set_publish_clock_mode (factory, GST_RTSP_PUBLISH_CLOCK_MODE_NONE);
  // No multicast, because any reader could choose the group and the TTL.
  gst_rtsp_media_factory_set_protocols (
      factory, GST_RTSP_LOWER_TRANS_UDP | GST_RTSP_LOWER_TRANS_TCP);
  return factory;
}
