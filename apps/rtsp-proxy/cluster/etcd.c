// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/etcd.h"

#include "base/http_client.h"
#include "text/json_strict.h"

#include <string.h>

#define CONNECTIONS_MAX 8
#define TRY_MS 1000 // for the answer of one endpoint
#define ANSWER_MAX (16 << 20)
#define DEPTH_MAX 16
#define PROBLEM_MAX 200 // bytes of an answer that the log shows

#define CODE_UNAUTHENTICATED 16 // of gRPC

struct _Etcd {
  HttpClient *http;
  GPtrArray *endpoints;
  guint current;
  guint64 generation;
  GTlsCertificate *certificate;
  gchar *user, *password;
  gchar *token; // of the user; NULL: none yet
  gchar *problem;
  gboolean ending;
};

typedef struct {
  Etcd *etcd;
  gchar *method;
  GBytes *body;
  guint n_tries;
  gboolean renewed; // the token
  guint64 generation;
  EtcdDone done;
  gpointer data;
} Call;

G_DEFINE_QUARK (weir - etcd - error, etcd_error)

static void send_call (Call *call);

// ---- JSON ----

void
etcd_add_bytes (JsonBuilder *body, const gchar *name, const gchar *text)
{
  g_autofree gchar *encoded = g_base64_encode ((const guchar *) text, strlen (text));

  json_builder_set_member_name (body, name);
  json_builder_add_string_value (body, encoded);
}

void
etcd_add_number (JsonBuilder *body, const gchar *name, gint64 number)
{
  g_autofree gchar *text = g_strdup_printf ("%" G_GINT64_FORMAT, number);

  json_builder_set_member_name (body, name);
  json_builder_add_string_value (body, text);
}

GBytes *
etcd_body_to_bytes (JsonBuilder *body)
{
  JsonNode *root = json_builder_get_root (body);
  gchar *text = json_to_string (root, FALSE);

  json_node_unref (root);
  g_object_unref (body);
  return g_bytes_new_take (text, strlen (text));
}

