// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A check is one POST. Cases that would send the same share a check, and for a short time its
// answer if that admits them. Checks run on the main thread.

#include "access/check_judge.h"

#include "access/check_cache.h"
#include "base/http_client.h"
#include "access/peer.h"
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
} CheckJudge;

typedef struct {
  CheckJudge *judge;
  ExternalAuthConfig *config;
  gchar *key;
  GBytes *body;
  GPtrArray *cases; // of AccessCase; protected by the judge's lock until the check is taken out
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
unref (CheckJudge *self)
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
get_token (AccessCase *asked)
{
  const Credentials *credentials = access_case_get_credentials (asked);

  if (credentials->kind == CREDENTIALS_BEARER)
    return credentials->secret;
  return access_case_get_request (asked)->token;
}

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  gchar *valid = g_utf8_make_valid (text ? text : "", -1);

  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, valid);
  g_free (valid);
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
make_body (AccessCase *asked)
{
  const AccessRequest *request = access_case_get_request (asked);
  const Credentials *credentials = access_case_get_credentials (asked);
  AccessPeer *peer = access_case_get_peer (asked);
  const gchar *path = request->path;
  JsonBuilder *builder = json_builder_new ();
  JsonNode *root;
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
  json_node_unref (root);
  g_object_unref (builder);
  return g_bytes_new_take (text, strlen (text));
}

// ---- checks ----

// Takes a check out, so that no more cases join it. Call with the lock held.
static void
take_out (Check *check)
{
  GHashTable *checks = check->judge->checks;

  if (g_hash_table_lookup (checks, check->key) == check)
    g_hash_table_remove (checks, check->key);
}

static gboolean
sends_something (AccessCase *asked)
{
  return sends_password (access_case_get_credentials (asked)) || get_token (asked);
}

// The server knows nothing but the address of a client that has sent nothing.
static Judgement
get_admission (AccessCase *asked)
{
  return sends_something (asked) ? JUDGE_ADMITS : JUDGE_ADMITS_ADDRESS;
}

static void
judge_all (Check *check, Judgement judgement, const gchar *reason)
{
  for (guint i = 0; i < check->cases->len; i++) {
    AccessCase *asked = g_ptr_array_index (check->cases, i);
    const Credentials *credentials = access_case_get_credentials (asked);
    gboolean named = sends_something (asked);

    // A client that has sent nothing is asked for a password.
    if ((judgement == JUDGE_DENIES || judgement == JUDGE_FORBIDS) && !named)
      access_case_judge (asked, JUDGE_PASSES, NULL, NULL);
    else
      access_case_judge (asked, judgement == JUDGE_ADMITS ? get_admission (asked) : judgement,
          credentials->user, reason);
  }
}

static void
on_answer (const HttpAnswer *answer, gpointer data)
{
  Check *check = data;
  CheckJudge *self = check->judge;
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
    judge_all (check, JUDGE_ADMITS, NULL);
  else if (fails)
    judge_all (check, JUDGE_FAILS, "external check failed");
  else if (answer->status == 403)
    judge_all (check, JUDGE_FORBIDS, "forbidden by the external check");
  else
    judge_all (check, JUDGE_DENIES, "refused by the external check");
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

  if (check->judge->http)
    http_client_send (check->judge->http, check->config->url, check->body, check->config->timeout,
        ANSWER_MAX, on_answer, check);
  else
    on_answer (&stopped, check);
  g_error_free (stopped.error);
  return G_SOURCE_REMOVE;
}

// Takes ownership of `key` and `body`. Call with the lock held.
static Check *
add_check (CheckJudge *self, gchar *key, GBytes *body)
{
  Check *check = g_new0 (Check, 1);

  g_atomic_int_inc (&self->refs);
  check->judge = self;
  check->config = external_auth_config_ref (self->config);
  check->key = key;
  check->body = body;
  check->cases = g_ptr_array_new ();
  g_hash_table_insert (self->checks, check->key, check);
  g_idle_add_full (G_PRIORITY_DEFAULT, begin_check, check, NULL);
  return check;
}

// ---- the judge ----

