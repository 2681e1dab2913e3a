// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swarmsrc_private.h"

#include <sstream>

extern "C" {
#include "enumtype.h"
}

enum {
  PROP_TORRENT = 1,
  PROP_ORIGIN,
  PROP_FILE,
  PROP_PICKER,
  PROP_WINDOW,
  PROP_BITRATE,
  PROP_LEAVE,
  PROP_UPLOAD,
  PROP_STORAGE,
  PROP_FOLDER,
  PROP_STORAGE_FD,
  PROP_PEERS,
  PROP_TRACKER,
  PROP_NETWORKS,
  PROP_EXCHANGE,
  PROP_DHT,
  PROP_LSD,
  PROP_CHOKING,
  PROP_UNCHOKE_INTERVAL,
  PROP_CONNECTIONS,
  PROP_LISTEN,
  PROP_OWN_SESSION,
  PROP_TIMEOUT,
  PROP_STATS,
};

static GType
picker_type ()
{
  static gsize type;
  static const GEnumValue values[] = {
    { WEIR_PICKER_RAREST, "The piece that the fewest peers have", "rarest" },
    { WEIR_PICKER_IN_ORDER, "The piece that is needed first", "in-order" },
    { WEIR_PICKER_BETA, "Drawn from Beta(1,2) over what lies ahead", "beta" },
    { WEIR_PICKER_HYBRID, "In order within the window, then beta", "hybrid" },
    { WEIR_PICKER_ADAPTIVE, "Hybrid that leaves more to the origin while peers are slow",
        "adaptive" },
    { 0, nullptr, nullptr },
  };

  return weir_enum_type (&type, "WeirSwarmSrcPicker", values);
}

static GType
leave_type ()
{
  static gsize type;
  static const GEnumValue values[] = {
    { int (Leave::DOWNLOAD), "As soon as each piece has been there", "download" },
    { int (Leave::STREAM), "At the end of the title", "stream" },
    { int (Leave::SEED), "When the element goes to NULL", "seed" },
    { 0, nullptr, nullptr },
  };

  return weir_enum_type (&type, "WeirSwarmSrcLeave", values);
}

static GType
choking_type ()
{
  static gsize type;
  static const GEnumValue values[] = {
    { 0, "Send to the peers that send most", "tit-for-tat" },
    { 1, "Send to all peers", "rate-blind" },
    { 0, nullptr, nullptr },
  };

  return weir_enum_type (&type, "WeirSwarmSrcChoking", values);
}

static bool
read_endpoint (const std::string &text, guint64 least_port, lt::tcp::endpoint &endpoint)
{
  const auto colon = text.rfind (':');
  std::string host = text.substr (0, colon);
  lt::error_code error;
  guint64 port = 0;

  if (host.size () > 2 && host.front () == '[' && host.back () == ']')
    host = host.substr (1, host.size () - 2);
  const lt::address address = lt::make_address (host, error);
  if (error || colon == std::string::npos
      || !g_ascii_string_to_unsigned (
          text.c_str () + colon + 1, 10, least_port, 65535, &port, nullptr))
    return false;
  endpoint = lt::tcp::endpoint (address, std::uint16_t (port));
  return true;
}

bool
weir_swarm_src_read_peers (
    const std::string &text, std::vector<lt::tcp::endpoint> &peers, std::string &why)
{
  std::stringstream list (text);
  std::string peer;

  while (std::getline (list, peer, ',')) {
    lt::tcp::endpoint endpoint;

    if (!read_endpoint (peer, 1, endpoint)) {
      why = "\"" + peer + "\" is no peer; write an address and a port, as 10.0.0.1:6881";
      return false;
    }
    peers.push_back (endpoint);
  }
  return true;
}

bool
weir_swarm_src_check_listen (const std::string &text, std::string &why)
{
  std::stringstream list (text);
  std::string item;
  lt::tcp::endpoint endpoint;

  while (std::getline (list, item, ',')) {
    if (!read_endpoint (item, 0, endpoint)) {
      why = "\"" + item
            + "\" is no address to listen at; write one with a port, as 0.0.0.0:6881, "
              "or with port 0 for any";
      return false;
    }
  }
  return true;
}

// Peers that are added while the element runs.
static void
add_peers (WeirSwarmSrc *self, const std::string &text)
{
  const std::shared_ptr<Swarm> swarm = weir_swarm_src_get_swarm (self);
  std::vector<lt::tcp::endpoint> peers;
  std::string why;

  if (!weir_swarm_src_read_peers (text, peers, why))
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, ("peers: %s", why.c_str ()), (nullptr));
  else if (swarm)
    swarm->add_peers (peers);
}

