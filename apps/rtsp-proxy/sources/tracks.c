// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/tracks_private.h"

#include <string.h>

#include "base/clock.h"
#include "base/element.h"
#include "base/key_event.h"
#include "base/log.h"
#include "relay/left_out.h"
#include "sources/loas.h"

static LogLimit left_out = { .burst = 8, .interval_ms = 10000 };

static void
track_free (gpointer data)
{
  Track *track = data;

  g_free (track->stream);
  gst_clear_caps (&track->seen);
  gst_clear_caps (&track->caps);
  g_free (track);
}

Tracks *
tracks_new (const PullContext *context, GstElement *pipeline, TracksMode mode, const gchar *what)
{
  Tracks *self = g_new0 (Tracks, 1);

  self->context = context;
  self->pipeline = pipeline;
  self->mode = mode;
  self->what = what;
  self->left_out = g_string_new (NULL);
  self->tracks = g_ptr_array_new_with_free_func (track_free);
  g_queue_init (&self->held);
  g_mutex_init (&self->lock);
  return self;
}

void
tracks_free (Tracks *self)
{
  g_queue_clear_full (&self->held, tracks_packet_free);
  g_ptr_array_unref (self->tracks);
  g_string_free (self->left_out, TRUE);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- branches ----

// Object data of a pad: the branch that it is linked to. While a pad is being removed, the link
// itself is already gone.
#define BRANCH "weir-branch"

// Returns the static payload type of the kind, or the first free dynamic one: 96, 98 ... for video
// and 97, 99 ... for audio, so that a track's type does not depend on which track is found first.
// Call with the lock held.
static gint
find_payload_type (Tracks *self, const TracksKind *kind)
{
  gint pt = kind->video ? 96 : 97;
  gboolean taken = kind->pt == 0;

  for (guint i = 0; i < self->tracks->len; i++) {
    gint made = ((Track *) g_ptr_array_index (self->tracks, i))->made_pt;

    taken |= made == kind->pt;
    if (made >= 96 && (made - pt) % 2 == 0)
      pt += 2;
  }
  return taken ? pt : kind->pt;
}

// A demuxer may push a whole fragment of one track before the first packet of another, so a queue
// grows while another one is empty, up to its limit in bytes.
#define QUEUE "queue name=queue max-size-buffers=0 max-size-bytes=33554432"

static gchar *
branch_text (Tracks *self, const TracksKind *kind, gint pt)
{
  if (self->mode == TRACKS_ARRIVAL)
    return g_strdup_printf ("%s ! %s name=payloader pt=%d ! appsink name=sink buffer-list=true "
                            "async=false sync=false",
        kind->parser, kind->payloader, pt);
  return g_strdup_printf (QUEUE
      " ! %s ! %s name=payloader pt=%d ! appsink name=sink buffer-list=true max-buffers=64",
      kind->parser, kind->payloader, pt);
}

static void
report_missing (Tracks *self, GstParseContext *parse, GError *error)
{
  gchar **missing = gst_parse_context_get_missing_elements (parse);
  gchar *reason = missing ? element_missing (missing[0]) : g_strdup (error->message);

  self->context->callbacks->ended (self->context->owner, reason);
  g_free (reason);
  g_strfreev (missing);
}

static GstElement *
make_branch (Tracks *self, const gchar *text)
{
  GstParseContext *parse = gst_parse_context_new ();
  GError *error = NULL;
  GstElement *branch =
      gst_parse_bin_from_description_full (text, TRUE, parse, GST_PARSE_FLAG_FATAL_ERRORS, &error);

  if (error)
    report_missing (self, parse, error);
  g_clear_error (&error);
  gst_parse_context_free (parse);
  return branch;
}

// Whether another track waits for packets.
static gboolean
another_is_empty (Tracks *self, GstElement *queue)
{
  gboolean found = FALSE;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    GstElement *other = ((Track *) g_ptr_array_index (self->tracks, i))->queue;
    guint n = 1;

    if (other && other != queue)
      g_object_get (other, "current-level-buffers", &n, NULL);
    found |= n == 0;
  }
  g_mutex_unlock (&self->lock);
  return found;
}

