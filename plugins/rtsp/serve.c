// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a reader over TCP gets to the engine without a change to the library.
//
// The library's transport for it is made to look like UDP: its destination is the token of the
// reader's connection, its ports are the interleaved channels. So the library makes none of what it
// serves TCP with, and names the reader to the same sink that serves the readers over UDP, which
// finds the connection by the token.
//
// Answers have to leave by the same writer as the media. It is taken over from the library with the
// first message, which comes after the library has set its own (in gst_rtsp_client_attach()) and
// before that has anything to write.
//
// Nothing of a session leaves before the answer to its PLAY, though the library names the session's
// readers to the sinks before that: many players throw away what comes before the answer. See
// on_pre_play().
//
// A reader over TCP is alive as long as its connection is: many send nothing while they play. So
// its session doesn't expire while it plays, and the kernel is told to give up a connection that
// doesn't move.

#include "weir-rtsp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "reports.h"
#include "rtpinfo.h"
#include "text.h"

#define GIVE_UP_S 60
// What a client may ask for behind a request that is put aside.
#define BEHIND_MAX 32
#define BEHIND_BYTES_MAX (128 * 1024)

typedef struct {
  GstRTSPMessage *message;
  gsize n_bytes;
  gboolean deferred; // has been put aside once
} Request;

// What we know of a client: hangs on it, and goes with it.
typedef struct {
  GstRTSPClient *client; // ours hangs on it
  gboolean stock;        // TLS: the library keeps writing
  gint taken, closing;   // atomic
  GObject *connection;   // WeirConnection; set once, before anything is written
  gchar *token;
  GMainContext *context; // of the client's thread
  GPtrArray *leaving;    // transports of the TEARDOWN at hand
  GPtrArray *unnamed;    // transports of the PLAY at hand that the sinks are not to know yet
  GstRTSPAuth *auth;     // the program's, behind ours
  Request *again;        // is handled anew. Of the client's thread

  GMutex lock; // all below
  guint cseq;
  GPtrArray *kept; // GWeakRef of sessions that don't expire
  gchar *close_reason;
  GQueue requests;  // the one that is put aside, and those behind it
  gsize n_bytes;    // of all of them
  gboolean waits;   // the first of them
  gboolean swallow; // the answer that the library is about to give
  gboolean ended;
} Served;

static GQuark
served_quark (void)
{
  return g_quark_from_static_string ("weir-served");
}

static Served *
get_served (GstRTSPClient *client)
{
  return g_object_get_qdata (G_OBJECT (client), served_quark ());
}

// ---- sessions ----

static void
free_weak (gpointer weak)
{
  g_weak_ref_clear (weak);
  g_free (weak);
}

static void
keep (Served *self, GstRTSPSession *session)
{
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, session);
  gst_rtsp_session_prevent_expire (session);
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->kept, weak);
  g_mutex_unlock (&self->lock);
}

// Takes those that are kept, one or all of them, with references: any may be the last of its
// session, which ends with calls that want the lock.
static GPtrArray *
take_kept (Served *self, GstRTSPSession *session, GPtrArray *others)
{
  GPtrArray *taken = g_ptr_array_new_with_free_func (g_object_unref);

  g_mutex_lock (&self->lock);
  for (guint i = self->kept->len; i > 0; i--) {
    GstRTSPSession *kept = g_weak_ref_get (g_ptr_array_index (self->kept, i - 1));

    if (kept && session && kept != session) {
      g_ptr_array_add (others, kept);
      continue;
    }
    if (kept)
      g_ptr_array_add (taken, kept);
    g_ptr_array_remove_index_fast (self->kept, i - 1);
  }
  g_mutex_unlock (&self->lock);
  return taken;
}

