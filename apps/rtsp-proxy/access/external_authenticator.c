// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A check is one POST. Cases that would send the same share a check, and for a short time its
// answer if that admits them. Checks run on the main thread.

#include "access/external_authenticator.h"

#include "access/check_cache.h"
#include "access/peer.h"
#include "base/http_client.h"
#include "base/log.h"
#include "config/web_url.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define CONNECTIONS_MAX 32
#define CHECKS_MAX 1024 // under way and waiting for a connection
#define ANSWER_MAX (64 * 1024)
#define REMEMBERED_MAX 4096
#define REMEMBERED_US (10 * G_USEC_PER_SEC)

typedef struct {
  gint refs;      // of Access, and of checks
  GBytes *secret; // keys of checks are made with it, so that they do not reveal passwords
  HttpClient *http;
  LogLimit failures;

  GMutex lock;                // protects the fields below
  ExternalAuthConfig *config; // NULL: no check is configured
  GHashTable *checks;         // key -> Check, under way
  CheckCache *admitted;
} ExternalAuthenticator;

typedef struct {
  ExternalAuthenticator *authenticator;
  ExternalAuthConfig *config;
  gchar *key;
  GBytes *body;
  GPtrArray *cases; // of AccessDecision; protected by the authenticator's lock until the check is
                    // taken out
} Check;

static void
check_free (gpointer data)
{
  Check *self = data;

  external_auth_config_unref (self->config);
  g_free (self->key);
  g_bytes_unref (self->body);
  g_ptr_array_unref (self->cases);
  g_free (self);
}

static void
unref (ExternalAuthenticator *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_clear_pointer (&self->config, external_auth_config_unref);
  g_hash_table_unref (self->checks);
  check_cache_free (self->admitted);
  g_mutex_clear (&self->lock);
  g_bytes_unref (self->secret);
  g_free (self);
}

// ---- what is sent ----

static gboolean
sends_password (const Credentials *credentials)
{
  return credentials->kind == CREDENTIALS_BASIC;
}

static const gchar *
get_token (AccessDecision *asked)
{
  const Credentials *credentials = access_decision_get_credentials (asked);

  if (credentials->kind == CREDENTIALS_BEARER)
    return credentials->secret;
  return access_decision_get_request (asked)->token;
}

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text ? text : "", -1);

  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, valid);
}

static const gchar *
get_protocol (AccessPeer *peer)
{
  const gchar *protocol = access_peer_get_protocol (peer);

  return g_str_has_prefix (protocol, "rtsp")   ? "rtsp"
         : g_str_has_prefix (protocol, "http") ? "http"
         : g_str_has_prefix (protocol, "rtmp") ? "rtmp"
                                               : protocol;
}

static GBytes *
make_body (AccessDecision *asked)
{
  const AccessRequest *request = access_decision_get_request (asked);
  const Credentials *credentials = access_decision_get_credentials (asked);
  AccessPeer *peer = access_decision_get_peer (asked);
  const gchar *path = request->path;
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  g_autoptr (JsonNode) root = NULL;
  gchar *text;

  json_builder_begin_object (builder);
  add_text (builder, "user", sends_password (credentials) ? credentials->user : NULL);
  add_text (builder, "password", sends_password (credentials) ? credentials->secret : NULL);
  add_text (builder, "token", get_token (asked));
  add_text (builder, "ip", access_peer_get_address (peer));
  add_text (builder, "action", access_action_words[request->action]);
  add_text (builder, "path", path + (path[0] == '/')); // as other servers send it
  add_text (builder, "protocol", get_protocol (peer));
  add_text (builder, "id", access_peer_get_id (peer));
  add_text (builder, "query", request->query);
  add_text (builder, "userAgent", request->user_agent);
  json_builder_end_object (builder);
  root = json_builder_get_root (builder);
  text = json_to_string (root, FALSE);
  return g_bytes_new_take (text, strlen (text));
}

// ---- checks ----

// Takes a check out, so that no more cases join it. Call with the lock held.
static void
take_out (Check *check)
{
  GHashTable *checks = check->authenticator->checks;

  if (g_hash_table_lookup (checks, check->key) == check)
    g_hash_table_remove (checks, check->key);
}

