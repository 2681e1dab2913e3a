// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/users_authenticator.h"

#include "access/digest.h"
#include "access/peer.h"
#include "access/secrets.h"
#include "base/address.h"

#define WRONG_NETWORK "wrong network"

typedef struct {
  Secrets *secrets;
  gint
      elsewhere; // atomic: actions (1 << AccessAction) for which the external check takes passwords
  GMutex lock;
  UserSet *users; // NULL: the configuration says nothing about users; replaced with `lock` held
} Authenticator;

// A password that is checked.
typedef struct {
  AccessDecision *asked;
  UserSet *users;     // owns `user`
  const User *user;   // NULL: no user has this name
  gboolean elsewhere; // the user may not come from this address
} Check;

static UserSet *
dup_users (Authenticator *self)
{
  UserSet *users;

  g_mutex_lock (&self->lock);
  users = self->users ? user_set_ref (self->users) : NULL;
  g_mutex_unlock (&self->lock);
  return users;
}

// ---- what a user may do ----

static gboolean
may (const User *user, AccessDecision *asked)
{
  const AccessRequest *request = access_decision_get_request (asked);

  return request->lists || user_may (user, request->action, request->path, request->mount);
}

static gboolean
comes_from_there (const User *user, AccessDecision *asked)
{
  return user_comes_from (user, access_peer_get_inet (access_decision_get_peer (asked)));
}

// Decides about a client without its credentials. AUTH_PASSES: not everybody may, there or
// anywhere.
static AuthAnswer
answer_for_anybody (
    const UserSet *users, AccessDecision *asked, const gchar *path, const gchar *mount)
{
  AccessAction action = access_decision_get_request (asked)->action;
  AuthAnswer answer = AUTH_PASSES;

  if (!users) // the default: clients on this machine may read and publish
    return access_peer_is_loopback (access_decision_get_peer (asked)) && action != ACCESS_API
                   && action != ACCESS_METRICS
               ? AUTH_ADMITS_ADDRESS
               : AUTH_PASSES;
  for (guint i = 0; i < users->users->len && answer != AUTH_ADMITS_ANYBODY; i++) {
    const User *user = g_ptr_array_index (users->users, i);

    if (user->is_any && comes_from_there (user, asked) && user_may (user, action, path, mount))
      answer = user->networks->len > 0 ? AUTH_ADMITS_ADDRESS : AUTH_ADMITS_ANYBODY;
  }
  return answer;
}

static void
answer_for_user (AccessDecision *asked, const User *user)
{
  if (may (user, asked))
    access_decision_answer (asked, AUTH_ADMITS, user->name, NULL);
  else
    access_decision_answer (asked, AUTH_FORBIDS, user->name, "no permission");
}

// ---- passwords ----

static void
on_checked (gpointer data, SecretResult result)
{
  Check *check = data;

  if (result == SECRET_BUSY)
    access_decision_answer (
        check->asked, AUTH_FAILS, NULL, "too many passwords wait to be checked");
  else if (!check->user)
    access_decision_answer (check->asked, AUTH_PASSES, NULL, NULL);
  else if (check->elsewhere)
    access_decision_answer (check->asked, AUTH_DENIES, check->user->name, WRONG_NETWORK);
  else if (result == SECRET_RIGHT)
    answer_for_user (check->asked, check->user);
  else
    access_decision_answer (check->asked, AUTH_DENIES, check->user->name, WRONG_PASSWORD);
  user_set_unref (check->users);
  g_free (check);
}

// A name that no user has, and a user who may not come from there, cost as much as a wrong
// password, so that nobody can find out names.
static void
ask_basic (Authenticator *self, AccessDecision *asked, UserSet *users, const User *user,
    gboolean elsewhere)
{
  g_autofree gchar *client =
      address_dup_key (access_peer_get_inet (access_decision_get_peer (asked)));
  Check *check = g_new (Check, 1);
  SecretResult result;

  *check = (Check) { asked, user_set_ref (users), user, elsewhere };
  result = secrets_check (self->secrets, users, elsewhere ? NULL : user,
      access_decision_get_credentials (asked)->secret, client, on_checked, check);
  if (result != SECRET_LATER)
    on_checked (check, result);
}

static void
ask_digest (AccessDecision *asked, const User *user, gboolean elsewhere)
{
  DigestResult result = access_peer_check_digest (access_decision_get_peer (asked),
      access_decision_get_credentials (asked)->digest, user, access_decision_get_request (asked));

  if (!user)
    access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
  else if (elsewhere)
    access_decision_answer (asked, AUTH_DENIES, user->name, WRONG_NETWORK);
  else if (result == DIGEST_RIGHT)
    answer_for_user (asked, user);
  else if (result == DIGEST_STALE)
    access_decision_answer (asked, AUTH_RENEWS, user->name, "old nonce");
  else
    access_decision_answer (asked, AUTH_DENIES, user->name, WRONG_PASSWORD);
}