// Lets sessions expire again: this one, or all.
static void
let_expire (Served *self, GstRTSPSession *session)
{
  GPtrArray *others = g_ptr_array_new_with_free_func (g_object_unref);
  GPtrArray *taken = take_kept (self, session, others);

  for (guint i = 0; i < taken->len; i++) {
    gst_rtsp_session_allow_expire (g_ptr_array_index (taken, i));
    // Without a connection it ends with the next clean-up, should the media not end it.
    if (!session)
      gst_rtsp_session_set_timeout (g_ptr_array_index (taken, i), 1);
  }
  g_ptr_array_unref (taken);
  g_ptr_array_unref (others);
}

// ---- transports ----

static GstRTSPTransport *
copy_transport (const GstRTSPTransport *from)
{
  GstRTSPTransport *copy;

  gst_rtsp_transport_new (&copy);
  *copy = *from;
  copy->destination = g_strdup (from->destination);
  copy->source = g_strdup (from->source);
  return copy;
}

gboolean
weir_transport_is_tcp (const GstRTSPTransport *transport)
{
  if (transport->lower_transport != GST_RTSP_LOWER_TRANS_UDP)
    return transport->lower_transport == GST_RTSP_LOWER_TRANS_TCP;
  return transport->interleaved.min >= 0
         && transport->client_port.min == transport->interleaved.min;
}

static gboolean
is_ours (Served *self, GstRTSPStreamTransport *transport)
{
  const GstRTSPTransport *t =
      transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

  return t && self->token && t->lower_transport == GST_RTSP_LOWER_TRANS_UDP
         && g_strcmp0 (t->destination, self->token) == 0;
}

// Both families, as the library does it: its sink takes no further socket once it runs.
static gboolean
allocate_sockets (GstRTSPStream *stream, GstRTSPTransport *transport)
{
  gboolean v4 =
      gst_rtsp_stream_allocate_udp_sockets (stream, G_SOCKET_FAMILY_IPV4, transport, FALSE);
  gboolean v6 =
      gst_rtsp_stream_allocate_udp_sockets (stream, G_SOCKET_FAMILY_IPV6, transport, FALSE);

  return v4 || v6;
}

// After the response to a SETUP is made, before anything is made for the transport.
static void
on_setup (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  const GstRTSPTransport *t = gst_rtsp_stream_transport_get_transport (ctx->trans);
  GstRTSPTransport *copy;

  weir_reports_watch (ctx);
  if (!self->connection || t->lower_transport != GST_RTSP_LOWER_TRANS_TCP
      || !gst_rtsp_stream_is_sender (ctx->stream)
      || !(gst_rtsp_stream_get_protocols (ctx->stream) & GST_RTSP_LOWER_TRANS_UDP))
    return;
  copy = copy_transport (t);
  g_free (copy->destination);
  copy->lower_transport = GST_RTSP_LOWER_TRANS_UDP;
  copy->destination = g_strdup (self->token);
  copy->client_port = copy->interleaved;
  if (allocate_sockets (ctx->stream, copy))
    gst_rtsp_stream_transport_set_transport (ctx->trans, copy);
  else
    gst_rtsp_transport_free (copy);
}

// The library would change the transport of a stream that plays, and lose the reader that its sink
// knows.
static GstRTSPStatusCode
on_pre_setup (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  gchar *path = GST_RTSP_CLIENT_GET_CLASS (client)->make_path_from_uri (client, ctx->uri);
  GstRTSPSessionMedia *media;
  gboolean plays = FALSE;
  gint matched;

  media = ctx->session ? gst_rtsp_session_dup_media (ctx->session, path, &matched) : NULL;
  g_free (path);
  if (media) {
    plays = gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING
            && is_ours (self, gst_rtsp_session_media_get_transport (
                                  media, gst_rtsp_stream_get_index (ctx->stream)));
    g_object_unref (media);
  }
  return plays ? GST_RTSP_STS_METHOD_NOT_VALID_IN_THIS_STATE : GST_RTSP_STS_OK;
}

static gboolean
has_ours (Served *self, GstRTSPSessionMedia *media)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (media);
  gboolean found = FALSE;

  for (guint i = 0; i < transports->len && !found; i++)
    found = is_ours (self, g_ptr_array_index (transports, i));
  g_ptr_array_unref (transports);
  return found;
}

