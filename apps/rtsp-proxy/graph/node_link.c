// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/node_link.h"

#include "graph/node_private.h"

typedef struct {
  Node *from;
  const PullContext *context;
  GDestroyNotify closed;
  gpointer data;
} Link;

// ---- packets; from any thread ----

// The relay behind the link takes the run like that of any upstream: with tracks of its own, and
// with no common time.
static void
on_begun (gpointer sink, Relay *from, GPtrArray *caps, gint64 start)
{
  const PullContext *context = ((Link *) sink)->context;

  context->callbacks->begun (context->owner, relay_source_begin (context->source, caps));
}

static void
on_packet (gpointer sink, const RelayPacket *packet)
{
  const PullContext *context = ((Link *) sink)->context;

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
  relay_set_ntp_map (((Link *) sink)->context->source, track, map);
}

static void
on_counted (gpointer sink, RelayCount what, guint64 n)
{
  relay_count (((Link *) sink)->context->source, what, n);
}

// No further packets come.
static void
on_removed (gpointer sink)
{
  Link *self = sink;

  self->closed (self->data);
  g_free (self);
}

static const RelaySink sink_functions = { on_begun, on_packet, on_mapped, on_removed,
  .counted = on_counted };

static void
ask_for_key (gpointer from, guint track, gint64 now)
{
  relay_ask_key (from, track, now);
}

static void
unref_relay (gpointer relay)
{
  relay_unref (relay);
}

// ---- the node ----

static void
on_down (gpointer user, const gchar *reason, guint retry_ms)
{
  const PullContext *context = ((Link *) user)->context;

  context->callbacks->ended (context->owner, reason);
}

static void
on_cued (gpointer user, const WeirCue *cue)
{
  const PullContext *context = ((Link *) user)->context;

  context->callbacks->cue (context->owner, cue);
}

static const NodeCallbacks node_callbacks = { .down = on_down, .cued = on_cued };

static gpointer
start_link (const PullContext *context, GError **error)
{
  Node *from = ((Inlet *) context->data)->from;
  Link *self = g_new0 (Link, 1);

  self->from = node_ref (from);
  self->context = context;
  relay_source_set_key_handler (context->source, ask_for_key, relay_ref (from->relay), unref_relay);
  relay_add_sink (from->relay, &sink_functions, self, G_MAXUINT32, relay_get_time (from->relay));
  node_use (from, &node_callbacks, self);
  return self;
}

static void
close_link (gpointer run, GDestroyNotify closed, gpointer data)
{
  Link *self = run;
  Node *from = self->from;

  relay_source_set_key_handler (self->context->source, NULL, NULL, NULL);
  self->closed = closed;
  self->data = data;
  node_unuse (from, self);
  relay_remove_sink (from->relay, self); // frees the link
  node_unref (from);
}

const PullLight node_link = { start_link, close_link };
const PullLight node_link_awaiting = { start_link, close_link, .awaits = TRUE };
