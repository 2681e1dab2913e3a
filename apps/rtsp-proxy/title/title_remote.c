// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_remote.h"

#include <unistd.h>

#include "base/element.h"
#include "title/remote_track.h"
#include "title/title_link.h"

#define ERRORS_MAX 16 // of a title; more are not posted

typedef struct {
  TitleFile parent;
  gboolean paced;
  TitleLink *link;                // NULL: it could not be opened, see `error`
  GError *error;                  // why it could not be opened, or has failed before it was started
  gint sockets[RELAY_MAX_TRACKS]; // of tracks that are not known yet; -1: none
  gint n_errors;                  // posted; atomic
  gboolean is_complete;           // no more tracks follow; link's thread only

  GMutex lock; // protects the fields below
  GCond changed;
  RemoteTrack *tracks[RELAY_MAX_TRACKS]; // not owned
  GstElement *pacers[RELAY_MAX_TRACKS];  // not owned; NULL: not paced
  guint n_tracks;
  gboolean started;
  gboolean is_gone;           // the worker says no more, or the title is given up
  gboolean seeks;             // a seek is in progress
  guint32 serial;             // of the last seek
  guint32 flushing, answered; // serial numbers of seeks
  gboolean ok;                // the result of the last seek
  guint32 seqnum;             // of the event of the last seek
} TitleRemote;

typedef struct {
  TitleFileClass parent_class;
} TitleRemoteClass;

GType title_remote_get_type (void);
G_DEFINE_TYPE (TitleRemote, title_remote, title_file_get_type ())

static void
send_value (TitleRemote *self, TitleWireType type, guint track, guint32 value)
{
  if (self->link)
    title_link_send (
        self->link, &(TitleCommand) { .type = type, .track = (guint8) track, .value = value });
}

// ---- seeks ----

// Returns the tracks so far, and their number.
static guint
get_tracks (TitleRemote *self, RemoteTrack **tracks)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_tracks;
  for (guint i = 0; i < n; i++)
    tracks[i] = self->tracks[i];
  g_mutex_unlock (&self->lock);
  return n;
}

// Waits until the worker flushes, or has answered. Returns TRUE if it flushes.
static gboolean
wait_for_flush (TitleRemote *self, guint32 serial)
{
  gboolean flushes;

  g_mutex_lock (&self->lock);
  while (self->flushing != serial && self->answered != serial && !self->is_gone)
    g_cond_wait (&self->changed, &self->lock);
  flushes = self->flushing == serial;
  g_mutex_unlock (&self->lock);
  return flushes;
}

// Call with the lock held.
static gboolean
all_wait (TitleRemote *self, guint32 serial)
{
  gboolean all = TRUE;

  for (guint i = 0; i < self->n_tracks; i++)
    all &= remote_track_waits (self->tracks[i], serial);
  return all;
}

// Waits until the worker has answered and, if it flushes, all tracks wait at the new position.
// Returns the answer.
static gboolean
wait_for_answer (TitleRemote *self, guint32 serial, gboolean flushes)
{
  gboolean ok;

  g_mutex_lock (&self->lock);
  while (!self->is_gone && (self->answered != serial || (flushes && !all_wait (self, serial))))
    g_cond_wait (&self->changed, &self->lock);
  ok = !self->is_gone && self->ok;
  g_mutex_unlock (&self->lock);
  return ok;
}

// Seeks in the worker, and flushes the tracks like a demuxer that seeks: as soon as the demuxer
// flushes, and in this thread.
static gboolean
seek_now (TitleRemote *self, guint track, GstEvent *event, guint32 serial)
{
  RemoteTrack *tracks[RELAY_MAX_TRACKS];
  guint n = get_tracks (self, tracks);
  guint32 seqnum = gst_event_get_seqnum (event);
  TitleCommand command = { .type = TITLE_WIRE_SEEK, .track = (guint8) track, .value = serial };
  GstSeekType start_type, stop_type;
  GstSeekFlags flags;
  GstFormat format;
  gboolean flushes, ok;

  gst_event_parse_seek (event, &command.rate, &format, &flags, &start_type, &command.start,
      &stop_type, &command.stop);
  if (format != GST_FORMAT_TIME || !(flags & GST_SEEK_FLAG_FLUSH))
    return FALSE;
  command.flags = flags;
  command.start_type = (guint8) start_type;
  command.stop_type = (guint8) stop_type;
  title_link_send (self->link, &command);
  flushes = wait_for_flush (self, serial);
  for (guint i = 0; i < n && flushes; i++)
    remote_track_flush (tracks[i], serial, seqnum);
  ok = wait_for_answer (self, serial, flushes);
  for (guint i = 0; i < n && flushes; i++)
    remote_track_resume (tracks[i], serial, seqnum);
  return ok;
}