// Lists a transport with its stream, or takes it from there, without a word to the sinks, for whom
// an empty host is nobody.
static void
list_silently (GstRTSPStreamTransport *transport, gboolean listed)
{
  static gchar nobody[] = "";
  GstRTSPTransport *t = (GstRTSPTransport *) gst_rtsp_stream_transport_get_transport (transport);
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  gchar *destination = t->destination;

  t->destination = nobody;
  if (listed)
    gst_rtsp_stream_add_transport (stream, transport);
  else
    gst_rtsp_stream_remove_transport (stream, transport);
  t->destination = destination;
}

static gboolean
is_listed (GstRTSPStreamTransport *transport)
{
  GstRTSPStream *stream = gst_rtsp_stream_transport_get_stream (transport);
  GList *all = gst_rtsp_stream_transport_filter (stream, NULL, NULL);
  gboolean listed = g_list_find (all, transport) != NULL;

  g_list_free_full (all, g_object_unref);
  return listed;
}

static gboolean
is_joined (GstRTSPStream *stream)
{
  GstBin *bin = gst_rtsp_stream_get_joined_bin (stream);
  gboolean joined = bin != NULL;

  g_clear_object (&bin);
  return joined;
}

// While it handles PLAY the library adds each transport to its stream, which names it to the sinks,
// unless the stream lists it already; and once more after the answer. So until the answer each is
// listed, and unknown to the sinks.
static GstRTSPStatusCode
on_pre_play (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  GPtrArray *transports = gst_rtsp_session_media_get_transports (ctx->sessmedia);
  GstRTSPState state = gst_rtsp_session_media_get_rtsp_state (ctx->sessmedia);

  for (guint i = 0; i < transports->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (transports, i);
    const GstRTSPTransport *t =
        transport ? gst_rtsp_stream_transport_get_transport (transport) : NULL;

    // One that is set up while others play is not listed yet.
    if (!t || t->lower_transport != GST_RTSP_LOWER_TRANS_UDP
        || !is_joined (gst_rtsp_stream_transport_get_stream (transport))
        || (state == GST_RTSP_STATE_PLAYING && is_listed (transport)))
      continue;
    list_silently (transport, TRUE);
    g_ptr_array_add (self->unnamed, g_object_ref (transport));
  }
  g_ptr_array_unref (transports);
  return GST_RTSP_STS_OK;
}

// The answer is about to leave, whatever it says.
static void
let_name (Served *self)
{
  for (guint i = 0; i < self->unnamed->len; i++)
    list_silently (g_ptr_array_index (self->unnamed, i), FALSE);
  g_ptr_array_set_size (self->unnamed, 0);
}

// A PLAY that was to go elsewhere is refused: what was sent goes on, if the program has stopped it.
static void
play_on (GstRTSPSessionMedia *media)
{
  if (gst_rtsp_session_media_get_rtsp_state (media) == GST_RTSP_STATE_PLAYING)
    gst_rtsp_session_media_set_state (media, GST_STATE_PLAYING);
}

static void
on_play (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  let_expire (self, ctx->session);
  if (has_ours (self, ctx->sessmedia))
    keep (self, ctx->session);
}

static void
on_pause (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  let_expire (self, ctx->session);
}

static void
on_teardown (GstRTSPClient *client, GstRTSPContext *ctx, Served *self)
{
  let_expire (self, ctx->session);
  g_clear_pointer (&self->leaving, g_ptr_array_unref);
  self->leaving = gst_rtsp_session_media_get_transports (ctx->sessmedia);
}

