// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/mount_pull.h"

#include <string.h>

#include "sources/relay_pull.h"

#define SCHEME "mount:"

static const MountFinder *finder;
static gpointer finder_data;

typedef struct {
  RelayPull *pull;
  gpointer use;
  void (*leave) (gpointer use);
} MountPull;

void
mount_pull_set_finder (const MountFinder *new_finder, gpointer data)
{
  finder = new_finder;
  finder_data = data;
}

// ---- a run ----

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
  self = g_new (MountPull, 1);
  *self = (MountPull) { relay_pull_new (context, relay, TRUE), use, finder->leave };
  return self;
}

static void
close_run (gpointer run, GDestroyNotify closed, gpointer data)
{
  MountPull *self = run;

  relay_pull_close (self->pull, closed, data);
  self->leave (self->use);
  g_free (self);
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