// Each sink passes the event of a seek up. The first one seeks, the others get its result.
static gboolean
on_seek (gpointer owner, guint track, GstEvent *event)
{
  TitleRemote *self = owner;
  guint32 seqnum = gst_event_get_seqnum (event), serial = 0;
  gboolean ok;

  g_mutex_lock (&self->lock);
  ok = self->seqnum == seqnum && self->ok;
  if (self->seqnum != seqnum && !self->seeks && !self->is_gone) {
    serial = ++self->serial;
    self->seeks = TRUE;
    self->seqnum = seqnum;
  }
  g_mutex_unlock (&self->lock);
  if (serial == 0)
    return ok;
  ok = seek_now (self, track, event, serial);
  g_mutex_lock (&self->lock);
  self->seeks = FALSE;
  self->ok = ok;
  g_mutex_unlock (&self->lock);
  return ok;
}

// ---- what the worker says; in the link's thread ----

// Keeps an error for the start of the element, which may not have a bus before. Returns whether it
// has not been started.
static gboolean
is_early (TitleRemote *self, const GError *error)
{
  gboolean early;

  g_mutex_lock (&self->lock);
  early = !self->started;
  if (early && !self->error)
    self->error = g_error_copy (error);
  g_mutex_unlock (&self->lock);
  return early;
}

static void
on_failed (gpointer owner, const GError *error, const gchar *debug)
{
  TitleRemote *self = owner;

  if (is_early (self, error))
    return;
  if (g_atomic_int_add (&self->n_errors, 1) < ERRORS_MAX)
    title_file_post_failure (&self->parent, error, debug);
}

static void
on_gone (gpointer owner)
{
  TitleRemote *self = owner;

  g_mutex_lock (&self->lock);
  self->is_gone = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
on_flushing (gpointer owner, guint32 serial)
{
  TitleRemote *self = owner;

  g_mutex_lock (&self->lock);
  self->flushing = serial;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
on_seeked (gpointer owner, guint32 serial, gboolean ok)
{
  TitleRemote *self = owner;

  g_mutex_lock (&self->lock);
  self->answered = serial;
  self->ok = ok;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

// ---- what the tracks say ----

static void
on_mtu (gpointer owner, guint track, guint mtu)
{
  send_value (owner, TITLE_WIRE_MTU, track, mtu);
}

static void
on_waits (gpointer owner)
{
  TitleRemote *self = owner;

  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
on_malformed (gpointer owner, guint track)
{
  TitleRemote *self = owner;
  g_autoptr (GError) error = g_error_new_literal (
      GST_STREAM_ERROR, GST_STREAM_ERROR_DEMUX, "its worker process sent a malformed message");

  title_file_post_failure (&self->parent, error, NULL);
  title_link_blame (self->link, "was killed: it sent a malformed message");
}

static const RemoteTrackHandler track_handler = { on_seek, on_mtu, on_waits, on_malformed };

// ---- tracks ----

static void
expose (TitleRemote *self, guint number, GstElement *last)
{
  g_autoptr (GstPad) inner = gst_element_get_static_pad (last, "src");
  g_autofree gchar *name = g_strdup_printf ("src_%u", number);
  GstPad *pad = gst_ghost_pad_new (name, inner);

  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (GST_ELEMENT (self), pad);
}

static void
add_track (TitleRemote *self, GstElement *track, GstElement *pacer, guint number)
{
  g_autofree gchar *name = g_strdup_printf ("pay_src_%u", number);

  gst_object_set_name (GST_OBJECT (track), name);
  // The elements start when all pads are linked.
  gst_element_set_locked_state (track, TRUE);
  gst_bin_add (GST_BIN (self), track);
  if (pacer) {
    gst_element_set_locked_state (pacer, TRUE);
    gst_bin_add (GST_BIN (self), pacer);
    gst_element_link (track, pacer);
  }
  g_mutex_lock (&self->lock);
  self->tracks[number] = (RemoteTrack *) track;
  self->pacers[number] = pacer;
  self->n_tracks = number + 1;
  g_mutex_unlock (&self->lock);
  expose (self, number, pacer ? pacer : track);
}

// No packet may leave before all pads are known.
static void
start_tracks (TitleRemote *self)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    GstElement *elements[] = { self->pacers[i], GST_ELEMENT (self->tracks[i]) };

    for (guint k = 0; k < G_N_ELEMENTS (elements); k++) {
      if (!elements[k])
        continue;
      gst_element_set_state (elements[k], GST_STATE_PAUSED);
      gst_element_set_locked_state (elements[k], FALSE);
    }
  }
}

// Tracks that a worker gives in another order, or twice, are not added.
static void
on_track (gpointer owner, guint number, guint payload_type, guint mtu)
{
  TitleRemote *self = owner;
  RemoteTrackConfig config = { number, payload_type, mtu, self->paced ? TITLE_WIRE_TOGETHER : 1,
    self->sockets[number] };
  GError *error = NULL;
  GstElement *pacer = NULL;

  if (number != self->n_tracks || config.socket < 0)
    return;
  if (self->paced && !(pacer = element_make ("ratepacer", &error))) {
    on_failed (self, error, NULL);
    g_error_free (error);
    return;
  }
  if (pacer)
    g_object_set (
        pacer, "rounds", (guint64) TITLE_ROUND_NS, "round-bytes", TITLE_ROUND_BYTES, NULL);
  self->sockets[number] = -1;
  add_track (self, remote_track_new (&config, &track_handler, self), pacer, number);
}

static void
close_sockets (TitleRemote *self)
{
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (self->sockets[i] >= 0)
      close (self->sockets[i]);
    self->sockets[i] = -1;
  }
}

static void
on_left_out (gpointer owner, const gchar *text)
{
  title_file_set_left_out (owner, text);
}

static void
on_complete (gpointer owner, gboolean raw)
{
  TitleRemote *self = owner;

  if (self->is_complete)
    return;
  self->is_complete = TRUE;
  self->parent.raw = raw;
  close_sockets (self);
  gst_element_no_more_pads (GST_ELEMENT (self));
  start_tracks (self);
}

static const TitleLinkHandler link_handler = {
  { on_track, on_left_out, on_complete, on_flushing, on_seeked, on_failed }, on_gone
};

// ---- the functions of a title file ----

static GstClockTime
get_lead (TitleFile *file, guint track)
{
  TitleRemote *self = (TitleRemote *) file;
  RemoteTrack *of;

  g_mutex_lock (&self->lock);
  of = self->tracks[track];
  g_mutex_unlock (&self->lock);
  return of ? remote_track_get_lead (of) : GST_CLOCK_TIME_NONE;
}

static void
fill_gaps (TitleFile *self)
{
  send_value ((TitleRemote *) self, TITLE_WIRE_FILL, 0, 0);
}

static void
mute (TitleFile *self, guint track, gboolean muted)
{
  send_value ((TitleRemote *) self, TITLE_WIRE_MUTE, track, (guint32) muted);
}

static void
give_up (TitleFile *self)
{
  on_gone (self);
}

static gboolean
is_cut_off (TitleFile *file)
{
  TitleRemote *self = (TitleRemote *) file;
  RemoteTrack *tracks[RELAY_MAX_TRACKS];
  const guint n = get_tracks (self, tracks);
  gboolean cut_off;

  g_mutex_lock (&self->lock);
  cut_off = self->is_gone;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < n; i++)
    cut_off |= remote_track_is_cut_off (tracks[i]);
  return cut_off;
}