// The sink has let them go. The library forgets the channels of those that are TCP.
static void
restore_leaving (Served *self)
{
  GPtrArray *leaving = g_steal_pointer (&self->leaving);

  for (guint i = 0; leaving && i < leaving->len; i++) {
    GstRTSPStreamTransport *transport = g_ptr_array_index (leaving, i);

    if (is_ours (self, transport)) {
      GstRTSPTransport *copy = copy_transport (gst_rtsp_stream_transport_get_transport (transport));

      copy->lower_transport = GST_RTSP_LOWER_TRANS_TCP;
      gst_rtsp_stream_transport_set_transport (transport, copy);
    }
  }
  g_clear_pointer (&leaving, g_ptr_array_unref);
}

// ---- writing ----

typedef struct {
  GWeakRef client; // its thread may have ended, and then nobody would let it go
  guint8 channel;
} DataSent;

static gboolean
tell_data_sent (gpointer data)
{
  DataSent *sent = data;
  GstRTSPClient *client = g_weak_ref_get (&sent->client);
  GstRTSPStreamTransport *transport =
      client ? gst_rtsp_client_get_stream_transport (client, sent->channel) : NULL;

  if (transport)
    gst_rtsp_stream_transport_message_sent (transport);
  g_clear_object (&client);
  return G_SOURCE_REMOVE;
}

static void
free_data_sent (gpointer sent)
{
  g_weak_ref_clear (&((DataSent *) sent)->client);
  g_free (sent);
}

// The library waits to be told of data that it still sends by itself (RTCP to who records), and
// that may not be done in here, as it holds a lock.
static void
note_data (Served *self, GstRTSPMessage *message)
{
  GSource *source = g_idle_source_new ();
  DataSent *sent = g_new0 (DataSent, 1);

  g_weak_ref_init (&sent->client, self->client);
  gst_rtsp_message_parse_data (message, &sent->channel);
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, tell_data_sent, sent, free_data_sent);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

// Calls `func` with a GWeakRef of the client in its thread, which may have ended: then nobody would
// let a client go that is held.
static void
run_in_client (Served *self, GSourceFunc func, gint priority)
{
  GSource *source = g_idle_source_new ();
  GWeakRef *weak = g_new (GWeakRef, 1);

  g_weak_ref_init (weak, self->client);
  g_source_set_priority (source, priority);
  g_source_set_callback (source, func, weak, free_weak);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

static gboolean
close_client (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);

  if (client) {
    gst_rtsp_client_close (client);
    g_object_unref (client);
  }
  return G_SOURCE_REMOVE;
}

// It would find the end of the connection by itself, but only after all that the client has asked.
static void
close_soon (Served *self)
{
  if (g_atomic_int_compare_and_exchange (&self->closing, FALSE, TRUE))
    run_in_client (self, close_client, G_PRIORITY_HIGH);
}

static gboolean
is_swallowed (Served *self, const GstRTSPMessage *messages, guint n)
{
  gboolean swallowed;

  g_mutex_lock (&self->lock);
  swallowed = self->swallow && n == 1 && messages[0].type == GST_RTSP_MESSAGE_RESPONSE;
  if (swallowed)
    self->swallow = FALSE;
  g_mutex_unlock (&self->lock);
  return swallowed;
}

// The library doesn't give our own data here, but another function's.
static gboolean
send_messages (
    GstRTSPClient *client, GstRTSPMessage *messages, guint n, gboolean close, gpointer unused)
{
  Served *self = get_served (client);
  GByteArray *out;
  gboolean ok = TRUE;
  GBytes *bytes;

  if (is_swallowed (self, messages, n))
    return TRUE;
  out = g_byte_array_new ();
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n; i++)
    ok &= weir_rtsp_text (&messages[i], &self->cseq, out);
  g_mutex_unlock (&self->lock);
  bytes = g_byte_array_free_to_bytes (out);
  if (ok)
    g_signal_emit_by_name (self->connection, "send", bytes, &ok);
  g_bytes_unref (bytes);
  if (ok && n > 0 && gst_rtsp_message_get_type (&messages[0]) == GST_RTSP_MESSAGE_DATA)
    note_data (self, &messages[0]);
  if (!ok)
    close_soon (self);
  return ok;
}

