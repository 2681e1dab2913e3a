// SPDX-License-Identifier: LGPL-2.1-or-later

// The names, types, ranges, defaults and descriptions of fanoutsink's properties.

#include "enumtype.h"
#include "properties_private.h"

#define WEIR_TYPE_FANOUT_SINK_GSO (weir_enum_type (&gso_type, "WeirFanoutSinkGso", gso_values))
#define WEIR_TYPE_FANOUT_SINK_JOIN (weir_enum_type (&join_type, "WeirFanoutSinkJoin", join_values))
#define WEIR_TYPE_FANOUT_SINK_CATCH_UP                                                             \
  (weir_enum_type (&catch_up_type, "WeirFanoutSinkCatchUp", catch_up_values))
#define WEIR_TYPE_FANOUT_SINK_DROP_POLICY                                                          \
  (weir_enum_type (&drop_policy_type, "WeirFanoutSinkDropPolicy", drop_policy_values))

#define WEIR_TYPE_FANOUT_SINK_KERNEL                                                               \
  (weir_enum_type (&kernel_type, "WeirFanoutSinkKernel", kernel_values))

static gsize gso_type, join_type, catch_up_type, drop_policy_type, kernel_type;

static const GEnumValue gso_values[] = {
  { WEIR_GSO_AUTO,
      "Segmented sends; after a refusal, single packets for 1 s, then 2 s, up to 1 min", "auto" },
  { WEIR_GSO_ON, "Segmented sends; after a refusal, tried again with the next frame", "on" },
  { WEIR_GSO_OFF, "One message per packet", "off" },
  { 0, NULL, NULL },
};

static const GEnumValue join_values[] = {
  { JOIN_LIVE, "At the live edge, with the frame that is arriving", "live" },
  { JOIN_KEYFRAME, "At the newest keyframe in the window", "keyframe" },
  { 0, NULL, NULL },
};

static const GEnumValue catch_up_values[] = {
  { CATCH_UP_LIVE, "Compress timestamps so that they end at the live edge", "live" },
  { CATCH_UP_DELAY, "Keep timestamps: the player stays behind the live edge", "delay" },
  { 0, NULL, NULL },
};

static const GEnumValue drop_policy_values[] = {
  { WEIR_OVERRUN_TO_JOIN, "The slowest reader continues at the next keyframe", "slowest" },
  { WEIR_OVERRUN_TO_TAIL, "The slowest reader continues at the oldest packet in the window",
      "head" },
  { WEIR_OVERRUN_TAIL_DROP, "New packets are dropped while a reader needs old ones", "tail" },
  { 0, NULL, NULL },
};

static const GEnumValue kernel_values[] = {
  { WEIR_KERNEL_OFF, "Every reader is served by sends", "off" },
  { WEIR_KERNEL_AUTO,
      "Clones where they are possible and cheaper, and evade no packet rule of the system",
      "auto" },
  { WEIR_KERNEL_ON, "Clones where they are possible; without the kernel path, no start", "on" },
  { 0, NULL, NULL },
};

