// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/relay_pull.h"

struct _RelayPull {
  const PullContext *context;
  Relay *from;
  gboolean common;
  GDestroyNotify closed;
  gpointer data;
};

// ---- the sink of the relay; from any thread ----

static void
on_begun (gpointer sink, Relay *from, GPtrArray *caps, gint64 start)
{
  RelayPull *self = sink;
  const PullContext *context = self->context;

  context->callbacks->begun (
      context->owner, self->common ? relay_source_begin_from (context->source, caps, from, start)
                                   : relay_source_begin (context->source, caps));
}

static void
on_packet (gpointer sink, const RelayPacket *packet)
{
  const PullContext *context = ((RelayPull *) sink)->context;

  if (g_atomic_int_get (&context->cancelled)) {
    gst_buffer_unref (packet->buffer);
    return;
  }
  (packet->more ? relay_push_more : relay_push) (
      context->source, packet->track, packet->buffer, packet->now, packet->base);
  context->callbacks->packet (context->owner, packet->now);
}

static void
on_mapped (gpointer sink, guint track, const WeirNtpMap *map)
{
  relay_set_ntp_map (((RelayPull *) sink)->context->source, track, map);
}

static void
on_counted (gpointer sink, RelayCount what, guint64 n)
{
  relay_count (((RelayPull *) sink)->context->source, what, n);
}

// No further packets come.
static void
on_removed (gpointer sink)
{
  RelayPull *self = sink;

  self->closed (self->data);
  relay_unref (self->from);
  g_free (self);
}

static const RelaySink functions = { on_begun, on_packet, on_mapped, on_removed,
  .counted = on_counted };

// ---- the run ----

RelayPull *
relay_pull_new (const PullContext *context, Relay *from, gboolean common)
{
  RelayPull *self = g_new0 (RelayPull, 1);

  *self = (RelayPull) { context, relay_ref (from), common };
  relay_source_ask_from (context->source, from);
  relay_add_sink (from, &functions, self, G_MAXUINT32, relay_get_time (from));
  return self;
}

void
relay_pull_close (RelayPull *self, GDestroyNotify closed, gpointer data)
{
  relay_source_set_key_handler (self->context->source, NULL, NULL, NULL);
  self->closed = closed;
  self->data = data;
  relay_remove_sink (self->from, self); // may free it
}
