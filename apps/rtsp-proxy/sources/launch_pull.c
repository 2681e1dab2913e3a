// SPDX-License-Identifier: LGPL-2.1-or-later

// Runs a launch line with payloaders named pay0, pay1 ..., as in gst-rtsp-server's factories.

#include "base/element.h"
#include "sources/tracks.h"

#include <string.h>

typedef struct {
  GstElement *pipeline; // not owned
  Tracks *tracks;
} LaunchPull;

static void
pull_free (gpointer data)
{
  LaunchPull *self = data;

  tracks_free (self->tracks);
  g_free (self);
}

static GstElement *
parse_line (const gchar *line, GError **error)
{
  GstParseContext *parse = gst_parse_context_new ();
  GError *inner = NULL;
  GstElement *bin =
      gst_parse_bin_from_description_full (line, FALSE, parse, GST_PARSE_FLAG_FATAL_ERRORS, &inner);
  gchar **missing = gst_parse_context_get_missing_elements (parse);

  gst_parse_context_free (parse);
  if (missing) {
    gchar *text = element_missing (missing[0]);

    g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN, text);
    g_clear_error (&inner);
    g_free (text);
    g_strfreev (missing);
  } else if (inner) {
    g_propagate_error (error, inner);
  }
  return bin;
}

static GstElement *
find_payloader (GstElement *bin, guint i)
{
  gchar name[8];

  g_snprintf (name, sizeof name, "pay%u", i);
  return gst_bin_get_by_name (GST_BIN (bin), name);
}

// Returns NULL, or an error message (transfer full).
static gchar *
check_line (const gchar *line)
{
  GError *error = NULL;
  GstElement *bin = parse_line (line, &error);
  GstElement *payloader = bin ? find_payloader (bin, 0) : NULL;
  gchar *wrong = NULL;

  if (!bin)
    wrong = g_strdup_printf ("wrong launch line: %s", error->message);
  else if (!payloader)
    wrong = g_strdup ("the launch line has no payloader named pay0 (... ! rtph264pay name=pay0)");
  g_clear_error (&error);
  gst_clear_object (&payloader);
  if (bin)
    gst_object_ref_sink (bin);
  gst_clear_object (&bin);
  return wrong;
}

// Starts a pipeline that is not live after it has prerolled.
static void
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  LaunchPull *self = data;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ASYNC_DONE)
    gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
}

static gboolean
add_payloaders (LaunchPull *self, GstElement *bin, GError **error)
{
  GstElement *payloader;

  for (guint i = 0; i < RELAY_MAX_TRACKS && (payloader = find_payloader (bin, i)); i++) {
    gboolean ok = tracks_add_payloader (self->tracks, bin, payloader);

    gst_object_unref (payloader);
    if (!ok) {
      g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_PAD,
          "the launch line's pay%u has no free src pad", i);
      return FALSE;
    }
  }
  return TRUE;
}

static void
ask_for_key (GstElement *pipeline, guint track)
{
  LaunchPull *self = g_object_get_data (G_OBJECT (pipeline), "pull");

  tracks_ask_key (self->tracks, track);
}

GstElement *
launch_pull_new (const PullContext *context, GError **error)
{
  GstElement *bin = parse_line (context->config->launch, error);
  GstElement *pipeline;
  LaunchPull *self;
  GstBus *bus;

  if (!bin)
    return NULL;
  self = g_new0 (LaunchPull, 1);
  self->pipeline = pipeline = gst_pipeline_new (NULL);
  self->tracks = tracks_new (context, pipeline, TRACKS_PACED, "upstream");
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  gst_bin_add (GST_BIN (pipeline), bin);
  if (!add_payloaders (self, bin, error)) {
    gst_object_unref (gst_object_ref_sink (pipeline));
    return NULL;
  }
  tracks_complete (self->tracks);
  pull_set_key_handler (context, pipeline, ask_for_key);

  // The owner adds the bus watch.
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (bus, "message", G_CALLBACK (on_message), self);
  gst_object_unref (bus);
  return pipeline;
}

// ---- the URI ----

gchar *
launch_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  if (flags & PULL_URI_FROM_API)
    return g_strdup ("launch lines are accepted only in the configuration file and as arguments");
  config->uri = g_strdup (uri);
  config->launch = g_strstrip (g_strdup (uri + strlen ("launch:")));
  return check_line (config->launch);
}
