// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/pull.h"

void
pull_config_clear (PullConfig *config)
{
  g_clear_pointer (&config->uri, g_free);
  g_clear_pointer (&config->user, g_free);
  g_clear_pointer (&config->password, g_free);
  g_clear_pointer (&config->endpoint.address, g_free);
  g_clear_pointer (&config->endpoint.iface, g_free);
  gst_clear_caps (&config->rtp);
  g_clear_pointer (&config->path, g_free);
  g_clear_pointer (&config->launch, g_free);
  g_clear_pointer (&config->lack, g_free);
  tls_trust_clear (&config->trust);
}

// ---- keyframes ----

typedef struct {
  GWeakRef pipeline;
  PullAskFunc ask;
} Asker;

static void
ask (gpointer data, guint track, gint64 now)
{
  Asker *self = data;
  GstElement *pipeline = g_weak_ref_get (&self->pipeline);

  if (!pipeline)
    return;
  self->ask (pipeline, track);
  gst_object_unref (pipeline);
}

static void
asker_free (gpointer data)
{
  Asker *self = data;

  g_weak_ref_clear (&self->pipeline);
  g_free (self);
}

void
pull_set_asker (const PullContext *context, GstElement *pipeline, PullAskFunc asks)
{
  Asker *self = g_new0 (Asker, 1);

  g_weak_ref_init (&self->pipeline, pipeline);
  self->ask = asks;
  relay_source_set_asker (context->source, ask, self, asker_free);
}
