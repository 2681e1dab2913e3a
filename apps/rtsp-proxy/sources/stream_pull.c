// SPDX-License-Identifier: LGPL-2.1-or-later

// Reads a container or an elementary stream from a server, over HTTP (also HLS), SRT or RTMP, or
// from a descriptor, and payloads its streams: those of a live protocol as they arrive, others at
// their own rate.

#include "base/element.h"
#include "sources/ps_start.h"
#include "sources/pull_uri.h"
#include "sources/tracks.h"
#include "sources/ts_cues.h"
#include "sources/ts_guard.h"

#include <gst/base/gstbasesrc.h>
#include <string.h>
#include <unistd.h>

#define PASSPHRASE_MIN 10 // bytes, as libsrt allows
#define PASSPHRASE_MAX 79
#define LATENCY_MAX_MS 60000
#define PIPE_READ 16384        // bytes
#define PLAYLIST_MAX (8 << 20) // bytes; a day in segments of 2 s has 3 MB

typedef struct {
  const PullContext *context;
  GstElement *pipeline; // not owned
  Tracks *tracks;
  gboolean is_live;
  guint n_certain; // from so many named streams on, they are all
  guint n_pads;    // of parsebin; atomic
  guint n_told;    // streams that the demuxer has named; 0: not known; atomic
  gint fd;         // of pipe:; -1: none
  gsize playlist;  // bytes of it; of the thread that reads it
} StreamPull;

static void
pull_free (gpointer data)
{
  StreamPull *self = data;

  tracks_free (self->tracks);
  if (self->fd >= 0)
    close (self->fd);
  g_free (self);
}

static gboolean
has_scheme (const PullConfig *config, const gchar *scheme)
{
  return g_str_has_prefix (config->uri, scheme);
}

// ---- parsing ----

// A playlist comes from a stranger: without this check it could name files and devices of this
// machine as segments.
static void
check_segment_source (StreamPull *self, GstElement *source)
{
  const PullContext *context = self->context;
  gchar *uri = gst_uri_handler_get_uri (GST_URI_HANDLER (source));
  gchar *reason;

  if (!uri || (!gst_uri_has_protocol (uri, "http") && !gst_uri_has_protocol (uri, "https"))) {
    gst_element_set_locked_state (source, TRUE); // so that it opens nothing
    reason = g_strdup_printf (
        "the playlist names a segment that is not at an http or https URL: %s", uri ? uri : "");
    context->callbacks->ended (context->owner, reason);
    g_free (reason);
  }
  g_free (uri);
}

// The demuxer keeps a playlist until it ends, so one that never ends would take all memory.
static GstPadProbeReturn
on_playlist (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  StreamPull *self = data;
  const PullContext *context = self->context;
  gsize before = self->playlist;

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST)
    self->playlist += gst_buffer_list_calculate_size (GST_PAD_PROBE_INFO_BUFFER_LIST (info));
  else
    self->playlist += gst_buffer_get_size (GST_PAD_PROBE_INFO_BUFFER (info));
  if (self->playlist <= PLAYLIST_MAX)
    return GST_PAD_PROBE_OK;
  if (before <= PLAYLIST_MAX)
    context->callbacks->ended (context->owner, "the playlist has more than 8 MiB");
  return GST_PAD_PROBE_DROP;
}

// hlsdemux, dashdemux and mssdemux
static gboolean
reads_playlist (GstElementFactory *factory)
{
  return strstr (gst_element_factory_get_metadata (factory, GST_ELEMENT_METADATA_KLASS), "Adaptive")
         != NULL;
}

static void
bound_playlist (StreamPull *self, GstElement *demuxer)
{
  GstPad *pad = gst_element_get_static_pad (demuxer, "sink");

  if (!pad)
    return;
  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, on_playlist, self, NULL);
  gst_object_unref (pad);
}

