// SPDX-License-Identifier: LGPL-2.1-or-later

// Properties and statistics of schedulesrc.
#include "config.h"

#include "broadcast/schedulesrc_private.h"

enum {
  PROP_0,
  PROP_LOCATION,
  PROP_USER_ID,
  PROP_USER_PW,
  PROP_MULTICAST_IFACE,
  PROP_LATENCY,
  PROP_TIMEOUT,
  PROP_BUFFER_SIZE,
  PROP_MAX_GROUPS,
  PROP_STATS,
};

#define DEFAULT_LATENCY (40 * GST_MSECOND)
#define MAX_LATENCY (60 * GST_SECOND)
#define DEFAULT_TIMEOUT (60 * GST_SECOND)
#define MAX_TIMEOUT (86400 * GST_SECOND)
#define DEFAULT_BUFFER_SIZE (32 << 20)
#define DEFAULT_MAX_GROUPS 32

void
schedule_src_init_settings (ScheduleSrcSettings *settings)
{
  *settings = (ScheduleSrcSettings) { .latency = DEFAULT_LATENCY,
    .timeout = DEFAULT_TIMEOUT,
    .buffer_size = DEFAULT_BUFFER_SIZE,
    .max_groups = DEFAULT_MAX_GROUPS };
}

static void
add_counts (GstStructure *s, const WeirFollowStats *stats)
{
  gdouble passed = (gdouble) MAX (stats->passed, 1);

  gst_structure_set (s, "packets", G_TYPE_UINT64, (guint64) (stats->passed - stats->lost),
      "in-time", G_TYPE_UINT64, (guint64) stats->in_time, "late", G_TYPE_UINT64,
      (guint64) stats->late, "lost", G_TYPE_UINT64, (guint64) stats->lost, "deadline-conformance",
      G_TYPE_DOUBLE, stats->passed > 0 ? (gdouble) stats->in_time / passed : 1.0, "group-missed",
      G_TYPE_UINT64, (guint64) stats->missed, "repaired", G_TYPE_UINT64, (guint64) stats->repaired,
      "too-late", G_TYPE_UINT64, (guint64) stats->too_late, "duplicates", G_TYPE_UINT64,
      (guint64) stats->duplicates, "strays", G_TYPE_UINT64, (guint64) stats->strays, NULL);
  gst_structure_set (s, "group-bytes", G_TYPE_UINT64, (guint64) stats->group_bytes, "unicast-bytes",
      G_TYPE_UINT64, (guint64) stats->unicast_bytes, "groups", G_TYPE_UINT, stats->groups,
      "groups-max", G_TYPE_UINT, stats->groups_max, "join-latency", G_TYPE_UINT64,
      (guint64) stats->join_latency_ns, "stalls", G_TYPE_UINT64, (guint64) stats->stalls,
      "stalled-time", G_TYPE_UINT64, (guint64) stats->stalled_ns, NULL);
}

const WeirFollowStats *
schedule_src_get_counts (const WeirScheduleSrc *self)
{
  return self->is_live ? &self->live.stats : &self->follow.stats;
}

// The caller owns the result.
static GstStructure *
make_stats (WeirScheduleSrc *self)
{
  GstStructure *s = gst_structure_new_empty ("application/x-weir-schedulesrc-stats");
  gboolean running;

  g_mutex_lock (&self->lock);
  running = self->following;
  add_counts (s, running ? schedule_src_get_counts (self) : &self->last);
  gst_structure_set (s, "start-up", G_TYPE_UINT64, (guint64) self->start_up_ns, "start-up-wait",
      G_TYPE_UINT64, (guint64) self->wait_ns, "reconnects", G_TYPE_UINT, self->reconnects,
      "memory-max", G_TYPE_UINT64,
      (guint64) (running ? __atomic_load_n (&self->keep.high_memory, __ATOMIC_RELAXED)
                         : self->high_memory),
      "file-max", G_TYPE_UINT64,
      (guint64) (running ? __atomic_load_n (&self->keep.high_file, __ATOMIC_RELAXED)
                         : self->high_file),
      NULL);
  g_mutex_unlock (&self->lock);
  return s;
}

static void
set_string (gchar **to, const GValue *value)
{
  g_free (*to);
  *to = g_value_dup_string (value);
}