// ---- the end ----

// The library has closed the connection, or found its end: so it does when the engine has closed
// it.
static void
let_go (gpointer data)
{
  Served *self = data;
  gchar *reason;

  g_object_get (self->connection, "close-reason", &reason, NULL);
  g_mutex_lock (&self->lock);
  self->close_reason = reason;
  self->ended = TRUE;
  g_mutex_unlock (&self->lock);
  g_signal_emit_by_name (self->connection, "close", "the RTSP connection has ended");
  let_expire (self, NULL);
}

gchar *
weir_client_get_close_reason (GstRTSPClient *client)
{
  Served *self = get_served (client);
  gchar *reason;

  if (!self)
    return NULL;
  g_mutex_lock (&self->lock);
  reason = g_strdup (self->close_reason);
  g_mutex_unlock (&self->lock);
  return reason;
}

// ---- the beginning ----

static void
set_give_up_time (GSocket *socket)
{
  g_socket_set_option (socket, IPPROTO_TCP, TCP_USER_TIMEOUT, GIVE_UP_S * 1000, NULL);
  // While nothing is sent that could be left without an answer.
  g_socket_set_keepalive (socket, TRUE);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_KEEPIDLE, GIVE_UP_S / 2, NULL);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_KEEPINTVL, GIVE_UP_S / 6, NULL);
}

static void
take_over (Served *self)
{
  GstRTSPConnection *rtsp = gst_rtsp_client_get_connection (self->client);
  GSource *source = g_main_current_source ();
  GSocket *socket;

  // From another thread, its first message is not the answer to a request: the next will do.
  if (!source || self->stock || !rtsp || gst_rtsp_connection_is_tunneled (rtsp)
      || !g_atomic_int_compare_and_exchange (&self->taken, FALSE, TRUE))
    return;
  socket = gst_rtsp_connection_get_write_socket (rtsp);
  set_give_up_time (socket);
  self->context = g_main_context_ref (g_source_get_context (source));
  self->connection = g_object_new (g_type_from_name ("WeirConnection"), "socket", socket, NULL);
  g_object_get (self->connection, "token", &self->token, NULL);
  gst_rtsp_client_set_send_messages_func (self->client, send_messages, self, let_go);
}

// ---- who comes in between ----

// The library asks the client's GstRTSPAuth before it does anything for a request, and answers
// nothing where that says no: ours stands before the program's.
typedef struct {
  GstRTSPAuth parent;
} Guard;

typedef struct {
  GstRTSPAuthClass parent_class;
} GuardClass;

GType weir_guard_get_type (void);
G_DEFINE_TYPE (Guard, weir_guard, GST_TYPE_RTSP_AUTH)

static gboolean
is_guarded (GstRTSPClient *client)
{
  GstRTSPAuth *auth = gst_rtsp_client_get_auth (client);
  gboolean guarded = G_TYPE_CHECK_INSTANCE_TYPE (auth, weir_guard_get_type ());

  g_clear_object (&auth);
  return guarded;
}

// ---- putting a request aside ----

static void
free_request (gpointer data)
{
  Request *request = data;

  gst_rtsp_message_free (request->message);
  g_free (request);
}

static Request *
request_new (GstRTSPMessage *message)
{
  Request *request = g_new0 (Request, 1);
  GString *headers = g_string_new (NULL);
  guint8 *body;
  guint size = 0;

  gst_rtsp_message_copy (message, &request->message);
  gst_rtsp_message_append_headers (message, headers);
  gst_rtsp_message_get_body (message, &body, &size);
  request->n_bytes = headers->len + size;
  g_string_free (headers, TRUE);
  return request;
}

// Is this one to wait behind others? Not the one that is being put aside just now.
static gboolean
is_behind (Served *self)
{
  gboolean behind;

  g_mutex_lock (&self->lock);
  behind = !self->again && !self->swallow && !g_queue_is_empty (&self->requests);
  g_mutex_unlock (&self->lock);
  return behind;
}

