// SPDX-License-Identifier: LGPL-2.1-or-later
#include "content/content.h"

struct _Content {
  gatomicrefcount refs;
  const ContentKind *kind;
  gpointer object;
};

Content *
content_new (const ContentKind *kind, gpointer object)
{
  Content *self = g_new (Content, 1);

  g_atomic_ref_count_init (&self->refs);
  self->kind = kind;
  self->object = object;
  return self;
}

Content *
content_ref (Content *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
content_unref (Content *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  self->kind->release (self->object);
  g_free (self);
}

ContentState
content_ask (Content *self, GError **error)
{
  return self->kind->ask (self->object, error);
}

void
content_wait (Content *self, ContentDoneFunc done, gpointer data)
{
  self->kind->wait (self->object, done, data);
}

void
content_hand_over (Content *self)
{
  if (self->kind->hand_over)
    self->kind->hand_over (self->object);
}

const gchar *
content_get_path (Content *self)
{
  return self->kind->get_path (self->object);
}

const gchar *
content_get_mount_path (Content *self)
{
  return self->kind->get_mount_path (self->object);
}

const gchar *
content_get_label (Content *self)
{
  return self->kind->get_label (self->object);
}

gboolean
content_is_shared (Content *self)
{
  return self->kind->shared;
}

gpointer
content_get (Content *self, const ContentKind *kind)
{
  return self && self->kind == kind ? self->object : NULL;
}
