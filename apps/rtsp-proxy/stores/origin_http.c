// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/origin_http.h"

#include <errno.h>
#include <string.h>

#include "base/http_client.h"
#include "base/threads.h"

#define CONNECTIONS_MAX 32 // more than the requests of a store at the same time

struct _OriginHttp {
  gint refs; // atomic
  S3Keys *keys;
  gchar *basic; // the Authorization header of basic authentication, or NULL
  TlsTrust trust;
  GTlsDatabase *database; // of `trust.ca`; NULL: the system's
  GMainContext *context;
  GMainLoop *loop;
  HttpClient *http; // of the thread
  GMutex lock;      // for `done` of all calls
  GCond changed;
};

// Of the thread, until `done`.
typedef struct {
  OriginHttp *client;
  OriginRange *range;
  guint timeout_ms;
  SoupMessage *message;
  HttpCall *http;
  GSource *deadline;
  gboolean answers; // the headers of the answer have come
  gboolean done;    // with the client's lock, as the next
  gboolean left;    // no source of the thread will use the call
} Call;

// ---- the end of a request ----

static void
set_error (Call *call, gint error, const gchar *why)
{
  if (call->range->error)
    return; // the first one is the reason for the others
  call->range->error = error;
  call->range->why = g_strdup (why);
}

