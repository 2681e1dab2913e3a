// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_local.h"

#include <sys/stat.h>

#include "base/element.h"
#include "base/file_source.h"
#include "relay/left_out.h"
#include "sources/pull.h"
#include "sources/tracks.h"
#include "title/title_source.h"
#include "title/title_type.h"

// Without it, a pacer that waits for a packet's time would keep the tracks behind it in the file.
#define QUEUE                                                                                      \
  "queue name=queue max-size-buffers=0 max-size-bytes=4194304 max-size-time=3000000000 ! "
#define PACER                                                                                      \
  " ! ratepacer rounds=" G_STRINGIFY (TITLE_ROUND_NS) " round-bytes=" G_STRINGIFY (                \
      TITLE_ROUND_BYTES)

typedef struct _TitleLocal TitleLocal;

typedef struct {
  TitleLocal *file;
  GstPad *entry;      // the branch's, not owned; NULL for a raw stream
  GstElement *queue;  // not owned; NULL without a pacer, and for a raw stream
  GstPad *end;        // the branch's, not owned
  gulong hold;        // a probe of `end`; 0: none
  gint *muted;        // atomic: packets are dropped
  gboolean has_begun; // the track has had data; demuxer's thread only
  gboolean is_here;   // the track has had data since the last seek; demuxer's thread only
  gboolean video;
  GstClockTime lead; // see title_file_get_lead(); use with the file's object lock held
  guint64 n_frames;  // of a raw stream, since its start or a flush; the parser's thread only
} Track;

struct _TitleLocal {
  TitleFile parent;
  GstElement *source; // not owned
  gboolean paced;
  GstClockTime early;     // by this, a seek begins before the position
  guint32 sought;         // the number of the last seek
  gboolean complete;      // no more tracks follow; demuxer thread only
  gboolean has_tags;      // in front of the media
  guint n_streams;        // of the file
  guint64 static_types;   // taken payload types below 64
  guint n_video, n_audio; // with a dynamic payload type
  guint n_tracks;
  GString *left_out; // before no-more-pads
  Track tracks[RELAY_MAX_TRACKS];
};

typedef struct {
  TitleFileClass parent_class;
} TitleLocalClass;

GType title_local_get_type (void);
G_DEFINE_TYPE (TitleLocal, title_local, title_file_get_type ())

// Reports whether a frame starts within the segment that is played. Frames before the segment are
// the priming of an audio codec, or video that the segment's first frames depend on. The sink would
// drop them too, but only after they have sequence numbers, so readers would see packet loss. A
// sink that waits for its first packet would also block the pacer.
static gboolean
is_inside (GstPad *pad, GstClockTime at)
{
  g_autoptr (GstEvent) event = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  const GstSegment *segment;
  gboolean inside = TRUE;

  if (event && GST_CLOCK_TIME_IS_VALID (at)) {
    gst_event_parse_segment (event, &segment);
    inside =
        at >= segment->start && (!GST_CLOCK_TIME_IS_VALID (segment->stop) || at < segment->stop);
  }
  return inside;
}

static void
set_lead (Track *track, GstClockTime lead)
{
  GST_OBJECT_LOCK (track->file);
  track->lead = lead;
  GST_OBJECT_UNLOCK (track->file);
}

static void
handle_flush (Track *track)
{
  track->is_here = FALSE;
  set_lead (track, GST_CLOCK_TIME_NONE);
}

static void
handle_buffer (Track *track, GstBuffer *buffer, gboolean passes)
{
  gboolean keyframe = !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);

  if (track->video && keyframe && !track->is_here)
    set_lead (track, passes ? GST_CLOCK_TIME_NONE : GST_BUFFER_PTS (buffer));
  track->has_begun |= passes;
  track->is_here |= passes;
}

