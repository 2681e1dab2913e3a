// SPDX-License-Identifier: LGPL-2.1-or-later
// fanoutsink's signals, and what they ask about one reader.
#include "fanoutsink_private.h"

#include "enumtype.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

enum {
  SIGNAL_ADD,
  SIGNAL_REMOVE,
  SIGNAL_CLEAR,
  SIGNAL_GET_STATS,
  SIGNAL_PLAN,
  SIGNAL_SET_PRIORITY,
  SIGNAL_SET_LAYERS,
  SIGNAL_SET_DELAY,
  SIGNAL_PAUSE,
  SIGNAL_RESUME,
  SIGNAL_ADD_SOCKET,
  SIGNAL_CLIENT_ADDED,
  SIGNAL_CLIENT_REMOVED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

static GstStructure *
plan (WeirFanoutSink *self, const gchar *host, gint port)
{
  gint64 now_ns = weir_now_ns ();
  WeirPlan plan = { 0 };
  GstStructure *s = NULL;
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    weir_fanout_next (self->fanout, name->reader, now_ns, &plan);
  g_mutex_unlock (&self->control);
  if (!name && host) {
    g_mutex_lock (&self->lock);
    fanout_readers_make_plan (
        self, fanout_readers_get_coming (self, host, port, now_ns), now_ns, &plan);
    g_mutex_unlock (&self->lock);
  }

  if (plan.known)
    s = gst_structure_new ("fanoutsink-plan", "seq", G_TYPE_UINT, (guint) plan.seq, "delay",
        G_TYPE_UINT64, (guint64) MAX (plan.delay_ns, 0), "moved", G_TYPE_BOOLEAN, plan.moved, NULL);
  if (plan.rtp_time_known)
    gst_structure_set (s, "rtptime", G_TYPE_UINT, plan.rtp_time, NULL);
  return s;
}

static gboolean
set_priority (WeirFanoutSink *self, const gchar *host, gint port, guint priority)
{
  Name *name;
  int r = -ENOENT;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name && priority < WEIR_CLASSES)
    r = weir_fanout_set_class (self->fanout, name->reader, priority);
  g_mutex_unlock (&self->control);
  if (r < 0)
    GST_WARNING_OBJECT (self, "can't give %s port %d priority %u", host, port, priority);
  return r == 0;
}

static gboolean
set_layers (
    WeirFanoutSink *self, const gchar *host, gint port, gint spatial, gint quality, gint temporal)
{
  gboolean valid = host && spatial >= -1 && spatial < WEIR_SPATIAL_LAYERS && quality >= -1
                   && quality < 16 && temporal >= -1 && temporal < 8;
  WeirLayerSet layers = { (gint8) spatial, (gint8) temporal, (gint8) quality };
  Coming *coming;
  gchar *key;
  Name *name;

  if (!valid) {
    GST_WARNING_OBJECT (self, "there are no layers %d.%d.%d", spatial, quality, temporal);
    return FALSE;
  }
  key = fanout_name_make_key (host, port);
  g_mutex_lock (&self->lock);
  name = g_hash_table_lookup (self->by_key, key);
  if (name)
    weir_reader_set_layers (name->reader, layers);
  else if ((coming = fanout_readers_get_coming (self, host, port, weir_now_ns ())))
    coming->layers = layers;
  g_mutex_unlock (&self->lock);
  g_free (key);
  return name != NULL;
}

static gboolean
set_delay (WeirFanoutSink *self, const gchar *host, gint port, guint64 delay)
{
  gint64 delay_ns = delay < WEIR_DELAY_OLDEST ? (gint64) delay : WEIR_DELAY_OLDEST;
  int r = -ENOENT;
  Coming *coming;
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name)
    name->own_delay = TRUE;
  if (name)
    r = weir_fanout_set_delay (self->fanout, name->reader, delay_ns, weir_now_ns (), NULL);
  g_mutex_unlock (&self->control);
  if (!name && host) {
    g_mutex_lock (&self->lock);
    coming = fanout_readers_get_coming (self, host, port, weir_now_ns ());
    if (coming) {
      coming->delay_ns = delay_ns;
      coming->planned = FALSE;
    }
    g_mutex_unlock (&self->lock);
  }
  return r == 0;
}

// FALSE if there is no such reader, or it is a group.
static gboolean
set_paused (WeirFanoutSink *self, const gchar *host, gint port, gboolean paused)
{
  int r = -ENOENT;
  Name *name;

  g_mutex_lock (&self->control);
  name = fanout_readers_find (self, host, port);
  if (name && paused)
    r = weir_fanout_pause (self->fanout, name->reader, weir_now_ns ());
  else if (name)
    r = weir_fanout_resume (self->fanout, name->reader, weir_now_ns (), NULL);
  g_mutex_unlock (&self->control);
  return r == 0;
}