static void
on_overrun (GstElement *queue, gpointer data)
{
  guint64 held;

  if (!another_is_empty (data, queue))
    return;
  g_object_get (queue, "current-level-time", &held, NULL);
  g_object_set (queue, "max-size-time", held + GST_SECOND, NULL);
}

static GstPadProbeReturn
on_heard (GstPad *pad, GstPadProbeInfo *info, gpointer track)
{
  g_atomic_int_set (&((Track *) track)->heard, TRUE);
  return GST_PAD_PROBE_REMOVE;
}

static GstPadProbeReturn
on_tags (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
  Track *track = data;
  GstTagList *tags;
  gchar *language;

  if (GST_EVENT_TYPE (event) != GST_EVENT_TAG)
    return GST_PAD_PROBE_OK;
  gst_event_parse_tag (event, &tags);
  if (gst_tag_list_get_string (tags, GST_TAG_LANGUAGE_CODE, &language)) {
    g_mutex_lock (&track->owner->lock);
    g_strlcpy (track->language, language, sizeof track->language);
    g_mutex_unlock (&track->owner->lock);
    g_free (language);
  }
  return GST_PAD_PROBE_OK;
}

// Call with the lock held.
static Track *
add_track (Tracks *self, GstElement *branch, const TracksKind *kind, gint pt)
{
  GstAppSinkCallbacks callbacks = { .new_sample = tracks_on_sample };
  Track *track = g_new0 (Track, 1);
  GstPad *pad = gst_element_get_static_pad (branch, "sink");

  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, on_heard, track, NULL);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_tags, track, NULL);
  gst_object_unref (pad);
  track->owner = self;
  track->branch = branch;
  track->sink = gst_bin_get_by_name (GST_BIN (branch), "sink");
  track->queue = gst_bin_get_by_name (GST_BIN (branch), "queue");
  track->kind = kind;
  track->pt = track->made_pt = pt;
  track->index = -1;
  tracks_close_description (self);
  g_ptr_array_add (self->tracks, track);
  gst_app_sink_set_callbacks (GST_APP_SINK (track->sink), &callbacks, track, NULL);
  gst_object_unref (track->sink); // the branch holds a reference
  if (track->queue) {
    g_signal_connect (track->queue, "overrun", G_CALLBACK (on_overrun), self);
    gst_object_unref (track->queue); // likewise
  }
  return track;
}

static void
attach (Tracks *self, GstPad *pad, GstElement *branch)
{
  GstPad *end = gst_element_get_static_pad (branch, "sink");

  gst_bin_add (GST_BIN (self->pipeline), branch);
  gst_pad_link (pad, end);
  g_object_set_data (G_OBJECT (pad), BRANCH, branch);
  gst_object_unref (end);
  gst_element_sync_state_with_parent (branch);
}

// Drops EOS: a stream may end while others continue, which must not end the pipeline.
static GstPadProbeReturn
drop_eos (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  return GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS ? GST_PAD_PROBE_DROP
                                                                           : GST_PAD_PROBE_OK;
}

// Ends the run, once, if there is no track. Returns whether there is none.
static gboolean
end_without_tracks (Tracks *self)
{
  const PullContext *context = self->context;
  gchar *reason = NULL;
  gboolean none = TRUE;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++)
    none &= ((Track *) g_ptr_array_index (self->tracks, i))->left;
  if (none && !self->ended)
    reason = g_strdup_printf ("the %s has no track that can be relayed%s%s", self->what,
        self->left_out->len > 0 ? ": " : "", self->left_out->str);
  self->ended |= none;
  g_mutex_unlock (&self->lock);
  if (reason && pull_config_is_clip (context->config))
    context->callbacks->unfit (context->owner, reason);
  else if (reason)
    context->callbacks->ended (context->owner, reason);
  g_free (reason);
  return none;
}

// Drops the data of a stream that is left out. A sink would wait for a pipeline that plays, and the
// demultiplexer for the sink. parsebin has all its pads when the first one has data: if none of
// them has a track, there is nothing that prerolls.
static GstPadProbeReturn
drop (GstPad *pad, GstPadProbeInfo *info, gpointer tracks)
{
  if (((Tracks *) tracks)->mode == TRACKS_PACED)
    end_without_tracks (tracks);
  return GST_PAD_PROBE_DROP;
}