static void
hold (Served *self, GstRTSPMessage *message, gboolean swallow)
{
  Request *request = request_new (message);
  gboolean fits;

  g_mutex_lock (&self->lock);
  fits =
      self->requests.length <= BEHIND_MAX && self->n_bytes + request->n_bytes <= BEHIND_BYTES_MAX;
  if (fits) {
    g_queue_push_tail (&self->requests, request);
    self->n_bytes += request->n_bytes;
  }
  self->swallow = swallow;
  g_mutex_unlock (&self->lock);
  if (fits)
    return;
  free_request (request);
  g_signal_emit_by_name (self->connection, "close", "too many requests behind one that waits");
  close_soon (self);
}

// What the library refuses before it asks anybody, as it knows no such session, is to be answered
// in its turn, too. Nothing has come of it. What was no request at all has no turn.
static void
hold_refused (Served *self, GstRTSPContext *ctx)
{
  if (ctx->request && ctx->method != GST_RTSP_INVALID && is_behind (self))
    hold (self, ctx->request, TRUE);
}

static Request *
take_request (Served *self)
{
  Request *request = NULL;

  g_mutex_lock (&self->lock);
  if (!self->waits && !self->ended)
    request = g_queue_pop_head (&self->requests);
  if (request)
    self->n_bytes -= request->n_bytes;
  g_mutex_unlock (&self->lock);
  return request;
}

gboolean
weir_client_defer (GstRTSPClient *client, GstRTSPContext *ctx)
{
  Served *self = get_served (client);
  gboolean deferred;
  Request *request;

  if (!self || !is_guarded (client))
    return FALSE;
  take_over (self);
  request = request_new (ctx->request);
  request->deferred = TRUE;
  g_mutex_lock (&self->lock);
  deferred = self->connection && !self->waits;
  if (deferred) {
    g_queue_push_head (&self->requests, request);
    self->n_bytes += request->n_bytes;
    self->waits = self->swallow = TRUE;
  }
  g_mutex_unlock (&self->lock);
  if (!deferred)
    free_request (request);
  return deferred;
}

gboolean
weir_client_was_deferred (GstRTSPClient *client, GstRTSPContext *ctx)
{
  Served *self = get_served (client);

  return self && self->again && self->again->deferred && ctx->request == self->again->message;
}

static gboolean
handle_again (gpointer weak)
{
  GstRTSPClient *client = g_weak_ref_get (weak);
  Served *self = client ? get_served (client) : NULL;

  if (self) {
    g_mutex_lock (&self->lock);
    self->waits = FALSE;
    g_mutex_unlock (&self->lock);
    while ((self->again = take_request (self))) {
      gst_rtsp_client_handle_message (client, self->again->message);
      g_clear_pointer (&self->again, free_request);
    }
  }
  g_clear_object (&client);
  return G_SOURCE_REMOVE;
}

void
weir_client_resume (GstRTSPClient *client)
{
  Served *self = get_served (client);

  if (self && self->context)
    run_in_client (self, handle_again, G_PRIORITY_DEFAULT);
}

static gboolean
guard_check (GstRTSPAuth *auth, GstRTSPContext *ctx, const gchar *check)
{
  Served *self = get_served (ctx->client);

  if (g_str_equal (check, GST_RTSP_AUTH_CHECK_URL) && is_behind (self)) {
    hold (self, ctx->request, FALSE);
    return FALSE;
  }
  if (self->auth)
    return GST_RTSP_AUTH_GET_CLASS (self->auth)->check (self->auth, ctx, check);
  // As the library has it without any.
  return !g_str_equal (check, GST_RTSP_AUTH_CHECK_TRANSPORT_CLIENT_SETTINGS);
}

static void
weir_guard_init (Guard *self)
{
}

static void
weir_guard_class_init (GuardClass *klass)
{
  GST_RTSP_AUTH_CLASS (klass)->check = guard_check;
}

