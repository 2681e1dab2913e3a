// SPDX-License-Identifier: LGPL-2.1-or-later
#include "graph/node_link.h"

#include "graph/node_private.h"
#include "sources/relay_pull.h"

typedef struct {
  Node *from;
  const PullContext *context;
  RelayPull *pull;
} Link;

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
  Link *self = g_new (Link, 1);

  // The relay behind the link takes the run like that of any upstream: with no common time.
  *self = (Link) { node_ref (from), context, relay_pull_new (context, from->relay, FALSE) };
  node_use (from, &node_callbacks, self);
  return self;
}

static void
close_link (gpointer run, GDestroyNotify closed, gpointer data)
{
  Link *self = run;

  node_unuse (self->from, self);
  relay_pull_close (self->pull, closed, data);
  node_unref (self->from);
  g_free (self);
}

const PullLight node_link = { start_link, close_link };
const PullLight node_link_awaiting = { start_link, close_link, .awaits = TRUE };