static void
on_element_added (GstBin *pipeline, GstBin *bin, GstElement *element, gpointer data)
{
  GstElementFactory *factory = gst_element_get_factory (element);

  if (bin != pipeline && GST_IS_URI_HANDLER (element)
      && gst_uri_handler_get_uri_type (GST_URI_HANDLER (element)) == GST_URI_SRC)
    check_segment_source (data, element);
  if (factory && g_str_equal (GST_OBJECT_NAME (factory), "tsdemux")) {
    ts_guard_add (element);
    ts_cues_add (element, ((StreamPull *) data)->context);
  } else if (factory && g_str_equal (GST_OBJECT_NAME (factory), "mpegpsdemux"))
    ps_start_add (element);
  else if (factory && reads_playlist (factory))
    bound_playlist (data, element);
}

// The values of GstAutoplugSelectResult, which has no header.
enum { SELECT_TRY = 0, SELECT_SKIP = 2 };

// hlsdemux2 and its like wait for a program that chooses streams.
static gint
on_autoplug_select (
    GstElement *parsebin, GstPad *pad, GstCaps *caps, GstElementFactory *factory, gpointer unused)
{
  return g_str_has_suffix (GST_OBJECT_NAME (factory), "demux2") ? SELECT_SKIP : SELECT_TRY;
}

// parsebin does not say when it has its last pad.
static gboolean
has_all_pads (StreamPull *self)
{
  guint n_pads = (guint) g_atomic_int_get (&self->n_pads);

  return n_pads > 0 && n_pads >= (guint) g_atomic_int_get (&self->n_told);
}

// Notes how many streams the demuxer says it has.
static void
note_collection (StreamPull *self, GstEvent *event)
{
  GstStreamCollection *collection;
  guint n;

  gst_event_parse_stream_collection (event, &collection);
  n = gst_stream_collection_get_size (collection);
  gst_object_unref (collection);
  g_atomic_int_set (&self->n_told, (gint) n);
  if (self->is_live && n >= self->n_certain && has_all_pads (self))
    tracks_complete (self->tracks);
}

// A pad may get the event only with its first data.
static GstPadProbeReturn
on_event (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_STREAM_COLLECTION)
    note_collection (data, GST_PAD_PROBE_INFO_EVENT (info));
  return GST_PAD_PROBE_OK;
}

static void
on_pad_added (GstElement *parsebin, GstPad *pad, gpointer data)
{
  StreamPull *self = data;
  GstEvent *event = gst_pad_get_sticky_event (pad, GST_EVENT_STREAM_COLLECTION, 0);

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_event, self, NULL);
  tracks_add_stream (self->tracks, pad);
  g_atomic_int_inc (&self->n_pads);
  if (event)
    note_collection (self, event);
  gst_clear_event (&event);
}

static void
on_pad_removed (GstElement *parsebin, GstPad *pad, gpointer data)
{
  StreamPull *self = data;

  g_atomic_int_add (&self->n_pads, -1);
  tracks_remove_stream (self->tracks, pad);
}

// Called when a pipeline that is not live has prerolled: the caps of every track are known.
static void
begin_pull (StreamPull *self)
{
  if (tracks_begin (self->tracks))
    gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
}

static void
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  StreamPull *self = data;
  GError *error;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ASYNC_DONE && !self->is_live
      && has_all_pads (self)) {
    begin_pull (self);
  } else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING
             && has_scheme (self->context->config, "srt:")) {
    // srtsrc would try again for ever, also with a wrong passphrase.
    gst_message_parse_warning (message, &error, NULL);
    self->context->callbacks->ended (self->context->owner, error->message);
    g_error_free (error);
  }
}

// ---- the source ----

static gboolean
set_srt (GstElement *source, const PullConfig *config, GError **error)
{
  gsize len = config->password ? strlen (config->password) : 0; // a worker gets "" for none

  if (len > 0 && (len < PASSPHRASE_MIN || len > PASSPHRASE_MAX)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "an SRT passphrase (password) has %u to %u bytes", PASSPHRASE_MIN, PASSPHRASE_MAX);
    return FALSE;
  }
  g_object_set (source, "uri", config->uri, NULL);
  // Without times of arrival, tsdemux gives the streams their own times. SRT has the sender's pace.
  gst_base_src_set_format (GST_BASE_SRC (source), GST_FORMAT_BYTES);
  if (len > 0)
    g_object_set (source, "passphrase", config->password, NULL);
  return TRUE;
}

