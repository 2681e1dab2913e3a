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
} KeyHandler;

static void
ask (gpointer data, guint track, gint64 now)
{
  KeyHandler *self = data;
  GstElement *pipeline = g_weak_ref_get (&self->pipeline);

  if (!pipeline)
    return;
  self->ask (pipeline, track);
  gst_object_unref (pipeline);
}

static void
key_handler_free (gpointer data)
{
  KeyHandler *self = data;

  g_weak_ref_clear (&self->pipeline);
  g_free (self);
}

void
pull_set_key_handler (const PullContext *context, GstElement *pipeline, PullAskFunc asks)
{
  KeyHandler *self = g_new0 (KeyHandler, 1);

  g_weak_ref_init (&self->pipeline, pipeline);
  self->ask = asks;
  relay_source_set_key_handler (context->source, ask, self, key_handler_free);
}
