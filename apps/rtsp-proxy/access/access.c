// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/access.h"

#include "access/authenticator.h"
#include "access/decision_private.h"
#include "access/external_authenticator.h"
#include "access/jwt_authenticator.h"
#include "access/member_authenticator.h"
#include "access/peer.h"
#include "access/throttle.h"
#include "access/users_authenticator.h"
#include "base/log.h"

#define NO_PERMISSION "no user has this permission"
#define UNKNOWN_USER "unknown user"
#define WRONG_TOKEN "wrong token"
#define TOO_MANY "too many requests wait"

typedef struct {
  const AuthenticatorOps *ops;
  gpointer self;
} Authenticator;

struct _Access {
  GArray *authenticators; // of Authenticator; not changed after access_new()
  Throttle *throttle;
  // Atomic.
  gint basic;        // media may be asked for by a password without TLS
  gint tls_in_front; // HTTP clients on this machine have sent theirs over TLS to a reverse proxy
  gint guards_api, guards_metrics;
  gint takes_credentials; // otherwise nothing can be found out by trying, so nobody is slowed down

  GMutex lock; // protects the fields below
  gboolean closed;
  GHashTable *waiting; // of AccessDecision, with a reference
  guint64 admitted, challenged;
  GHashTable *refused; // reason -> AccessRefusals
};

// ---- counting and logging ----

static void
count_refusal (Access *self, const gchar *reason, guint n)
{
  AccessRefusals *refusals;

  g_mutex_lock (&self->lock);
  refusals = g_hash_table_lookup (self->refused, reason);
  if (!refusals) {
    refusals = g_new0 (AccessRefusals, 1);
    refusals->reason = reason;
    g_hash_table_insert (self->refused, (gpointer) reason, refusals);
  }
  refusals->n += n;
  g_mutex_unlock (&self->lock);
}

// The address comes before all texts of the client, because fail2ban reads this line.
static void
log_refusal (Access *self, AccessPeer *peer, const gchar *user, AccessAction action,
    const gchar *path, const gchar *reason)
{
  guint64 n_suppressed = 0;
  g_autofree gchar *more = NULL;

  if (!throttle_may_log (
          self->throttle, access_peer_get_inet (peer), g_get_monotonic_time (), &n_suppressed))
    return;
  more = n_suppressed > 0 ? g_strdup_printf (" (and %" G_GUINT64_FORMAT " more of this address "
                                             "since the last line)",
                                n_suppressed)
                          : g_strdup ("");
  log_event ("access refused from %s: user \"%.64s\", %s %.255s: %s%s",
      access_peer_get_address (peer), user ? user : "", access_action_words[action], path, reason,
      more);
}

static void
note_refusal (AccessDecision *self, const gchar *user, const gchar *reason)
{
  count_refusal (self->access, reason, 1);
  log_refusal (self->access, self->peer, user, self->request.action, self->request.path, reason);
}

void
access_note_refusal (
    Access *self, AccessPeer *peer, AccessAction action, const gchar *path, const gchar *reason)
{
  count_refusal (self, reason, 1);
  log_refusal (self, peer, NULL, action, path, reason);
}

void
access_get_counts (Access *self, AccessCounts *counts)
{
  GHashTableIter iter;
  gpointer refusals;

  counts->addresses = throttle_count (self->throttle);
  counts->refused = g_array_new (FALSE, FALSE, sizeof (AccessRefusals));
  g_mutex_lock (&self->lock);
  counts->admitted = self->admitted;
  counts->challenged = self->challenged;
  counts->waiting = g_hash_table_size (self->waiting);
  g_hash_table_iter_init (&iter, self->refused);
  while (g_hash_table_iter_next (&iter, NULL, &refusals))
    g_array_append_vals (counts->refused, refusals, 1);
  g_mutex_unlock (&self->lock);
}

// ---- verdicts ----

