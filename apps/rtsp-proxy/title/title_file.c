// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_file.h"

G_DEFINE_ABSTRACT_TYPE (TitleFile, title_file, GST_TYPE_BIN)

#define CLASS(self) ((TitleFileClass *) G_OBJECT_GET_CLASS (self))

void
title_file_mute (GstElement *self, guint track, gboolean muted)
{
  TitleFile *file = (TitleFile *) self;

  if (track >= RELAY_MAX_TRACKS)
    return;
  g_atomic_int_set (&file->muted[track], muted);
  if (CLASS (self)->mute)
    CLASS (self)->mute (file, track, muted);
}

void
title_file_fill_gaps (GstElement *self)
{
  CLASS (self)->fill_gaps ((TitleFile *) self);
}

GstClockTime
title_file_get_lead (GstElement *self)
{
  TitleFile *file = (TitleFile *) self;
  GstClockTime least = GST_CLOCK_TIME_NONE;

  for (guint i = 0; i < RELAY_MAX_TRACKS; i++) {
    if (!g_atomic_int_get (&file->muted[i]))
      least = MIN (least, CLASS (self)->get_lead (file, i));
  }
  return least;
}

static gboolean
take_longer (GstElement *bin, GstPad *pad, gpointer longest)
{
  gint64 duration;

  if (gst_pad_query_duration (pad, GST_FORMAT_TIME, &duration))
    *(gint64 *) longest = MAX (*(gint64 *) longest, duration);
  return TRUE;
}

gint64
title_file_get_duration (GstElement *self)
{
  gint64 longest = -1;

  gst_element_foreach_src_pad (self, take_longer, &longest);
  return longest;
}

gboolean
title_file_is_raw (GstElement *self)
{
  return ((TitleFile *) self)->raw;
}

void
title_file_set_left_out (TitleFile *self, const gchar *text)
{
  GST_OBJECT_LOCK (self);
  g_free (self->left_out);
  self->left_out = g_strdup (text);
  GST_OBJECT_UNLOCK (self);
}

gchar *
title_file_dup_left_out (GstElement *self)
{
  gchar *text;

  GST_OBJECT_LOCK (self);
  text = g_strdup (((TitleFile *) self)->left_out);
  GST_OBJECT_UNLOCK (self);
  return text;
}

gboolean
title_file_is_cut_off (GstElement *self)
{
  return CLASS (self)->is_cut_off && CLASS (self)->is_cut_off ((TitleFile *) self);
}

void
title_file_give_up (GstElement *self)
{
  g_autoptr (GError) error =
      g_error_new_literal (GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, "it took too long");

  if (CLASS (self)->give_up)
    CLASS (self)->give_up ((TitleFile *) self);
  title_file_post_failure ((TitleFile *) self, error, NULL);
}

// ---- failures ----

void
title_file_post_failure (TitleFile *self, const GError *error, const gchar *debug)
{
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_warning (GST_OBJECT (self), (GError *) error, debug));
}

gboolean
title_file_parse_failure (GstElement *self, GstMessage *message, GError **error, gchar **debug)
{
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, error, debug);
  else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING
           && GST_MESSAGE_SRC (message) == GST_OBJECT (self))
    gst_message_parse_warning (message, error, debug);
  else
    return FALSE;
  return TRUE;
}

static void
title_file_handle_message (GstBin *bin, GstMessage *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *debug = NULL;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR) {
    GST_BIN_CLASS (title_file_parent_class)->handle_message (bin, message);
    return;
  }
  gst_message_parse_error (message, &error, &debug);
  title_file_post_failure ((TitleFile *) bin, error, debug);
  gst_message_unref (message);
}

static void
title_file_init (TitleFile *self)
{
}

static void
title_file_finalize (GObject *object)
{
  g_free (((TitleFile *) object)->left_out);
  G_OBJECT_CLASS (title_file_parent_class)->finalize (object);
}

static void
title_file_class_init (TitleFileClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = title_file_finalize;
  GST_BIN_CLASS (klass)->handle_message = title_file_handle_message;
}
