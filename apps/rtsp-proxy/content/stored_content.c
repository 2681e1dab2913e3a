// SPDX-License-Identifier: LGPL-2.1-or-later
#include "content/stored_content.h"

static ContentState
ask (gpointer object, GError **error)
{
  GError *why = NULL;
  TitleState state = title_ask (object, &why);

  if (why) {
    g_propagate_prefixed_error (error, why, "%s: ", title_get_label (object));
    return CONTENT_FAILED;
  }
  return state == TITLE_READY ? CONTENT_READY : CONTENT_STARTING;
}

static void
wait (gpointer object, ContentDoneFunc done, gpointer data)
{
  title_wait (object, done, data);
}

static void
hand_over (gpointer object)
{
  title_hand_over (object);
}

static const gchar *
get_path (gpointer object)
{
  return title_get_path (object);
}

static const gchar *
get_mount_path (gpointer object)
{
  return title_get_mount_path (object);
}

static const gchar *
get_label (gpointer object)
{
  return title_get_label (object);
}

static void
release (gpointer object)
{
  title_leave (object);
}

static const ContentKind kind = { FALSE, ask, wait, hand_over, get_path, get_mount_path, get_label,
  release };

Content *
stored_content_new (Title *title)
{
  return content_new (&kind, title);
}

Title *
stored_content_get (Content *content)
{
  return content_get (content, &kind);
}
