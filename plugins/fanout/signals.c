// SPDX-License-Identifier: LGPL-2.1-or-later
// The signals of fanoutsink.
#include "fanoutsink_private.h"

#include "enumtype.h"

enum {
  SIGNAL_ADD,
  SIGNAL_REMOVE,
  SIGNAL_CLEAR,
  SIGNAL_GET_STATS,
  SIGNAL_PLAN,
  SIGNAL_SET_PRIORITY,
  SIGNAL_SET_LAYERS,
  SIGNAL_RESTRICT,
  SIGNAL_SET_DELAY,
  SIGNAL_PAUSE,
  SIGNAL_RESUME,
  SIGNAL_REJOIN,
  SIGNAL_ADD_SOCKET,
  SIGNAL_GET_PACKETS,
  SIGNAL_RESEND,
  SIGNAL_PROBE,
  SIGNAL_SPLICE,
  SIGNAL_CLIENT_ADDED,
  SIGNAL_CLIENT_REMOVED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

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
    { WEIR_FRAMING_NONE, "No framing", "none" },
    { WEIR_FRAMING_RFC4571, "Two bytes of length before each packet (RFC 4571)", "rfc4571" },
    { WEIR_FRAMING_INTERLEAVED,
        "Four bytes before each packet: '$', channel, length (RTSP, RFC 2326, 10.12)",
        "interleaved" },
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
   * @host: IP address (IPv6 with or without brackets) or host name of the reader, or the token of a
   * `WeirConnection` or a `WeirSrtp`. An empty string adds no reader
   * @port: UDP port, from 1 to 65535; with a token, the interleaved channel, from 0 to 255
   *
   * Adds a reader. Each further call for the same host and port raises its count by one, and
   * #WeirFanoutSink::remove lowers it; at 0 the reader is removed. A call that is refused logs a
   * warning.
   */
  signals[SIGNAL_ADD] = g_signal_new_class_handler ("add", type, action,
      G_CALLBACK (fanout_readers_add), NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::remove:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   *
   * Lowers a reader's count by one, and removes the reader when its count is 0.
   */
  signals[SIGNAL_REMOVE] =
      g_signal_new_class_handler ("remove", type, action, G_CALLBACK (fanout_readers_remove), NULL,
          NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::clear:
   *
   * Removes all readers, without #WeirFanoutSink::client-removed.
   */
  signals[SIGNAL_CLEAR] = g_signal_new_class_handler (
      "clear", type, action, G_CALLBACK (fanout_readers_clear), NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * WeirFanoutSink::get-stats:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   *
   * Returns the statistics of one reader.
   *
   * Returns: (transfer full): a structure `multiudpsink-stats`, without fields if there is no such
   * reader. #guint64: `bytes-sent`, `packets-sent`, `packets-due`, `resent` and `resend-refused`
   * (packets that #WeirFanoutSink::resend was asked for; in no other count), `probed` (packets sent
   * again by #WeirFanoutSink::probe; in no other count), `dropped`,
   * `dropped-REASON` for each reason, `left-out` (`dropped-layers` + `dropped-thinned` +
   * `dropped-catch-up`: packets left out on purpose, without a gap in the sequence numbers),
   * `connect-time` and `disconnect-time` (ns since the epoch), `lag-packets`, `lag` (ns that the
   * next packet is overdue), `delay` (ns behind the live edge), `moved` (how often the reader fell
   * behind the window's oldest packet and was moved). #gboolean: `paused`, `catching-up`, `guest`
   * (#WeirFanoutSink::splice lets another sink serve it).
   * #gchararray: `state`, one of `ok`, `no-upper-layers`, `references`, `keyframes`, `closed`.
   * #guint: `priority`; `rtptime`, if it is known: the RTP timestamp, as the element got it, of the
   * reader's next packet, or of the newest one if the reader has that; from within
   * #WeirFanoutSink::client-removed as it was when the reader was removed. #gint, -1 for all: the
   * highest layers that the reader asked for, `wanted-spatial`, `wanted-quality` and
   * `wanted-temporal`, and the highest layers that it gets now, `spatial`, `quality` and
   * `temporal`.
   */
  signals[SIGNAL_GET_STATS] =
      g_signal_new_class_handler ("get-stats", type, action, G_CALLBACK (fanout_readers_get_stats),
          NULL, NULL, NULL, GST_TYPE_STRUCTURE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::client-added:
   * @host: the reader's address, name or token, without brackets
   * @port: its port or channel
   *
   * A reader was added, or its count was raised.
   */
  signals[SIGNAL_CLIENT_ADDED] = g_signal_new ("client-added", type, G_SIGNAL_RUN_LAST, 0, NULL,
      NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::client-removed:
   * @host: the reader's address, name or token, without brackets
   * @port: its port or channel
   *
   * A reader's count fell to 0, or its connection closed. In a handler, #WeirFanoutSink::get-stats
   * still returns its statistics. After a connection closed, the signal comes from a thread of the
   * plugin.
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
   * @host: as given to #WeirFanoutSink::add, now or later
   * @port: as given to #WeirFanoutSink::add, now or later
   *
   * Returns the first packet of a reader, for the RTSP header RTP-Info (RFC 2326, 12.33). For a
   * reader that is added within 2 s after the call, that is the packet with which it begins. For a
   * reader that began or changed its position in the last 2 s, it is the packet with which it
   * began. After that it is the reader's next packet.
   *
   * Returns: (transfer full) (nullable): a structure `fanoutsink-plan`: `seq` (#guint), the
   * sequence number; `rtptime` (#guint), the RTP timestamp, if it is known; `delay` (#guint64), the
   * reader's delay in ns, which is less than it asked for if the window is shorter; `moved`
   * (#gboolean), %TRUE if the reader fell behind the window's oldest packet. %NULL if nothing is
   * known.
   */
  signals[SIGNAL_PLAN] =
      g_signal_new_class_handler ("plan", type, action, G_CALLBACK (fanout_actions_plan), NULL,
          NULL, NULL, GST_TYPE_STRUCTURE, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::set-priority:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   * @priority: from 0 (served first) to 7 (served last)
   *
   * Sets the priority of one reader; see #WeirFanoutSink:priority.
   *
   * Returns: %FALSE if there is no such reader, or @priority is out of range.
   */
  signals[SIGNAL_SET_PRIORITY] = g_signal_new_class_handler ("set-priority", type, action,
      G_CALLBACK (fanout_actions_set_priority), NULL, NULL, NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING,
      G_TYPE_INT, G_TYPE_UINT);
  /**
   * WeirFanoutSink::set-layers:
   * @host: as given to #WeirFanoutSink::add, now or later
   * @port: as given to #WeirFanoutSink::add, now or later
   * @spatial: highest spatial layer to send, from 0 to 7; -1 for all
   * @quality: highest quality layer of that spatial layer, from 0 to 15; -1 for all
   * @temporal: highest temporal layer to send, from 0 to 7; -1 for all
   *
   * Chooses the layers of a reader. The change takes effect where a decoder can follow it: fewer
   * temporal layers at once, more at the next picture of the lowest temporal layer, another spatial
   * or quality layer at its next IDR picture (fewer spatial layers of VP9 and AV1 at once). If a
   * keyframe helps, the element asks upstream for one, at most once a second. Layers that are left
   * out leave no gap in the sequence numbers. The choice for a reader that is not added yet is kept
   * for its #WeirFanoutSink::add.
   *
   * Returns: %TRUE if the reader was added; %FALSE if it is not added yet, or an argument is out of
   * range.
   */
  signals[SIGNAL_SET_LAYERS] = g_signal_new_class_handler ("set-layers", type, action,
      G_CALLBACK (fanout_actions_set_layers), NULL, NULL, NULL, G_TYPE_BOOLEAN, 5, G_TYPE_STRING,
      G_TYPE_INT, G_TYPE_INT, G_TYPE_INT, G_TYPE_INT);
  /**
   * WeirFanoutSink::restrict:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   * @restriction: 0 for none, 1 for the lowest layers only, 2 for those without frames that no
   * other frame needs, 3 for keyframes only
   *
   * Restricts a reader whose line carries no more, as a reader that lags is restricted. A stricter
   * restriction begins with the next frame, a milder one with the next keyframe. What is left out
   * leaves no gap in the sequence numbers.
   *
   * Returns: %FALSE if there is no such reader, or @restriction is out of range.
   */
  signals[SIGNAL_RESTRICT] =
      g_signal_new_class_handler ("restrict", type, action, G_CALLBACK (fanout_actions_restrict),
          NULL, NULL, NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT);
  /**
   * WeirFanoutSink::set-delay:
   * @host: as given to #WeirFanoutSink::add, now or later
   * @port: as given to #WeirFanoutSink::add, now or later
   * @delay: delay behind the live edge in ns; 0 for the live edge, %G_MAXUINT64 for the oldest join
   * point in the window
   *
   * Sets the delay of a reader: its target is that far behind the live edge, and it gets each
   * packet that long after the packet arrived. It begins at the last join point before its target.
   * If the window does not go back that far, it begins at the oldest join point, with a shorter
   * delay, which #WeirFanoutSink::plan returns. Sequence numbers and timestamps continue without a
   * gap or a jump. Before the first packet, the delay is the whole one: the reader gets the first
   * packet that long after it arrived. The timestamps are ahead of the stream's by the delay, so
   * sender reports that are sent without a delay hold for every reader. Tracks that belong together
   * need the same delay. The delay of a reader that is not added yet is kept for its
   * #WeirFanoutSink::add.
   *
   * #WeirFanoutSink:window-time must cover the delay. Set it before the stream starts, to the
   * longest delay plus the interval of keyframes plus 1 s. Until it is set, the window begins to
   * keep packets for delays with the first call that asks for a delay.
   *
   * Returns: %TRUE if the reader was added; %FALSE if it is not added yet, or is a multicast group.
   */
  signals[SIGNAL_SET_DELAY] =
      g_signal_new_class_handler ("set-delay", type, action, G_CALLBACK (fanout_actions_set_delay),
          NULL, NULL, NULL, G_TYPE_BOOLEAN, 3, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT64);
  /**
   * WeirFanoutSink::pause:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   *
   * Stops sending to a reader, which keeps its position. If the window drops the packet at that
   * position, the reader moves to the next join point, and `moved` in its statistics counts that. A
   * reader that is removed while it is paused continues from its position, with the next sequence
   * number, when it is added again.
   *
   * Returns: %FALSE if there is no such reader, or it is a multicast group.
   */
  signals[SIGNAL_PAUSE] =
      g_signal_new_class_handler ("pause", type, action, G_CALLBACK (fanout_actions_pause), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::resume:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   *
   * Continues sending to a paused reader from its position. Its delay grows by the length of the
   * pause.
   *
   * Returns: %FALSE if there is no such reader, or it is a multicast group.
   */
  signals[SIGNAL_RESUME] =
      g_signal_new_class_handler ("resume", type, action, G_CALLBACK (fanout_actions_resume), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::rejoin:
   * @host: as given to #WeirFanoutSink::add
   * @port: as given to #WeirFanoutSink::add
   *
   * Lets a reader begin again at the newest join point of the window (before its target, if it has
   * a delay), because it may have lost a part of that keyframe. Sequence numbers and timestamps go
   * on.
   *
   * Returns: %FALSE if there is no such reader, if it is paused or a multicast group, or if the
   * window has no join point.
   */
  signals[SIGNAL_REJOIN] =
      g_signal_new_class_handler ("rejoin", type, action, G_CALLBACK (fanout_actions_rejoin), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 2, G_TYPE_STRING, G_TYPE_INT);
  /**
   * WeirFanoutSink::get-packets:
   * @from: the RTP sequence number of the first packet, from 0 to 65535; -1 for the newest join
   * point in the window
   * @n: the largest number of packets
   *
   * Returns RTP packets of the window as they arrived, for a client that receives the stream by
   * other means, such as a multicast group, and lacks them. With #WeirFanoutSink:join `keyframe`,
   * the window holds at least the packets since the newest keyframe.
   *
   * Returns: (transfer full): the packets from @from up to the live edge, @n at most. The list
   * begins later if the window no longer holds @from, and is empty if it holds nothing after it, or
   * has no join point.
   */
  signals[SIGNAL_GET_PACKETS] = g_signal_new_class_handler ("get-packets", type, action,
      G_CALLBACK (fanout_actions_get_packets), NULL, NULL, NULL, GST_TYPE_BUFFER_LIST, 2,
      G_TYPE_INT, G_TYPE_UINT);
  /**
   * WeirFanoutSink::resend:
   * @host: as given to #WeirFanoutSink::add: a token that `add-stream` of a `WeirSrtp` returned
   * @port: as given to #WeirFanoutSink::add
   * @seqs: sequence numbers as the reader knows them, of 16 bits each, in host byte order
   * @round_trip: how long the reader needs to answer, in ns; 0 if that is not known
   *
   * Sends packets again that the reader reports lost (RFC 4585): as retransmissions of their own
   * (RFC 4588) if the token has an SSRC for them, else as they were. A packet is sent again within
   * 1 s after it was sent, at most 3 times, at most once in @round_trip and in 20 ms, and as long
   * as at most 20 % of the bytes that the reader was sent in the last second are sent again. Only
   * over UDP.
   *
   * Returns: how many packets were sent
   */
  signals[SIGNAL_RESEND] =
      g_signal_new_class_handler ("resend", type, action, G_CALLBACK (fanout_actions_resend), NULL,
          NULL, NULL, G_TYPE_UINT, 4, G_TYPE_STRING, G_TYPE_INT, G_TYPE_BYTES, G_TYPE_UINT64);
  /**
   * WeirFanoutSink::probe:
   * @host: as for #WeirFanoutSink::resend
   * @port: as given to #WeirFanoutSink::add
   * @bits: bit rate that the line is to carry, bit/s, up to 10^9
   * @duration: how long, in ms, up to 5000
   *
   * Fills a reader's line for some time, to learn by its feedback whether it carries @bits: the
   * last packets are sent again beside the stream, as many as are missing to that rate. It ends
   * early when the line is congested. Only over UDP, and for tokens with an SSRC for
   * retransmissions. A new probe takes the place of one that runs, and one of 0 bit/s for 0 ms
   * ends it.
   *
   * Returns: %FALSE if there is no such reader, it gets no retransmissions, or an argument is out
   * of range
   */
  signals[SIGNAL_PROBE] =
      g_signal_new_class_handler ("probe", type, action, G_CALLBACK (fanout_actions_probe), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 4, G_TYPE_STRING, G_TYPE_INT, G_TYPE_UINT64, G_TYPE_UINT);
  /**
   * WeirFanoutSink::splice:
   * @host: as for #WeirFanoutSink::resend
   * @port: as given to #WeirFanoutSink::add
   * @sink: a `fanoutsink` that gets the same pictures, coded otherwise; or this one
   * @ahead: the RTP timestamp of a picture in this sink's stream minus that of the same picture
   * in the stream of @sink, modulo 2^32
   *
   * Lets a reader have its packets from the window of another sink from now on, or again from its
   * own. It begins there with a keyframe that has come in the last 300 ms, after whole frames only:
   * if that is not possible now, call again soon. Sequence numbers go on, and pictures keep the
   * timestamps that they have in this sink's stream; where these would go back, they are ahead by
   * what is missing, less and less. The restriction of #WeirFanoutSink::restrict ends. The reader
   * is still one of this sink, for all other signals, and leaves when this sink stops. While @sink
   * is stopped, it gets nothing. Only for tokens of a `WeirSrtp`, for readers without a delay, and
   * for codecs whose pictures have no numbers, such as H.264 and H.265.
   *
   * Returns: whether the reader has its packets from @sink
   */
  signals[SIGNAL_SPLICE] =
      g_signal_new_class_handler ("splice", type, action, G_CALLBACK (fanout_readers_splice), NULL,
          NULL, NULL, G_TYPE_BOOLEAN, 4, G_TYPE_STRING, G_TYPE_INT, GST_TYPE_ELEMENT, G_TYPE_UINT);
  /**
   * WeirFanoutSink::add-socket:
   * @socket: a connected stream socket. Only the sink may write to it; the caller may read
   * @framing: 0 `none`, 1 `rfc4571`, 2 `interleaved`
   * @channel: channel number for `interleaved`, from 0 to 255; 0 with other framings
   *
   * Adds a reader on a socket. It is removed by #WeirFanoutSink::remove, or when the socket closes.
   *
   * Returns: (transfer full) (nullable): the reader's token, which is its @host in all other
   * signals, with @channel as its @port. %NULL if the socket is not a connected stream socket, has
   * just closed or has another writer, or if an argument is out of range.
   */
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_FRAMING, 0);
  signals[SIGNAL_ADD_SOCKET] = g_signal_new_class_handler ("add-socket", type, action,
      G_CALLBACK (fanout_readers_add_socket), NULL, NULL, NULL, G_TYPE_STRING, 3, G_TYPE_SOCKET,
      WEIR_TYPE_FANOUT_SINK_FRAMING, G_TYPE_UINT);
}
