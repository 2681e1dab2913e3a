// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_reader.h"

#include "isolate/pool.h"
#include "stores/swarm_local.h"
#include "stores/swarm_remote.h"

// One of the two.
struct _SwarmReader {
  SwarmLocal *local;
  SwarmRemote *remote;
};

static gboolean isolated = TRUE;

void
swarm_reader_set_isolated (gboolean to)
{
  isolated = to;
}

void
swarm_reader_prepare (void)
{
  if (isolated)
    workers_keep_ready (SANDBOX_SWARM);
}

SwarmReader *
swarm_reader_new (const SwarmReaderTitle *title, guint64 rate, guint timeout_s, GError **error)
{
  SwarmReader *self = g_new0 (SwarmReader, 1);

  if (isolated)
    self->remote = swarm_remote_new (title, rate, timeout_s, error);
  else
    self->local = swarm_local_new (title, rate, timeout_s, error);
  if (!self->remote && !self->local)
    g_clear_pointer (&self, g_free);
  return self;
}

guint64
swarm_reader_get_size (const SwarmReader *self)
{
  return self->remote ? swarm_remote_get_size (self->remote) : swarm_local_get_size (self->local);
}

gsize
swarm_reader_read (SwarmReader *self, guint64 offset, guint8 *bytes, gsize length, GError **error)
{
  return self->remote ? swarm_remote_read (self->remote, offset, bytes, length, error)
                      : swarm_local_read (self->local, offset, bytes, length, error);
}

void
swarm_reader_rest (SwarmReader *self)
{
  if (self->remote)
    swarm_remote_rest (self->remote);
  else
    swarm_local_rest (self->local);
}

void
swarm_reader_get_figures (SwarmReader *self, StoreSwarmTitle *figures)
{
  if (self->remote)
    swarm_remote_get_figures (self->remote, figures);
  else
    swarm_local_get_figures (self->local, figures);
}

void
swarm_reader_free (SwarmReader *self)
{
  if (self->remote)
    swarm_remote_free (self->remote);
  else
    swarm_local_free (self->local);
  g_free (self);
}
