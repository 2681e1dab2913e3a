// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/stage_tracks.h"

#include "base/clock.h"
#include "base/input_times.h"
#include "relay/relay_link.h"

// Raw frames in a window. They are large, and readers need only the newest.
#define RAW_FRAMES 8
// Most packets of a track that are held until all tracks are known; older ones are dropped.
#define HELD_PACKETS 1024
#define NTP_INTERVAL GST_SECOND

// ---- windows ----

static gchar *
dup_media (Relay *relay, guint track)
{
  g_autoptr (GstCaps) caps = relay_dup_caps (relay, track);
  gchar *media =
      caps ? g_strdup (gst_structure_get_string (gst_caps_get_structure (caps, 0), "media")) : NULL;

  return media ? media : g_strdup ("other");
}

gchar *
stage_tracks_dup_channel (guint id, Relay *relay, guint track)
{
  gchar *media = dup_media (relay, track), *channel;
  guint number = 0;

  for (guint i = 0; i < track; i++) {
    g_autofree gchar *other = dup_media (relay, i);

    number += g_str_equal (media, other);
  }
  channel = g_strdup_printf ("stage%u.%s%u", id, media, number);
  g_free (media);
  return channel;
}

gboolean
stage_tracks_is_raw (Relay *relay, guint track)
{
  g_autoptr (GstCaps) caps = relay_dup_caps (relay, track);

  return caps
         && !g_strcmp0 (
             gst_structure_get_string (gst_caps_get_structure (caps, 0), "encoding-name"), "RAW");
}

// ---- the end ----

static gboolean
release_input (gpointer data)
{
  StageTracks *self = data;

  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->published & 1u << i)
      self->input.unpublish (self->input.data, i);
  }
  self->input.release (self->input.data);
  stage_unref (self->stage);
  g_free (self);
  return G_SOURCE_REMOVE;
}

void
stage_tracks_free (gpointer data)
{
  StageTracks *self = data;

  for (guint i = 0; i < self->n_tracks; i++) {
    gst_clear_caps (&self->each[i].in);
    gst_clear_caps (&self->each[i].caps);
    g_queue_clear_full (&self->each[i].held, (GDestroyNotify) gst_buffer_unref);
  }
  relay_unref (self->from);
  relay_unref (self->clock);
  g_mutex_clear (&self->lock);
  g_main_context_invoke (NULL, release_input, self);
}

// ---- output ----

static void
begin_tracks (StageTracks *self)
{
  const PullContext *context = self->context;
  g_autoptr (GPtrArray) caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  RelayTracks tracks;

  for (guint i = 0; i < self->n_tracks; i++)
    g_ptr_array_add (caps, gst_caps_ref (self->each[i].caps));
  tracks = relay_source_begin_from (context->source, caps, self->from, self->start);
  relay_pass_all_ntp (self->from); // an upstream that is no RTP sender gives each only once
  context->callbacks->begun (context->owner, tracks);
}

// Maps the stage's timestamps to the NTP times that the input's sender reports give for the same
// instants.
static void
map_ntp (StageTrack *track, GstBuffer *packet, gint64 now)
{
  StageTracks *self = track->tracks;
  guint8 header[12];
  WeirNtpMap map = { .known = TRUE };
  gint64 time;

  if (now - track->mapped < (gint64) NTP_INTERVAL
      || !relay_get_ntp (self->clock, track->track, &map.ntp, &time)
      || gst_buffer_extract (packet, 0, header, sizeof header) < sizeof header)
    return;
  track->mapped = now;
  map.timestamp = track->base
                  + (guint32) gst_util_uint64_scale (
                        (guint64) ABS (time - self->start), track->rate, GST_SECOND)
                        * (time < self->start ? -1u : 1u);
  map.ssrc = GST_READ_UINT32_BE (header + 8);
  relay_set_ntp_map (self->context->source, track->track, &map);
}

static void
push (StageTrack *track, GstBuffer *packet, gboolean more)
{
  const PullContext *context = track->tracks->context;
  gint64 now = clock_now ();

  map_ntp (track, packet, now);
  (more ? relay_push_more : relay_push) (context->source, track->track, packet, now, track->base);
  context->callbacks->packet (context->owner, now);
}

static void
push_held (StageTrack *track)
{
  while (!g_queue_is_empty (&track->held)) // once begun, only one thread uses it
    push (track, g_queue_pop_head (&track->held), FALSE);
}