static void
ask_users (Authenticator *self, AccessDecision *asked, UserSet *users)
{
  const Credentials *credentials = access_decision_get_credentials (asked);
  const User *user =
      credentials->user ? g_hash_table_lookup (users->by_name, credentials->user) : NULL;
  gboolean elsewhere = user && !comes_from_there (user, asked);

  if (credentials->kind == CREDENTIALS_BASIC)
    ask_basic (self, asked, users, user, elsewhere);
  else if (credentials->kind == CREDENTIALS_DIGEST)
    ask_digest (asked, user, elsewhere);
  else
    access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
}

static void
decide (gpointer authenticator, AccessDecision *asked)
{
  const AccessRequest *request = access_decision_get_request (asked);
  g_autoptr (UserSet) users = dup_users (authenticator);
  AuthAnswer anybody = answer_for_anybody (users, asked, request->path, request->mount);

  if (anybody != AUTH_PASSES)
    access_decision_answer (asked, anybody, NULL, NULL);
  else if (users)
    ask_users (authenticator, asked, users);
  else
    access_decision_answer (asked, AUTH_PASSES, NULL, NULL);
}

static AuthAnswer
decide_listed (gpointer authenticator, AccessDecision *asked, gboolean admitted, const gchar *mount)
{
  const gchar *name = admitted ? access_decision_get_user (asked) : NULL;
  g_autoptr (UserSet) users = dup_users (authenticator);
  const User *user = users && name ? g_hash_table_lookup (users->by_name, name) : NULL;
  AccessAction action = access_decision_get_request (asked)->action;

  return user && user_may (user, action, mount, mount)
             ? AUTH_ADMITS
             : answer_for_anybody (users, asked, mount, mount);
}

// ---- challenges ----

// How many users have which secrets.
typedef struct {
  guint named, digest, md5, sha2;
} Secretive;

// Counts the users who may do anything of the kind, media or not.
static Secretive
count_secrets (const UserSet *users, gboolean for_media)
{
  Secretive n = { 0 };

  for (guint i = 0; i < users->users->len; i++) {
    const User *user = g_ptr_array_index (users->users, i);

    if (user->is_any || (for_media && !user_may_media (user)))
      continue;
    n.named++;
    n.digest += user->md5_digest || user->sha2_digest;
    n.md5 += user->md5_digest != NULL;
    n.sha2 += user->sha2_digest != NULL;
  }
  return n;
}

// Clients that know digest choose it, and do not try another way if it fails. So where everybody
// may send a password, digest is offered only if it serves everybody.
static gboolean
offers_digest (Authenticator *self, AccessDecision *asked, const Secretive *n)
{
  if (!access_decision_is_for_media (asked) || !access_decision_may_use_basic (asked))
    return access_decision_is_for_media (asked);
  return n->digest == n->named && !access_decision_has_front (asked)
         && !(g_atomic_int_get (&self->elsewhere)
              & 1 << access_decision_get_request (asked)->action);
}

// Clients that know one algorithm only often take the last challenge, and others the first that
// they know: SHA-256 comes first. A challenge that some users could not answer is left out if there
// is another one for all.
static void
append_challenges (gpointer authenticator, AccessDecision *asked, GPtrArray *lines)
{
  g_autoptr (UserSet) users = dup_users (authenticator);
  AccessPeer *peer = access_decision_get_peer (asked);
  gboolean stale = access_decision_is_stale (asked);
  Secretive n = { 0 };

  if (users)
    n = count_secrets (users, access_decision_is_for_media (asked));
  if (offers_digest (authenticator, asked, &n)) {
    if (n.sha2 > 0 && (n.sha2 == n.digest || n.md5 < n.digest))
      g_ptr_array_add (lines, access_peer_dup_challenge (peer, FALSE, stale));
    if (n.md5 > 0 && (n.md5 == n.digest || n.sha2 < n.digest))
      g_ptr_array_add (lines, access_peer_dup_challenge (peer, TRUE, stale));
  }
  if (n.named > 0 && access_decision_may_use_basic (asked))
    g_ptr_array_add (lines, g_strdup ("Basic realm=\"" USERS_REALM "\", charset=\"UTF-8\""));
}

// ---- construction ----

static void
read_users (gpointer authenticator, const ProxyConfig *config)
{
  Authenticator *self = authenticator;
  g_autoptr (UserSet) old = NULL;

  g_atomic_int_set (
      &self->elsewhere, config->external_auth ? (gint) ~config->external_auth->excluded : 0);
  g_mutex_lock (&self->lock);
  old = self->users;
  self->users = config->users ? user_set_ref (config->users) : NULL;
  g_mutex_unlock (&self->lock);
}

gpointer
users_authenticator_new (const ProxyConfig *config)
{
  Authenticator *self = g_new0 (Authenticator, 1);

  self->secrets = secrets_new ();
  g_mutex_init (&self->lock);
  read_users (self, config);
  return self;
}

static void
free_authenticator (gpointer authenticator)
{
  Authenticator *self = authenticator;

  secrets_free (self->secrets);
  g_clear_pointer (&self->users, user_set_unref);
  g_mutex_clear (&self->lock);
  g_free (self);
}

const AuthenticatorOps users_authenticator = { decide, append_challenges, decide_listed, read_users,
  free_authenticator };