// Tells that no more tracks follow.
static void
end_pads (TitleLocal *self)
{
  const gchar *left_out = self->left_out->str;

  if (self->complete)
    return;
  self->complete = TRUE;
  if (self->n_tracks == 0)
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
        ("the file has no track that can be served%s%s", *left_out ? ": " : "", left_out), (NULL));
  if (*left_out)
    title_file_set_left_out (&self->parent, left_out);
  gst_element_no_more_pads (GST_ELEMENT (self));
  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->tracks[i].hold)
      gst_pad_remove_probe (self->tracks[i].end, self->tracks[i].hold);
  }
}

// Fails when a track ends without data, for example in a file that is cut off after its header:
// otherwise preparing the media would wait for that track for ever.
static void
handle_event (Track *track, GstEventType type)
{
  if (type == GST_EVENT_FLUSH_STOP)
    handle_flush (track);
  else if (type == GST_EVENT_GAP)
    track->has_begun = track->is_here = TRUE;
  else if (type == GST_EVENT_EOS && !track->has_begun)
    GST_ELEMENT_ERROR (
        track->file, STREAM, DEMUX, ("the file ends before the first data of a track"), (NULL));
  // Not all demuxers tell before the end that there are no more tracks.
  if (type == GST_EVENT_EOS)
    end_pads (track->file);
}

// Drops all data of a muted track. Its EOS is dropped too, because without data before it the EOS
// is an error.
static GstPadProbeReturn
filter (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *track = data;
  gboolean passes = !g_atomic_int_get (track->muted);
  GstEventType type;

  if (info->type & (GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH)) {
    type = GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info));
    handle_event (track, type);
    passes |= type != GST_EVENT_EOS;
  } else {
    passes = passes && is_inside (pad, GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info)));
    handle_buffer (track, GST_PAD_PROBE_INFO_BUFFER (info), passes);
  }
  return passes ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

// ---- gaps, for tracks without data ----

// Sends a gap. Without it, the track's sink would wait for data, and all other sinks would wait for
// that sink. First sends the segment of the pad `like` if the track has none.
static void
send_gap (GstPad *entry, GstPad *like)
{
  GstEvent *event = gst_pad_get_sticky_event (entry, GST_EVENT_SEGMENT, 0);
  const GstSegment *segment;

  if (!event && (event = gst_pad_get_sticky_event (like, GST_EVENT_SEGMENT, 0)))
    gst_pad_send_event (entry, gst_event_ref (event));
  if (event) {
    gst_event_parse_segment (event, &segment);
    gst_pad_send_event (entry, gst_event_new_gap (segment->start, GST_CLOCK_TIME_NONE));
    gst_event_unref (event);
  }
}

void
title_local_send_gaps (GstElement *element)
{
  TitleLocal *self = (TitleLocal *) element;
  GstPad *like = NULL;

  end_pads (self);
  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->tracks[i].is_here && self->tracks[i].entry)
      like = self->tracks[i].entry;
  }
  for (guint i = 0; i < self->n_tracks; i++) {
    Track *track = &self->tracks[i];

    if (like && track->entry && !track->is_here && !g_atomic_int_get (track->muted))
      send_gap (track->entry, like);
  }
}

// Called in the demuxer's thread when the queue of a track is full. Demuxers of containers without
// a list of tracks tell late that there are no more: until then nobody takes what is queued.
static void
on_overrun (GstElement *queue, TitleLocal *self)
{
  title_local_send_gaps (GST_ELEMENT (self));
}

// Sends a gap if the queue is empty. A thread that holds the pad's stream lock is adding data to
// the queue, so no gap is needed then.
static void
fill_gap (Track *track)
{
  guint n_waiting;

  if (!GST_PAD_STREAM_TRYLOCK (track->entry))
    return;
  g_object_get (track->queue, "current-level-buffers", &n_waiting, NULL);
  if (n_waiting == 0)
    send_gap (track->entry, track->entry);
  GST_PAD_STREAM_UNLOCK (track->entry);
}

