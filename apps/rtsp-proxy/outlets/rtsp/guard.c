// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/guard.h"

#include "access/refusals.h"
#include "outlets/rtsp/client.h"
#include "outlets/rtsp/lifetime.h"
#include "outlets/rtsp/publishing.h"
#include "outlets/rtsp/session_header.h"

#include <string.h>

#define READ_BYTES 4096        // at once
#define READS_MAX 32           // before other clients of the thread have their turn
#define DRAIN_MAX (256 * 1024) // bytes read and dropped at the end
#define FRAME_HEADER 4         // '$', the channel, and the length in 16 bits
#define FRAME_MAX (8 * 1024)   // of a reader; RTCP is far shorter
#define BURST 2                // seconds of requests that may come at once

struct _RequestGuard {
  GInputStream parent;
  GInputStream *base;
  GstRTSPClient *client; // not a reference; NULL: all bytes pass
  gchar *peer;
  Limits limits;
  GSource *source;    // calls the reader; not a reference, as it refers to this stream
  GSource *readable;  // child of `source`: `base` is readable; NULL while requests wait
  GByteArray *bytes;  // received; NULL if there are none
  gsize n_ready;      // of them, bytes that may be read, from offset `n_read`
  gsize n_read;       // and bytes that were read
  gboolean unchecked; // bytes after them may be another request
  RequestCheck check; // the request after `n_ready`
  gsize skip;         // bytes of a dropped frame that are still to come
  guint n_strays;
  gboolean begun;  // the first request has
  gint64 look;     // us; when to look whether the connection is still used
  gint64 deadline; // us; of the request or frame that is incomplete; 0: none is
  gint64 earliest; // us; when a request would have come at the allowed rate
  gint64 resume;   // us; when the waiting request may pass; 0: none waits
  gboolean ended;
};

typedef struct {
  GInputStreamClass parent_class;
} RequestGuardClass;

static void guard_pollable_init (GPollableInputStreamInterface *iface);

GType guard_get_type (void);
G_DEFINE_TYPE_WITH_CODE (RequestGuard, guard, G_TYPE_INPUT_STREAM,
    G_IMPLEMENT_INTERFACE (G_TYPE_POLLABLE_INPUT_STREAM, guard_pollable_init))

// ---- refusing ----

static const struct {
  GstRTSPStatusCode status;
  RefusedReason reason;
  const gchar *text;
} faults[REQUEST_N_FAULTS] = {
  [REQUEST_LINE_LONG] = { GST_RTSP_STS_REQUEST_URI_TOO_LARGE, REFUSED_LINE,
      "the request line is too long (limits.line)" },
  [REQUEST_HEADER_LONG] = { GST_RTSP_STS_BAD_REQUEST, REFUSED_HEADERS,
      "a header line is too long (limits.line)" },
  [REQUEST_HEADERS_MANY] = { GST_RTSP_STS_BAD_REQUEST, REFUSED_HEADERS,
      "a request has too many header lines (limits.headers)" },
  [REQUEST_HEAD_LARGE] = { GST_RTSP_STS_BAD_REQUEST, REFUSED_HEADERS,
      "the lines of a request are too large (limits.head)" },
  [REQUEST_BODY_LARGE] = { GST_RTSP_STS_REQUEST_ENTITY_TOO_LARGE, REFUSED_BODY,
      "the body of a request is too large (limits.body)" },
  [REQUEST_MALFORMED] = { GST_RTSP_STS_BAD_REQUEST, REFUSED_MALFORMED, "a request is malformed" },
  [REQUEST_VERSION_WRONG] = { GST_RTSP_STS_RTSP_VERSION_NOT_SUPPORTED, REFUSED_VERSION,
      "a request is not RTSP/1.0" },
};

static void
drop_bytes (RequestGuard *self)
{
  g_clear_pointer (&self->bytes, g_byte_array_unref);
  self->n_ready = self->n_read = 0;
}

// Answers the current request.
static void
answer (RequestGuard *self, GstRTSPStatusCode status)
{
  GstRTSPMessage message = { 0 };
  gchar *cseq;

  gst_rtsp_message_init_response (&message, status, gst_rtsp_status_as_text (status), NULL);
  if (self->check.has_cseq) {
    cseq = g_strdup_printf ("%" G_GUINT64_FORMAT, self->check.cseq);
    gst_rtsp_message_take_header (&message, GST_RTSP_HDR_CSEQ, cseq);
  }
  gst_rtsp_message_add_header (&message, GST_RTSP_HDR_CONNECTION, "close");
  gst_rtsp_client_send_message (self->client, NULL, &message);
}