// ---- construction ----

// Posts a failure if there was one already. Returns FALSE if the title has failed; bytes that
// cannot be read are no failure yet.
static gboolean
begin_title (TitleRemote *self)
{
  gboolean ok = self->link != NULL;
  g_autoptr (GError) error = NULL;

  g_mutex_lock (&self->lock);
  self->started = TRUE;
  error = g_steal_pointer (&self->error);
  g_mutex_unlock (&self->lock);
  if (!error)
    return ok;
  ok = ok && g_error_matches (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ);
  on_failed (self, error, NULL);
  return ok;
}

static GstStateChangeReturn
title_remote_change_state (GstElement *element, GstStateChange transition)
{
  TitleRemote *self = (TitleRemote *) element;
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !begin_title (self))
    return GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    on_gone (self);
    title_link_close (self->link);
  }
  ret = GST_ELEMENT_CLASS (title_remote_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && ret != GST_STATE_CHANGE_FAILURE)
    title_link_start (self->link);
  return ret;
}

static void
title_remote_init (TitleRemote *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    self->sockets[i] = -1;
}

static void
title_remote_finalize (GObject *object)
{
  TitleRemote *self = (TitleRemote *) object;

  g_clear_pointer (&self->link, title_link_free);
  g_clear_error (&self->error);
  close_sockets (self);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (title_remote_parent_class)->finalize (object);
}

static void
title_remote_class_init (TitleRemoteClass *klass)
{
  TitleFileClass *file_class = (TitleFileClass *) klass;

  G_OBJECT_CLASS (klass)->finalize = title_remote_finalize;
  GST_ELEMENT_CLASS (klass)->change_state = title_remote_change_state;
  file_class->get_lead = get_lead;
  file_class->fill_gaps = fill_gaps;
  file_class->mute = mute;
  file_class->give_up = give_up;
  file_class->is_cut_off = is_cut_off;
}

GstElement *
title_remote_new (int fd, gboolean paced)
{
  TitleRemote *self = g_object_new (title_remote_get_type (), NULL);

  self->paced = paced;
  self->link = title_link_open (fd, &link_handler, self, self->sockets, &self->error);
  return GST_ELEMENT (self);
}