static void
title_local_fill_gaps (TitleFile *self)
{
  TitleLocal *file = (TitleLocal *) self;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (file->tracks[i].queue && !g_atomic_int_get (file->tracks[i].muted))
      fill_gap (&file->tracks[i]);
  }
}

// ---- seeks ----

static GstPadProbeReturn
stamp (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Track *track = data;

  if (info->type & GST_PAD_PROBE_TYPE_EVENT_FLUSH)
    track->n_frames = 0;
  else
    info->data = title_type_stamp (pad, GST_PAD_PROBE_INFO_BUFFER (info), track->n_frames++);
  return GST_PAD_PROBE_OK;
}

// Each sink sends the event of a seek. Some demuxers would seek each time.
static GstPadProbeReturn
change_seek (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
  TitleLocal *self = data;

  if (GST_EVENT_TYPE (event) != GST_EVENT_SEEK)
    return GST_PAD_PROBE_OK;
  if (self->sought == gst_event_get_seqnum (event))
    return GST_PAD_PROBE_DROP;
  self->sought = gst_event_get_seqnum (event);
  info->data = title_type_change_seek (event, self->early);
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
hold (GstPad *pad, GstPadProbeInfo *info, gpointer unused)
{
  return GST_PAD_PROBE_OK; // it stays blocked
}

static void
expose (TitleLocal *self, GstElement *branch)
{
  g_autoptr (GstPad) inner = gst_element_get_static_pad (branch, "src");
  g_autofree gchar *name = g_strdup_printf ("src_%u", self->n_tracks - 1);
  GstPad *pad = gst_ghost_pad_new (name, inner);
  Track *track = &self->tracks[self->n_tracks - 1];

  // No packet may leave before all pads are known. Without a queue, the demuxer would wait, too.
  track->end = inner;
  if (track->queue)
    track->hold = gst_pad_add_probe (inner, GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, hold, NULL, NULL);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, change_seek, self, NULL);
  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (GST_ELEMENT (self), pad);
}

static void
watch_raw (GstElement *branch, const gchar *payloader, Track *track)
{
  g_autoptr (GstElement) element = gst_bin_get_by_name (GST_BIN (branch), payloader);
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "sink");

  if (track->video) // parsers of sound know the times
    gst_pad_add_probe (
        pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_FLUSH, stamp, track, NULL);
}

static void
watch (GstElement *branch, Track *track)
{
  g_autoptr (GstPad) entry = gst_element_get_static_pad (branch, "sink");
  GstElement *queue = gst_bin_get_by_name (GST_BIN (branch), "queue");

  gst_pad_add_probe (entry,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM
          | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
      filter, track, NULL);
  if (queue) {
    g_signal_connect (queue, "overrun", G_CALLBACK (on_overrun), track->file);
    gst_object_unref (queue);
  }
  track->queue = queue;
  track->entry = entry;
}

// Returns the static payload type of the kind for its first track, as tracks do (sources/tracks.c):
// FFmpeg knows MPEG video only by it. Then 96, 98 ... for video, and 97, 99 ... for audio.
static guint
choose_payload_type (TitleLocal *self, const TracksKind *kind)
{
  const guint64 bit = (guint64) 1 << kind->pt;

  if (kind->pt && !(self->static_types & bit)) {
    self->static_types |= bit;
    return (guint) kind->pt;
  }
  return kind->video ? 96 + 2 * self->n_video++ : 97 + 2 * self->n_audio++;
}