static gboolean
on_autoplug_continue (GstElement *parsebin, GstPad *pad, GstCaps *caps, gpointer unused)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gboolean parsed = !g_strcmp0 (gst_structure_get_string (s, "stream-format"), "loas");

  gst_structure_get_boolean (s, "parsed", &parsed); // stays as it is without the field
  return !parsed || !tracks_find_kind (caps);
}

void
tracks_watch_parsebin (GstElement *parsebin)
{
  g_signal_connect (parsebin, "autoplug-continue", G_CALLBACK (on_autoplug_continue), NULL);
}

static void
log_left_out (Tracks *self, const GstCaps *caps, const gchar *remedy)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (s, "stream-format");

  log_event_limited (&left_out, "%s: a track is left out: RTP here has no form for %s%s%s%s",
      self->context->config->uri, gst_structure_get_name (s), format ? " as " : "",
      format ? format : "", remedy);
}

// Returns how a stream without a form in RTP is decoded. Returns NULL if no stage encodes it anew,
// and logs that it is left out.
static const TracksKind *
find_sound (Tracks *self, GstCaps *caps)
{
  const TracksKind *sound = tracks_find_sound (caps);
  const gboolean wanted = self->context->config->encodes_sound;
  gchar *missing = NULL, *remedy = NULL;

  if (sound && wanted)
    missing = element_is_there (sound->decoder) ? NULL : element_missing (sound->decoder);
  if (sound && wanted && !missing)
    return sound;
  if (gst_caps_is_any (caps) || gst_caps_is_empty (caps))
    return NULL;
  if (missing)
    remedy = g_strconcat ("; ", missing, NULL);
  log_left_out (self, caps,
      remedy  ? remedy
      : sound ? "; with pipeline: [pull, opus] or [pull, aac], the mount carries it"
              : "");
  g_free (missing);
  g_free (remedy);
  return NULL;
}

void
tracks_add_stream (Tracks *self, GstPad *pad)
{
  // If parsebin lets the parser convert the stream, the pad has current caps only with the first
  // frame.
  GstCaps *caps = gst_pad_query_caps (pad, NULL);
  const TracksKind *kind = tracks_find_kind (caps);
  GstElement *branch = NULL;
  Track *track;
  gchar *text;
  gint pt;

  if (!kind)
    kind = find_sound (self, caps);
  g_mutex_lock (&self->lock);
  if (!kind)
    left_out_add_stream (self->left_out, self->n_streams, caps);
  self->n_streams++;
  if (kind && self->tracks->len < RELAY_MAX_TRACKS) {
    pt = find_payload_type (self, kind);
    text = branch_text (self, kind, pt);
    branch = make_branch (self, text);
    g_free (text);
  } else {
    gst_pad_add_probe (
        pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, drop, self, NULL);
  }
  if (branch) {
    tracks_kind_prepare (kind, branch, "payloader");
    track = add_track (self, branch, kind, pt);
    track->stream = gst_pad_get_stream_id (pad);
    track->number = self->n_streams - 1;
  }
  g_mutex_unlock (&self->lock);
  gst_caps_unref (caps);
  if (!branch)
    return;
  if (self->mode == TRACKS_ARRIVAL) {
    loas_set_live (branch);
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, drop_eos, NULL, NULL);
  }
  attach (self, pad, branch);
}

// Removes a track and its held packets. Call with the lock held.
static void
remove_track (Tracks *self, Track *track)
{
  GList *next;

  for (GList *l = self->held.head; l; l = next) {
    next = l->next;
    if (((Packet *) l->data)->track == track) {
      tracks_packet_free (l->data);
      g_queue_delete_link (&self->held, l);
    }
  }
  if (!track->left)
    tracks_close_description (self);
  g_ptr_array_remove (self->tracks, track);
}