static void
finish (Call *call)
{
  OriginHttp *self = call->client;

  g_source_destroy (call->deadline);
  g_source_unref (call->deadline);
  g_signal_handlers_disconnect_by_data (call->message, call);
  g_clear_object (&call->message);
  g_mutex_lock (&self->lock);
  call->done = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
on_end (gpointer data)
{
  Call *call = data;

  set_error (call, ETIMEDOUT,
      call->answers ? "it sends too slowly: the range was not complete in time"
                    : "it has not answered in time");
  http_call_cancel (call->http);
  return G_SOURCE_REMOVE;
}

// ---- answers ----

// Reports whether the answer redirects to the same path with a slash behind it, as for folders.
static gboolean
is_folder (Call *call)
{
  const gchar *to =
      soup_message_headers_get_one (soup_message_get_response_headers (call->message), "Location");
  g_autofree gchar *folder =
      g_strconcat (g_uri_get_path (soup_message_get_uri (call->message)), "/", NULL);

  return to && g_str_has_suffix (to, folder);
}

static void
check_status (Call *call, guint status)
{
  gchar *why;

  switch (status) {
    case SOUP_STATUS_OK:
      set_error (call, EOPNOTSUPP, "it sends whole files only; a server with ranges is needed");
      return;
    case SOUP_STATUS_NOT_FOUND:
    case SOUP_STATUS_GONE:
      set_error (call, ENOENT, "it has no such file");
      return;
    case SOUP_STATUS_PRECONDITION_FAILED:
      set_error (call, ESTALE, "the file was replaced");
      return;
    case SOUP_STATUS_REQUESTED_RANGE_NOT_SATISFIABLE:
      set_error (call, ESTALE, "the file is empty or was replaced by a shorter one");
      return;
    default:
      break;
  }
  if (status >= 300 && status < 400 && is_folder (call)) {
    set_error (call, ENOENT, "it is a folder");
    return;
  }
  if (status == SOUP_STATUS_UNAUTHORIZED || status == SOUP_STATUS_FORBIDDEN)
    why = g_strdup_printf ("it refuses access (%u); check keys-file, or user and password", status);
  else if (status >= 300 && status < 400)
    why = g_strdup_printf ("it redirects (%u); write the URL of the server itself", status);
  else
    why = g_strdup_printf ("it answers %u", status);
  set_error (call,
      status == SOUP_STATUS_UNAUTHORIZED || status == SOUP_STATUS_FORBIDDEN ? EACCES : EIO, why);
  g_free (why);
}

// Checks the headers of an answer. Returns FALSE with an error if its body is of no use.
static gboolean
check_headers (gpointer data)
{
  Call *call = data;
  SoupMessageHeaders *headers = soup_message_get_response_headers (call->message);
  OriginRange *range = call->range;
  const guint status = soup_message_get_status (call->message);
  const gchar *tag = soup_message_headers_get_one (headers, "ETag");
  goffset start, end, total;

  call->answers = TRUE;
  if (!tag)
    tag = soup_message_headers_get_one (headers, "Last-Modified");
  if (status != SOUP_STATUS_PARTIAL_CONTENT)
    check_status (call, status);
  else if (!soup_message_headers_get_content_range (headers, &start, &end, &total) || start < 0
           || (guint64) start != range->offset || total <= 0
           || (guint64) (end - start) + 1 != range->length)
    set_error (call, EIO, "it sends another range");
  else if (range->tag && g_strcmp0 (tag, range->tag) != 0)
    set_error (call, ESTALE, "the file was replaced");
  if (range->error)
    return FALSE;
  range->found = g_strdup (tag);
  range->total = (guint64) total;
  return TRUE;
}

static void
on_done (const HttpAnswer *answer, gpointer data)
{
  Call *call = data;

  if (answer->error)
    set_error (call, EIO, answer->error->message);
  else if (answer->size < call->range->length)
    set_error (call, EIO, "it ends in the middle of an answer");
  finish (call);
}

// ---- certificates ----

static gboolean
on_certificate (
    SoupMessage *message, GTlsCertificate *certificate, GTlsCertificateFlags faults, gpointer data)
{
  Call *call = data;
  g_autofree gchar *wrong = tls_trust_check (&call->client->trust, certificate, faults);

  if (wrong)
    set_error (call, EACCES, wrong);
  return !call->range->error;
}

// The signal above tells of certificates with faults only, and `tls-fingerprint` allows but one.
static void
on_network (SoupMessage *message, GSocketClientEvent event, GIOStream *connection, gpointer data)
{
  Call *call = data;
  g_autofree gchar *wrong = NULL;

  if (event != G_SOCKET_CLIENT_TLS_HANDSHAKED || !G_IS_TLS_CONNECTION (connection))
    return;
  wrong = tls_trust_check (&call->client->trust,
      g_tls_connection_get_peer_certificate (G_TLS_CONNECTION (connection)),
      g_tls_connection_get_peer_certificate_errors (G_TLS_CONNECTION (connection)));
  if (!wrong)
    return;
  set_error (call, EACCES, wrong);
  http_call_cancel (call->http);
}

// ---- requests ----

// Signs for the service s3. The URL of the message has no query.
static void
sign (const OriginHttp *self, SoupMessage *message, const gchar *range)
{
  SoupMessageHeaders *headers = soup_message_get_request_headers (message);
  GUri *uri = soup_message_get_uri (message);
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  gchar *date = g_date_time_format (now, "%Y%m%dT%H%M%SZ"), *host, *authorization;
  const gchar *name = g_uri_get_host (uri);
  const gboolean usual =
      g_uri_get_port (uri) == (g_str_equal (g_uri_get_scheme (uri), "https") ? 443 : 80);
  S3Request request = { "GET", NULL, g_uri_get_path (uri), "", range, date };

  host = g_strdup_printf (strchr (name, ':') ? "[%s]" : "%s", name);
  if (!usual && g_uri_get_port (uri) > 0) {
    gchar *with_port = g_strdup_printf ("%s:%d", host, g_uri_get_port (uri));

    g_free (host);
    host = with_port;
  }
  request.host = host;
  authorization = s3_sign (self->keys, &request);
  soup_message_headers_replace (headers, "Host", host);
  soup_message_headers_replace (headers, "x-amz-date", date);
  soup_message_headers_replace (headers, "x-amz-content-sha256", S3_EMPTY_HASH);
  soup_message_headers_replace (headers, "Authorization", authorization);
  g_free (authorization);
  g_free (host);
  g_free (date);
}

static void
set_headers (Call *call)
{
  const OriginHttp *self = call->client;
  const OriginRange *range = call->range;
  SoupMessageHeaders *headers = soup_message_get_request_headers (call->message);
  g_autofree gchar *text = g_strdup_printf ("bytes=%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT,
      range->offset, range->offset + range->length - 1);

  soup_message_headers_replace (headers, "Range", text);
  soup_message_headers_replace (headers, "Accept-Encoding", "identity");
  // A weak tag, or a date, does not match.
  if (range->tag && range->tag[0] == '"')
    soup_message_headers_replace (headers, "If-Match", range->tag);
  if (self->keys)
    sign (self, call->message, text);
  else if (self->basic)
    soup_message_headers_replace (headers, "Authorization", self->basic);
}

static gboolean
start (gpointer data)
{
  Call *call = data;
  OriginHttp *self = call->client;

  call->message = soup_message_new ("GET", call->range->url);
  set_headers (call);
  g_signal_connect (call->message, "accept-certificate", G_CALLBACK (on_certificate), call);
  g_signal_connect (call->message, "network-event", G_CALLBACK (on_network), call);
  call->deadline = g_timeout_source_new (call->timeout_ms);
  g_source_set_callback (call->deadline, on_end, call, NULL);
  g_source_attach (call->deadline, self->context);
  call->http = http_client_call (self->http, g_object_ref (call->message), call->range->bytes,
      call->range->length, check_headers, on_done, call);
  return G_SOURCE_REMOVE;
}

static gboolean
end (gpointer data)
{
  Call *call = data;
  OriginHttp *self = call->client;

  if (!call->done)
    on_end (call);
  g_mutex_lock (&self->lock);
  call->left = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return G_SOURCE_REMOVE;
}

// Runs `func` on the thread.
static void
invoke (OriginHttp *self, GSourceFunc func, gpointer data)
{
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, func, data, NULL);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

// Waits until all calls are done, or one has succeeded and `grace_ms` have passed. Lock held.
static void
wait_for_one (OriginHttp *self, const Call *calls, guint n, guint grace_ms)
{
  gint64 until = G_MAXINT64;

  for (;;) {
    guint n_done = 0;

    for (guint i = 0; i < n; i++) {
      n_done += calls[i].done;
      if (calls[i].done && !calls[i].range->error && until == G_MAXINT64)
        until = g_get_monotonic_time () + (gint64) grace_ms * 1000;
    }
    if (n_done == n)
      return;
    if (until == G_MAXINT64)
      g_cond_wait (&self->changed, &self->lock);
    else if (!g_cond_wait_until (&self->changed, &self->lock, until))
      return;
  }
}

void
origin_http_get (OriginHttp *self, OriginRange *ranges, guint n, guint timeout_ms, guint grace_ms)
{
  Call calls[ORIGIN_RANGES_MAX] = { 0 };

  for (guint i = 0; i < n; i++) {
    calls[i] = (Call) { .client = self, .range = &ranges[i], .timeout_ms = timeout_ms };
    invoke (self, start, &calls[i]);
  }
  g_mutex_lock (&self->lock);
  wait_for_one (self, calls, n, grace_ms);
  g_mutex_unlock (&self->lock);
  // The calls use memory of this thread: none is left behind.
  for (guint i = 0; i < n; i++)
    invoke (self, end, &calls[i]);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < n; i++) {
    while (!calls[i].done || !calls[i].left)
      g_cond_wait (&self->changed, &self->lock);
  }
  g_mutex_unlock (&self->lock);
}

