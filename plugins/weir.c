// SPDX-License-Identifier: LGPL-2.1-or-later
#include "weir.h"

gboolean
weir_use_fanoutsink (GError **error)
{
  GstElementFactory *factory = gst_element_factory_find ("fanoutsink");
  GstPluginFeature *loaded = NULL;
  GstPlugin *udp;

  if (factory) {
    loaded = gst_plugin_feature_load (GST_PLUGIN_FEATURE (factory));
    gst_object_unref (factory);
  }
  if (!loaded) {
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "GStreamer finds no element \"fanoutsink\": its plugin libgstweir.so must be in "
        "GST_PLUGIN_PATH or installed with GStreamer's plugins");
    return FALSE;
  }
  // If this plugin were loaded later, it would replace the multiudpsink that is registered here.
  udp = gst_plugin_load_by_name ("udp");
  g_clear_pointer (&udp, gst_object_unref);
  gst_element_register (NULL, "multiudpsink", GST_RANK_NONE,
      gst_element_factory_get_element_type (GST_ELEMENT_FACTORY (loaded)));
  gst_object_unref (loaded);
  return TRUE;
}
