// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/mount_pull.h"

#include <string.h>

#define SCHEME "mount:"

static const MountFinder *finder;
static gpointer finder_data;

typedef struct {
  const PullContext *context;
  gpointer use;
  void (*leave) (gpointer use);
  Relay *relay;
  GDestroyNotify closed;
  gpointer data;
} MountPull;

void
mount_pull_set_finder (const MountFinder *new_finder, gpointer data)
{
  finder = new_finder;
  finder_data = data;
}

// ---- the sink of the mount's relay ----

static void
begun (gpointer sink, Relay *from, GPtrArray *caps, gint64 start)
{
  const PullContext *context = ((MountPull *) sink)->context;

  context->callbacks->begun (
      context->owner, relay_source_begin_from (context->source, caps, from, start));
}

static void
push (gpointer sink, const RelayPacket *packet)
{
  const PullContext *context = ((MountPull *) sink)->context;

  (packet->more ? relay_push_more : relay_push) (
      context->source, packet->track, packet->buffer, packet->now, packet->base);
  if (!g_atomic_int_get (&context->cancelled))
    context->callbacks->packet (context->owner, packet->now);
}

static void
mapped (gpointer sink, guint track, const WeirNtpMap *map)
{
  relay_set_ntp_map (((MountPull *) sink)->context->source, track, map);
}

static void
counted (gpointer sink, RelayCount what, guint64 n)
{
  relay_count (((MountPull *) sink)->context->source, what, n);
}

static void
ended (gpointer sink)
{
  MountPull *self = sink;

  self->closed (self->data);
  relay_unref (self->relay);
  g_free (self);
}

static const RelaySink functions = { begun, push, mapped, ended, .counted = counted };

// ---- a run ----

static void
ask_for_key (gpointer relay, guint track, gint64 now)
{
  relay_ask_key (relay, track, now);
}

static void
release_relay (gpointer relay)
{
  relay_unref (relay);
}

static gpointer
start (const PullContext *context, GError **error)
{
  const gchar *path = mount_pull_get_path (context->config);
  Relay *relay = NULL;
  gpointer use = NULL;
  MountPull *self;

  if (finder)
    use = finder->use (finder_data, path, &relay, error);
  else
    g_set_error_literal (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "the proxy has no mounts any more");
  if (!use)
    return NULL;
  self = g_new0 (MountPull, 1);
  *self = (MountPull) { context, use, finder->leave, relay_ref (relay), NULL, NULL };
  relay_source_set_key_handler (context->source, ask_for_key, relay_ref (relay), release_relay);
  relay_add_sink (relay, &functions, self, G_MAXUINT32, relay_get_time (relay));
  return self;
}

static void
close_run (gpointer run, GDestroyNotify closed, gpointer data)
{
  MountPull *self = run;
  void (*leave) (gpointer use) = self->leave;
  gpointer use = self->use;

  relay_source_set_key_handler (self->context->source, NULL, NULL, NULL);
  self->closed = closed;
  self->data = data;
  relay_remove_sink (self->relay, self); // may free it
  leave (use);
}

static const PullLight light = { start, close_run, NULL, FALSE };

// ---- the configuration ----

void
mount_pull_init (PullConfig *config, const gchar *path)
{
  config->uri = g_strconcat (SCHEME, path, NULL);
  config->light = &light;
  config->parser = PULL_PASSES;
}

const gchar *
mount_pull_get_path (const PullConfig *config)
{
  return config->light == &light ? config->uri + strlen (SCHEME) : NULL;
}