static void
set_http (GstElement *source, const PullConfig *config)
{
  g_object_set (source, "location", config->uri, "retries", 0, "compress", FALSE, "timeout",
      MAX (config->read_timeout_ms / 1000, 1), NULL);
  if (config->user && *config->user)
    g_object_set (
        source, "user-id", config->user, "user-pw", config->password ? config->password : "", NULL);
}

static GstElement *
make_source (const PullConfig *config, GError **error)
{
  const gchar *name = has_scheme (config, "srt:")    ? "srtsrc"
                      : has_scheme (config, "rtmp:") ? "rtmp2src"
                      : has_scheme (config, "pipe:") ? "fdsrc"
                                                     : "souphttpsrc";
  GstElement *source = element_make (name, error);

  if (!source)
    return NULL;
  if (has_scheme (config, "srt:")) {
    if (!set_srt (source, config, error))
      g_clear_pointer (&source, gst_object_unref);
  } else if (has_scheme (config, "rtmp:")) {
    g_object_set (source, "location", config->uri, NULL);
    gst_base_src_set_live (GST_BASE_SRC (source), TRUE); // no preroll: the first track would block
  } else if (has_scheme (config, "pipe:")) {
    g_object_set (source, "fd", config->endpoint.fd, "blocksize", PIPE_READ, NULL);
    gst_base_src_set_live (GST_BASE_SRC (source), TRUE);
  } else {
    set_http (source, config);
  }
  return source;
}

// Tracks do not end, see drop_eos() in tracks.c, but the bytes of a pipe do.
static GstPadProbeReturn
on_pipe_event (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  const PullContext *context = ((StreamPull *) data)->context;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS)
    context->callbacks->ended (context->owner, "the stream has ended");
  return GST_PAD_PROBE_OK;
}

static void
watch_pipe (StreamPull *self, GstElement *source)
{
  GstPad *pad = gst_element_get_static_pad (source, "src");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_pipe_event, self, NULL);
  gst_object_unref (pad);
}

GstElement *
stream_pull_new (const PullContext *context, GError **error)
{
  GstElement *source = make_source (context->config, error);
  GstElement *parse = source ? element_make ("parsebin", error) : NULL;
  GstElement *pipeline;
  StreamPull *self;
  GstBus *bus;

  if (!parse) {
    gst_clear_object (&source);
    if (context->config->endpoint.is_open)
      close (context->config->endpoint.fd);
    return NULL;
  }
  self = g_new0 (StreamPull, 1);
  self->context = context;
  self->is_live = !g_str_has_prefix (context->config->uri, "http");
  self->fd = has_scheme (context->config, "pipe:") ? context->config->endpoint.fd : -1;
  // flvdemux names no streams: parsebin then names those that it has found.
  self->n_certain = has_scheme (context->config, "rtmp:") ? 2 : 1;
  self->pipeline = pipeline = gst_pipeline_new (NULL);
  self->tracks =
      tracks_new (context, pipeline, self->is_live ? TRACKS_ARRIVAL : TRACKS_PACED, "stream");
  g_object_set_data_full (G_OBJECT (pipeline), "pull", self, pull_free);
  g_signal_connect (pipeline, "deep-element-added", G_CALLBACK (on_element_added), self);
  gst_bin_add_many (GST_BIN (pipeline), source, parse, NULL);
  gst_element_link (source, parse);
  if (self->fd >= 0)
    watch_pipe (self, source);
  g_signal_connect (parse, "autoplug-select", G_CALLBACK (on_autoplug_select), NULL);
  tracks_watch_parsebin (parse);
  g_signal_connect (parse, "pad-added", G_CALLBACK (on_pad_added), self);
  g_signal_connect (parse, "pad-removed", G_CALLBACK (on_pad_removed), self);

  // The owner adds the bus watch.
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (bus, "message", G_CALLBACK (on_message), self);
  gst_object_unref (bus);
  return pipeline;
}