// Reports whether the judge decides about a case. It cannot forward a digest.
static gboolean
is_ours (CheckJudge *self, AccessCase *asked)
{
  const AccessRequest *request = access_case_get_request (asked);
  CredentialsKind kind = access_case_get_credentials (asked)->kind;

  if (!self->config || self->config->excluded & 1u << request->action || kind == CREDENTIALS_WRONG
      || kind == CREDENTIALS_DIGEST)
    return FALSE;
  return kind != CREDENTIALS_BASIC || access_case_may_use_basic (asked);
}

// Lets a case wait for a check that sends `body`. Returns FALSE if the judgement is known now. Call
// with the lock held.
static gboolean
join_check (
    CheckJudge *self, AccessCase *asked, const gchar *key, GBytes *body, Judgement *judgement)
{
  Check *check = g_hash_table_lookup (self->checks, key);

  *judgement = JUDGE_FAILS;
  if (check_cache_has (self->admitted, key, g_get_monotonic_time ()))
    *judgement = get_admission (asked);
  else if (!check && g_hash_table_size (self->checks) < CHECKS_MAX && self->config)
    check = add_check (self, g_strdup (key), g_bytes_ref (body));
  if (*judgement != JUDGE_FAILS || !check)
    return FALSE;
  g_ptr_array_add (check->cases, asked);
  return TRUE;
}

static void
check_judge_ask (gpointer data, AccessCase *asked)
{
  CheckJudge *self = data;
  gboolean ours, waits;
  Judgement judgement;
  GBytes *body;
  gchar *key;

  g_mutex_lock (&self->lock);
  ours = is_ours (self, asked);
  g_mutex_unlock (&self->lock);
  if (!ours) {
    access_case_judge (asked, JUDGE_PASSES, NULL, NULL);
    return;
  }
  body = make_body (asked);
  key = g_compute_hmac_for_bytes (G_CHECKSUM_SHA256, self->secret, body);
  g_mutex_lock (&self->lock);
  waits = join_check (self, asked, key, body, &judgement);
  g_mutex_unlock (&self->lock);
  if (!waits)
    access_case_judge (asked, judgement, access_case_get_credentials (asked)->user,
        judgement == JUDGE_FAILS ? "too many external checks at once" : NULL);
  g_bytes_unref (body);
  g_free (key);
}

// Only a password that the client sends as it is can be forwarded.
static void
check_judge_challenge (gpointer data, AccessCase *asked, GPtrArray *lines)
{
  CheckJudge *self = data;
  gboolean asks;

  g_mutex_lock (&self->lock);
  asks = self->config && access_case_may_use_basic (asked);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; asks && i < lines->len; i++)
    asks = !g_str_has_prefix (g_ptr_array_index (lines, i), "Basic ");
  if (asks)
    g_ptr_array_add (lines, g_strdup ("Basic realm=\"rtsp-proxy\""));
}

// The server is asked once, about the list itself.
static Judgement
check_judge_lists (gpointer data, AccessCase *asked, gboolean admitted, const gchar *mount)
{
  return admitted ? get_admission (asked) : JUDGE_PASSES;
}

static void
check_judge_configure (gpointer data, const ProxyConfig *config)
{
  CheckJudge *self = data;
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
check_judge_new (const ProxyConfig *config)
{
  CheckJudge *self = g_new0 (CheckJudge, 1);

  self->refs = 1;
  self->secret = make_secret ();
  self->http = http_client_new (CONNECTIONS_MAX);
  self->failures = LOG_LIMIT_FAILURES;
  self->checks = g_hash_table_new (g_str_hash, g_str_equal);
  self->admitted = check_cache_new (REMEMBERED_MAX, REMEMBERED_US);
  g_mutex_init (&self->lock);
  check_judge_configure (self, config);
  return self;
}

static void
check_judge_free (gpointer data)
{
  CheckJudge *self = data;

  g_clear_pointer (&self->http, http_client_free);
  // Checks that have not begun; they end at once now, while Access still exists.
  while (g_atomic_int_get (&self->refs) > 1)
    g_main_context_iteration (NULL, TRUE);
  unref (self);
}

const JudgeOps check_judge = { check_judge_ask, check_judge_challenge, check_judge_lists,
  check_judge_configure, check_judge_free };
