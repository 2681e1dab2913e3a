// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/jwt_authenticator.h"

#include "access/jwks_source.h"
#include "access/jwt.h"
#include "access/jwt_permissions.h"
#include "base/log.h"
#include "config/web_url.h"
#include "text/json_strict.h"

#define CONNECTIONS_MAX 2
#define QUIET_MS 10000

typedef struct {
  gint refs; // of Access, and of cases that wait for keys
  HttpClient *http;

  GMutex lock;       // protects the fields below
  JwtConfig *config; // NULL: tokens are not configured
  JwksSource *source;
} JwtAuthenticator;

static void
unref (JwtAuthenticator *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- a decision ----

// Returns the token that a client has sent, or NULL. Clients that know only user and password send
// it as the password.
static const gchar *
find_token (AccessDecision *asked)
{
  const Credentials *credentials = access_decision_get_credentials (asked);
  const gchar *candidates[] = { access_decision_get_request (asked)->token, NULL };

  if (credentials->kind == CREDENTIALS_BEARER || credentials->kind == CREDENTIALS_BASIC)
    candidates[1] = credentials->secret;
  for (guint i = 0; i < G_N_ELEMENTS (candidates); i++) {
    if (candidates[i] && jwt_is_token (candidates[i]))
      return candidates[i];
  }
  return NULL;
}

static void
answer_by_claims (AccessDecision *asked, const JwtConfig *config, JsonObject *claims)
{
  const AccessRequest *request = access_decision_get_request (asked);
  const gchar *user = json_strict_text (claims, "sub");

  if (request->lists)
    access_decision_set_grant (asked, json_object_ref (claims), (GDestroyNotify) json_object_unref);
  if (request->lists
      || jwt_permits (claims, config->claim, request->action, request->path, request->mount))
    access_decision_answer (asked, AUTH_ADMITS, user, NULL);
  else
    access_decision_answer (asked, AUTH_FORBIDS, user, "no permission in the token");
}

typedef struct {
  JwtAuthenticator *authenticator;
  AccessDecision *asked;
} Wait;

static void decide (JwtAuthenticator *self, AccessDecision *asked, gboolean may_wait);

static void
on_loaded (gpointer data, gpointer unused)
{
  Wait *wait = data;

  decide (wait->authenticator, wait->asked, FALSE);
  unref (wait->authenticator);
  g_free (wait);
}

// Decides once more when the keys were loaded. Returns FALSE if that was a moment ago.
static gboolean
wait_for_keys (JwtAuthenticator *self, AccessDecision *asked)
{
  Wait *wait = g_new (Wait, 1);
  gboolean waits;

  *wait = (Wait) { self, asked };
  g_atomic_int_inc (&self->refs);
  g_mutex_lock (&self->lock);
  waits = self->source && jwks_source_load (self->source, on_loaded, wait);
  g_mutex_unlock (&self->lock);
  if (!waits) {
    unref (self);
    g_free (wait);
  }
  return waits;
}

static void
answer_by_token (JwtAuthenticator *self, AccessDecision *asked, const JwtConfig *config,
    const Jwks *keys, const gchar *token, gboolean may_wait)
{
  const JwtRules rules = { config->issuer, config->audience };
  const gchar *wrong;
  JsonObject *claims =
      jwt_verify (keys, token, &rules, g_get_real_time () / G_USEC_PER_SEC, &wrong);

  if (claims)
    answer_by_claims (asked, config, claims);
  else if (wrong == jwt_unknown_key && may_wait && wait_for_keys (self, asked))
    return;
  else if (wrong == jwt_expired)
    access_decision_answer (asked, AUTH_RENEWS, NULL, wrong);
  else
    access_decision_answer (asked, AUTH_DENIES, NULL, wrong);
  g_clear_pointer (&claims, json_object_unref);
}

static void
decide (JwtAuthenticator *self, AccessDecision *asked, gboolean may_wait)
{
  const gchar *token = find_token (asked);
  JwtConfig *config;
  Jwks *keys;

  g_mutex_lock (&self->lock);
  config = self->config ? jwt_config_ref (self->config) : NULL;
  keys = self->source ? jwks_source_dup_keys (self->source) : NULL;
  g_mutex_unlock (&self->lock);
  if (!config || !token)
    access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
  else if (keys)
    answer_by_token (self, asked, config, keys, token, may_wait);
  else if (!may_wait || !wait_for_keys (self, asked))
    access_decision_answer (asked, AUTH_FAILS, NULL, "no keys for tokens are loaded");
  g_clear_pointer (&keys, jwks_unref);
  g_clear_pointer (&config, jwt_config_unref);
}

static void
jwt_authenticator_ask (gpointer self, AccessDecision *asked)
{
  decide (self, asked, TRUE);
}

static void
jwt_authenticator_challenge (gpointer data, AccessDecision *asked, GPtrArray *lines)
{
  JwtAuthenticator *self = data;
  gboolean is_on;

  g_mutex_lock (&self->lock);
  is_on = self->config != NULL;
  g_mutex_unlock (&self->lock);
  if (is_on)
    g_ptr_array_add (lines, g_strdup ("Bearer realm=\"rtsp-proxy\""));
}

static AuthAnswer
jwt_authenticator_lists (
    gpointer data, AccessDecision *asked, gboolean admitted, const gchar *mount)
{
  JwtAuthenticator *self = data;
  JwtConfig *config;
  gboolean listed;

  if (!admitted)
    return AUTH_PASSES;
  g_mutex_lock (&self->lock);
  config = self->config ? jwt_config_ref (self->config) : NULL;
  g_mutex_unlock (&self->lock);
  listed = config
           && jwt_permits (access_decision_get_grant (asked), config->claim,
               access_decision_get_request (asked)->action, mount, mount);
  g_clear_pointer (&config, jwt_config_unref);
  return listed ? AUTH_ADMITS : AUTH_PASSES;
}

// ---- configuration ----

// Returns the source for a configuration: a new one, as the set of a file may have changed and that
// of a URL is loaded again, or NULL.
static JwksSource *
make_source (JwtAuthenticator *self, const JwtConfig *config)
{
  if (!config)
    return NULL;
  if (web_url_is (config->jwks) && web_url_is_exposed (config->jwks))
    log_event (
        "jwt: the keys travel without TLS, and whoever can change them on their way can make "
        "tokens; use https: %s",
        config->jwks);
  return jwks_source_new (config->jwks, config->keys, self->http, QUIET_MS);
}

// A source whose URL stays the same is kept, so that its keys stay if the URL cannot be loaded.
static gboolean
keeps_source (const JwtConfig *from, const JwtConfig *to)
{
  return from && to && !to->keys && g_str_equal (from->jwks, to->jwks);
}

static void
jwt_authenticator_configure (gpointer data, const ProxyConfig *config)
{
  JwtAuthenticator *self = data;
  JwtConfig *old;
  JwksSource *source = NULL, *gone = NULL;
  gboolean keeps = keeps_source (self->config, config->jwt);

  if (!keeps)
    source = make_source (self, config->jwt);
  g_mutex_lock (&self->lock);
  old = self->config;
  self->config = config->jwt ? jwt_config_ref (config->jwt) : NULL;
  if (!keeps) {
    gone = self->source;
    self->source = source;
  }
  g_mutex_unlock (&self->lock);
  if (keeps)
    jwks_source_load (self->source, NULL, NULL);
  g_clear_pointer (&gone, jwks_source_free);
  g_clear_pointer (&old, jwt_config_unref);
}

gpointer
jwt_authenticator_new (const ProxyConfig *config)
{
  JwtAuthenticator *self = g_new0 (JwtAuthenticator, 1);

  self->refs = 1;
  self->http = http_client_new (CONNECTIONS_MAX);
  g_mutex_init (&self->lock);
  jwt_authenticator_configure (self, config);
  return self;
}

static void
jwt_authenticator_free (gpointer data)
{
  JwtAuthenticator *self = data;

  g_clear_pointer (&self->source, jwks_source_free);
  http_client_free (self->http);
  g_clear_pointer (&self->config, jwt_config_unref);
  unref (self);
}

const AuthenticatorOps jwt_authenticator = { jwt_authenticator_ask, jwt_authenticator_challenge,
  jwt_authenticator_lists, jwt_authenticator_configure, jwt_authenticator_free };