static gboolean
pause_reader (WeirFanoutSink *self, const gchar *host, gint port)
{
  return set_paused (self, host, port, TRUE);
}

static gboolean
resume_reader (WeirFanoutSink *self, const gchar *host, gint port)
{
  return set_paused (self, host, port, FALSE);
}

// ---- the signals ----

void
fanout_signals_client_added (WeirFanoutSink *self, const gchar *host, gint port)
{
  g_signal_emit (self, signals[SIGNAL_CLIENT_ADDED], 0, host, port);
}

void
fanout_signals_client_removed (WeirFanoutSink *self, const gchar *host, gint port)
{
  g_signal_emit (self, signals[SIGNAL_CLIENT_REMOVED], 0, host, port);
}

#define WEIR_TYPE_FANOUT_SINK_FRAMING (framing_get_type ())
static GType
framing_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { WEIR_FRAMING_NONE, "None", "none" },
    { WEIR_FRAMING_RFC4571, "A length of two bytes (RFC 4571)", "rfc4571" },
    { WEIR_FRAMING_INTERLEAVED, "As in RTSP (RFC 2326, 10.12)", "interleaved" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirFanoutSinkFraming", values);
}

static void
install_multiudpsink_signals (GType type)
{
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  /**
   * WeirFanoutSink::add:
   * @host: the reader's address or name, an IPv6 address with brackets or without, or the token of
   * a connection (see weir.h); empty: nobody
   * @port: its port, or the connection's channel for interleaved frames
   *
   * Adds a reader. One that was added several times has to be removed as many times.
   */
  signals[SIGNAL_ADD] = g_signal_new_class_handler ("add", type, action,
      G_CALLBACK (fanout_readers_add), NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::remove:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   */
  signals[SIGNAL_REMOVE] =
      g_signal_new_class_handler ("remove", type, action, G_CALLBACK (fanout_readers_remove), NULL,
          NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::clear:
   *
   * Removes all readers, without a signal for each.
   */
  signals[SIGNAL_CLEAR] = g_signal_new_class_handler (
      "clear", type, action, G_CALLBACK (fanout_readers_clear), NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * WeirFanoutSink::get-stats:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * Returns: #guint64 fields `bytes-sent`, `packets-sent`, `connect-time` and `disconnect-time` (ns
   * since the epoch), `packets-due`, `dropped`, `dropped-` with each reason, `lag-packets` and
   * `lag` (ns: how long the next packet has been due to it; 0 at its place); `delay`, a #guint64:
   * how far (ns) its place is behind the live edge; `paused`, a #gboolean; `moved`, a #guint64: how
   * often the window's edge moved it; `state`: `ok`, `no-upper-layers`, `references`, `keyframes`
   * or `closed`; `catching-up`, a boolean; `priority`, a #guint; `left-out`, a #guint64: of
   * `dropped`, what was left out on purpose and is missing in no sequence (`dropped-layers`,
   * `dropped-thinned` and `dropped-catch-up`); the layers that it is to get, `wanted-spatial`,
   * `wanted-quality` and `wanted-temporal`, and those that it gets now, `spatial`, `quality` and
   * `temporal`, #gint, -1 for all. Without fields if there is no such reader.
   */
  signals[SIGNAL_GET_STATS] =
      g_signal_new_class_handler ("get-stats", type, action, G_CALLBACK (fanout_readers_get_stats),
          NULL, NULL, NULL, GST_TYPE_STRUCTURE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::client-added:
   * @host: the reader's address or name
   * @port: its port
   */
  signals[SIGNAL_CLIENT_ADDED] = g_signal_new ("client-added", type, G_SIGNAL_RUN_LAST, 0, NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::client-removed:
   * @host: the reader's address or name
   * @port: its port
   *
   * A reader was removed as often as it was added, or its socket closed. Its statistics can still
   * be asked. In the latter case it comes from a thread of the plugin's.
   */
  signals[SIGNAL_CLIENT_REMOVED] = g_signal_new ("client-removed", type, G_SIGNAL_RUN_LAST, 0, NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
}

void
fanout_signals_install (GType type)
{
  const GSignalFlags action = G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION;

  install_multiudpsink_signals (type);
  /**
   * WeirFanoutSink::plan:
   * @host: as it will be given to #WeirFanoutSink::add
   * @port: its port
   *
   * Says with which packet a reader will begin if it is added within 2 s, or has begun at its place
   * in the last 2 s, for RTP-Info (RFC 2326, 12.33); later, what comes next.
   *
   * Returns: (nullable): `seq`, a #guint; `delay`, a #guint64: the one that it gets (ns), which is
   * less than it was to have where the window is shorter; `moved`, a #gboolean: whether the
   * window's edge has come past its place; and, if it is known, `rtptime`, a #guint. %NULL if
   * nothing is known.
   */
  signals[SIGNAL_PLAN] = g_signal_new_class_handler ("plan", type, action, G_CALLBACK (plan), NULL,
      NULL, NULL, GST_TYPE_STRUCTURE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::set-priority:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   * @priority: 0 (first) to 7 (last)
   *
   * Returns: %FALSE if there is no such reader, or no such priority.
   */
  signals[SIGNAL_SET_PRIORITY] =
      g_signal_new_class_handler ("set-priority", type, action, G_CALLBACK (set_priority), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT);
  /**
   * WeirFanoutSink::set-layers:
   * @host: as given to #WeirFanoutSink::add, or as it will be
   * @port: its port
   * @spatial: the highest spatial layer that it gets, -1 = all
   * @quality: the highest quality layer of that, -1 = all
   * @temporal: the highest temporal layer, -1 = all
   *
   * Chooses a reader's layers. The change is made where a decoder survives it: down in temporal
   * layers at once, up at the next picture of the lowest, spatial layers at an IDR of the new one
   * (with VP9 and AV1, down at once); where a key picture would help, one is asked for upstream, at
   * most once a second. What is left out takes no sequence number. A reader that is not there yet
   * will begin with these layers.
   *
   * Returns: %FALSE if there are no such layers, or the reader is not there (yet).
   */
  signals[SIGNAL_SET_LAYERS] =
      g_signal_new_class_handler ("set-layers", type, action, G_CALLBACK (set_layers), NULL, NULL,
          NULL, G_TYPE_BOOLEAN, 5, G_TYPE_STRING, G_TYPE_INT, G_TYPE_INT, G_TYPE_INT, G_TYPE_INT);
  /**
   * WeirFanoutSink::set-delay:
   * @host: as given to #WeirFanoutSink::add, or as it will be
   * @port: its port
   * @delay: how far behind the live edge its place is to be, in ns; 0: at it; %G_MAXUINT64: at the
   * oldest join point
   *
   * Gives a reader a place of its own: it gets each packet so long after that came in. It begins at
   * the join point before its place, or at the oldest one, with less delay, if the window does not
   * go back so far; #WeirFanoutSink::plan tells. Sequence numbers go on, and so do timestamps: they
   * are ahead of the stream's by the delay, so sender reports hold for every reader if they are
   * sent without a delay. Tracks that belong together need the same delay.
   *
   * #WeirFanoutSink:window-time says how far back there is something. Set before the stream comes;
   * it should exceed the longest delay by 1 s and the distance of keyframes.
   *
   * Returns: %FALSE for a multicast group, or if the reader is not there (yet).
   */
  signals[SIGNAL_SET_DELAY] =
      g_signal_new_class_handler ("set-delay", type, action, G_CALLBACK (set_delay), NULL, NULL,
          NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT64);
  /**
   * WeirFanoutSink::pause:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * A reader gets nothing, and keeps its place. If the window's edge comes past it, it is moved to
   * the next join point, which `moved` of its statistics counts. One that is removed while it is
   * paused goes on there, with its numbers, if it is added again.
   *
   * Returns: %FALSE if there is no such reader, or it is a multicast group.
   */
  signals[SIGNAL_PAUSE] = g_signal_new_class_handler ("pause", type, action,
      G_CALLBACK (pause_reader), NULL, NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::resume:
   * @host: as given to #WeirFanoutSink::add
   * @port: its port
   *
   * A reader that is paused goes on where it was, with more delay by the time that it was paused
   * for.
   *
   * Returns: %FALSE if there is no such reader, or it is a multicast group.
   */
  signals[SIGNAL_RESUME] = g_signal_new_class_handler ("resume", type, action,
      G_CALLBACK (resume_reader), NULL, NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::add-socket:
   * @socket: a connected stream socket; the sink writes to it, and nobody else should
   * @framing: `none`, `rfc4571` or `interleaved`
   * @channel: for `interleaved`: 0 to 255
   *
   * Adds a reader by its socket, to which nothing else writes. It is removed with
   * #WeirFanoutSink::remove, with the token as its host and the channel as its port, or when the
   * socket closes.
   *
   * Returns: (nullable): a token by which the reader is named from now on; %NULL if the socket is
   * not connected or no stream, is written to already or has just closed, and if there is no such
   * framing or channel.
   */
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_FRAMING, 0);
  signals[SIGNAL_ADD_SOCKET] = g_signal_new_class_handler ("add-socket", type, action,
      G_CALLBACK (fanout_readers_add_socket), NULL, NULL, NULL, G_TYPE_STRING, 3, G_TYPE_SOCKET,
      WEIR_TYPE_FANOUT_SINK_FRAMING, G_TYPE_UINT);
}