// Sets the verdict, and tells it if access_ask() has returned.
static void
decide (AccessDecision *self, AccessVerdict verdict)
{
  Access *access = self->access;
  gboolean is_later;

  g_mutex_lock (&access->lock);
  access->admitted += verdict == ACCESS_ADMITTED;
  access->challenged += verdict == ACCESS_ASKED;
  g_mutex_unlock (&access->lock);
  g_mutex_lock (&self->lock);
  self->verdict = verdict;
  is_later = self->is_later;
  g_mutex_unlock (&self->lock);
  if (!is_later)
    return;
  self->done (self, self->data);
  access_decision_unref (self);
}

// Answers 401 with the challenges of all authenticators, or 403 if there are none.
static void
challenge (AccessDecision *self, const gchar *user, const gchar *reason)
{
  GArray *authenticators = self->access->authenticators;

  for (guint i = 0; i < authenticators->len; i++) {
    const Authenticator *authenticator = &g_array_index (authenticators, Authenticator, i);

    if (authenticator->ops->challenge)
      authenticator->ops->challenge (authenticator->self, self, self->challenges);
  }
  if (self->challenges->len == 0 && !reason)
    reason = NO_PERMISSION;
  if (reason)
    note_refusal (self, user, reason);
  g_ptr_array_add (self->challenges, NULL);
  decide (self, self->challenges->len > 1 ? ACCESS_ASKED : ACCESS_REFUSED);
}

static void
leave_throttle (AccessDecision *self, gboolean failed)
{
  Throttle *throttle = self->access->throttle;
  GInetAddress *address = access_peer_get_inet (self->peer);
  gint64 now = g_get_monotonic_time ();

  // A connection whose user was right before has not entered.
  if (!self->is_entered && (!failed || throttle_enter (throttle, address, now) < 0))
    return;
  throttle_leave (throttle, address, failed, now);
  self->is_entered = FALSE;
}

static void
admit (AccessDecision *self, const gchar *user)
{
  leave_throttle (self, FALSE);
  if (user) {
    access_peer_set_user (self->peer, user);
    self->user = g_strdup (user);
  }
  decide (self, ACCESS_ADMITTED);
}

static void
forbid (AccessDecision *self, const gchar *user, const gchar *reason)
{
  leave_throttle (self, FALSE);
  self->user = g_strdup (user);
  note_refusal (self, user, reason);
  decide (self, ACCESS_REFUSED);
}

static void
deny (AccessDecision *self, const gchar *user, const gchar *reason)
{
  leave_throttle (self, TRUE);
  access_peer_set_user (self->peer, NULL);
  challenge (self, user, reason);
}

static void
give_up (AccessDecision *self, const gchar *reason)
{
  leave_throttle (self, FALSE);
  note_refusal (self, self->credentials.user, reason);
  self->reason = reason;
  decide (self, ACCESS_BUSY);
}

// ---- authenticators ----

static void
ask_next (AccessDecision *self)
{
  GArray *authenticators = self->access->authenticators;

  if (self->authenticator < authenticators->len) {
    const Authenticator *authenticator =
        &g_array_index (authenticators, Authenticator, self->authenticator);

    authenticator->ops->ask (authenticator->self, self);
  } else if (self->has_credentials) {
    deny (self, self->credentials.user, self->credentials.user ? UNKNOWN_USER : WRONG_TOKEN);
  } else {
    challenge (self, NULL, NULL);
  }
}

static AccessBasis
get_basis (AuthAnswer answer)
{
  return answer == AUTH_ADMITS_ADDRESS   ? ACCESS_BY_ADDRESS
         : answer == AUTH_ADMITS_ANYBODY ? ACCESS_BY_NOTHING
                                         : ACCESS_BY_SECRET;
}