static gboolean
sends_something (AccessDecision *asked)
{
  return sends_password (access_decision_get_credentials (asked)) || get_token (asked);
}

// The server knows nothing but the address of a client that has sent nothing.
static AuthAnswer
get_admission (AccessDecision *asked)
{
  return sends_something (asked) ? AUTH_ADMITS : AUTH_ADMITS_ADDRESS;
}

static void
answer_all (Check *check, AuthAnswer answer, const gchar *reason)
{
  for (guint i = 0; i < check->cases->len; i++) {
    AccessDecision *asked = g_ptr_array_index (check->cases, i);
    const Credentials *credentials = access_decision_get_credentials (asked);
    gboolean named = sends_something (asked);

    // A client that has sent nothing is asked for a password.
    if ((answer == AUTH_DENIES || answer == AUTH_FORBIDS) && !named)
      access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
    else
      access_decision_answer (
          asked, answer == AUTH_ADMITS ? get_admission (asked) : answer, credentials->user, reason);
  }
}

static void
on_answer (const HttpAnswer *answer, gpointer data)
{
  Check *check = data;
  ExternalAuthenticator *self = check->authenticator;
  gboolean good = answer->status >= 200 && answer->status < 300;
  gboolean fails = answer->error || answer->status >= 500 || (answer->status / 100 == 3);

  g_mutex_lock (&self->lock);
  take_out (check);
  // An answer to what was configured before a reload is not remembered.
  if (good && check->config == self->config)
    check_cache_add (self->admitted, check->key, g_get_monotonic_time ());
  g_mutex_unlock (&self->lock);
  if (answer->error)
    log_event_limited (
        &self->failures, "external-auth: %s: %s", check->config->url, answer->error->message);
  else if (fails)
    log_event_limited (&self->failures, "external-auth: %s: the server answered %u",
        check->config->url, answer->status);
  if (good)
    answer_all (check, AUTH_ADMITS, NULL);
  else if (fails)
    answer_all (check, AUTH_FAILS, "external check failed");
  else if (answer->status == 403)
    answer_all (check, AUTH_FORBIDS, "forbidden by the external check");
  else
    answer_all (check, AUTH_DENIES, "refused by the external check");
  check_free (check);
  unref (self);
}

// Sends a check. Runs on the main thread.
static gboolean
begin_check (gpointer data)
{
  Check *check = data;
  const HttpAnswer stopped = { .error = g_error_new_literal (
                                   G_IO_ERROR, G_IO_ERROR_CANCELLED, "the proxy stops") };

  if (check->authenticator->http)
    http_client_send (check->authenticator->http, check->config->url, check->body,
        check->config->timeout, ANSWER_MAX, on_answer, check);
  else
    on_answer (&stopped, check);
  g_error_free (stopped.error);
  return G_SOURCE_REMOVE;
}

// Takes ownership of `key` and `body`. Call with the lock held.
static Check *
add_check (ExternalAuthenticator *self, gchar *key, GBytes *body)
{
  Check *check = g_new0 (Check, 1);

  g_atomic_int_inc (&self->refs);
  check->authenticator = self;
  check->config = external_auth_config_ref (self->config);
  check->key = key;
  check->body = body;
  check->cases = g_ptr_array_new ();
  g_hash_table_insert (self->checks, check->key, check);
  g_idle_add_full (G_PRIORITY_DEFAULT, begin_check, check, NULL);
  return check;
}

// ---- the authenticator ----

// Reports whether the authenticator can decide. It cannot forward a digest.
static gboolean
is_ours (ExternalAuthenticator *self, AccessDecision *asked)
{
  const AccessRequest *request = access_decision_get_request (asked);
  CredentialsKind kind = access_decision_get_credentials (asked)->kind;

  if (!self->config || self->config->excluded & 1u << request->action || kind == CREDENTIALS_WRONG
      || kind == CREDENTIALS_DIGEST)
    return FALSE;
  return kind != CREDENTIALS_BASIC || access_decision_may_use_basic (asked);
}

