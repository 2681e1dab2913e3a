// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/title_job.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/threads.h"
#include "base/timer.h"
#include "isolate/title_loop.h"
#include "isolate/title_wire.h"
#include "relay/relay.h"
#include "rtp/fragments.h"
#include "title/title_local.h"
#include "worker/title_pad.h"

#define ALIVE_MS 1000
#define TRIM_AFTER_MS 1000 // after a title was closed

enum { CONTROL, FILE_READ, TRACKS };

typedef struct {
  LoopWatch watch; // first
  gint control, file;
  gint sockets[RELAY_MAX_TRACKS]; // of tracks that are not known yet; -1: none
  GstElement *pipeline, *title;
  Timer *alive; // of the main thread
  TitleOutbox *outbox;
  gboolean begun; // only for the thread that works for the job

  GMutex lock; // protects the fields below
  TitlePad *pads[RELAY_MAX_TRACKS];
  gboolean seeks;   // the proxy has asked for a seek
  gboolean flushes; // the proxy knows that the tracks flush
  guint32 serial;   // of the seek
} Job;

// ---- to the proxy ----

// Sends a message on the socket for control. The proxy always reads it.
static void
send_message (Job *self, const WireMessage *message)
{
  gssize sent;

  if (message->failed)
    return;
  do
    sent = send (self->control, message->data, message->len, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
}

static void
send_numbers (Job *self, TitleWireType type, guint32 number, guint8 flag)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, (WireType) type);
  if (type != TITLE_WIRE_COMPLETE)
    wire_put (message, number, 4);
  if (type != TITLE_WIRE_FLUSHING)
    wire_put (message, flag, 1);
  send_message (self, message);
}

static gboolean
send_alive (gpointer data)
{
  const guint8 message = TITLE_WIRE_ALIVE;

  // A full socket shows that the worker lives.
  if (send (((Job *) data)->control, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return G_SOURCE_CONTINUE;
  return G_SOURCE_CONTINUE;
}

static GstBusSyncReply
on_message_posted (GstBus *bus, GstMessage *message, gpointer data)
{
  g_autofree WireMessage *wire = NULL;
  GError *error;
  gchar *debug;

  if (title_file_parse_failure (((Job *) data)->title, message, &error, &debug)) {
    wire = g_new (WireMessage, 1);
    title_wire_put_error (wire, error, debug);
    send_message (data, wire);
    g_error_free (error);
    g_free (debug);
  }
  gst_message_unref (message);
  return GST_BUS_DROP;
}

// ---- tracks ----

static GstClockTime
get_lead (gpointer owner, guint track)
{
  return title_local_get_lead (((Job *) owner)->title, track);
}

static gboolean
on_flush (gpointer owner, guint32 *serial)
{
  Job *self = owner;
  gboolean tells, seeks;

  g_mutex_lock (&self->lock);
  seeks = self->seeks;
  tells = seeks && !self->flushes;
  self->flushes |= seeks;
  *serial = self->serial;
  g_mutex_unlock (&self->lock);
  if (tells)
    send_numbers (self, TITLE_WIRE_FLUSHING, *serial, 0);
  return seeks;
}

static void
on_far (gpointer owner)
{
  title_local_send_gaps (((Job *) owner)->title);
}

static GstElement *
get_payloader (Job *self, guint track)
{
  g_autofree gchar *name = g_strdup_printf ("pay_src_%u", track);

  return gst_bin_get_by_name (GST_BIN (self->title), name);
}

static void
tell_track (Job *self, guint track, guint payload_type, guint mtu)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);

  wire_begin (message, (WireType) TITLE_WIRE_TRACK);
  wire_put (message, track, 1);
  wire_put (message, payload_type, 1);
  wire_put (message, mtu, 4);
  send_message (self, message);
}

static guint
get_codec (GstElement *payloader)
{
  const gchar *name = GST_OBJECT_NAME (gst_element_get_factory (payloader));

  if (g_str_equal (name, "rtph264pay"))
    return WEIR_FRAGMENTS_H264;
  return g_str_equal (name, "rtph265pay") ? WEIR_FRAGMENTS_H265 : 0;
}

