// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/etcd_lease.h"

#include "base/clock.h"
#include "base/timer.h"

#define TICK_MS 500
#define NS_PER_S G_GINT64_CONSTANT (1000000000)

struct _EtcdLease {
  Etcd *etcd;
  guint ttl_s;
  const EtcdLeaseOps *ops;
  gpointer owner;
  gint64 id;      // 0: none
  gint64 renewed; // ns; when the last request that was granted was sent
  gint64 asked;   // ns; when the one under way was sent; 0: none is
  gboolean revoked;
  Timer *timer;
};

gint64
etcd_lease_get_id (EtcdLease *self)
{
  return self->id;
}

static void
lose (EtcdLease *self)
{
  if (!self->id)
    return;
  self->id = 0;
  self->ops->lost (self->owner);
}

static void
on_granted (JsonObject *answer, const GError *error, gpointer data)
{
  EtcdLease *self = data;
  const gint64 asked = self->asked, id = answer ? etcd_get_number (answer, "ID") : 0;

  self->asked = 0;
  if (self->revoked)
    return;
  if (error && error->domain == ETCD_ERROR)
    self->ops->refused (self->owner, error);
  if (!id)
    return;
  self->id = id;
  self->renewed = asked;
  self->ops->granted (self->owner, id);
}

static void
on_renewed (JsonObject *answer, const GError *error, gpointer data)
{
  EtcdLease *self = data;
  const gint64 asked = self->asked;
  JsonObject *result = answer ? etcd_get_object (answer, "result") : NULL;

  self->asked = 0;
  if (self->revoked || !self->id)
    return;
  if (result && etcd_get_number (result, "TTL") > 0)
    self->renewed = asked;
  else if (result || (error && error->domain == ETCD_ERROR))
    lose (self); // etcd does not know it
}

static JsonBuilder *
new_body (EtcdLease *self)
{
  JsonBuilder *body = json_builder_new ();

  json_builder_begin_object (body);
  if (self->id)
    etcd_add_number (body, "ID", self->id);
  else
    etcd_add_number (body, "TTL", self->ttl_s);
  json_builder_end_object (body);
  return body;
}

static void
ask (EtcdLease *self, gint64 now)
{
  self->asked = now;
  if (self->id)
    etcd_call (self->etcd, "/v3/lease/keepalive", new_body (self), on_renewed, self);
  else
    etcd_call (self->etcd, "/v3/lease/grant", new_body (self), on_granted, self);
}

static gboolean
on_tick (gpointer data)
{
  EtcdLease *self = data;
  const gint64 now = clock_now (), ttl = self->ttl_s * NS_PER_S;

  if (self->id && now - self->renewed >= ttl)
    lose (self);
  if (!self->asked && (!self->id || now - self->renewed >= ttl / 3))
    ask (self, now);
  return G_SOURCE_CONTINUE;
}

void
etcd_lease_revoke (EtcdLease *self, EtcdDone done, gpointer data)
{
  g_clear_pointer (&self->timer, timer_remove);
  self->revoked = TRUE;
  if (self->id)
    etcd_call (self->etcd, "/v3/lease/revoke", new_body (self), done, data);
  else
    done (NULL, NULL, data);
  self->id = 0;
}

EtcdLease *
etcd_lease_new (Etcd *etcd, guint ttl_s, const EtcdLeaseOps *ops, gpointer owner)
{
  EtcdLease *self = g_new0 (EtcdLease, 1);

  *self = (EtcdLease) { .etcd = etcd, .ttl_s = ttl_s, .ops = ops, .owner = owner };
  self->timer = timer_add (TICK_MS, on_tick, self);
  ask (self, clock_now ());
  return self;
}

void
etcd_lease_free (EtcdLease *self)
{
  g_clear_pointer (&self->timer, timer_remove);
  g_free (self);
}
