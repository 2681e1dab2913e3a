// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/own_key.h"

#include "cluster/etcd_requests.h"

struct _OwnKey {
  Etcd *etcd;
  gchar *key;
  gint64 lease;       // 0: none
  gchar *wish, *said; // what the key is to say and says; NULL: no key
  gboolean unsure;    // `said` may not have reached etcd
  gboolean writing;   // an answer is awaited
};

static void write_key (OwnKey *self);

static void
on_written (JsonObject *answer, const GError *error, gpointer data)
{
  OwnKey *self = data;

  self->writing = FALSE;
  if (error)
    self->unsure = TRUE;
  else
    write_key (self);
}

static void
write_key (OwnKey *self)
{
  const gint64 lease = self->lease;

  if (!lease || self->writing || (!self->unsure && g_strcmp0 (self->said, self->wish) == 0))
    return;
  g_free (self->said);
  self->said = g_strdup (self->wish);
  self->unsure = FALSE;
  self->writing = TRUE;
  if (self->wish)
    etcd_call (
        self->etcd, "/v3/kv/put", etcd_put_body (self->key, self->wish, lease), on_written, self);
  else
    etcd_call (self->etcd, "/v3/kv/txn", etcd_delete_body (self->key, lease), on_written, self);
}

void
own_key_set (OwnKey *self, const gchar *value, gint64 lease)
{
  g_free (self->wish);
  self->wish = g_strdup (value);
  self->lease = lease;
  write_key (self);
}

void
own_key_lose (OwnKey *self)
{
  g_clear_pointer (&self->said, g_free);
  self->unsure = FALSE;
  self->lease = 0;
}

gboolean
own_key_is_gone (OwnKey *self)
{
  return !self->said && !self->unsure && !self->writing;
}

OwnKey *
own_key_new (Etcd *etcd, gchar *key)
{
  OwnKey *self = g_new0 (OwnKey, 1);

  *self = (OwnKey) { .etcd = etcd, .key = key };
  return self;
}

void
own_key_free (OwnKey *self)
{
  g_free (self->key);
  g_free (self->wish);
  g_free (self->said);
  g_free (self);
}