// ---- the client ----

static gpointer
run_request (gpointer data)
{
  OriginHttp *self = data;
  SoupSession *session;

  thread_set_name ("origin-http");
  g_main_context_push_thread_default (self->context);
  self->http = http_client_new (CONNECTIONS_MAX);
  session = http_client_get_session (self->http);
  soup_session_remove_feature_by_type (session, SOUP_TYPE_CONTENT_DECODER);
  if (self->database)
    soup_session_set_tls_database (session, self->database);
  g_main_loop_run (self->loop);
  http_client_free (self->http);
  while (g_main_context_iteration (self->context, FALSE))
    ;
  g_main_context_pop_thread_default (self->context);
  g_main_loop_unref (self->loop);
  g_main_context_unref (self->context);
  g_clear_object (&self->database);
  g_clear_pointer (&self->keys, s3_keys_free);
  tls_trust_clear (&self->trust);
  g_free (self->basic);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
  return NULL;
}

static gchar *
make_basic (const gchar *user, const gchar *password)
{
  g_autofree gchar *both = g_strdup_printf ("%s:%s", user, password ? password : ""), *code = NULL;

  code = g_base64_encode ((const guchar *) both, strlen (both));
  return g_strconcat ("Basic ", code, NULL);
}

OriginHttp *
origin_http_new (const OriginAccess *access, GError **error)
{
  GTlsDatabase *database = NULL;
  OriginHttp *self;

  if (access->trust->ca && !(database = tls_trust_load (access->trust, error)))
    return NULL;
  self = g_new0 (OriginHttp, 1);
  self->refs = 1;
  self->database = database;
  self->keys = s3_keys_copy (access->keys);
  if (access->user)
    self->basic = make_basic (access->user, access->password);
  tls_trust_copy (&self->trust, access->trust);
  self->context = g_main_context_new ();
  self->loop = g_main_loop_new (self->context, FALSE);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_thread_unref (g_thread_new ("origin-http", run_request, self));
  return self;
}

OriginHttp *
origin_http_ref (OriginHttp *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

static gboolean
quit (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_REMOVE;
}

void
origin_http_unref (OriginHttp *self)
{
  // The loop may not run yet, so the thread itself ends it.
  if (g_atomic_int_dec_and_test (&self->refs))
    invoke (self, quit, self->loop);
}