void
schedule_src_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirScheduleSrc *self = WEIR_SCHEDULE_SRC (object);
  ScheduleSrcSettings *settings = &self->settings;

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_LOCATION:
      set_string (&settings->location, value);
      break;
    case PROP_USER_ID:
      set_string (&settings->user, value);
      break;
    case PROP_USER_PW:
      set_string (&settings->password, value);
      break;
    case PROP_MULTICAST_IFACE:
      set_string (&settings->iface, value);
      break;
    case PROP_LATENCY:
      settings->latency = g_value_get_uint64 (value);
      break;
    case PROP_TIMEOUT:
      settings->timeout = g_value_get_uint64 (value);
      break;
    case PROP_BUFFER_SIZE:
      settings->buffer_size = g_value_get_uint64 (value);
      break;
    case PROP_MAX_GROUPS:
      settings->max_groups = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

void
schedule_src_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirScheduleSrc *self = WEIR_SCHEDULE_SRC (object);
  const ScheduleSrcSettings *settings = &self->settings;

  if (id == PROP_STATS) {
    g_value_take_boxed (value, make_stats (self));
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_LOCATION:
      g_value_set_string (value, settings->location);
      break;
    case PROP_USER_ID:
      g_value_set_string (value, settings->user);
      break;
    case PROP_USER_PW:
      g_value_set_string (value, settings->password);
      break;
    case PROP_MULTICAST_IFACE:
      g_value_set_string (value, settings->iface);
      break;
    case PROP_LATENCY:
      g_value_set_uint64 (value, settings->latency);
      break;
    case PROP_TIMEOUT:
      g_value_set_uint64 (value, settings->timeout);
      break;
    case PROP_BUFFER_SIZE:
      g_value_set_uint64 (value, settings->buffer_size);
      break;
    case PROP_MAX_GROUPS:
      g_value_set_uint (value, settings->max_groups);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

#define FLAGS (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY)

static void
install_server_properties (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_LOCATION,
      g_param_spec_string ("location", "Location",
          "The title or stream: rtsp-schedule://[USER:PASSWORD@]HOST[:PORT]/PATH", NULL, FLAGS));
  g_object_class_install_property (klass, PROP_USER_ID,
      g_param_spec_string (
          "user-id", "User", "Name of the user, for a server that asks for it", NULL, FLAGS));
  g_object_class_install_property (klass, PROP_USER_PW,
      g_param_spec_string ("user-pw", "Password", "Password of the user", NULL, FLAGS));
  g_object_class_install_property (klass, PROP_TIMEOUT,
      g_param_spec_uint64 ("timeout", "Timeout",
          "Time in ns for which the server is asked again while it does not answer or prepares the "
          "title, and without packets until the element fails",
          0, MAX_TIMEOUT, DEFAULT_TIMEOUT, FLAGS));
}

static void
install_receive_properties (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_MULTICAST_IFACE,
      g_param_spec_string ("multicast-iface", "Multicast interface",
          "Name of the network interface on which groups are joined; NULL: by the routes", NULL,
          FLAGS));
  g_object_class_install_property (klass, PROP_LATENCY,
      g_param_spec_uint64 ("latency", "Latency",
          "Time in ns by which each packet leaves after its time in the title, or for which "
          "packets "
          "of a stream wait behind a missing one, so that losses can be repaired",
          0, MAX_LATENCY, DEFAULT_LATENCY, FLAGS));
  g_object_class_install_property (klass, PROP_BUFFER_SIZE,
      g_param_spec_uint64 ("buffer-size", "Buffer size",
          "Bytes of packets that are kept in memory; further ones are kept in a temporary file", 0,
          G_MAXUINT64, DEFAULT_BUFFER_SIZE, FLAGS));
  g_object_class_install_property (klass, PROP_MAX_GROUPS,
      g_param_spec_uint ("max-groups", "Maximum groups",
          "Most groups that are joined at a time; the packets of others come by unicast", 0,
          WEIR_DESCRIPTION_RECEIVES_MAX, DEFAULT_MAX_GROUPS, FLAGS));
  /**
   * WeirScheduleSrc:stats:
   *
   * Counts since the element went to PAUSED. Each packet of the title that was due is in one of
   * `in-time`, `late` and `lost`. The page of the element explains all fields.
   */
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Start-up, packets in time, late, lost and repaired, bytes and groups",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

void
schedule_src_install_properties (GObjectClass *klass)
{
  install_server_properties (klass);
  install_receive_properties (klass);
}
