// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/caller/caller.h"

#include "access/plain.h"
#include "base/clock.h"
#include "base/log.h"

#define NO_PUBLISHERS "the mount takes no publishers any more"

// ---- what callers share ----

static void
context_clear (gpointer data)
{
  CallerContext *self = data;

  connections_unref (self->connections);
  g_mutex_clear (&self->lock);
}

CallerContext *
caller_context_new (Mounts *mounts, Access *access, const gchar *name, GError **error)
{
  Loop *loop = loop_new (&(LoopSettings) { .name = name }, error);
  CallerContext *self;

  if (!loop)
    return NULL;
  self = g_atomic_rc_box_new0 (CallerContext);
  self->mounts = mounts;
  self->access = access;
  self->connections = connections_new ();
  g_mutex_init (&self->lock);
  self->loop = loop;
  return self;
}

void
caller_context_stop (CallerContext *self)
{
  g_mutex_lock (&self->lock);
  self->has_ended = TRUE;
  g_mutex_unlock (&self->lock);
  loop_free (self->loop);
}

void
caller_context_unref (CallerContext *self)
{
  g_atomic_rc_box_release_full (self, context_clear);
}

gboolean
caller_context_post (CallerContext *self, void (*function) (gpointer data), gpointer data)
{
  gboolean has_ended;

  g_mutex_lock (&self->lock);
  has_ended = self->has_ended;
  if (!has_ended)
    loop_post (self->loop, function, data);
  g_mutex_unlock (&self->lock);
  return !has_ended;
}

// ---- references ----

void
caller_init (Caller *self, const CallerOps *ops, CallerContext *context, GInetSocketAddress *from,
    const gchar *scheme)
{
  GInetAddress *address = g_inet_socket_address_get_address (from);
  g_autofree gchar *ip = g_inet_address_to_string (address);

  self->ops = ops;
  self->context = g_atomic_rc_box_acquire (context);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->address = g_object_ref (address);
  self->peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));
  self->visitor = access_peer_new (ip, scheme);
}

gpointer
caller_ref (Caller *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
caller_unref (gpointer data)
{
  Caller *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->demand, demand_free);
  g_clear_pointer (&self->asked, access_decision_unref);
  access_peer_unref (self->visitor);
  connections_leave (self->context->connections, self->address);
  g_object_unref (self->address);
  g_mutex_clear (&self->lock);
  caller_context_unref (self->context);
  g_free (self->closing);
  g_free (self->peer);
  self->ops->free (self);
}

// ---- other threads ----

static void
on_woken (gpointer data)
{
  Caller *self = data;

  if (!self->has_left)
    self->ops->woken (self);
  caller_unref (self);
}

void
caller_wake (gpointer data)
{
  Caller *self = data;

  if (!caller_context_post (self->context, on_woken, caller_ref (self)))
    caller_unref (self);
}

void
caller_close (gpointer data, const gchar *reason)
{
  Caller *self = data;

  g_mutex_lock (&self->lock);
  if (!self->closing)
    self->closing = g_strdup (reason);
  g_mutex_unlock (&self->lock);
  caller_wake (self);
}

const gchar *
caller_get_closing (Caller *self)
{
  const gchar *closing;

  g_mutex_lock (&self->lock);
  closing = self->closing;
  g_mutex_unlock (&self->lock);
  return closing;
}

static void
on_decided (AccessDecision *decided, gpointer data)
{
  caller_wake (data);
  caller_unref (data);
}

// ---- access ----

void
caller_ask (
    Caller *self, AccessAction action, const gchar *user, const gchar *secret, const gchar *token)
{
  const gchar *path = self->demand->path;
  const AccessRequest request = {
    .action = action,
    .path = path,
    .mount = mounts_has (self->context->mounts, path) ? path : NULL,
    .query = self->demand->query,
    .token = token,
  };

  self->asked = access_ask_plain (
      self->context->access, self->visitor, &request, user, secret, on_decided, caller_ref (self));
  if (!access_decision_is_later (self->asked))
    caller_unref (self);
}

// ---- publishing ----

PublishCheck
caller_check_publish (Caller *self, const gchar **why)
{
  g_autofree gchar *identity = access_decision_dup_identity (self->asked);

  return publish_check (self->context->mounts, self->demand->path, identity, why);
}

static MountConfig *
dup_config (Caller *self)
{
  gboolean exists;

  return mounts_dup_publish_config (self->context->mounts, self->demand->path, &exists);
}

gboolean
caller_publish (Caller *self, GError **error)
{
  MountConfig *config = dup_config (self);
  gchar *identity;

  if (config && !mounts_make_path (self->context->mounts, self->demand->path, error)) {
    mount_config_unref (config);
    return FALSE;
  }
  if (!config) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, NO_PUBLISHERS);
    return FALSE;
  }
  identity = access_decision_dup_identity (self->asked);
  self->published = published_stream_new (
      &(PublishedStreamSettings) {
          { self->demand->path, self->peer, identity, config->takeover, clock_now () },
          self->ops->protocol, config->pull.connect_timeout_ms, config->pull.read_timeout_ms },
      caller_close, caller_ref (self), caller_unref, error);
  g_free (identity);
  mount_config_unref (config);
  if (self->published)
    log_event ("publisher %s in: %s over %s", self->peer, self->demand->path, self->ops->protocol);
  else
    caller_unref (self);
  return self->published != NULL;
}

void
caller_check_mount (Caller *self)
{
  MountConfig *config = dup_config (self);

  if (config)
    mount_config_unref (config);
  else
    caller_close (self, NO_PUBLISHERS);
}

static void
end_publishing (Caller *self, const gchar *reason)
{
  g_autofree gchar *whole = g_strdup_printf ("the publisher has left (%s)", reason);

  log_event ("publisher %s out: %s: %s", self->peer, self->demand->path, reason);
  published_stream_end (self->published, whole);
}

void
caller_leave (Caller *self, const gchar *reason)
{
  self->has_left = TRUE;
  if (self->published)
    end_publishing (self, reason);
  caller_unref (self);
}