JsonObject *
etcd_get_object (JsonObject *answer, const gchar *name)
{
  JsonNode *node = json_object_get_member (answer, name);

  return node && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

gboolean
etcd_get_boolean (JsonObject *answer, const gchar *name)
{
  JsonNode *node = json_object_get_member (answer, name);

  return node && json_node_get_value_type (node) == G_TYPE_BOOLEAN && json_node_get_boolean (node);
}

JsonObject *
etcd_get_element (JsonArray *array, guint i)
{
  JsonNode *node =
      array && i < json_array_get_length (array) ? json_array_get_element (array, i) : NULL;

  return node && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

gint64
etcd_get_number (JsonObject *answer, const gchar *name)
{
  const gchar *text = json_strict_text (answer, name);
  gint64 number = 0;

  return text && g_ascii_string_to_signed (text, 10, G_MININT64, G_MAXINT64, &number, NULL) ? number
                                                                                            : 0;
}

gchar *
etcd_dup_text (JsonObject *answer, const gchar *name)
{
  const gchar *encoded = json_strict_text (answer, name);
  g_autofree guchar *bytes = NULL;
  gsize len;

  if (!encoded)
    return NULL;
  bytes = g_base64_decode (encoded, &len);
  return bytes && g_utf8_validate_len ((const gchar *) bytes, len, NULL)
             ? g_strndup ((const gchar *) bytes, len)
             : NULL;
}

gchar *
etcd_dup_range_end (const gchar *prefix)
{
  gchar *end = g_strdup (prefix);

  end[strlen (end) - 1]++; // the prefix ends with a slash
  return end;
}

// ---- the end of a call ----

static void
set_problem (Etcd *self, const gchar *problem)
{
  g_free (self->problem);
  self->problem = g_strdup (problem);
}

static void
finish (Call *call, JsonObject *answer, GError *error)
{
  if (!call->etcd->ending)
    set_problem (call->etcd, error && error->domain != ETCD_ERROR ? error->message : NULL);
  call->done (answer, error, call->data);
  g_clear_pointer (&answer, json_object_unref);
  g_clear_error (&error);
  g_bytes_unref (call->body);
  g_free (call->method);
  g_free (call);
}

// The endpoint has not answered, or cannot do anything at the moment.
static void
try_next (Call *call, GError *error)
{
  Etcd *self = call->etcd;

  // Another call may have gone on already.
  if (call->generation == self->generation) {
    self->current = (self->current + 1) % self->endpoints->len;
    self->generation++;
  }
  if (self->ending || ++call->n_tries >= self->endpoints->len) {
    finish (call, NULL, error);
    return;
  }
  g_error_free (error);
  send_call (call);
}

static gchar *
dup_reason (JsonObject *answer, guint status)
{
  const gchar *reason = answer ? json_strict_text (answer, "message") : NULL;

  if (!reason)
    reason = answer ? json_strict_text (answer, "error") : NULL;
  return reason ? g_strdup_printf ("%.*s", PROBLEM_MAX, reason)
                : g_strdup_printf ("status %u", status);
}

static void
take_refusal (Call *call, JsonObject *answer, guint status)
{
  Etcd *self = call->etcd;
  g_autofree gchar *reason = dup_reason (answer, status);
  gdouble code = 0;

  if (answer)
    json_strict_number (answer, "code", &code);
  if (self->user && !call->renewed && code == CODE_UNAUTHENTICATED) {
    call->renewed = TRUE;
    g_clear_pointer (&self->token, g_free);
    send_call (call);
  } else if (status >= 500) {
    try_next (call,
        g_error_new (G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", etcd_get_endpoint (self), reason));
  } else {
    finish (call, NULL,
        g_error_new (ETCD_ERROR, ETCD_ERROR_REFUSED, "%s: %s", etcd_get_endpoint (self), reason));
  }
}

static JsonObject *
read_answer (GBytes *body)
{
  gsize len;
  const gchar *text = g_bytes_get_data (body, &len);

  return text ? json_strict_read (text, len, DEPTH_MAX) : NULL;
}

static void
on_answer (const HttpAnswer *http, gpointer data)
{
  Call *call = data;
  g_autoptr (JsonObject) answer = http->error ? NULL : read_answer (http->body);

  if (http->error)
    try_next (call, g_error_new (G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s",
                        etcd_get_endpoint (call->etcd), http->error->message));
  else if (http->status != SOUP_STATUS_OK)
    take_refusal (call, answer, http->status);
  else if (answer)
    finish (call, g_steal_pointer (&answer), NULL);
  else
    try_next (call, g_error_new (G_IO_ERROR, G_IO_ERROR_FAILED, "%s: the answer is not JSON",
                        etcd_get_endpoint (call->etcd)));
}

// ---- the token of a user ----

static void
on_token (const HttpAnswer *http, gpointer data)
{
  Call *call = data;
  Etcd *self = call->etcd;
  g_autoptr (JsonObject) answer = http->error ? NULL : read_answer (http->body);
  const gchar *token = answer ? json_strict_text (answer, "token") : NULL;

  if (http->error || http->status >= 500) {
    try_next (call, g_error_new (G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", etcd_get_endpoint (self),
                        http->error ? http->error->message : "no token"));
  } else if (!token) {
    g_autofree gchar *reason = dup_reason (answer, http->status);

    finish (call, NULL,
        g_error_new (ETCD_ERROR, ETCD_ERROR_REFUSED, "%s: user %s: %s", etcd_get_endpoint (self),
            self->user, reason));
  } else {
    g_free (self->token);
    self->token = g_strdup (token);
    send_call (call);
  }
}

static void
ask_for_token (Call *call)
{
  Etcd *self = call->etcd;
  JsonBuilder *body = json_builder_new ();
  g_autoptr (GBytes) bytes = NULL;

  json_builder_begin_object (body);
  json_builder_set_member_name (body, "name");
  json_builder_add_string_value (body, self->user);
  json_builder_set_member_name (body, "password");
  json_builder_add_string_value (body, self->password ? self->password : "");
  json_builder_end_object (body);
  bytes = etcd_body_to_bytes (body);
  http_client_send_message (self->http, etcd_message_new (self, "/v3/auth/authenticate", bytes),
      TRY_MS, ANSWER_MAX, on_token, call);
}

// ---- calls ----

static void
send_call (Call *call)
{
  Etcd *self = call->etcd;

  call->generation = self->generation;
  if (self->user && !self->token)
    ask_for_token (call);
  else
    http_client_send_message (self->http, etcd_message_new (self, call->method, call->body), TRY_MS,
        ANSWER_MAX, on_answer, call);
}

void
etcd_call (Etcd *self, const gchar *method, JsonBuilder *body, EtcdDone done, gpointer data)
{
  Call *call = g_new0 (Call, 1);

  *call = (Call) { .etcd = self,
    .method = g_strdup (method),
    .body = etcd_body_to_bytes (body),
    .done = done,
    .data = data };
  send_call (call);
}

SoupMessage *
etcd_message_new (Etcd *self, const gchar *method, GBytes *body)
{
  g_autofree gchar *url = g_strconcat (etcd_get_endpoint (self), method, NULL);
  SoupMessage *message = soup_message_new ("POST", url);

  soup_message_set_request_body_from_bytes (message, "application/json", body);
  if (self->token)
    soup_message_headers_replace (
        soup_message_get_request_headers (message), "Authorization", self->token);
  if (self->certificate)
    soup_message_set_tls_client_certificate (message, self->certificate);
  return message;
}

SoupSession *
etcd_get_session (Etcd *self)
{
  return http_client_get_session (self->http);
}

guint64
etcd_get_generation (Etcd *self)
{
  return self->generation;
}

const gchar *
etcd_get_endpoint (Etcd *self)
{
  return g_ptr_array_index (self->endpoints, self->current);
}

const gchar *
etcd_get_problem (Etcd *self)
{
  return self->problem;
}

// ---- construction ----

static void
add_endpoint (Etcd *self, const gchar *url)
{
  gchar *endpoint = g_strdup (url);

  if (g_str_has_suffix (endpoint, "/"))
    endpoint[strlen (endpoint) - 1] = '\0';
  g_ptr_array_add (self->endpoints, endpoint);
}

static gboolean
load_certificates (Etcd *self, const EtcdSettings *settings, GError **error)
{
  if (settings->ca) {
    g_autoptr (GTlsDatabase) database = g_tls_file_database_new (settings->ca, error);

    if (!database) {
      g_prefix_error (error, "etcd-ca: ");
      return FALSE;
    }
    g_object_set (etcd_get_session (self), "tls-database", database, NULL);
  }
  if (settings->certificate) {
    self->certificate = g_tls_certificate_new_from_files (
        settings->certificate, settings->key ? settings->key : settings->certificate, error);
    if (!self->certificate)
      g_prefix_error (error, "etcd-certificate: ");
  }
  return !settings->certificate || self->certificate;
}

Etcd *
etcd_new (const EtcdSettings *settings, GError **error)
{
  Etcd *self = g_new0 (Etcd, 1);

  self->http = http_client_new (CONNECTIONS_MAX);
  self->endpoints = g_ptr_array_new_with_free_func (g_free);
  for (const gchar *const *url = settings->endpoints; *url; url++)
    add_endpoint (self, *url);
  self->user = g_strdup (settings->user);
  self->password = g_strdup (settings->password);
  if (!load_certificates (self, settings, error))
    g_clear_pointer (&self, etcd_free);
  return self;
}

void
etcd_free (Etcd *self)
{
  self->ending = TRUE;
  http_client_free (self->http);
  g_clear_object (&self->certificate);
  g_ptr_array_unref (self->endpoints);
  g_free (self->user);
  g_free (self->password);
  g_free (self->token);
  g_free (self->problem);
  g_free (self);
}
