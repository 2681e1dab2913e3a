// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/look_again.h"

#include "base/threads.h"
#include "base/timer.h"
#include "sources/pull.h"

// One reading of the file. It outlives the LookAgain if the thread is late.
typedef struct {
  LookAgain *owner; // NULL: nobody wants the result; main thread only
  Options options;
  ProxyConfig *config; // NULL: the file is wrong
} Look;

struct _LookAgain {
  const Options *options;
  void (*found) (ProxyConfig *config, gpointer data);
  gpointer data;
  Timer *timer; // NULL: not wanted
  Look *look;   // NULL: none is running
};

static void
look_free (gpointer data)
{
  Look *look = data;

  options_clear (&look->options);
  g_clear_pointer (&look->config, proxy_config_free);
  g_free (look);
}

static gboolean
looked (gpointer data)
{
  Look *look = data;
  LookAgain *self = look->owner;

  if (!self)
    return G_SOURCE_REMOVE;
  self->look = NULL;
  if (look->config && self->timer)
    self->found (g_steal_pointer (&look->config), self->data);
  return G_SOURCE_REMOVE;
}

static void
read_file (gpointer data)
{
  Look *look = data;
  g_autoptr (GError) error = NULL;

  look->config = options_load_config (&look->options, &error);
  g_main_context_invoke_full (NULL, G_PRIORITY_DEFAULT, looked, look, look_free);
}

static gboolean
tick (gpointer data)
{
  LookAgain *self = data;

  if (self->look)
    return G_SOURCE_CONTINUE;
  self->look = g_new0 (Look, 1);
  self->look->owner = self;
  options_copy_config (&self->look->options, self->options);
  thread_run ("config", read_file, self->look);
  return G_SOURCE_CONTINUE;
}

LookAgain *
look_again_new (
    const Options *options, void (*found) (ProxyConfig *config, gpointer data), gpointer data)
{
  LookAgain *self = g_new0 (LookAgain, 1);

  *self = (LookAgain) { .options = options, .found = found, .data = data };
  return self;
}

void
look_again_free (LookAgain *self)
{
  look_again_set (self, FALSE);
  if (self->look)
    self->look->owner = NULL;
  g_free (self);
}

void
look_again_set (LookAgain *self, gboolean wanted)
{
  if (wanted && !self->timer)
    self->timer = timer_add_tick (PULL_LACK_MS, tick, self);
  else if (!wanted)
    g_clear_pointer (&self->timer, timer_remove);
}