void
stage_tracks_push (StageTrack *track, GstBuffer *packet, gboolean more)
{
  StageTracks *self = track->tracks;
  gboolean begins = FALSE, all = TRUE, begun;

  g_mutex_lock (&self->lock);
  begun = self->begun;
  if (!begun) {
    g_queue_push_tail (&track->held, packet);
    if (track->held.length > HELD_PACKETS)
      gst_buffer_unref (g_queue_pop_head (&track->held));
    for (guint i = 0; i < self->n_tracks; i++)
      all = all && self->each[i].caps;
    begins = all && !self->beginning;
    self->beginning = all;
  }
  g_mutex_unlock (&self->lock);
  if (begun) {
    push_held (track);
    push (track, packet, more);
  } else if (begins) {
    begin_tracks (self);
    g_mutex_lock (&self->lock);
    self->begun = TRUE;
    g_mutex_unlock (&self->lock);
    push_held (track);
  }
}

void
stage_tracks_set_caps (StageTrack *track, GstCaps *caps)
{
  StageTracks *self = track->tracks;
  gint rate = 90000;

  g_mutex_lock (&self->lock);
  if (!track->caps) {
    track->caps = gst_caps_ref (caps);
    gst_structure_get_int (gst_caps_get_structure (track->caps, 0), "clock-rate", &rate);
    track->rate = (guint) rate;
    // A stage with a payloader writes the relay's time into the timestamps; other stages keep the
    // input's timestamps.
    track->base = self->payloads ? (guint32) gst_util_uint64_scale (
                                       (guint64) self->start, track->rate, GST_SECOND)
                                 : relay_get_timestamp (self->from, track->track, self->start);
  }
  g_mutex_unlock (&self->lock);
}

void
stage_tracks_flow (StageTracks *self)
{
  const PullContext *context = self->context;

  if (!g_atomic_int_get (&context->cancelled))
    context->callbacks->packet (context->owner, clock_now ());
}

void
stage_tracks_count_miss (StageTracks *self, GstMessage *message)
{
  const GstStructure *s = gst_message_get_structure (message);
  guint64 skipped;

  if (!s || !gst_structure_has_name (s, "cache-miss")
      || !gst_structure_get_uint64 (s, "skipped", &skipped))
    return;
  relay_count (self->context->source, RELAY_OVERFLOW, skipped);
  log_event_limited (&self->misses,
      "stage %s does not keep up: %" G_GUINT64_FORMAT " packets or frames were dropped",
      stage_get_file (self->stage)->name, skipped);
}

// ---- the pipeline ----

static gboolean
processes (Stage *stage, GstCaps *caps)
{
  const StageFile *file = stage_get_file (stage);
  const gchar *media = gst_structure_get_string (gst_caps_get_structure (caps, 0), "media");

  return (!g_strcmp0 (media, "video") && file->media & STAGE_VIDEO)
         || (!g_strcmp0 (media, "audio") && file->media & STAGE_AUDIO);
}

static GstCaps *
raw_caps (const gchar *media)
{
  return gst_caps_new_simple ("application/x-rtp", "media", G_TYPE_STRING, media, "encoding-name",
      G_TYPE_STRING, "RAW", "clock-rate", G_TYPE_INT, 90000, NULL);
}

// Appends the output of a track.
static void
append_out (StageTracks *self, GString *text, guint i, const gchar *media)
{
  g_autofree gchar *channel = NULL;

  if (stage_get_file (self->stage)->gives == STAGE_RAW) {
    self->each[i].caps = raw_caps (media);
    channel = i < relay_n_tracks (self->from) ? stage_tracks_dup_channel (self->id, self->from, i)
                                              : g_strdup_printf ("stage%u.%s0", self->id, media);
    g_string_append_printf (
        text, " ! intervalcache name=out%u channel=%s max-buffers=%u ", i, channel, RAW_FRAMES);
  } else {
    g_string_append_printf (
        text, " ! appsink name=out%u sync=false async=false buffer-list=true ", i);
  }
}

// Appends the input of a track.
static void
append_in (StageTracks *self, GString *text, GString *reader, guint i)
{
  gboolean takes_raw = stage_get_file (self->stage)->takes == STAGE_RAW;
  g_autofree gchar *in = self->input.publish (self->input.data, i);
  g_autofree gchar *window =
      g_strdup_printf ("intervalcachesrc channel=%s start=%s timing=cache ! ", in,
          takes_raw ? "live" : "join-point");

  // The process that makes raw frames also takes them.
  if (!reader || takes_raw) {
    g_string_append (text, window);
  } else {
    g_string_append_printf (text, "appsrc name=in%u format=time is-live=true ! ", i);
    g_string_append_printf (
        reader, "%sappsink name=in%u sync=false async=false buffer-list=true ", window, i);
  }
  self->published |= 1u << i;
  self->processed |= 1u << i;
}