// Reads what the client has sent. The kernel would otherwise end the connection with a reset, after
// which the client may not see the answer.
static void
drain (RequestGuard *self)
{
  guint8 bytes[READ_BYTES];
  gssize n = 1;

  for (gsize drained = 0; n > 0 && drained < DRAIN_MAX; drained += (gsize) n)
    n = g_pollable_input_stream_read_nonblocking (
        G_POLLABLE_INPUT_STREAM (self->base), bytes, sizeof bytes, NULL, NULL);
}

// Refuses the current request and ends the stream. `status` is GST_RTSP_STS_INVALID for no answer.
static void
refuse (RequestGuard *self, GstRTSPStatusCode status, RefusedReason reason, const gchar *text)
{
  refusals_note (reason, self->peer, "%s", text);
  client_set_leave_reason (self->client, text);
  if (status != GST_RTSP_STS_INVALID)
    answer (self, status);
  drain (self);
  drop_bytes (self);
  self->ended = TRUE;
}

// ---- checking what was received ----

static gsize
n_left (const RequestGuard *self)
{
  return self->bytes ? self->bytes->len - self->n_ready : 0;
}

// Removes bytes from the front. Nothing is ready then.
static void
remove_front (RequestGuard *self, gsize n)
{
  if (n < self->bytes->len)
    g_byte_array_remove_range (self->bytes, 0, (guint) n);
  else
    drop_bytes (self);
}

// Marks the first `n` bytes as ready.
static void
make_ready (RequestGuard *self, gsize n)
{
  self->n_ready = n;
  self->n_read = 0;
  self->check = (RequestCheck) { 0 };
  self->deadline = 0;
}

typedef enum { CHANNEL_UNKNOWN, CHANNEL_RTP, CHANNEL_RTCP } ChannelUse;

// gst-rtsp-server still finds a track by a channel that it had before its last SETUP.
static ChannelUse
get_use (GstRTSPClient *client, guint8 channel)
{
  GstRTSPStreamTransport *transport = gst_rtsp_client_get_stream_transport (client, channel);
  const GstRTSPRange *range =
      transport ? &gst_rtsp_stream_transport_get_transport (transport)->interleaved : NULL;

  if (range && channel == range->min)
    return CHANNEL_RTP;
  return range && channel == range->max ? CHANNEL_RTCP : CHANNEL_UNKNOWN;
}

// Checks the frame at the front. RTCP passes; RTP, which readers need not send, and frames of other
// channels are dropped: gst-rtsp-server leaks both. Returns whether another step is possible.
static gboolean
take_frame (RequestGuard *self)
{
  const guint8 *bytes = self->bytes->data;
  ChannelUse use;
  gsize size;

  if (self->bytes->len < FRAME_HEADER)
    return FALSE;
  size = FRAME_HEADER + ((gsize) bytes[2] << 8 | bytes[3]);
  if (publishing_has_channel (self->client, bytes[1])) {
    if (self->bytes->len < size)
      return FALSE;
    publishing_take_frame (
        self->client, bytes[1], self->bytes->data + FRAME_HEADER, size - FRAME_HEADER);
    remove_front (self, size);
    self->deadline = 0;
    return TRUE;
  }
  use = get_use (self->client, bytes[1]);
  if (size > FRAME_MAX || use != CHANNEL_RTCP) {
    self->skip = size;
    if ((size > FRAME_MAX || use == CHANNEL_UNKNOWN)
        && ++self->n_strays > self->limits.stray_frames)
      refuse (self, GST_RTSP_STS_INVALID, REFUSED_FRAMES,
          "too many interleaved frames are for no channel (limits.stray-frames)");
    return TRUE;
  }
  if (self->bytes->len < size)
    return FALSE;
  make_ready (self, size);
  return TRUE;
}

// Delays the requests of a client that sends too many. Returns FALSE if the next one must wait.
static gboolean
take_turn (RequestGuard *self, gint64 now)
{
  gint64 step = G_USEC_PER_SEC / self->limits.requests_rate;

  self->earliest = MAX (self->earliest, now - BURST * G_USEC_PER_SEC);
  if (self->earliest > now) {
    self->resume = self->earliest;
    self->deadline = 0;
    return FALSE;
  }
  self->earliest += step;
  self->resume = 0;
  return TRUE;
}

// Puts `new_head`, unless it is NULL, in the place of the head of `len` bytes. Returns how many
// bytes longer that is. (transfer full)
static gsize
replace_head (RequestGuard *self, gsize *len, GByteArray *new_head)
{
  gsize longer;

  if (!new_head)
    return 0;
  longer = new_head->len - *len; // may wrap, as sums with it do
  *len = new_head->len;
  g_byte_array_append (
      new_head, self->bytes->data + *len - longer, self->bytes->len - (guint) (*len - longer));
  g_byte_array_unref (self->bytes);
  self->bytes = new_head;
  return longer;
}

