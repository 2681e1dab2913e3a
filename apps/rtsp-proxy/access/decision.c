// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/decision_private.h"

static void
copy_request (AccessRequest *to, const AccessRequest *from)
{
  *to = (AccessRequest) { .action = from->action,
    .path = g_strdup (from->path),
    .mount = g_strdup (from->mount),
    .prefix = from->prefix,
    .query = g_strdup (from->query),
    .user_agent = g_strdup (from->user_agent),
    .method = g_strdup (from->method),
    .authorization = g_strdup (from->authorization),
    .token = g_strdup (from->token),
    .lists = from->lists };
}

static void
clear_request (AccessRequest *self)
{
  g_free ((gchar *) self->path);
  g_free ((gchar *) self->mount);
  g_free ((gchar *) self->query);
  g_free ((gchar *) self->user_agent);
  g_free ((gchar *) self->method);
  g_free ((gchar *) self->authorization);
  g_free ((gchar *) self->token);
}

AccessDecision *
access_decision_new (
    Access *access, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data)
{
  AccessDecision *self = g_new0 (AccessDecision, 1);

  self->refs = 1;
  self->access = access;
  self->peer = access_peer_ref (peer);
  copy_request (&self->request, request);
  credentials_parse (request->authorization, &self->credentials);
  self->has_credentials = self->credentials.kind != CREDENTIALS_NONE || request->token;
  self->done = done;
  self->data = data;
  g_mutex_init (&self->lock);
  self->challenges = g_ptr_array_new_with_free_func (g_free);
  return self;
}

AccessDecision *
access_decision_ref (AccessDecision *self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
access_decision_unref (AccessDecision *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  clear_request (&self->request);
  credentials_clear (&self->credentials);
  g_ptr_array_unref (self->challenges);
  if (self->grant)
    self->free_grant (self->grant);
  access_peer_unref (self->peer);
  g_mutex_clear (&self->lock);
  g_free (self->user);
  g_free (self);
}

AccessVerdict
access_decision_get_verdict (AccessDecision *self)
{
  AccessVerdict verdict;

  g_mutex_lock (&self->lock);
  verdict = self->verdict;
  g_mutex_unlock (&self->lock);
  return verdict;
}

gboolean
access_decision_is_later (AccessDecision *self)
{
  gboolean later;

  g_mutex_lock (&self->lock);
  later = self->is_later;
  g_mutex_unlock (&self->lock);
  return later;
}

const gchar *const *
access_decision_get_challenges (AccessDecision *self)
{
  static const gchar *const none[] = { NULL };

  return self->challenges->len > 0 ? (const gchar *const *) self->challenges->pdata : none;
}

const gchar *
access_decision_get_user (AccessDecision *self)
{
  return self->user;
}

gchar *
access_decision_dup_identity (AccessDecision *self)
{
  return self->user ? g_strconcat ("user ", self->user, NULL)
                    : g_strconcat ("address ", access_peer_get_address (self->peer), NULL);
}

AccessBasis
access_decision_get_basis (AccessDecision *self)
{
  return self->basis;
}

const gchar *
access_decision_get_reason (AccessDecision *self)
{
  return self->reason;
}

void
access_decision_set_grant (AccessDecision *self, gpointer grant, GDestroyNotify free_grant)
{
  self->grant = grant;
  self->free_grant = free_grant;
}

gpointer
access_decision_get_grant (AccessDecision *self)
{
  return self->grant;
}

const AccessRequest *
access_decision_get_request (AccessDecision *self)
{
  return &self->request;
}

const Credentials *
access_decision_get_credentials (AccessDecision *self)
{
  return &self->credentials;
}

AccessPeer *
access_decision_get_peer (AccessDecision *self)
{
  return self->peer;
}

gboolean
access_decision_is_for_media (AccessDecision *self)
{
  return self->request.action != ACCESS_API && self->request.action != ACCESS_METRICS;
}

gboolean
access_decision_may_use_basic (AccessDecision *self)
{
  return self->may_use_basic;
}

gboolean
access_decision_has_front (AccessDecision *self)
{
  return self->has_front;
}

gboolean
access_decision_is_stale (AccessDecision *self)
{
  return self->is_stale;
}