static void
guard (Served *self)
{
  GstRTSPAuth *ours = g_object_new (weir_guard_get_type (), NULL);

  self->auth = gst_rtsp_client_get_auth (self->client);
  gst_rtsp_client_set_auth (self->client, ours);
  g_object_unref (ours);
}

// The answer at hand does not leave: its request is handled anew later.
static gboolean
is_put_aside (Served *self)
{
  gboolean aside;

  g_mutex_lock (&self->lock);
  aside = self->swallow;
  g_mutex_unlock (&self->lock);
  return aside;
}

// Before every message, with no lock of the library's held.
static void
on_send_message (GstRTSPClient *client, GstRTSPContext *ctx, GstRTSPMessage *message, Served *self)
{
  GstRTSPStatusCode code = GST_RTSP_STS_INVALID;

  take_over (self);
  if (gst_rtsp_message_get_type (message) == GST_RTSP_MESSAGE_RESPONSE) {
    let_name (self);
    gst_rtsp_message_parse_response (message, &code, NULL, NULL);
    hold_refused (self, ctx);
  }
  if (code >= GST_RTSP_STS_BAD_REQUEST && ctx->method == GST_RTSP_PLAY && ctx->sessmedia
      && !is_put_aside (self))
    play_on (ctx->sessmedia);
  if (code != GST_RTSP_STS_OK)
    return;
  if (ctx->method == GST_RTSP_PLAY && ctx->sessmedia)
    weir_rtp_info_rewrite (ctx->sessmedia, message);
  else if (ctx->method == GST_RTSP_TEARDOWN)
    restore_leaving (self);
}

static void
free_served (gpointer data)
{
  Served *self = data;

  g_clear_object (&self->connection);
  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_pointer (&self->leaving, g_ptr_array_unref);
  g_ptr_array_unref (self->kept);
  g_ptr_array_unref (self->unnamed);
  g_queue_clear_full (&self->requests, free_request);
  g_clear_object (&self->auth);
  g_free (self->close_reason);
  g_free (self->token);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// A server with a certificate speaks TLS on every connection.
static gboolean
speaks_tls (GstRTSPClient *client)
{
  GstRTSPAuth *auth = gst_rtsp_client_get_auth (client);
  GTlsCertificate *certificate = auth ? gst_rtsp_auth_get_tls_certificate (auth) : NULL;
  gboolean tls = certificate != NULL;

  g_clear_object (&certificate);
  g_clear_object (&auth);
  return tls;
}

static void
on_client_connected (GstRTSPServer *server, GstRTSPClient *client, gpointer unused)
{
  Served *self = g_new0 (Served, 1);

  self->client = client;
  self->stock = speaks_tls (client);
  self->kept = g_ptr_array_new_with_free_func (free_weak);
  self->unnamed = g_ptr_array_new_with_free_func (g_object_unref);
  g_mutex_init (&self->lock);
  g_object_set_qdata_full (G_OBJECT (client), served_quark (), self, free_served);
  if (!self->stock)
    guard (self);
  g_signal_connect (client, "send-message", G_CALLBACK (on_send_message), self);
  g_signal_connect (client, "pre-setup-request", G_CALLBACK (on_pre_setup), self);
  g_signal_connect (client, "setup-request", G_CALLBACK (on_setup), self);
  // After the program's handlers: what it refuses or puts aside is not played.
  g_signal_connect_after (client, "pre-play-request", G_CALLBACK (on_pre_play), self);
  g_signal_connect (client, "play-request", G_CALLBACK (on_play), self);
  g_signal_connect (client, "pause-request", G_CALLBACK (on_pause), self);
  g_signal_connect (client, "teardown-request", G_CALLBACK (on_teardown), self);
}

gboolean
weir_serve (GstRTSPServer *server, GError **error)
{
  if (!weir_use_fanoutsink (error))
    return FALSE;
  g_signal_connect (server, "client-connected", G_CALLBACK (on_client_connected), NULL);
  return TRUE;
}