static gboolean
append_track (StageTracks *self, GString *text, GString *reader, guint i, GError **error)
{
  const StageFile *file = stage_get_file (self->stage);
  StageTrack *track = &self->each[i];
  GstStructure *s = gst_caps_get_structure (track->caps, 0);
  g_autofree gchar *middle = stage_dup_launch (self->stage,
      file->takes == STAGE_RAW ? NULL : gst_structure_get_string (s, "encoding-name"), error);

  if (!middle)
    return FALSE;
  append_in (self, text, reader, i);
  g_string_append (text, middle);
  track->in = g_steal_pointer (&track->caps);
  append_out (self, text, i, gst_structure_get_string (s, "media"));
  return TRUE;
}

// Returns the track that a stage with several inputs makes: the first of its media; a new one if
// the first input has none.
static guint
choose_track (StageTracks *self)
{
  guint i = 0;

  while (i < self->n_tracks && !processes (self->stage, self->each[i].caps))
    i++;
  return i;
}

// Appends the pipeline of a stage with several inputs. Its running time is the relay's time; see
// base/input_times.h.
static gboolean
append_joining (StageTracks *self, GString *text, GError **error)
{
  const StageFile *file = stage_get_file (self->stage);
  const gchar *media = stage_media_name (file->media);
  const guint i = choose_track (self);
  g_autofree gchar *middle = stage_dup_launch (self->stage, NULL, error);

  if (!middle)
    return FALSE;
  if (i == RELAY_MAX_TRACKS) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE,
        "stage %s: the first input has %u tracks, but none of %s", file->name, i, media);
    return FALSE;
  }
  g_string_append_printf (text, "identity name=" INPUT_TIMES " ts-offset=%" G_GINT64_FORMAT " ",
      self->start - clock_now ());
  for (guint n = 0; n < file->inputs; n++)
    g_string_append_printf (text,
        "intervalcachesrc name=input%u channel=stage%u.%s0 start=live timing=cache ", n,
        self->input.sides[n], media);
  g_string_append (text, middle);
  self->n_tracks = MAX (self->n_tracks, i + 1);
  self->processed = 1u << i;
  gst_clear_caps (&self->each[i].caps);
  append_out (self, text, i, media);
  return TRUE;
}

gchar *
stage_tracks_publish (StageTracks *self, GString *reader, GError **error)
{
  const StageFile *file = stage_get_file (self->stage);
  g_autoptr (GString) text = g_string_new (NULL);

  if (file->inputs)
    return append_joining (self, text, error) ? g_string_free (g_steal_pointer (&text), FALSE)
                                              : NULL;
  for (guint i = 0; i < self->n_tracks; i++) {
    if (processes (self->stage, self->each[i].caps) && !append_track (self, text, reader, i, error))
      return NULL;
  }
  if (!self->processed) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE,
        "stage %s: its input has no %s track", file->name, stage_media_name (file->media));
    return NULL;
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

void
stage_tracks_link (StageTracks *self)
{
  RelaySource *to = self->context->source;

  relay_unlink (self->from, to);
  relay_link_some (self->from, to, ~self->processed, self->start);
  if (stage_get_file (self->stage)->gives == STAGE_RAW)
    begin_tracks (self);
}

StageTracks *
stage_tracks_new (const StageInput *input, Stage *stage, guint id, const PullContext *context)
{
  StageTracks *self = g_new0 (StageTracks, 1);

  self->context = context;
  self->stage = stage_ref (stage);
  self->id = id;
  self->input = *input;
  self->from = relay_ref (input->relay);
  self->clock = relay_ref (input->clock);
  self->start = relay_get_time (self->from);
  self->payloads = stage_get_file (stage)->takes == STAGE_RAW || stage_get_file (stage)->codec;
  self->n_tracks = relay_n_tracks (self->from);
  self->misses = LOG_LIMIT_FAILURES;
  g_mutex_init (&self->lock);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    StageTrack *track = &self->each[i];

    track->tracks = self;
    track->track = i;
    track->caps = i < self->n_tracks ? relay_dup_caps (self->from, i) : NULL;
  }
  return self;
}