// ---- statistics ----

static GstStructure *
make_stats (WeirSwarmSrc *self)
{
  const std::shared_ptr<Swarm> swarm = weir_swarm_src_get_swarm (self);
  const SwarmStats s = swarm ? swarm->stats (&self->inner->reader) : SwarmStats ();
  const SwarmReader r = swarm ? swarm->copy_reader (&self->inner->reader) : SwarmReader ();
  const guint64 ahead = swarm ? swarm->bytes_ahead (&self->inner->reader) : 0;
  const guint64 unused = s.duplicate_bytes + s.wrong_bytes;
  const auto useful = double (s.peer_bytes - std::min (unused, s.peer_bytes));
  const double all = useful + double (s.origin_bytes);

  return gst_structure_new ("application/x-weir-swarmsrc-stats",     //
      "peer-bytes", G_TYPE_UINT64, guint64 (s.peer_bytes),           //
      "origin-bytes", G_TYPE_UINT64, guint64 (s.origin_bytes),       //
      "sent-bytes", G_TYPE_UINT64, guint64 (s.sent_bytes),           //
      "duplicate-bytes", G_TYPE_UINT64, guint64 (s.duplicate_bytes), //
      "late-bytes", G_TYPE_UINT64, guint64 (s.late_bytes),           //
      "wrong-bytes", G_TYPE_UINT64, guint64 (s.wrong_bytes),         //
      "read-bytes", G_TYPE_UINT64, guint64 (r.bytes),                //
      "held-bytes", G_TYPE_UINT64, guint64 (s.held_bytes),           //
      "ahead-bytes", G_TYPE_UINT64, ahead,                           //
      "size", G_TYPE_UINT64, s.size,                                 //
      "bitrate", G_TYPE_UINT64, guint64 (s.bit_rate),                //
      "share-saved", G_TYPE_DOUBLE, all > 0 ? useful / all : 0.0,    //
      "pieces", G_TYPE_UINT, s.pieces,                               //
      "pieces-held", G_TYPE_UINT, s.held,                            //
      "pieces-late", G_TYPE_UINT, r.late,                            //
      "pieces-left", G_TYPE_UINT, s.left_storage,                    //
      "origin-errors", G_TYPE_UINT, s.origin_errors,                 //
      "peers", G_TYPE_UINT, s.peers,                                 //
      "seeds", G_TYPE_UINT, s.seeds,                                 //
      "banned", G_TYPE_UINT, s.banned,                               //
      "stalls", G_TYPE_UINT, r.stalls,                               //
      "port", G_TYPE_UINT, s.port,                                   //
      "start-up", G_TYPE_UINT64, guint64 (r.start_up_ns),            //
      "stalled", G_TYPE_UINT64, guint64 (r.stalled_ns),              //
      "finished", G_TYPE_BOOLEAN, gboolean (s.finished),             //
      "left", G_TYPE_BOOLEAN, gboolean (s.left),                     //
      "origin-error", G_TYPE_STRING, s.origin_error.c_str (), nullptr);
}

// ---- properties ----

static void
set_string (std::string &to, const GValue *value)
{
  const gchar *text = g_value_get_string (value);

  to = text ? text : "";
}

static void
set_property (GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (object);
  SwarmSrcProperties &p = self->inner->properties;

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_TORRENT:
      set_string (p.torrent, value);
      break;
    case PROP_ORIGIN:
      set_string (p.origin, value);
      break;
    case PROP_FILE:
      set_string (p.file, value);
      break;
    case PROP_PICKER:
      p.picker = WeirPicker (g_value_get_enum (value));
      break;
    case PROP_WINDOW:
      p.window_ns = g_value_get_uint64 (value);
      break;
    case PROP_BITRATE:
      p.bit_rate = g_value_get_uint64 (value);
      break;
    case PROP_LEAVE:
      p.leave = Leave (g_value_get_enum (value));
      break;
    case PROP_UPLOAD:
      p.upload = g_value_get_uint64 (value);
      break;
    case PROP_STORAGE:
      set_string (p.storage, value);
      break;
    case PROP_FOLDER:
      set_string (p.folder, value);
      break;
    case PROP_STORAGE_FD:
      p.storage_fd = g_value_get_int (value);
      break;
    case PROP_PEERS:
      set_string (p.peers, value);
      break;
    case PROP_TRACKER:
      p.tracker = g_value_get_boolean (value);
      break;
    case PROP_NETWORKS:
      set_string (p.networks, value);
      break;
    case PROP_EXCHANGE:
      p.exchange = g_value_get_boolean (value);
      break;
    case PROP_DHT:
      p.dht = g_value_get_boolean (value);
      break;
    case PROP_LSD:
      p.lsd = g_value_get_boolean (value);
      break;
    case PROP_CHOKING:
      p.rate_blind = g_value_get_enum (value) == 1;
      break;
    case PROP_UNCHOKE_INTERVAL:
      p.unchoke_interval_s = g_value_get_uint (value);
      break;
    case PROP_CONNECTIONS:
      p.connections = g_value_get_uint (value);
      break;
    case PROP_LISTEN:
      set_string (p.listen, value);
      break;
    case PROP_OWN_SESSION:
      p.own_session = g_value_get_boolean (value);
      break;
    case PROP_TIMEOUT:
      p.timeout_s = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
      break;
  }
  const std::string peers = p.peers;
  self->inner->changed |= id != PROP_PEERS;
  GST_OBJECT_UNLOCK (self);
  if (id == PROP_PEERS)
    add_peers (self, peers);
}

