// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/title_pad.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolate/title_wire.h"
#include "rtp/rtp.h"

struct _TitlePad {
  TitlePadConfig config;
  GstPad *pad;
  gint wake;     // an eventfd
  gint flushing; // atomic: send nothing, and do not wait
  gint stopped;  // atomic: for good
  // Of the track's thread, or of the thread that flushes:
  WireMessage *batch, *event;
  gboolean is_video;
  gboolean stated; // the state was sent, since the start or a flush
};

// ---- to the proxy ----

static void
wait_for_room (TitlePad *self)
{
  struct pollfd fds[] = { { self->config.socket, POLLOUT, 0 }, { self->wake, POLLIN, 0 } };

  poll (fds, G_N_ELEMENTS (fds), -1);
}

// Returns FALSE if the track flushes, or the proxy has closed the title.
static gboolean
send_message (TitlePad *self, const WireMessage *message)
{
  if (message->failed)
    return TRUE;
  while (!g_atomic_int_get (&self->flushing)) {
    if (send (self->config.socket, message->data, message->len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
      return TRUE;
    if (errno == EAGAIN)
      wait_for_room (self);
    else if (errno != EINTR)
      return FALSE;
  }
  return FALSE;
}

static gboolean
send_state (TitlePad *self)
{
  GstQuery *query;
  gboolean seekable = FALSE;
  gint64 duration = -1;

  if (self->stated)
    return TRUE;
  self->stated = TRUE;
  gst_pad_peer_query_duration (self->pad, GST_FORMAT_TIME, &duration);
  query = gst_query_new_seeking (GST_FORMAT_TIME);
  if (gst_pad_peer_query (self->pad, query))
    gst_query_parse_seeking (query, NULL, &seekable, NULL, NULL);
  gst_query_unref (query);
  title_wire_put_state (self->event,
      self->config.get_lead (self->config.owner, self->config.number), duration, seekable);
  return send_message (self, self->event);
}

static void
begin_batch (TitlePad *self)
{
  wire_begin (self->batch, (WireType) TITLE_WIRE_PACKETS);
}

static gboolean
send_batch (TitlePad *self)
{
  gboolean sent = self->batch->len <= 1 || (send_state (self) && send_message (self, self->batch));

  begin_batch (self);
  return sent;
}

// ---- from the payloader ----

static gboolean
is_end_of_frame (GstBuffer *packet)
{
  guint8 head[2] = { 0 };

  gst_buffer_extract (packet, 0, head, sizeof head);
  return head[1] & 0x80;
}

static gboolean
take (TitlePad *self, GstBuffer *packet)
{
  gboolean ok = TRUE;

  if (!title_wire_put_packet (self->batch, packet)) {
    ok = send_batch (self);
    title_wire_put_packet (self->batch, packet);
  }
  // All packets of a picture go into one message, if they fit.
  return ok && (self->is_video && !is_end_of_frame (packet) ? TRUE : send_batch (self));
}

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *packet)
{
  gboolean ok = take (gst_pad_get_element_private (pad), packet);

  gst_buffer_unref (packet);
  return ok ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

static GstFlowReturn
on_list (GstPad *pad, GstObject *parent, GstBufferList *list)
{
  guint n = gst_buffer_list_length (list);
  gboolean ok = TRUE;

  for (guint i = 0; i < n && ok; i++)
    ok = take (gst_pad_get_element_private (pad), gst_buffer_list_get (list, i));
  gst_buffer_list_unref (list);
  return ok ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

static void
begin_flush (TitlePad *self)
{
  const guint64 one = 1;
  guint32 serial;

  g_atomic_int_set (&self->flushing, TRUE);
  while (write (self->wake, &one, sizeof one) < 0 && errno == EINTR)
    ;
  self->config.flushes (self->config.owner, &serial);
}

// Tells the proxy that the packets after this are of the new position.
static void
end_flush (TitlePad *self)
{
  guint64 n;
  guint32 serial;

  if (g_atomic_int_get (&self->stopped))
    return;
  while (read (self->wake, &n, sizeof n) < 0 && errno == EINTR)
    ;
  g_atomic_int_set (&self->flushing, FALSE);
  self->stated = FALSE;
  begin_batch (self);
  if (!self->config.flushes (self->config.owner, &serial))
    return;
  wire_begin (self->event, (WireType) TITLE_WIRE_FLUSHED);
  wire_put (self->event, serial, 4);
  send_message (self, self->event);
}

static void
send_caps (TitlePad *self, GstEvent *event)
{
  const gchar *media;
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  media = gst_structure_get_string (gst_caps_get_structure (caps, 0), "media");
  self->is_video = !g_strcmp0 (media, "video");
  wire_begin (self->event, (WireType) TITLE_WIRE_CAPS);
  wire_put_caps (self->event, caps);
  send_message (self, self->event);
}

static void
send_gap (TitlePad *self, GstEvent *event)
{
  GstClockTime at, duration;

  gst_event_parse_gap (event, &at, &duration);
  if (!GST_CLOCK_TIME_IS_VALID (at))
    return;
  send_state (self);
  wire_begin (self->event, (WireType) TITLE_WIRE_GAP);
  wire_put (self->event, at, 8);
  wire_put (self->event, duration, 8);
  send_message (self, self->event);
}

// Sends a serialised event, after the packets before it.
static void
send_event (TitlePad *self, GstEvent *event)
{
  const GstSegment *segment;

  send_batch (self);
  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS:
      send_caps (self, event);
      break;
    case GST_EVENT_SEGMENT:
      gst_event_parse_segment (event, &segment);
      title_wire_put_segment (self->event, segment);
      send_message (self, self->event);
      break;
    case GST_EVENT_GAP:
      send_gap (self, event);
      break;
    case GST_EVENT_EOS:
      wire_begin (self->event, (WireType) TITLE_WIRE_EOS);
      send_message (self, self->event);
      break;
    default:
      break;
  }
}

static gboolean
on_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  TitlePad *self = gst_pad_get_element_private (pad);

  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START)
    begin_flush (self);
  else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    end_flush (self);
  else if (GST_EVENT_IS_SERIALIZED (event))
    send_event (self, event);
  gst_event_unref (event);
  return TRUE;
}