void
access_decision_answer (
    AccessDecision *self, AuthAnswer answer, const gchar *user, const gchar *reason)
{
  switch (answer) {
    case AUTH_PASSES:
      self->authenticator++;
      ask_next (self);
      break;
    case AUTH_ADMITS:
      admit (self, user);
      break;
    case AUTH_ADMITS_ADDRESS:
    case AUTH_ADMITS_ANYBODY:
      self->basis = get_basis (answer);
      admit (self, NULL);
      break;
    case AUTH_FORBIDS:
      forbid (self, user, reason);
      break;
    case AUTH_DENIES:
      deny (self, user, reason);
      break;
    case AUTH_RENEWS:
      leave_throttle (self, FALSE);
      self->is_stale = TRUE;
      challenge (self, user, NULL);
      break;
    case AUTH_FAILS:
      give_up (self, reason);
      break;
  }
}

gboolean
access_decision_lists (AccessDecision *self, const gchar *mount, AccessBasis *basis)
{
  GArray *authenticators = self->access->authenticators;
  gboolean admitted = access_decision_get_verdict (self) == ACCESS_ADMITTED;
  AuthAnswer answer = AUTH_PASSES;

  for (guint i = 0; i < authenticators->len && answer != AUTH_ADMITS; i++) {
    const Authenticator *authenticator = &g_array_index (authenticators, Authenticator, i);
    AuthAnswer next = authenticator->ops->lists
                          ? authenticator->ops->lists (authenticator->self, self,
                                admitted && self->authenticator == i, mount)
                          : AUTH_PASSES;

    if (next == AUTH_ADMITS || answer == AUTH_PASSES)
      answer = next;
  }
  *basis = get_basis (answer);
  return answer != AUTH_PASSES;
}

// ---- waiting ----

static gboolean
on_waited (gpointer data)
{
  AccessDecision *self = data;
  Access *access = self->access;

  g_mutex_lock (&access->lock);
  g_hash_table_steal (access->waiting, self);
  g_mutex_unlock (&access->lock);
  ask_next (self);
  access_decision_unref (self);
  return G_SOURCE_REMOVE;
}

static void
delay_case (AccessDecision *self, gint64 us)
{
  Access *access = self->access;
  gboolean closed;

  // With the lock held, so that on_waited() runs after this.
  g_mutex_lock (&access->lock);
  closed = access->closed;
  if (!closed) {
    g_hash_table_add (access->waiting, access_decision_ref (self));
    self->timer = g_timeout_add ((guint) (us / 1000 + 1), on_waited, self);
  }
  g_mutex_unlock (&access->lock);
  if (closed)
    give_up (self, TOO_MANY);
}

static void
enter (AccessDecision *self)
{
  gint64 us;

  if (!self->has_credentials || access_peer_had_user (self->peer, self->credentials.user)) {
    ask_next (self);
    return;
  }
  us = throttle_enter (
      self->access->throttle, access_peer_get_inet (self->peer), g_get_monotonic_time ());
  self->is_entered = us >= 0;
  if (us < 0)
    give_up (self, TOO_MANY);
  else if (us > 0)
    delay_case (self, us);
  else
    ask_next (self);
}

AccessDecision *
access_ask (
    Access *self, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data)
{
  AccessDecision *asked = access_decision_new (self, peer, request, done, data);
  gboolean is_later;

  asked->has_front = access_peer_is_forwarded (peer)
                         ? access_peer_has_tls (peer)
                         : g_atomic_int_get (&self->tls_in_front) && access_peer_is_loopback (peer)
                               && g_str_equal (access_peer_get_protocol (peer), "http");
  asked->may_use_basic = !access_decision_is_for_media (asked) || access_peer_has_tls (peer)
                         || asked->has_front || g_atomic_int_get (&self->basic);
  if (asked->credentials.kind == CREDENTIALS_BASIC && !asked->may_use_basic
      && access_takes_credentials (self)) {
    note_refusal (asked, asked->credentials.user, "password without TLS");
    credentials_clear (&asked->credentials);
    asked->has_credentials = request->token != NULL;
  }
  asked->has_credentials &= access_takes_credentials (self);
  access_decision_ref (asked); // for the authenticator
  enter (asked);
  g_mutex_lock (&asked->lock);
  asked->is_later = asked->verdict == ACCESS_PENDING;
  is_later = asked->is_later;
  g_mutex_unlock (&asked->lock);
  if (!is_later)
    access_decision_unref (asked);
  return asked;
}

