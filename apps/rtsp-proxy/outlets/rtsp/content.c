// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/content.h"

#include "outlets/rtsp/media.h"

static void
clear (gpointer content)
{
  Content *self = content;

  if (self->live)
    live_media_unuse (self->live);
  g_clear_pointer (&self->live, live_media_unref);
  g_clear_pointer (&self->presentation, presentation_leave);
  g_clear_pointer (&self->title, title_leave);
}

Content *
content_new (GstRTSPMountPoints *points, const Resolved *target, GError **error)
{
  Content *self = g_atomic_rc_box_new0 (Content);

  if (target->title)
    self->title = mounts_open_title (target, error);
  else
    self->presentation = mounts_use (target, error);
  if (self->presentation)
    self->live = media_find_live (points, presentation_get_path (self->presentation));
  if (self->live)
    live_media_use (self->live);
  if (!self->title && !self->presentation)
    g_clear_pointer (&self, content_unref);
  return self;
}

Content *
content_ref (Content *self)
{
  return g_atomic_rc_box_acquire (self);
}

void
content_unref (Content *self)
{
  g_atomic_rc_box_release_full (self, clear);
}

gboolean
content_is (const Content *self, const Resolved *target)
{
  if (target->title)
    return self && self->title && mount_has_title (target->mount, self->title, target->title);
  if (!self || !self->presentation)
    return FALSE;
  if (target->path)
    return g_str_equal (target->path, content_get_path (self));
  // A session of the mount's stored title.
  return g_str_equal (mount_get_path (target->mount), content_get_mount_path (self));
}

static PresentationState
ask_title (Title *title, GError **error)
{
  TitleState state = title_ask (title, error);

  if (state == TITLE_FAILED)
    g_prefix_error (error, "%s: ", title_get_label (title));
  return state == TITLE_READY    ? PRESENTATION_READY
         : state == TITLE_FAILED ? PRESENTATION_DOWN
                                 : PRESENTATION_STARTING;
}

PresentationState
content_ask (Content *self, GError **error)
{
  if (self->title)
    return ask_title (self->title, error);
  return self->live ? live_media_ask (self->live, error)
                    : presentation_ask (self->presentation, error);
}

void
content_wait (Content *self, PresentationDoneFunc done, gpointer data)
{
  if (self->title)
    title_wait (self->title, done, data);
  else if (self->live)
    live_media_wait (self->live, done, data);
  else
    done (data);
}

void
content_hand_over (Content *self)
{
  if (self->title)
    title_hand_over (self->title);
}

const gchar *
content_get_path (const Content *self)
{
  return self->title ? title_get_path (self->title) : presentation_get_path (self->presentation);
}

const gchar *
content_get_mount_path (const Content *self)
{
  return self->title ? title_get_mount_path (self->title)
                     : presentation_get_mount_path (self->presentation);
}

const gchar *
content_get_label (const Content *self)
{
  if (!self)
    return "?";
  return self->title ? title_get_label (self->title) : presentation_get_label (self->presentation);
}