// ---- from the proxy ----

gboolean
title_pad_push_event (TitlePad *self, GstEvent *event)
{
  return gst_pad_push_event (self->pad, event);
}

void
title_pad_stop (TitlePad *self)
{
  const guint64 one = 1;

  g_atomic_int_set (&self->stopped, TRUE);
  g_atomic_int_set (&self->flushing, TRUE);
  while (write (self->wake, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

// ---- construction ----

TitlePad *
title_pad_new (const TitlePadConfig *config, GstPad *src)
{
  gint wake = eventfd (0, EFD_CLOEXEC);
  TitlePad *self;

  if (wake < 0)
    return NULL;
  self = g_new0 (TitlePad, 1);
  self->config = *config;
  self->wake = wake;
  self->batch = g_new (WireMessage, 1);
  self->event = g_new (WireMessage, 1);
  begin_batch (self);
  self->pad = gst_pad_new (NULL, GST_PAD_SINK);
  gst_pad_set_element_private (self->pad, self);
  gst_pad_set_chain_function (self->pad, on_buffer);
  gst_pad_set_chain_list_function (self->pad, on_list);
  gst_pad_set_event_function (self->pad, on_event);
  gst_pad_set_active (self->pad, TRUE);
  gst_pad_link (src, self->pad);
  return self;
}

void
title_pad_free (TitlePad *self)
{
  gst_pad_set_active (self->pad, FALSE);
  gst_object_unref (self->pad);
  close (self->config.socket);
  close (self->wake);
  g_free (self->batch);
  g_free (self->event);
  g_free (self);
}