static GstElement *
make_branch (TitleLocal *self, const TracksKind *kind, GError **error)
{
  Track *track = &self->tracks[self->n_tracks];
  guint payload = choose_payload_type (self, kind);
  // A raw stream has no queue, because its parser pulls from the file in another thread.
  gchar *payloader = g_strdup_printf ("pay_src_%u", self->n_tracks);
  gchar *text =
      g_strdup_printf ("%s%s ! %s name=%s pt=%u%s", self->paced && !self->parent.raw ? QUEUE : "",
          kind->parser, kind->payloader, payloader, payload, self->paced ? PACER : "");
  GstElement *branch = gst_parse_bin_from_description (text, TRUE, error);

  track->file = self;
  track->muted = &self->parent.muted[self->n_tracks];
  track->video = kind->video;
  track->lead = GST_CLOCK_TIME_NONE;
  if (branch)
    tracks_kind_prepare (kind, branch, payloader);
  if (branch && self->parent.raw)
    watch_raw (branch, payloader, track);
  else if (branch)
    watch (branch, track);
  self->n_tracks++;
  g_free (text);
  g_free (payloader);
  return branch;
}

// Adds and links an element, which start() starts. Its state is locked until then: if the bin
// started it, on its own way to PAUSED in another thread, the two threads could wait for each other
// where one pad pulls from the other.
static void
join (TitleLocal *self, GstPad *pad, GstElement *element)
{
  g_autoptr (GstPad) end = gst_element_get_static_pad (element, "sink");

  gst_element_set_locked_state (element, TRUE);
  gst_bin_add (GST_BIN (self), element);
  gst_pad_link (pad, end);
}

static void
start (GstElement *element)
{
  gst_element_set_state (element, GST_STATE_PAUSED);
  gst_element_set_locked_state (element, FALSE);
}

static void
leave_out (TitleLocal *self, guint stream, GstCaps *caps)
{
  if (self->n_tracks == RELAY_MAX_TRACKS)
    left_out_add (self->left_out, stream, "a title has %d tracks at most", RELAY_MAX_TRACKS);
  else
    left_out_add_stream (self->left_out, stream, caps);
}

// Adds a branch for the stream of `pad`, and returns it for start(). Returns NULL on failure, which
// it posts, and for a stream that cannot be served. The pad of that one stays without a peer: a
// sink would wait for a pipeline that plays, and the demuxer for the sink.
static GstElement *
add_stream (TitleLocal *self, GstPad *pad, GstCaps *caps)
{
  const TracksKind *kind = self->n_tracks < RELAY_MAX_TRACKS ? tracks_find_kind (caps) : NULL;
  const guint stream = self->n_streams++;
  GError *error = NULL;
  GstElement *branch;

  if (!kind) {
    leave_out (self, stream, caps);
    return NULL;
  }
  branch = make_branch (self, kind, &error);
  if (!branch) {
    GST_ELEMENT_ERROR (self, CORE, MISSING_PLUGIN, ("%s", error->message), (NULL));
    g_error_free (error);
    return NULL;
  }
  join (self, pad, branch);
  expose (self, branch);
  return branch;
}

static void
on_pad_added (GstElement *demuxer, GstPad *pad, TitleLocal *self)
{
  GstElement *branch;
  g_autoptr (GstCaps) caps = NULL;

  if (self->complete) // too late
    return;
  caps = gst_pad_get_current_caps (pad);
  if (!caps)
    caps = gst_pad_query_caps (pad, NULL);
  branch = add_stream (self, pad, caps);
  if (branch)
    start (branch);
}

static void on_have_type (GstElement *typefind, guint probability, GstCaps *caps, TitleLocal *self);

// Finds the type of what is behind the tags. Further tags there are not taken: a file could have
// any number of them.
static void
add_typefind (TitleLocal *self, GstPad *pad)
{
  GstElement *typefind = gst_element_factory_make ("typefind", NULL);

  self->has_tags = TRUE;
  g_signal_connect (typefind, "have-type", G_CALLBACK (on_have_type), self);
  join (self, pad, typefind);
  start (typefind);
}