// Lets a decision wait for a check that sends `body`. Returns FALSE if the answer is known now.
// Call with the lock held.
static gboolean
join_check (ExternalAuthenticator *self, AccessDecision *asked, const gchar *key, GBytes *body,
    AuthAnswer *answer)
{
  Check *check = g_hash_table_lookup (self->checks, key);

  *answer = AUTH_FAILS;
  if (check_cache_has (self->admitted, key, g_get_monotonic_time ()))
    *answer = get_admission (asked);
  else if (!check && g_hash_table_size (self->checks) < CHECKS_MAX && self->config)
    check = add_check (self, g_strdup (key), g_bytes_ref (body));
  if (*answer != AUTH_FAILS || !check)
    return FALSE;
  g_ptr_array_add (check->cases, asked);
  return TRUE;
}

static void
external_authenticator_ask (gpointer data, AccessDecision *asked)
{
  ExternalAuthenticator *self = data;
  gboolean ours, waits;
  AuthAnswer answer;
  g_autoptr (GBytes) body = NULL;
  g_autofree gchar *key = NULL;

  g_mutex_lock (&self->lock);
  ours = is_ours (self, asked);
  g_mutex_unlock (&self->lock);
  if (!ours) {
    access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
    return;
  }
  body = make_body (asked);
  key = g_compute_hmac_for_bytes (G_CHECKSUM_SHA256, self->secret, body);
  g_mutex_lock (&self->lock);
  waits = join_check (self, asked, key, body, &answer);
  g_mutex_unlock (&self->lock);
  if (!waits)
    access_decision_answer (asked, answer, access_decision_get_credentials (asked)->user,
        answer == AUTH_FAILS ? "too many external checks at once" : NULL);
}

// Only a password that the client sends as it is can be forwarded.
static void
external_authenticator_challenge (gpointer data, AccessDecision *asked, GPtrArray *lines)
{
  ExternalAuthenticator *self = data;
  gboolean asks;

  g_mutex_lock (&self->lock);
  asks = self->config && access_decision_may_use_basic (asked);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; asks && i < lines->len; i++)
    asks = !g_str_has_prefix (g_ptr_array_index (lines, i), "Basic ");
  if (asks)
    g_ptr_array_add (lines, g_strdup ("Basic realm=\"rtsp-proxy\""));
}

// The server is asked once, about the list itself.
static AuthAnswer
external_authenticator_lists (
    gpointer data, AccessDecision *asked, gboolean admitted, const gchar *mount)
{
  return admitted ? get_admission (asked) : AUTH_PASSES;
}

static void
external_authenticator_configure (gpointer data, const ProxyConfig *config)
{
  ExternalAuthenticator *self = data;
  ExternalAuthConfig *old;

  if (config->external_auth && web_url_is_exposed (config->external_auth->url))
    log_event ("external-auth: passwords and tokens travel without TLS; use https: %s",
        config->external_auth->url);
  g_mutex_lock (&self->lock);
  old = self->config;
  self->config = config->external_auth ? external_auth_config_ref (config->external_auth) : NULL;
  check_cache_clear (self->admitted);
  g_hash_table_remove_all (self->checks); // those under way end as they began
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&old, external_auth_config_unref);
}

static GBytes *
make_secret (void)
{
  gchar *random = g_uuid_string_random ();

  return g_bytes_new_take (random, strlen (random));
}

gpointer
external_authenticator_new (const ProxyConfig *config)
{
  ExternalAuthenticator *self = g_new0 (ExternalAuthenticator, 1);

  self->refs = 1;
  self->secret = make_secret ();
  self->http = http_client_new (CONNECTIONS_MAX);
  self->failures = LOG_LIMIT_FAILURES;
  self->checks = g_hash_table_new (g_str_hash, g_str_equal);
  self->admitted = check_cache_new (REMEMBERED_MAX, REMEMBERED_US);
  g_mutex_init (&self->lock);
  external_authenticator_configure (self, config);
  return self;
}

static void
external_authenticator_free (gpointer data)
{
  ExternalAuthenticator *self = data;

  g_clear_pointer (&self->http, http_client_free);
  // Checks that have not begun; they end at once now, while Access still exists.
  while (g_atomic_int_get (&self->refs) > 1)
    g_main_context_iteration (NULL, TRUE);
  unref (self);
}

const AuthenticatorOps external_authenticator = { external_authenticator_ask,
  external_authenticator_challenge, external_authenticator_lists, external_authenticator_configure,
  external_authenticator_free };