// Reports whether the method of a request is `method`, or begins with it.
static gboolean
has_method (const guint8 *head, gsize len, const gchar *method)
{
  gsize n = strlen (method);

  while (len > n && (*head == ' ' || *head == '\t'))
    head++, len--;
  return len > n && g_ascii_strncasecmp ((const gchar *) head, method, n) == 0;
}

// Gives the head the form that gst-rtsp-server reads. Returns how many bytes longer it is then.
static gsize
change_head (RequestGuard *self, const RequestCheck *check)
{
  gsize len = check->head;
  gsize longer =
      replace_head (self, &len, check->bare ? request_dup_head (check, self->bytes->data) : NULL);
  const guint8 *head = self->bytes->data;

  if (!has_method (head, len, "SETUP") && !has_method (head, len, "ANNOUNCE"))
    return longer;
  return longer + replace_head (self, &len, session_header_correct (self->client, head, len));
}

static gboolean
take_request (RequestGuard *self, gint64 now)
{
  gsize size =
      request_check (&self->check, &self->limits.request, self->bytes->data, self->bytes->len);
  const RequestCheck check = self->check;

  if (!self->begun || self->look > now + (gint64) self->limits.no_session_ms * 1000)
    self->look = now + (gint64) self->limits.no_session_ms * 1000;
  self->begun = TRUE;
  if (check.fault != REQUEST_FINE) {
    refuse (self, faults[check.fault].status, faults[check.fault].reason, faults[check.fault].text);
    return TRUE;
  }
  if (size == 0 || !take_turn (self, now))
    return FALSE;
  make_ready (self, size + change_head (self, &check));
  return TRUE;
}

// Goes one step on in the bytes received. Returns FALSE if more bytes, or time, are needed.
static gboolean
step (RequestGuard *self, gint64 now)
{
  guint8 first;

  if (!self->bytes)
    return FALSE;
  if (self->skip > 0) {
    gsize n = MIN (self->skip, self->bytes->len);

    self->skip -= n;
    remove_front (self, n);
    if (self->skip == 0)
      self->deadline = 0;
    return TRUE;
  }
  first = self->bytes->data[0];
  if (first == '\r' || first == '\n') {
    remove_front (self, 1);
    return TRUE;
  }
  return first == '$' ? take_frame (self) : take_request (self, now);
}

// Receives more bytes. Returns FALSE if there are none now, or at the end.
static gboolean
receive (RequestGuard *self)
{
  guint8 bytes[READ_BYTES];
  GError *error = NULL;
  gssize n = g_pollable_input_stream_read_nonblocking (
      G_POLLABLE_INPUT_STREAM (self->base), bytes, sizeof bytes, NULL, &error);

  if (n > 0) {
    if (!self->bytes)
      self->bytes = g_byte_array_new ();
    g_byte_array_append (self->bytes, bytes, (guint) n);
  } else if (n == 0 || !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
    self->ended = TRUE;
  }
  g_clear_error (&error);
  return n > 0;
}

static void
look_at_use (RequestGuard *self, gint64 now)
{
  if (!self->begun) {
    refuse (self, GST_RTSP_STS_INVALID, REFUSED_IDLE, "no request comes (limits.idle-timeout)");
    return;
  }
  self->look = lifetime_get_end (self->client, now, self->limits.no_session_ms);
  if (self->look <= now)
    refuse (self, GST_RTSP_STS_INVALID, REFUSED_IDLE,
        "it has no session, and no further request comes (limits.no-session-timeout)");
}

// The time of a request or frame begins with its first byte, or when the one before it has passed.
static void
check_time (RequestGuard *self, gint64 now)
{
  if (self->deadline == 0 && (n_left (self) > 0 || self->skip > 0))
    self->deadline = now + (gint64) self->limits.request_ms * 1000;
  if (self->deadline > 0 && now >= self->deadline)
    refuse (self, GST_RTSP_STS_REQUEST_TIMEOUT, REFUSED_TIMEOUT,
        "a request takes too long (limits.request-timeout)");
}

// Goes on until bytes are ready, the stream ends, or no bytes are left to receive.
static void
fill (RequestGuard *self)
{
  gint64 now = g_get_monotonic_time ();

  self->unchecked = FALSE;
  for (guint n_reads = 0; self->n_ready == 0 && !self->ended;) {
    if (step (self, now))
      continue;
    if (self->resume > now)
      return;
    check_time (self, now);
    if (self->ended)
      return;
    if (n_reads++ == READS_MAX) {
      self->unchecked = TRUE;
      return;
    }
    if (!receive (self)) {
      if (!self->ended && self->deadline == 0 && now >= self->look)
        look_at_use (self, now);
      return;
    }
  }
}

// ---- the stream ----

static GSource *
create_base_source (RequestGuard *self)
{
  return g_pollable_input_stream_create_source (G_POLLABLE_INPUT_STREAM (self->base), NULL);
}