static void
add_demuxer (TitleLocal *self, GstPad *pad, const gchar *name)
{
  GstElement *demuxer = gst_element_factory_make (name, NULL);
  GstPad *src; // id3demux has one from the beginning
  g_autofree gchar *missing = NULL;

  if (!demuxer) {
    missing = element_missing (name);
    GST_ELEMENT_ERROR (self, CORE, MISSING_PLUGIN, ("%s", missing), (NULL));
    return;
  }
  title_type_guard (name, demuxer, self->source);
  g_signal_connect (demuxer, "pad-added", G_CALLBACK (on_pad_added), self);
  g_signal_connect_swapped (demuxer, "no-more-pads", G_CALLBACK (end_pads), self);
  join (self, pad, demuxer);
  src = gst_element_get_static_pad (demuxer, "src");
  if (src)
    add_typefind (self, src);
  gst_clear_object (&src);
  start (demuxer);
}

// Adds the branch of a raw stream, and starts it after no-more-pads: its parser has its own thread,
// and no packet may leave before all pads are known.
static void
add_raw (TitleLocal *self, GstPad *pad, GstCaps *caps)
{
  GstElement *branch;

  self->parent.raw = TRUE;
  branch = add_stream (self, pad, caps);
  end_pads (self);
  if (branch)
    start (branch);
}

static void
stop_task (GstElement *typefind, gpointer unused)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (typefind, "sink");

  gst_pad_stop_task (pad);
}

// Ends the thread of typefind, which only waits once the element after it pulls. A thread cannot
// end itself.
static void
let_go (GstElement *typefind, GstPad *src)
{
  if (GST_PAD_MODE (src) == GST_PAD_MODE_PULL)
    gst_element_call_async (typefind, stop_task, NULL, NULL);
}

static void
on_have_type (GstElement *typefind, guint probability, GstCaps *caps, TitleLocal *self)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (typefind, "src");
  const TitleType *type = title_type_find (caps);

  title_source_note_type (self->source);
  if (!type || (self->has_tags && type->demuxer)) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
        ("unsupported file type %s", gst_structure_get_name (gst_caps_get_structure (caps, 0))),
        (NULL));
  } else if (type->demuxer) {
    self->early = type->early;
    add_demuxer (self, pad, type->demuxer);
  } else {
    add_raw (self, pad, caps);
  }
  let_go (typefind, pad);
}

GstClockTime
title_local_get_lead (GstElement *self, guint i)
{
  Track *track = &((TitleLocal *) self)->tracks[i];
  GstClockTime lead = GST_CLOCK_TIME_NONE;

  if (track->entry) {
    GST_OBJECT_LOCK (track->file);
    lead = track->lead;
    GST_OBJECT_UNLOCK (track->file);
  }
  return lead;
}

static GstClockTime
get_lead (TitleFile *self, guint track)
{
  return title_local_get_lead (GST_ELEMENT (self), track);
}

static void
title_local_init (TitleLocal *self)
{
  self->left_out = g_string_new (NULL);
}

static void
title_local_finalize (GObject *object)
{
  g_string_free (((TitleLocal *) object)->left_out, TRUE);
  G_OBJECT_CLASS (title_local_parent_class)->finalize (object);
}

static void
title_local_class_init (TitleLocalClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = title_local_finalize;
  ((TitleFileClass *) klass)->get_lead = get_lead;
  ((TitleFileClass *) klass)->fill_gaps = title_local_fill_gaps;
}

GstElement *
title_local_source (int fd)
{
  struct stat st;

  return fstat (fd, &st) == 0 && S_ISSOCK (st.st_mode) ? title_source_new (fd)
                                                       : file_source_new (fd);
}

GstElement *
title_local_new (GstElement *source, gboolean paced)
{
  TitleLocal *self = g_object_new (title_local_get_type (), NULL);
  GstElement *typefind = gst_element_factory_make ("typefind", NULL);

  self->source = source;
  self->paced = paced;
  gst_bin_add_many (GST_BIN (self), source, typefind, NULL);
  gst_element_link (source, typefind);
  g_signal_connect (typefind, "have-type", G_CALLBACK (on_have_type), self);
  return GST_ELEMENT (self);
}