static void
install_multiudpsink_properties (GObjectClass *klass)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  g_object_class_install_property (klass, PROP_BYTES_TO_SERVE,
      g_param_spec_uint64 ("bytes-to-serve", "Bytes to serve", "Bytes of all packets that arrived",
          0, G_MAXUINT64, 0, ro));
  g_object_class_install_property (klass, PROP_BYTES_SERVED,
      g_param_spec_uint64 (
          "bytes-served", "Bytes served", "Bytes sent to all readers", 0, G_MAXUINT64, 0, ro));
  g_object_class_install_property (klass, PROP_SOCKET,
      g_param_spec_object ("socket", "Socket Handle",
          "Socket to send from; NULL opens one. Read when the element starts", G_TYPE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_SOCKET_V6,
      g_param_spec_object ("socket-v6", "Socket Handle IPv6",
          "Socket to send from over IPv6; NULL opens one. Read when the element starts",
          G_TYPE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_CLOSE_SOCKET,
      g_param_spec_boolean ("close-socket", "Close socket",
          "Close `socket` and `socket-v6` when the element stops", DEFAULT_CLOSE_SOCKET, rw));
  g_object_class_install_property (klass, PROP_USED_SOCKET,
      g_param_spec_object ("used-socket", "Used Socket Handle",
          "IPv4 socket in use; NULL while the element is stopped", G_TYPE_SOCKET, ro));
  g_object_class_install_property (klass, PROP_USED_SOCKET_V6,
      g_param_spec_object ("used-socket-v6", "Used Socket Handle IPv6",
          "IPv6 socket in use; NULL if there is none", G_TYPE_SOCKET, ro));
  /**
   * WeirFanoutSink:clients:
   *
   * Readers as `host:port`, separated by commas, with brackets around an IPv6 address. Setting the
   * property replaces all readers; reading it takes time in proportion to their number. An entry
   * that is not valid, or cannot be served, is skipped with a warning in the log.
   */
  g_object_class_install_property (klass, PROP_CLIENTS,
      g_param_spec_string ("clients", "Clients",
          "Readers as host:port or [IPv6]:port, separated by commas; setting it replaces all "
          "readers",
          NULL, rw));
  g_object_class_install_property (klass, PROP_AUTO_MULTICAST,
      g_param_spec_boolean ("auto-multicast", "Automatically join/leave multicast groups",
          "Join the multicast group when a reader in it is added, and leave it with the last one",
          DEFAULT_AUTO_MULTICAST, rw));
  g_object_class_install_property (klass, PROP_MULTICAST_IFACE,
      g_param_spec_string ("multicast-iface", "Multicast Interface",
          "Network interface to send from and to join multicast groups on; NULL for any", NULL,
          rw));
  g_object_class_install_property (klass, PROP_TTL,
      g_param_spec_int ("ttl", "Unicast TTL",
          "Time to live of unicast packets, in hops; read when a reader is added", 0, 255,
          DEFAULT_TTL, rw));
  g_object_class_install_property (klass, PROP_TTL_MC,
      g_param_spec_int ("ttl-mc", "Multicast TTL",
          "Time to live of multicast packets, in hops; read when a reader is added", 0, 255,
          DEFAULT_TTL_MC, rw));
  g_object_class_install_property (klass, PROP_LOOP,
      g_param_spec_boolean ("loop", "Multicast Loopback",
          "Deliver multicast packets to this machine too; read when a reader is added",
          DEFAULT_LOOP, rw));
  g_object_class_install_property (klass, PROP_FORCE_IPV4,
      g_param_spec_boolean ("force-ipv4", "Force IPv4", "Has no effect", DEFAULT_FORCE_IPV4,
          rw | G_PARAM_DEPRECATED));
  g_object_class_install_property (klass, PROP_QOS_DSCP,
      g_param_spec_int ("qos-dscp", "QoS diff srv code point",
          "Differentiated services code point; -1 for the system's default", -1, 63,
          DEFAULT_QOS_DSCP, rw));
  g_object_class_install_property (klass, PROP_SEND_DUPLICATES,
      g_param_spec_boolean ("send-duplicates", "Send Duplicates",
          "Send each packet to a reader as many times as the reader was added",
          DEFAULT_SEND_DUPLICATES, rw));
  g_object_class_install_property (klass, PROP_BUFFER_SIZE,
      g_param_spec_int ("buffer-size", "Buffer Size",
          "Send buffer of each UDP socket in bytes; 0 for 1 MiB, or the system's default if larger",
          0, G_MAXINT, DEFAULT_BUFFER_SIZE, rw));
  g_object_class_install_property (klass, PROP_BIND_ADDRESS,
      g_param_spec_string (
          "bind-address", "Bind Address", "Address to send from; NULL for any", NULL, rw));
  g_object_class_install_property (klass, PROP_BIND_PORT,
      g_param_spec_int ("bind-port", "Bind Port", "Port to send from; 0 for any", 0, G_MAXUINT16,
          DEFAULT_BIND_PORT, rw));
}

static void
install_sending (GObjectClass *klass)
{
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  /**
   * WeirFanoutSink:gso:
   *
   * Lets the element send several packets to a reader in one segmented send. If the path to a
   * reader refuses it, the packets are sent one by one. `auto` then sends that reader single
   * packets for 1 s, after the next refusal for 2 s, and so on up to 1 min; `on` tries again with
   * the next frame. Setting another value resets these times.
   */
  g_object_class_install_property (klass, PROP_GSO,
      g_param_spec_enum ("gso", "Segmented sends",
          "Send several packets to a reader in one segmented send (UDP_SEGMENT)",
          WEIR_TYPE_FANOUT_SINK_GSO, DEFAULT_GSO, rw));
  /**
   * WeirFanoutSink:max-coalesce:
   *
   * Longest time in ns that a packet waits for the rest of its frame. With 0 it waits only for the
   * rest of the buffer list that it arrived in.
   */
  g_object_class_install_property (klass, PROP_MAX_COALESCE,
      g_param_spec_uint64 ("max-coalesce", "Longest coalescing",
          "Longest time in ns that a packet waits for the rest of its frame; 0 sends at once", 0,
          10 * GST_SECOND, DEFAULT_MAX_COALESCE, rw));
  /**
   * WeirFanoutSink:priority:
   *
   * Priority of readers that are added from now on: 0 is served first, 7 last. When the CPU cannot
   * serve all readers in time, readers with a higher number wait, and are the first to fall behind
   * and to be thinned. See also #WeirFanoutSink::set-priority.
   */
  g_object_class_install_property (klass, PROP_PRIORITY,
      g_param_spec_uint ("priority", "Priority",
          "Priority of new readers, from 0 (served first) to 7 (served last)", 0,
          WEIR_PRIORITIES - 1, DEFAULT_PRIORITY, rw));
  /**
   * WeirFanoutSink:delay:
   *
   * Delay in ns behind the live edge of readers that are added from now on, unless
   * #WeirFanoutSink::set-delay sets another one; %G_MAXUINT64 for the oldest join point in the
   * window. #WeirFanoutSink:window-time must cover the delay; see #WeirFanoutSink::set-delay.
   * Readers that are added before the first packet, as with #WeirFanoutSink:clients, get the first
   * packet that long after it arrived.
   */
  g_object_class_install_property (klass, PROP_DELAY,
      g_param_spec_uint64 ("delay", "Delay",
          "Delay of new readers behind the live edge, in ns; 2^64-1 for the oldest join point", 0,
          G_MAXUINT64, 0, rw));
  /**
   * WeirFanoutSink:inline-readers:
   *
   * Largest number of readers that the streaming thread serves by itself, which saves waking other
   * threads. If there are more, the shared threads serve all of them.
   */
  g_object_class_install_property (klass, PROP_INLINE_READERS,
      g_param_spec_uint ("inline-readers", "Inline readers",
          "The streaming thread serves up to this many readers; if there are more, shared threads "
          "do",
          0, G_MAXUINT, DEFAULT_INLINE_READERS, rw));
  /**
   * WeirFanoutSink:spread:
   *
   * Time in ns over which the element spreads the sends of a frame to all readers, 16 readers at a
   * time, so that many readers do not cause one burst. Use at most half a frame's duration, or
   * frames pile up. 0 sends as fast as possible. Set it before readers are added: those that were
   * added while it was 0 are served 64 at a time.
   */
  g_object_class_install_property (klass, PROP_SPREAD,
      g_param_spec_uint64 ("spread", "Spread",
          "Spread the sends of a frame to all readers over this time, in ns; 0 sends at once", 0,
          GST_SECOND, DEFAULT_SPREAD, rw));
  /**
   * WeirFanoutSink:max-pacing-rate:
   *
   * Rate limit in bits per second for what the kernel sends to each reader (SO_MAX_PACING_RATE), so
   * that a keyframe does not overflow a narrow line; 0 for no limit. It always works for TCP. For
   * UDP it works only if the queueing discipline of the network device is `fq`, which handles a
   * segmented send as one packet; #WeirFanoutSink:gso `off` makes it pace each packet. The kernel
   * does not raise the limit of a UDP socket once it was lowered. Elsewhere, put `ratepacer` before
   * this element and set #WeirFanoutSink:max-coalesce to 0: `mode=bitrate` keeps to a rate,
   * `max-burst=N` spreads a frame over its duration. Each burst is then one send to each reader.
   *
   * Set a limit above the stream's rate, with room for readers that catch up: a reader that
   * receives less than the stream's rate falls behind and is thinned. Sinks that share a connection
   * share its limit; the last one set holds. Removing the reader removes the limit.
   */
  g_object_class_install_property (klass, PROP_MAX_PACING_RATE,
      g_param_spec_uint64 ("max-pacing-rate", "Highest pacing rate",
          "Kernel rate limit for each reader, in bits per second; 0 for none. For UDP it needs the "
          "queueing discipline fq",
          0, G_MAXUINT64, 0, rw));
  /**
   * WeirFanoutSink:kernel:
   *
   * Kernel path: UDP readers over IPv4 that get the same bytes are given clones of one message,
   * which a BPF program makes at the network device. `auto` uses it if the process has the
   * capabilities for it and no rule of the system for packets that leave would be gone round, for
   * devices that segment UDP. `on` uses it for every Ethernet device and despite such rules, and
   * the element does not start if it cannot be loaded; with `auto` it then posts an info message
   * with the reason. Readers that cannot have clones are served by sends.
   */
  g_object_class_install_property (klass, PROP_KERNEL,
      g_param_spec_enum ("kernel", "Kernel path",
          "Clones made by the kernel in place of a send to each UDP reader",
          WEIR_TYPE_FANOUT_SINK_KERNEL, DEFAULT_KERNEL, rw));
}

static void
install_window (GObjectClass *klass)
{
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  /**
   * WeirFanoutSink:join:
   *
   * Packet with which readers that are added from now on begin. `keyframe` needs RTP caps with the
   * encoding name H264, H265, VP8, VP9, AV1 or MPV. Audio begins at the live edge, in sync with the
   * video. Multicast readers begin at the live edge.
   */
  g_object_class_install_property (klass, PROP_JOIN,
      g_param_spec_enum ("join", "Join", "Packet that a new reader begins with",
          WEIR_TYPE_FANOUT_SINK_JOIN, DEFAULT_JOIN, rw));
  /**
   * WeirFanoutSink:catch-up:
   *
   * RTP timestamps of a reader that begins before the live edge. `live` compresses
   * them so that they end at the live edge: the player shows the first picture at once, plays the
   * rest fast, and is live. `delay` keeps them: the player stays behind by the distance at which it
   * began.
   */
  g_object_class_install_property (klass, PROP_CATCH_UP,
      g_param_spec_enum ("catch-up", "Catch-up",
          "RTP timestamps of a reader that begins before the live edge",
          WEIR_TYPE_FANOUT_SINK_CATCH_UP, DEFAULT_CATCH_UP, rw));
  /**
   * WeirFanoutSink:catch-up-rate:
   *
   * Speed at which a reader that begins before the live edge gets the packets up to it, as a
   * multiple of the stream's speed.
   */
  g_object_class_install_property (klass, PROP_CATCH_UP_RATE,
      g_param_spec_uint ("catch-up-rate", "Catch-up rate",
          "Speed of a reader that catches up with the live edge, as a multiple of the stream's", 2,
          1000, DEFAULT_CATCH_UP_RATE, rw));
  /**
   * WeirFanoutSink:window-bytes:
   *
   * Size of the window in bytes. A frame may not fit into less than 256 KiB: the element does not
   * start with a smaller value, and while it is started it posts a warning and keeps the old value.
   */
  g_object_class_install_property (klass, PROP_WINDOW_BYTES,
      g_param_spec_uint64 ("window-bytes", "Window bytes",
          "Largest number of bytes in the window, at least 262144", 0, G_MAXINT64,
          DEFAULT_WINDOW_BYTES, rw));
  g_object_class_install_property (klass, PROP_WINDOW_PACKETS,
      g_param_spec_uint64 ("window-packets", "Window packets",
          "Largest number of packets in the window, 48 bytes of memory each", 64, 1 << 24,
          DEFAULT_WINDOW_PACKETS, rw));
  /**
   * WeirFanoutSink:window-time:
   *
   * Longest time that a packet stays in the window, in ns. With #WeirFanoutSink:join `keyframe` the
   * newest keyframe and the packets after it stay regardless of their age.
   *
   * Until this property, #WeirFanoutSink:delay or #WeirFanoutSink::set-delay asks for more, the
   * window drops packets as soon as nobody needs them: it keeps those since the newest keyframe
   * (with #WeirFanoutSink:join `keyframe`), and those that a reader that is slow, paused or
   * catching up has still to get; with #WeirFanoutSink:join `live` and only UDP readers, of the
   * last second at most.
   */
  g_object_class_install_property (klass, PROP_WINDOW_TIME,
      g_param_spec_uint64 ("window-time", "Window time",
          "Longest time that a packet stays in the window, in ns", 0, 24 * 3600 * GST_SECOND,
          DEFAULT_WINDOW_TIME, rw));
  /**
   * WeirFanoutSink:spill-dir:
   *
   * Folder for the file that holds the window, for a window that is too large for memory; NULL
   * keeps the window in memory. The file has no name, is mapped into memory, and is freed when the
   * element stops. If the disk is full, the window becomes smaller, but not below 8 MiB, and the
   * element posts the element message `fanout-spill-full` with the field `capacity` (#guint64), the
   * new size in bytes. The streaming thread writes to the mapping, so it waits for the disk when
   * the system has too many dirty pages. Read when the element goes to PAUSED.
   */
  g_object_class_install_property (klass, PROP_SPILL_DIR,
      g_param_spec_string ("spill-dir", "Folder of the window's file",
          "Folder for the window's file; NULL keeps the window in memory", NULL,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  /**
   * WeirFanoutSink:drop-policy:
   *
   * Rule for dropping packets when the window is full and a reader still needs its oldest packets.
   */
  g_object_class_install_property (klass, PROP_DROP_POLICY,
      g_param_spec_enum ("drop-policy", "Drop policy",
          "Rule for dropping packets when the window is full", WEIR_TYPE_FANOUT_SINK_DROP_POLICY,
          DEFAULT_DROP_POLICY, rw));
  /**
   * WeirFanoutSink:fanout-stats:
   *
   * Totals since the element went to PAUSED. `readers` (#guint) is the number of readers now.
   * #guint64: `packets-in`, `bytes-in` (arrived), `packets-refused` (larger than 65507 bytes, or
   * dropped by #WeirFanoutSink:drop-policy `tail`), `packets-opaque` (neither RTP nor RTCP),
   * `packets-due` (to all readers; packets-due = packets-sent + dropped), `packets-sent`,
   * `bytes-sent`, `dropped`, by reason `dropped-would-block`, `dropped-no-buffers`,
   * `dropped-too-big`, `dropped-error`, `dropped-flushed`, `dropped-overrun`, `dropped-thinned`,
   * `dropped-catch-up`, `dropped-layers`, and `left-out`, the sum of the last three; `bursts`
   * (frames or parts of frames), `sends` (UDP messages), `gso-sends` (segmented ones),
   * `gso-fallbacks` (refused ones), `blocked` (how often a socket had no room), and of
   * #WeirFanoutSink:kernel `triggers` (messages that were cloned), `clones` (clones sent),
   * `clones-dropped`, and #guint `kernel-readers`, the readers whose last packets were clones.
   * `segments` is an
   * array of #guint64: the number of sends with 1, 2 to 3, 4 to 7, ... 32 to 63, and 64 packets.
   * `layers` is an array with a structure for each layer of the stream: `spatial`, `quality`,
   * `temporal` (#gint), `bitrate` (#guint64, bits per second of this layer alone, a moving
   * average), `frame-rate` (#gdouble, frames per second), `bytes` (#guint64). Python reads the
   * arrays with `get_array()`.
   */
  g_object_class_install_property (klass, PROP_FANOUT_STATS,
      g_param_spec_boxed ("fanout-stats", "Statistics of all readers",
          "Totals of all readers since the element went to PAUSED", GST_TYPE_STRUCTURE,
          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

void
fanout_properties_install (GObjectClass *klass)
{
  klass->set_property = fanout_properties_set;
  klass->get_property = fanout_properties_get;
  install_multiudpsink_properties (klass);
  install_sending (klass);
  install_window (klass);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_GSO, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_JOIN, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_CATCH_UP, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_DROP_POLICY, 0);
  gst_type_mark_as_plugin_api (WEIR_TYPE_FANOUT_SINK_KERNEL, 0);
}
