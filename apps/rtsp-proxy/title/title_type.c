// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_type.h"

#include "sources/mp4_guard.h"
#include "sources/ts_guard.h"

// mpegpsdemux seeks by the clock of the stream, which is some pictures before the times of what
// comes with it, and to no keyframe.
#define PS_EARLY (2 * GST_SECOND)

// Files may come from untrusted persons and must not reach any other element.
static const TitleType types[] = {
  { "video/quicktime", "qtdemux", 0 },
  { "audio/x-m4a", "qtdemux", 0 },
  { "application/x-3gp", "qtdemux", 0 },
  { "video/x-matroska", "matroskademux", 0 },
  { "audio/x-matroska", "matroskademux", 0 },
  { "video/webm", "matroskademux", 0 },
  { "audio/webm", "matroskademux", 0 },
  { "video/mpegts", "tsdemux", 0 },
  { "video/mpeg, systemstream=(boolean)true", "mpegpsdemux", PS_EARLY },
  { "video/x-msvideo", "avidemux", 0 },
  { "video/x-flv", "flvdemux", 0 },
  { "audio/ogg", "oggdemux", 0 },
  { "video/ogg", "oggdemux", 0 },
  { "application/x-id3", "id3demux", 0 },
  { "audio/mpeg", NULL, 0 },
  { "video/x-h264", NULL, 0 },
  { "video/x-h265", NULL, 0 },
};

const TitleType *
title_type_find (const GstCaps *caps)
{
  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autoptr (GstCaps) of = gst_caps_from_string (types[i].caps);
    const gboolean fits = gst_caps_is_subset (caps, of);

    if (fits)
      return &types[i];
  }
  return NULL;
}

void
title_type_guard (const gchar *name, GstElement *demuxer, GstElement *source)
{
  if (g_str_equal (name, "tsdemux"))
    ts_guard_add (demuxer);
  if (g_str_equal (name, "qtdemux"))
    mp4_guard_add (source);
}

static GstClockTime
frames_duration (GstPad *pad, guint64 n)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);
  gint num = 0, den = 1;

  if (caps)
    gst_structure_get_fraction (gst_caps_get_structure (caps, 0), "framerate", &num, &den);
  if (num <= 0 || den <= 0) {
    num = 25;
    den = 1;
  }
  return gst_util_uint64_scale (n, (guint64) den * GST_SECOND, (guint64) num);
}

GstBuffer *
title_type_stamp (GstPad *pad, GstBuffer *frame, guint64 n)
{
  frame = gst_buffer_make_writable (frame);
  GST_BUFFER_PTS (frame) = GST_BUFFER_DTS (frame) = frames_duration (pad, n);
  return frame;
}

GstEvent *
title_type_change_seek (GstEvent *event, GstClockTime early)
{
  GstEvent *changed;
  GstFormat format;
  GstSeekFlags flags;
  GstSeekType start_type, stop_type;
  gint64 start, stop;
  gdouble rate;

  gst_event_parse_seek (event, &rate, &format, &flags, &start_type, &start, &stop_type, &stop);
  if (stop_type != GST_SEEK_TYPE_NONE && !early)
    return event;
  if (start_type == GST_SEEK_TYPE_SET)
    start = MAX (start - (gint64) early, 0);
  if (stop_type == GST_SEEK_TYPE_NONE)
    stop = -1;
  changed = gst_event_new_seek (rate, format, flags, start_type, start, GST_SEEK_TYPE_SET, stop);
  gst_event_set_seqnum (changed, gst_event_get_seqnum (event));
  gst_event_unref (event);
  return changed;
}