static void
add_track (Job *self, TitlePadConfig *config, GstPad *pad, GstElement *payloader)
{
  guint payload_type;
  TitlePad *made;

  g_object_get (payloader, "pt", &payload_type, "mtu", &config->mtu, NULL);
  config->codec = get_codec (payloader);
  if (config->codec) {
    g_object_set (payloader, "mtu", G_MAXUINT, NULL);
    gst_util_set_object_arg (G_OBJECT (payloader), "aggregate-mode", "none");
  }
  made = title_pad_new (config, pad);
  g_mutex_lock (&self->lock);
  self->pads[config->number] = made;
  g_mutex_unlock (&self->lock);
  tell_track (self, config->number, payload_type, config->mtu);
}

static void
on_track (GstElement *title, GstPad *pad, Job *self)
{
  TitlePadConfig config = {
    .outbox = self->outbox, .get_lead = get_lead, .flushes = on_flush, .far = on_far, .owner = self
  };
  g_autoptr (GstElement) payloader = NULL;

  if (sscanf (GST_PAD_NAME (pad), "src_%u", &config.number) != 1
      || config.number >= RELAY_MAX_TRACKS || self->sockets[config.number] < 0
      || !title_outbox_add (self->outbox, config.number, self->sockets[config.number]))
    return;
  self->sockets[config.number] = -1;
  payloader = get_payloader (self, config.number);
  add_track (self, &config, pad, payloader);
}

static void
close_sockets (Job *self)
{
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (self->sockets[i] >= 0)
      close (self->sockets[i]);
    self->sockets[i] = -1;
  }
}

static void
tell_left_out (Job *self)
{
  g_autofree gchar *text = title_file_dup_left_out (self->title);
  g_autofree WireMessage *message = NULL;

  if (!text)
    return;
  message = g_new (WireMessage, 1);
  title_wire_put_left_out (message, text);
  send_message (self, message);
}

static void
on_complete (GstElement *title, Job *self)
{
  close_sockets (self);
  tell_left_out (self);
  send_numbers (self, TITLE_WIRE_COMPLETE, 0, (guint8) title_file_is_raw (title));
}

// ---- commands; in the thread that works for the job ----

static TitlePad *
get_pad (Job *self, guint track)
{
  TitlePad *pad;

  g_mutex_lock (&self->lock);
  pad = self->pads[track];
  g_mutex_unlock (&self->lock);
  return pad;
}

static void
set_seeks (Job *self, gboolean seeks, guint32 serial)
{
  g_mutex_lock (&self->lock);
  self->seeks = seeks;
  self->flushes = FALSE;
  self->serial = serial;
  g_mutex_unlock (&self->lock);
}

static void
seek (Job *self, const TitleCommand *command)
{
  TitlePad *pad = get_pad (self, command->track);
  gboolean ok = FALSE;

  set_seeks (self, TRUE, command->value);
  if (pad)
    ok = title_pad_push_event (
        pad, gst_event_new_seek (command->rate, GST_FORMAT_TIME, (GstSeekFlags) command->flags,
                 (GstSeekType) command->start_type, command->start,
                 (GstSeekType) command->stop_type, command->stop));
  set_seeks (self, FALSE, command->value);
  send_numbers (self, TITLE_WIRE_SEEKED, command->value, (guint8) ok);
}

// As title_file_fill_gaps(): no queue of the title says what the proxy still gets.
static void
fill_gaps (Job *self)
{
  TitleFile *file = (TitleFile *) self->title;

  for (guint i = 0; i < RELAY_MAX_TRACKS && !file->raw; i++) {
    TitlePad *pad = get_pad (self, i);

    if (pad && !g_atomic_int_get (&file->muted[i]))
      title_pad_fill_gap (pad);
  }
}

static void
set_mtu (Job *self, guint track, guint mtu)
{
  GstElement *payloader = get_payloader (self, track);
  TitlePad *pad = get_pad (self, track);

  if (payloader && pad && get_codec (payloader))
    title_pad_set_mtu (pad, mtu);
  else if (payloader)
    g_object_set (payloader, "mtu", mtu, NULL);
  g_clear_object (&payloader);
}