void
tracks_remove_stream (Tracks *self, GstPad *pad)
{
  GstElement *branch = g_object_steal_data (G_OBJECT (pad), BRANCH);

  if (!branch)
    return;
  gst_element_set_locked_state (branch, TRUE);
  gst_element_set_state (branch, GST_STATE_NULL);
  g_mutex_lock (&self->lock);
  for (guint i = self->tracks->len; i-- > 0;) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->branch == branch)
      remove_track (self, track);
  }
  // A stream that is added after the last one is gone begins a new description.
  self->complete = self->tracks->len > 0 && self->complete;
  g_mutex_unlock (&self->lock);
  gst_bin_remove (GST_BIN (self->pipeline), branch);
}

gboolean
tracks_add_payloader (Tracks *self, GstElement *bin, GstElement *payloader)
{
  GstPad *inner = gst_element_get_static_pad (payloader, "src");
  GstElement *branch;
  GstPad *pad;

  if (!inner || gst_pad_is_linked (inner)) {
    gst_clear_object (&inner);
    return FALSE;
  }
  pad = gst_ghost_pad_new (NULL, inner);
  gst_object_unref (inner);
  gst_element_add_pad (bin, pad);
  branch = make_branch (self, QUEUE " ! appsink name=sink buffer-list=true max-buffers=64");
  if (branch) {
    g_mutex_lock (&self->lock);
    add_track (self, branch, NULL, (gint) self->tracks->len);
    g_mutex_unlock (&self->lock);
    attach (self, pad, branch);
  }
  return branch != NULL;
}

void
tracks_complete (Tracks *self)
{
  g_mutex_lock (&self->lock);
  self->complete = TRUE;
  if (tracks_is_time (self, clock_now ()))
    tracks_open_description (self);
  g_mutex_unlock (&self->lock);
  end_without_tracks (self);
}

// Discards the stream of a track.
static GstPadProbeReturn
discard (GstPad *pad, GstPadProbeInfo *info, gpointer tracks)
{
  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, drop, tracks, NULL);
  tracks_remove_stream (tracks, pad);
  return GST_PAD_PROBE_REMOVE;
}

// Discards the tracks without caps. Their sinks would wait for data after a seek.
static void
discard_unknown (Tracks *self)
{
  GPtrArray *pads = g_ptr_array_new_with_free_func (gst_object_unref);

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    GstPad *end;

    if (track->caps)
      continue;
    track->left = TRUE;
    log_event_limited (&left_out,
        "%s: a track is left out: nothing comes on it that RTP here has a form for: %.*s",
        self->context->config->uri, (int) strcspn (track->kind->caps, ","), track->kind->caps);
    left_out_add (
        self->left_out, track->number, "nothing comes on it that RTP here has a form for");
    end = gst_element_get_static_pad (track->branch, "sink");
    g_ptr_array_add (pads, gst_pad_get_peer (end));
    gst_object_unref (end);
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < pads->len; i++)
    gst_pad_add_probe (g_ptr_array_index (pads, i), GST_PAD_PROBE_TYPE_IDLE, discard, self, NULL);
  g_ptr_array_unref (pads);
}

gboolean
tracks_begin (Tracks *self)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);
    GstPad *pad = gst_element_get_static_pad (track->sink, "sink");
    GstCaps *caps = gst_pad_get_current_caps (pad);

    tracks_set_caps (track, caps);
    gst_clear_caps (&caps);
    gst_object_unref (pad);
  }
  self->complete = TRUE;
  g_mutex_unlock (&self->lock);
  discard_unknown (self);
  if (end_without_tracks (self))
    return FALSE;
  g_mutex_lock (&self->lock);
  if (!self->open && !self->draining)
    tracks_open_description (self);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

void
tracks_ask_key (Tracks *self, guint index)
{
  GstElement *sink = NULL;
  GstPad *pad;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->tracks->len; i++) {
    Track *track = g_ptr_array_index (self->tracks, i);

    if (track->index == (gint) index)
      sink = gst_object_ref (track->sink);
  }
  g_mutex_unlock (&self->lock);
  if (!sink)
    return;
  pad = gst_element_get_static_pad (sink, "sink");
  gst_pad_push_event (pad, key_event_new ());
  gst_object_unref (pad);
  gst_object_unref (sink);
}
