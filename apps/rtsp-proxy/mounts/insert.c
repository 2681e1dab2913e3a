// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mounts/insert.h"

#include <gio/gio.h>

#include "base/clock.h"
#include "base/timer.h"

// Interval at which an insertion looks whether the upstream has begun, in ms.
#define LOOK_MS 50

typedef struct {
  Presentation *main; // in use
  MountConfig *config;
  gchar *clip;
  gint64 at, length, since;
  InsertDone done; // NULL after it was called
  gpointer data;
} Insert;

static void
tell (Insert *self, const GError *wrong)
{
  if (self->done)
    self->done (self->data, wrong);
  self->done = NULL;
}

static void
insert_free (gpointer data)
{
  Insert *self = data;

  presentation_leave (self->main);
  mount_config_unref (self->config);
  g_free (self->clip);
  g_free (self);
}

static void
checked (gpointer insert, const GError *wrong)
{
  tell (insert, wrong);
}

static const InsertionCallbacks callbacks = { checked, insert_free };

// Returns the node of the mount's upstreams, or NULL while it does not run.
static Node *
find_node (Presentation *main)
{
  Node *node = presentation_get_node (main);

  while (node && node_get_input (node))
    node = node_get_input (node);
  return node;
}

static void
fail (Insert *self, gint code, const gchar *text)
{
  g_autoptr (GError) wrong = g_error_new_literal (G_IO_ERROR, code, text);

  tell (self, wrong);
  insert_free (self);
}

// Plans the clip when the upstream runs.
static gboolean
look (gpointer data)
{
  Insert *self = data;
  Node *node = find_node (self->main);
  const InsertionPlan plan = { self->config->insert.folder, self->clip, self->at, self->length };

  if (node && node_get_state (node) == NODE_UP && relay_n_tracks (node_get_relay (node)) > 0) {
    if (insertion_find (node))
      fail (self, G_IO_ERROR_EXISTS, "a clip is planned or played already; end it first");
    else
      insertion_new (node, &plan, &callbacks, self);
    return G_SOURCE_REMOVE;
  }
  if (presentation_ask (self->main, NULL) != PRESENTATION_DOWN
      && clock_now () - self->since < self->config->start_timeout_ms * (gint64) GST_MSECOND)
    return G_SOURCE_CONTINUE;
  fail (self, G_IO_ERROR_BUSY, "the mount has no media, so nothing can be inserted");
  return G_SOURCE_REMOVE;
}

// Returns why nothing can be inserted into the mount, or NULL.
static const gchar *
find_obstacle (const MountConfig *config)
{
  if (mount_config_get_titles (config) || config->interval_ms > 0)
    return "the mount serves stored titles; clips are inserted into live streams";
  if (!config->insert.folder)
    return "the mount has no folder of clips; set insert: {folder: FOLDER} in its configuration";
  return NULL;
}

void
mount_insert (Mount *mount, const InsertionPlan *plan, InsertDone done, gpointer data)
{
  MountConfig *config = mount_dup_config (mount);
  const gchar *obstacle = find_obstacle (config);
  GError *wrong = NULL;
  Insert *self;

  if (obstacle)
    wrong = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, obstacle);
  else if (mount_find_insertion (mount))
    wrong = g_error_new_literal (
        G_IO_ERROR, G_IO_ERROR_EXISTS, "a clip is planned or played already; end it first");
  if (wrong) {
    done (data, wrong);
    g_error_free (wrong);
    mount_config_unref (config);
    return;
  }
  self = g_new (Insert, 1);
  *self = (Insert) { .main = mount_dup_main (mount),
    .config = config,
    .clip = g_strdup (plan->clip),
    .at = plan->at,
    .length = plan->length,
    .since = clock_now (),
    .done = done,
    .data = data };
  presentation_use (self->main);
  if (look (self) == G_SOURCE_CONTINUE)
    timer_add (LOOK_MS, look, self);
}

Insertion *
mount_find_insertion (Mount *self)
{
  g_autoptr (Presentation) main = mount_dup_main (self);
  Node *node = find_node (main);

  return node ? insertion_find (node) : NULL;
}