static void
obey (Job *self, const TitleCommand *command)
{
  switch (command->type) {
    case TITLE_WIRE_SEEK:
      seek (self, command);
      break;
    case TITLE_WIRE_MUTE:
      title_file_mute (self->title, command->track, command->value != 0);
      break;
    case TITLE_WIRE_FILL:
      fill_gaps (self);
      break;
    case TITLE_WIRE_MTU:
      set_mtu (self, command->track, command->value);
      break;
    default:
      break;
  }
}

// Obeys the commands that have come. Returns FALSE if the proxy closes the title.
static gboolean
obey_all (Job *self)
{
  guint8 data[64];

  for (;;) {
    gssize n = recv (self->control, data, sizeof data, MSG_DONTWAIT);
    TitleCommand command;

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return TRUE;
    if (n <= 0)
      return FALSE;
    if (title_wire_read_command (data, (gsize) n, &command))
      obey (self, &command);
  }
}

// ---- lifetime ----

static Timer *trimming; // main thread only

// As in titles.c.
static gboolean
trim (gpointer unused)
{
  trimming = NULL;
  malloc_trim (0);
  return G_SOURCE_REMOVE;
}

// The proxy takes the end of the socket for the end of the title.
static gboolean
release (gpointer data)
{
  Job *self = data;

  timer_remove (self->alive);
  close (self->control);
  g_mutex_clear (&self->lock);
  g_free (self);
  if (!trimming)
    trimming = timer_add (TRIM_AFTER_MS, trim, NULL);
  return G_SOURCE_REMOVE;
}

static void
close_title (Job *self)
{
  title_outbox_stop (self->outbox);
  gst_element_set_state (self->pipeline, GST_STATE_NULL);
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    g_clear_pointer (&self->pads[i], title_pad_free);
  }
  title_outbox_free (self->outbox);
  close_sockets (self);
  gst_object_unref (self->pipeline);
  close (self->file);
}

// Works for a title until there is no command for it. What it does may wait for the file, so each
// title that has work has a thread; the others have none.
static void
work (gpointer job)
{
  Job *self = job;

  if (!self->begun)
    gst_element_set_state (self->pipeline, GST_STATE_PAUSED);
  self->begun = TRUE;
  // Once it waits for the next command, another thread may have the job.
  if (!obey_all (self) || !loop_watch (&self->watch, 0, self->control, EPOLLIN | EPOLLONESHOT)) {
    close_title (self);
    loop_leave (&self->watch);
  }
}

static void
work_soon (Job *self)
{
  thread_run ("title-work", work, self);
}

static void
on_command (LoopWatch *watch, guint number, guint32 events)
{
  work_soon ((Job *) watch);
}

static void
on_left (LoopWatch *watch)
{
  g_main_context_invoke (NULL, release, watch);
}

void
title_job_start (const gint *fds, guint n)
{
  static const LoopOps ops = { .ready = on_command, .left = on_left };
  Job *self = g_new0 (Job, 1);
  GstBus *bus;

  g_mutex_init (&self->lock);
  self->control = fds[CONTROL];
  self->file = fds[FILE_READ];
  for (guint i = 0; i < RELAY_MAX_TRACKS; i++)
    self->sockets[i] = TRACKS + i < n ? fds[TRACKS + i] : -1;
  self->outbox = title_outbox_new ();
  self->pipeline = gst_pipeline_new (NULL);
  self->title = title_local_new (title_local_source (self->file), FALSE);
  gst_bin_add (GST_BIN (self->pipeline), self->title);
  threads_name_tasks (self->pipeline, "title");
  g_signal_connect (self->title, "pad-added", G_CALLBACK (on_track), self);
  g_signal_connect (self->title, "no-more-pads", G_CALLBACK (on_complete), self);
  bus = gst_element_get_bus (self->pipeline);
  gst_bus_set_sync_handler (bus, on_message_posted, self, NULL);
  gst_object_unref (bus);
  self->alive = timer_add_tick (ALIVE_MS, send_alive, self);
  send_alive (self);
  loop_join (title_loop_get (), &self->watch, &ops);
  work_soon (self);
}