// ---- the URIs ----

// Checks the parts that all have in common. Returns NULL, or an error message (transfer full).
static gchar *
check_url (const gchar *uri, const gchar *form, GUri **parsed)
{
  const gchar *wrong = NULL;

  *parsed = g_uri_parse (uri, G_URI_FLAGS_ENCODED | G_URI_FLAGS_PARSE_RELAXED, NULL);
  if (!*parsed || !g_uri_get_host (*parsed) || !*g_uri_get_host (*parsed))
    return g_strdup_printf ("not a URL like %s", form);
  if (g_uri_get_userinfo (*parsed))
    wrong = "the URL must not contain a user or a password; set user and password";
  else if (g_uri_get_fragment (*parsed))
    wrong = "the URL must not contain a fragment (#...)";
  return g_strdup (wrong);
}

gchar *
http_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GUri *parsed;
  gchar *wrong = check_url (uri, "http://host/stream.ts", &parsed);

  if (!wrong && (flags & PULL_URI_FROM_API))
    wrong = g_strdup ("http and https upstreams are allowed in the configuration file only");
  g_clear_pointer (&parsed, g_uri_unref);
  config->make = stream_pull_new;
  config->parser = PULL_PARSES_ONLINE;
  config->uri = g_strdup (uri);
  return wrong;
}

static gchar *
check_srt_parameters (const gchar *uri)
{
  GHashTable *query = pull_uri_query (uri);
  gchar *latency, *wrong = NULL;
  guint64 ms;

  if (!query)
    return g_strdup ("cannot parse the parameters after the '?'");
  latency = pull_uri_take (query, "latency");
  g_hash_table_remove (query, "streamid");
  if (g_hash_table_contains (query, "passphrase"))
    wrong = g_strdup ("the URI must not contain the passphrase; set password");
  else if (latency && !g_ascii_string_to_unsigned (latency, 10, 0, LATENCY_MAX_MS, &ms, NULL))
    wrong = g_strdup_printf (
        "latency=%s must be a number of milliseconds, at most %u", latency, LATENCY_MAX_MS);
  else
    wrong = pull_uri_finish (query, "streamid, latency");
  g_free (latency);
  g_hash_table_unref (query);
  return wrong;
}

gchar *
srt_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GUri *parsed;
  gchar *wrong;

  config->uri = g_strdup (uri);
  if (g_str_has_prefix (uri, "srt://:") || strstr (uri, "mode=listener"))
    return g_strdup ("an srt:// upstream calls a server; for senders that call this proxy, set the "
                     "key srt, and upstream: publish");
  wrong = check_url (uri, "srt://host:port", &parsed);
  if (!wrong && g_uri_get_port (parsed) < 1)
    wrong = g_strdup ("the port is missing; write it like srt://host:port");
  if (!wrong)
    wrong = check_srt_parameters (uri);
  g_clear_pointer (&parsed, g_uri_unref);
  return wrong;
}

gchar *
rtmp_pull_check (const gchar *uri, PullUriFlags flags, PullConfig *config)
{
  GUri *parsed;
  gchar *wrong = check_url (uri, "rtmp://host/app/stream", &parsed);
  const gchar *path = wrong ? "" : g_uri_get_path (parsed);
  const gchar *slash = *path ? strchr (path + 1, '/') : NULL;

  if (!wrong && (!slash || slash[1] == '\0' || slash == path + 1))
    wrong = g_strdup ("the path must have an application and a stream: rtmp://host/app/stream");
  g_clear_pointer (&parsed, g_uri_unref);
  config->uri = g_strdup (uri);
  return wrong;
}

gboolean
pipe_pull_is (const gchar *uri)
{
  return g_str_equal (uri, PIPE_PULL_URI);
}

void
pipe_pull_init (PullConfig *config)
{
  config->uri = g_strdup (PIPE_PULL_URI);
  config->make = stream_pull_new;
  config->parser = PULL_PARSES;
}
