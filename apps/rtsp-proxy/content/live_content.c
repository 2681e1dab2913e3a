// SPDX-License-Identifier: LGPL-2.1-or-later
#include "content/live_content.h"

#include <gio/gio.h>

static ContentState
ask (gpointer object, GError **error)
{
  switch (presentation_ask (object)) {
    case PRESENTATION_READY:
      return CONTENT_READY;
    case PRESENTATION_STARTING:
      return CONTENT_STARTING;
    default:
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s has no media at the moment",
          presentation_get_label (object));
      return CONTENT_FAILED;
  }
}

static void
wait (gpointer object, ContentDoneFunc done, gpointer data)
{
  presentation_wait (object, done, data);
}

static const gchar *
get_path (gpointer object)
{
  return presentation_get_path (object);
}

static const gchar *
get_mount_path (gpointer object)
{
  return presentation_get_mount_path (object);
}

static const gchar *
get_label (gpointer object)
{
  return presentation_get_label (object);
}

static void
release (gpointer object)
{
  presentation_unuse (object);
  presentation_unref (object);
}

static const ContentKind kind = { TRUE, ask, wait, NULL, get_path, get_mount_path, get_label,
  release };

Content *
live_content_new (Presentation *presentation)
{
  return content_new (&kind, presentation);
}

Presentation *
live_content_get (Content *content)
{
  return content_get (content, &kind);
}