// Lets `base` wake the reader, unless requests must wait.
static void
listen_to_base (RequestGuard *self)
{
  gboolean wanted = self->resume == 0;

  if (wanted && !self->readable) {
    self->readable = create_base_source (self);
    g_source_set_dummy_callback (self->readable);
    g_source_add_child_source (self->source, self->readable);
  } else if (!wanted && self->readable) {
    g_source_remove_child_source (self->source, self->readable);
    g_clear_pointer (&self->readable, g_source_unref);
  }
}

// Makes the source call the reader when there is something to do.
static void
plan_next (RequestGuard *self)
{
  gint64 next;

  if (!self->source || !self->client)
    return;
  if (self->n_ready > 0 || self->unchecked || self->ended)
    next = 0;
  else if (self->resume > 0)
    next = self->resume;
  else
    next = self->deadline > 0 ? self->deadline : self->look;
  listen_to_base (self);
  g_source_set_ready_time (self->source, next);
}

// Returns bytes that are ready; the number is 0 if there are none.
static gsize
take_ready (RequestGuard *self, void *buffer, gsize count)
{
  gsize n = MIN (count, self->n_ready - self->n_read);

  if (n == 0)
    return 0;
  memcpy (buffer, self->bytes->data + self->n_read, n);
  self->n_read += n;
  if (self->n_read == self->n_ready) {
    remove_front (self, self->n_ready);
    self->n_ready = self->n_read = 0;
    self->unchecked = self->bytes != NULL;
  }
  return n;
}

static gssize
guard_read_nonblocking (GPollableInputStream *stream, void *buffer, gsize count, GError **error)
{
  RequestGuard *self = (RequestGuard *) stream;
  gsize n;

  if (!self->client)
    return g_pollable_input_stream_read_nonblocking (
        G_POLLABLE_INPUT_STREAM (self->base), buffer, count, NULL, error);
  if (self->n_ready == 0 && !self->ended)
    fill (self);
  n = take_ready (self, buffer, count);
  plan_next (self);
  if (n == 0 && !self->ended) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK, "no request is complete");
    return -1;
  }
  return (gssize) n;
}

static gssize
guard_read (
    GInputStream *stream, void *buffer, gsize count, GCancellable *cancellable, GError **error)
{
  RequestGuard *self = (RequestGuard *) stream;

  if (!self->client)
    return g_input_stream_read (self->base, buffer, count, cancellable, error);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "the guard does not block");
  return -1;
}

static gboolean
guard_can_poll (GPollableInputStream *stream)
{
  return TRUE;
}

static gboolean
guard_is_readable (GPollableInputStream *stream)
{
  RequestGuard *self = (RequestGuard *) stream;

  return self->n_ready > 0 || self->unchecked || self->ended
         || g_pollable_input_stream_is_readable (G_POLLABLE_INPUT_STREAM (self->base));
}

static GSource *
guard_create_source (GPollableInputStream *stream, GCancellable *cancellable)
{
  RequestGuard *self = (RequestGuard *) stream;
  GSource *base, *source;

  if (!self->client) {
    base = create_base_source (self);
    source = g_pollable_source_new_full (stream, base, cancellable);
    g_source_unref (base);
    return source;
  }
  g_clear_pointer (&self->readable, g_source_unref);
  self->source = g_pollable_source_new_full (stream, NULL, cancellable);
  plan_next (self);
  return self->source;
}

static void
guard_pollable_init (GPollableInputStreamInterface *iface)
{
  iface->can_poll = guard_can_poll;
  iface->is_readable = guard_is_readable;
  iface->create_source = guard_create_source;
  iface->read_nonblocking = guard_read_nonblocking;
}

// ---- construction ----

RequestGuard *
guard_new (GInputStream *base)
{
  RequestGuard *self = g_object_new (guard_get_type (), NULL);

  self->base = g_object_ref (base);
  return self;
}

void
guard_begin (RequestGuard *self, GstRTSPClient *client, const gchar *peer)
{
  self->client = client;
  self->peer = g_strdup (peer);
  limits_get (&self->limits);
  self->look = g_get_monotonic_time () + (gint64) self->limits.idle_ms * 1000;
}

static void
guard_init (RequestGuard *self)
{
}

static void
guard_finalize (GObject *object)
{
  RequestGuard *self = (RequestGuard *) object;

  drop_bytes (self);
  g_clear_pointer (&self->readable, g_source_unref);
  g_clear_object (&self->base);
  g_free (self->peer);
  G_OBJECT_CLASS (guard_parent_class)->finalize (object);
}

static void
guard_class_init (RequestGuardClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = guard_finalize;
  G_INPUT_STREAM_CLASS (klass)->read_fn = guard_read;
}