static void
get_property (GObject *object, guint id, GValue *value, GParamSpec *spec)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (object);
  const SwarmSrcProperties &p = self->inner->properties;
  const auto set = [value] (const std::string &text) {
    g_value_set_string (value, text.empty () ? nullptr : text.c_str ());
  };

  if (id == PROP_STATS) {
    g_value_take_boxed (value, make_stats (self));
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_TORRENT:
      set (p.torrent);
      break;
    case PROP_ORIGIN:
      set (p.origin);
      break;
    case PROP_FILE:
      set (p.file);
      break;
    case PROP_PICKER:
      g_value_set_enum (value, p.picker);
      break;
    case PROP_WINDOW:
      g_value_set_uint64 (value, p.window_ns);
      break;
    case PROP_BITRATE:
      g_value_set_uint64 (value, p.bit_rate);
      break;
    case PROP_LEAVE:
      g_value_set_enum (value, int (p.leave));
      break;
    case PROP_UPLOAD:
      g_value_set_uint64 (value, p.upload);
      break;
    case PROP_STORAGE:
      set (p.storage);
      break;
    case PROP_FOLDER:
      set (p.folder);
      break;
    case PROP_STORAGE_FD:
      g_value_set_int (value, p.storage_fd);
      break;
    case PROP_PEERS:
      set (p.peers);
      break;
    case PROP_TRACKER:
      g_value_set_boolean (value, p.tracker);
      break;
    case PROP_NETWORKS:
      set (p.networks);
      break;
    case PROP_EXCHANGE:
      g_value_set_boolean (value, p.exchange);
      break;
    case PROP_DHT:
      g_value_set_boolean (value, p.dht);
      break;
    case PROP_LSD:
      g_value_set_boolean (value, p.lsd);
      break;
    case PROP_CHOKING:
      g_value_set_enum (value, p.rate_blind ? 1 : 0);
      break;
    case PROP_UNCHOKE_INTERVAL:
      g_value_set_uint (value, p.unchoke_interval_s);
      break;
    case PROP_CONNECTIONS:
      g_value_set_uint (value, p.connections);
      break;
    case PROP_LISTEN:
      set (p.listen);
      break;
    case PROP_OWN_SESSION:
      g_value_set_boolean (value, p.own_session);
      break;
    case PROP_TIMEOUT:
      g_value_set_uint (value, p.timeout_s);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

void
weir_swarm_src_install_properties (GObjectClass *klass)
{
  const auto flags =
      GParamFlags (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
  const auto running =
      GParamFlags (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING);
  const SwarmSrcProperties p;
  const auto text = [&] (guint id, const gchar *name, const gchar *nick, const gchar *blurb,
                        const gchar *value) {
    g_object_class_install_property (klass, id,
        g_param_spec_string (name, nick, blurb, value, id == PROP_PEERS ? running : flags));
  };
  const auto yes_no = [&] (guint id, const gchar *name, const gchar *nick, const gchar *blurb,
                          gboolean value) {
    g_object_class_install_property (
        klass, id, g_param_spec_boolean (name, nick, blurb, value, flags));
  };
  const auto choice = [&] (guint id, const gchar *name, const gchar *nick, const gchar *blurb,
                          GType type, int value) {
    g_object_class_install_property (
        klass, id, g_param_spec_enum (name, nick, blurb, type, value, flags));
    gst_type_mark_as_plugin_api (type, GstPluginAPIFlags (0));
  };
  const auto number = [&] (guint id, const gchar *name, const gchar *nick, const gchar *blurb,
                          guint least, guint most, guint value) {
    g_object_class_install_property (
        klass, id, g_param_spec_uint (name, nick, blurb, least, most, value, flags));
  };
  const auto large = [&] (guint id, const gchar *name, const gchar *nick, const gchar *blurb,
                         guint64 most, guint64 value) {
    g_object_class_install_property (
        klass, id, g_param_spec_uint64 (name, nick, blurb, 0, most, value, flags));
  };

  klass->set_property = set_property;
  klass->get_property = get_property;
  text (PROP_TORRENT, "torrent", "Torrent", "Path of a .torrent file, or a magnet URI", nullptr);
  text (PROP_ORIGIN, "origin", "Origin",
      "HTTP URL of the title at a server with ranges; with a slash at the end, the URL of the "
      "folder with it. NULL: the torrent's url-list, if its host is an address within networks",
      nullptr);
  text (PROP_FILE, "file", "File", "Name of the title in a torrent of several files", nullptr);
  choice (
      PROP_PICKER, "picker", "Picker", "Which pieces are asked of peers", picker_type (), p.picker);
  large (PROP_WINDOW, "window", "Window",
      "Time before a piece is played in which hybrid and adaptive ask for it in order, in ns",
      G_MAXINT64 / 4, p.window_ns);
  large (PROP_BITRATE, "bitrate", "Bit rate",
      "Bit rate of the title, in bits per second; 0: that of an element that shares the title, or "
      "measured as it is read",
      G_GUINT64_CONSTANT (100000000000), p.bit_rate);
  choice (PROP_LEAVE, "leave", "Leave", "When the element leaves the swarm", leave_type (),
      int (p.leave));
  large (PROP_UPLOAD, "upload", "Upload",
      "Most that is sent to peers of the title, in bits per second; 0: no limit",
      G_GUINT64_CONSTANT (100000000000), p.upload);
  text (PROP_STORAGE, "storage", "Storage",
      "Most that is kept of the title, in bytes with K, M or G, or in per cent of the title; at "
      "least 3 pieces",
      p.storage.c_str ());
  text (PROP_FOLDER, "folder", "Folder",
      "Folder of an unnamed file with the pieces; NULL: they are kept in memory", nullptr);
  g_object_class_install_property (klass, PROP_STORAGE_FD,
      g_param_spec_int ("storage-fd", "Storage file",
          "An open, empty file for the pieces, for a process that may not open one in folder; it "
          "may be closed in PAUSED. -1: folder says where the pieces are",
          -1, G_MAXINT, p.storage_fd, flags));
  text (PROP_PEERS, "peers", "Peers",
      "Addresses and ports of peers, with commas; while the element runs, others are added",
      nullptr);
  yes_no (
      PROP_TRACKER, "tracker", "Tracker", "Ask the trackers of the torrent for peers", p.tracker);
  text (PROP_NETWORKS, "networks", "Networks",
      "Networks of the only addresses of peers and trackers that are talked to, with commas",
      p.networks.c_str ());
  yes_no (PROP_EXCHANGE, "exchange", "Exchange",
      "Ask peers for others, except for a private torrent", p.exchange);
  yes_no (PROP_DHT, "dht", "DHT",
      "Find peers by the distributed hash table, except for a private torrent; only with "
      "networks=0.0.0.0/0,::/0",
      p.dht);
  yes_no (PROP_LSD, "lsd", "LSD",
      "Find peers in the local network by multicast, except for a private torrent", p.lsd);
  choice (
      PROP_CHOKING, "choking", "Choking", "To which peers the element sends", choking_type (), 0);
  number (PROP_UNCHOKE_INTERVAL, "unchoke-interval", "Unchoke interval",
      "Time after which the peers to send to are chosen anew, in seconds", 1, 3600,
      p.unchoke_interval_s);
  number (PROP_CONNECTIONS, "connections", "Connections", "Most peers of the title", 2, 1000,
      p.connections);
  text (PROP_LISTEN, "listen", "Listen",
      "Addresses and ports where peers connect, with commas; port 0: any", p.listen.c_str ());
  yes_no (PROP_OWN_SESSION, "own-session", "Own session",
      "Share no session with other elements of the process", p.own_session);
  number (PROP_TIMEOUT, "timeout", "Timeout",
      "Time without a byte from peers or the origin, in seconds, after which who waits for a piece "
      "ends with an error; 0: none",
      0, 86400, p.timeout_s);
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics", "Statistics of the element and its swarm",
          GST_TYPE_STRUCTURE, GParamFlags (G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}