// ---- construction ----

void
access_add_authenticator (Access *self, const AuthenticatorOps *ops, gpointer authenticator)
{
  Authenticator added = { ops, authenticator };

  g_array_append_val (self->authenticators, added);
}

static void
read_config (Access *self, const ProxyConfig *config)
{
  g_atomic_int_set (&self->basic, config->basic);
  g_atomic_int_set (&self->tls_in_front, config->http.tls_in_front);
  g_atomic_int_set (&self->takes_credentials, config->users != NULL || config->cluster.address);
  g_atomic_int_set (&self->guards_api, proxy_config_guards (config, ACCESS_API));
  g_atomic_int_set (&self->guards_metrics, proxy_config_guards (config, ACCESS_METRICS));
}

gboolean
access_is_guarded (Access *self, AccessAction action)
{
  return g_atomic_int_get (action == ACCESS_API ? &self->guards_api : &self->guards_metrics);
}

gboolean
access_takes_credentials (Access *self)
{
  return g_atomic_int_get (&self->takes_credentials);
}

Access *
access_new (const ProxyConfig *config)
{
  Access *self = g_new0 (Access, 1);

  self->authenticators = g_array_new (FALSE, FALSE, sizeof (Authenticator));
  self->throttle = throttle_new ();
  read_config (self, config);
  g_mutex_init (&self->lock);
  self->waiting = g_hash_table_new_full (NULL, NULL, (GDestroyNotify) access_decision_unref, NULL);
  self->refused = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free);
  count_refusal (self, WRONG_PASSWORD, 0); // so that the metric exists
  access_add_authenticator (self, &member_authenticator, member_authenticator_new (config));
  access_add_authenticator (self, &users_authenticator, users_authenticator_new (config));
  access_add_authenticator (self, &jwt_authenticator, jwt_authenticator_new (config));
  access_add_authenticator (self, &external_authenticator, external_authenticator_new (config));
  return self;
}

void
access_configure (Access *self, const ProxyConfig *config)
{
  read_config (self, config);
  for (guint i = 0; i < self->authenticators->len; i++) {
    const Authenticator *authenticator = &g_array_index (self->authenticators, Authenticator, i);

    if (authenticator->ops->configure)
      authenticator->ops->configure (authenticator->self, config);
  }
}

void
access_close (Access *self)
{
  GHashTableIter iter;
  g_autoptr (GPtrArray) cases = g_ptr_array_new ();
  gpointer asked;

  g_mutex_lock (&self->lock);
  self->closed = TRUE;
  g_hash_table_iter_init (&iter, self->waiting);
  while (g_hash_table_iter_next (&iter, &asked, NULL))
    g_ptr_array_add (cases, asked);
  g_hash_table_steal_all (self->waiting);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < cases->len; i++) {
    asked = g_ptr_array_index (cases, i);
    g_source_remove (((AccessDecision *) asked)->timer);
    give_up (asked, TOO_MANY);
    access_decision_unref (asked);
  }
}

void
access_free (Access *self)
{
  for (guint i = 0; i < self->authenticators->len; i++) {
    const Authenticator *authenticator = &g_array_index (self->authenticators, Authenticator, i);

    if (authenticator->ops->free)
      authenticator->ops->free (authenticator->self);
  }
  g_array_unref (self->authenticators);
  throttle_free (self->throttle);
  g_hash_table_unref (self->waiting);
  g_hash_table_unref (self->refused);
  g_mutex_clear (&self->lock);
  g_free (self);
}
