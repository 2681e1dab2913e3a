// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-swarmsrc
 * @title: swarmsrc
 * @short_description: reads a title from a swarm and its origin
 *
 * Reads a file of a torrent: from BitTorrent peers what comes in time, and from an HTTP server,
 * the origin, what would come too late (Y. R. Choe, "Design and Implementation of a
 * Resource-Efficient Storage Server for VoD", Purdue University, 2007, chapter 5). The output is
 * bytes; it can seek, and demuxers can pull it. Each piece is checked against its hash before it
 * goes out.
 *
 * #WeirSwarmSrc:picker chooses a few pieces to be asked of peers first. A piece that is still
 * missing shortly before it is needed is requested from #WeirSwarmSrc:origin by range, and then
 * given to peers. The element keeps #WeirSwarmSrc:storage of the title; played pieces leave first.
 *
 * It plays URIs such as `swarm:///srv/films/a.torrent?origin=http://10.0.0.1/a.mp4` and magnet
 * URIs. Peers and trackers outside #WeirSwarmSrc:networks are not talked to; by default, these are
 * the private networks.
 *
 * Elements of a process with the same settings of the session share one session of libtorrent,
 * which has one thread. Elements that read the same title in one session share its pieces. A
 * thread `weir-swarm` of the process decides for all titles. The streaming thread only waits for
 * pieces. For a magnet URI, the change to PAUSED waits for the torrent's description.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 swarmsrc torrent=/srv/films/bars.torrent origin=http://localhost:8080/bars.webm ! matroskademux ! vp8dec ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "swarmsrc_private.h"

#include <chrono>
#include <cstring>
#include <thread>

#include <libtorrent/magnet_uri.hpp>

extern "C" {
#include "elementname.h"
}

GST_DEBUG_CATEGORY_STATIC (swarmsrc_debug);
#define GST_CAT_DEFAULT swarmsrc_debug

#define BLOCK_BYTES 65536     // of a buffer
#define METADATA_TIMEOUT_S 30 // without `timeout`
#define METADATA_POLL_MS 20

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

static void uri_init (gpointer klass, gpointer data);

G_DEFINE_FINAL_TYPE_WITH_CODE (WeirSwarmSrc, weir_swarm_src, GST_TYPE_BASE_SRC,
    G_IMPLEMENT_INTERFACE (GST_TYPE_URI_HANDLER, uri_init))
GST_ELEMENT_REGISTER_DEFINE (swarmsrc, "swarmsrc", GST_RANK_PRIMARY, WEIR_TYPE_SWARM_SRC)

std::shared_ptr<Swarm>
weir_swarm_src_get_swarm (WeirSwarmSrc *self)
{
  std::lock_guard<std::mutex> lock (self->inner->lock);

  return self->inner->swarm;
}

// ---- reading ----

static GstFlowReturn
create (GstBaseSrc *src, guint64 offset, guint size, GstBuffer **result)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (src);
  const std::shared_ptr<Swarm> swarm = weir_swarm_src_get_swarm (self);
  const guint64 end = std::min<guint64> (offset + size, swarm->size (&self->inner->reader));
  GstFlowReturn flow = GST_FLOW_OK;
  GstMapInfo map;
  std::string why;

  if (offset >= end)
    return GST_FLOW_EOS;
  GstBuffer *buffer = gst_buffer_new_allocate (nullptr, end - offset, nullptr);
  if (!buffer || !gst_buffer_map (buffer, &map, GST_MAP_WRITE)) {
    gst_clear_buffer (&buffer);
    return GST_FLOW_ERROR;
  }
  for (guint64 at = offset; at < end && flow == GST_FLOW_OK;) {
    size_t length = end - at;
    switch (swarm->read (&self->inner->reader, at,
        reinterpret_cast<char *> (map.data) + (at - offset), &length, why)) {
      case ReadResult::OK:
        at += length;
        break;
      case ReadResult::FLUSHING:
        flow = GST_FLOW_FLUSHING;
        break;
      case ReadResult::FAILED:
        GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", why.c_str ()), (nullptr));
        flow = GST_FLOW_ERROR;
        break;
    }
  }
  gst_buffer_unmap (buffer, &map);
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  GST_BUFFER_OFFSET (buffer) = offset;
  GST_BUFFER_OFFSET_END (buffer) = end;
  *result = buffer;
  return GST_FLOW_OK;
}

static gboolean
get_size (GstBaseSrc *src, guint64 *size)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (src);
  const std::shared_ptr<Swarm> swarm = weir_swarm_src_get_swarm (self);

  if (!swarm)
    return FALSE;
  *size = swarm->size (&self->inner->reader);
  return TRUE;
}

static gboolean
is_seekable (GstBaseSrc *src)
{
  return TRUE;
}

static gboolean
set_flushing (GstBaseSrc *src, bool flushing)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (src);
  const std::shared_ptr<Swarm> swarm = weir_swarm_src_get_swarm (self);

  if (swarm)
    swarm->set_flushing (&self->inner->reader, flushing);
  return TRUE;
}

static gboolean
unlock (GstBaseSrc *src)
{
  return set_flushing (src, true);
}

static gboolean
unlock_stop (GstBaseSrc *src)
{
  return set_flushing (src, false);
}

// ---- start ----

// Reads "100", "64K" or "50%" of `size`; per cent are never less than `least`.
static bool
read_storage (
    const std::string &text, guint64 size, guint64 least, guint64 &bytes, std::string &why)
{
  static const char units[] = "KMG";
  std::string digits = text;
  const char *unit = nullptr;
  bool per_cent = false;
  guint64 n;

  if (!digits.empty () && (unit = std::strchr (units, digits.back ())) != nullptr)
    digits.pop_back ();
  else if (!digits.empty () && digits.back () == '%') {
    per_cent = true;
    digits.pop_back ();
  }
  if (!g_ascii_string_to_unsigned (
          digits.c_str (), 10, 1, per_cent ? 100 : G_MAXUINT64 >> 31, &n, nullptr)) {
    why = "storage \"" + text + "\": write bytes, such as 256M, or per cent, such as 50%";
    return false;
  }
  bytes = per_cent ? std::max (size / 100 * n + size % 100 * n / 100, least) : n;
  if (unit)
    bytes = n << (10 * (unit - units + 1));
  return true;
}

static bool
is_web (const std::string &url)
{
  GUri *uri = g_uri_parse (url.c_str (), G_URI_FLAGS_NONE, nullptr);
  const bool is = uri && g_uri_get_host (uri) && *g_uri_get_host (uri)
                  && (g_str_equal (g_uri_get_scheme (uri), "http")
                      || g_str_equal (g_uri_get_scheme (uri), "https"));

  g_clear_pointer (&uri, g_uri_unref);
  return is;
}

// Returns why a URL of the torrent is not asked, or "".
static std::string
refuse_web_seed (const std::string &url, const Session &session)
{
  GUri *uri = g_uri_parse (url.c_str (), G_URI_FLAGS_NONE, nullptr);
  lt::error_code error;

  if (!uri || !is_web (url)) {
    g_clear_pointer (&uri, g_uri_unref);
    return "it is no HTTP URL";
  }
  const lt::address address = lt::make_address (g_uri_get_host (uri), error);
  g_uri_unref (uri);
  return error                        ? "its host is a name"
         : !session.permits (address) ? "its host is outside \"networks\""
                                      : "";
}

static bool
find_origin (const std::string &given, const Title &title, const Session &session,
    SwarmSettings &settings, std::string &why)
{
  std::string &origin = settings.origin;

  if (!given.empty () && !is_web (given)) {
    why = "origin \"" + given + "\" is no HTTP URL";
    return false;
  }
  origin = given;
  settings.no_origin = "there is none";
  for (const std::string &url : title.web_seeds) {
    const std::string wrong = refuse_web_seed (url, session);
    if (origin.empty () && wrong.empty ())
      origin = url;
    else if (origin.empty ())
      settings.no_origin =
          "the torrent's web seed \"" + url + "\" is not asked, as " + wrong + "; set \"origin\"";
  }
  // Of several files, a web seed is the folder (BEP 19).
  if (given.empty () && !origin.empty () && origin.back () != '/'
      && title_path (*title.info, title.file).find ('/') != std::string::npos)
    origin += '/';
  return true;
}

// Waits for the description of a torrent.
static bool
resolve_magnet (const std::string &uri, const SwarmSrcProperties &p, Session &session,
    std::shared_ptr<const lt::torrent_info> &info, std::string &why)
{
  lt::error_code error;
  lt::add_torrent_params params = lt::parse_magnet_uri (uri, error);
  std::vector<lt::tcp::endpoint> peers;
  lt::torrent_handle handle;
  guint left_ms = (p.timeout_s ? p.timeout_s : METADATA_TIMEOUT_S) * 1000;

  if (error) {
    why = "\"" + uri + "\" is no magnet URI: " + error.message ();
    return false;
  }
  params.save_path = ".";
  params.url_seeds.clear ();
  if (!p.tracker)
    params.trackers.clear ();
  if (!weir_swarm_src_read_peers (p.peers, peers, why)
      || !session.add (std::move (params), nullptr, handle, why))
    return false;
  for (const lt::tcp::endpoint &peer : peers)
    handle.connect_peer (peer);
  while (!(info = handle.torrent_file ()) && left_ms >= METADATA_POLL_MS) {
    std::this_thread::sleep_for (std::chrono::milliseconds (METADATA_POLL_MS));
    left_ms -= METADATA_POLL_MS;
  }
  session.remove (handle);
  if (!info)
    why = "no peer has sent the description of the torrent in time";
  return info != nullptr;
}

static std::shared_ptr<Session>
get_session (WeirSwarmSrc *self, const SwarmSrcProperties &p, std::string &why)
{
  return Session::get (
      { p.networks, p.listen, bool (p.dht), bool (p.lsd), bool (p.exchange), bool (p.rate_blind),
          p.unchoke_interval_s, p.own_session ? self : nullptr },
      why);
}

static bool
open_swarm (
    WeirSwarmSrc *self, const SwarmSrcProperties &p, GstResourceError &code, std::string &why)
{
  SwarmSrcInner *inner = self->inner;
  std::shared_ptr<const lt::torrent_info> info;
  std::vector<lt::tcp::endpoint> peers;
  SwarmSettings settings;
  Title title;

  if (p.torrent.empty ()) {
    why = "the property \"torrent\" is not set";
    return false;
  }
  if (!weir_swarm_src_read_peers (p.peers, peers, why)
      || !weir_swarm_src_check_listen (p.listen, why))
    return false;
  if (g_str_has_prefix (p.torrent.c_str (), "magnet:")) {
    // The session of the process may have the torrent already.
    SwarmSrcProperties own = p;
    own.own_session = TRUE;
    const auto session = get_session (self, own, why);
    if (!session || !resolve_magnet (p.torrent, p, *session, info, why))
      return false;
  } else if (!title_load (p.torrent, info, why)) {
    return false;
  }
  const TitleFound found = title_make (info, p.file, title, why);
  if (found == TitleFound::NO_FILE)
    code = GST_RESOURCE_ERROR_NOT_FOUND;
  if (found != TitleFound::YES)
    return false;
  const auto session = get_session (self, p, why);
  if (!session || !find_origin (p.origin, title, *session, settings, why)
      || !read_storage (
          p.storage, title.swarm.bytes, Swarm::least_storage (title), settings.storage_bytes, why))
    return false;
  settings.picker = p.picker;
  settings.window_ns = int64_t (p.window_ns);
  settings.bit_rate = double (p.bit_rate);
  settings.upload = (p.upload + 7) / 8; // 0 is no limit
  settings.connections = p.connections;
  settings.folder = p.folder;
  settings.file = p.storage_fd;
  settings.trackers = p.tracker;
  inner->reader.leave = p.leave;
  inner->reader.timeout_s = p.timeout_s;
  const auto swarm = Swarm::open (session, title, settings, &inner->reader, why);
  if (!swarm)
    return false;
  swarm->add_peers (peers);
  std::lock_guard<std::mutex> lock (inner->lock);
  inner->swarm = swarm;
  return true;
}

static void
tell_of_warnings (WeirSwarmSrc *self, const std::shared_ptr<Swarm> &swarm)
{
  auto element = std::shared_ptr<GWeakRef> (new GWeakRef, [] (GWeakRef *ref) {
    g_weak_ref_clear (ref);
    delete ref;
  });

  g_weak_ref_init (element.get (), self);
  swarm->set_on_warning (self, [element] (const std::string &text) {
    gpointer held = g_weak_ref_get (element.get ());
    if (!held)
      return;
    GST_ELEMENT_WARNING (held, RESOURCE, READ, ("%s", text.c_str ()), (nullptr));
    gst_object_unref (held);
  });
}

static void
close_swarm (WeirSwarmSrc *self)
{
  std::shared_ptr<Swarm> swarm;

  {
    std::lock_guard<std::mutex> lock (self->inner->lock);

    swarm.swap (self->inner->swarm);
  }
  if (!swarm)
    return;
  swarm->set_on_warning (self, nullptr);
  swarm->remove_reader (&self->inner->reader);
}

static gboolean
start (GstBaseSrc *src)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (src);
  GstResourceError code = GST_RESOURCE_ERROR_OPEN_READ;
  SwarmSrcProperties properties;
  std::string why;
  bool same;

  GST_OBJECT_LOCK (self);
  properties = self->inner->properties;
  same = !self->inner->changed;
  self->inner->changed = false;
  GST_OBJECT_UNLOCK (self);
  if (self->inner->swarm && same && !self->inner->swarm->has_ended ()) {
    self->inner->swarm->begin (&self->inner->reader); // it seeds, and reads again
    return TRUE;
  }
  close_swarm (self);
  if (!open_swarm (self, properties, code, why)) {
    gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR, code,
        g_strdup (why.c_str ()), nullptr, __FILE__, GST_FUNCTION, __LINE__);
    return FALSE;
  }
  tell_of_warnings (self, self->inner->swarm);
  self->inner->swarm->begin (&self->inner->reader);
  return TRUE;
}

static gboolean
stop (GstBaseSrc *src)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (src);
  const std::shared_ptr<Swarm> swarm = weir_swarm_src_get_swarm (self);

  if (swarm && self->inner->reader.leave == Leave::SEED)
    swarm->end (&self->inner->reader);
  else
    close_swarm (self);
  return TRUE;
}

static GstStateChangeReturn
change_state (GstElement *element, GstStateChange transition)
{
  const GstStateChangeReturn result =
      GST_ELEMENT_CLASS (weir_swarm_src_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    close_swarm (WEIR_SWARM_SRC (element));
  return result;
}

// ---- the URI ----

// Properties that a URI may set.
static const gchar *const uri_names[] = { "origin", "file", "bitrate", "picker", "peers" };

static GstURIType
get_uri_type (GType type)
{
  return GST_URI_SRC;
}

static const gchar *const *
get_protocols (GType type)
{
  static const gchar *const protocols[] = { "swarm", "magnet", nullptr };

  return protocols;
}

static gchar *
get_uri (GstURIHandler *handler)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (handler);
  GstUri *uri;
  gchar *text, *torrent, *origin, *file;

  g_object_get (self, "torrent", &torrent, "origin", &origin, "file", &file, nullptr);
  if (!torrent || g_str_has_prefix (torrent, "magnet:")) {
    g_free (origin);
    g_free (file);
    return torrent;
  }
  uri = gst_uri_new ("swarm", nullptr, "", GST_URI_NO_PORT, torrent, nullptr, nullptr);
  if (origin)
    gst_uri_set_query_value (uri, "origin", origin);
  if (file)
    gst_uri_set_query_value (uri, "file", file);
  text = gst_uri_to_string (uri);
  gst_uri_unref (uri);
  g_free (torrent);
  g_free (origin);
  g_free (file);
  return text;
}

static gboolean
set_from_query (WeirSwarmSrc *self, GstUri *uri, GError **error)
{
  GList *keys = gst_uri_get_query_keys (uri);
  gboolean ok = TRUE;

  for (GList *l = keys; l && ok; l = l->next) {
    const auto *name = static_cast<const gchar *> (l->data);
    const gchar *value = gst_uri_get_query_value (uri, name);
    GValue typed = G_VALUE_INIT;

    ok = FALSE;
    for (const gchar *known : uri_names)
      ok |= g_str_equal (known, name);
    if (ok) {
      g_value_init (
          &typed, g_object_class_find_property (G_OBJECT_GET_CLASS (self), name)->value_type);
      ok = value && gst_value_deserialize (&typed, value);
      if (ok)
        g_object_set_property (G_OBJECT (self), name, &typed);
      g_value_unset (&typed);
    }
    if (!ok)
      g_set_error (error, GST_URI_ERROR, GST_URI_ERROR_BAD_URI,
          "\"%s=%s\" is wrong; origin, file, bitrate, picker and peers can be set", name,
          value ? value : "");
  }
  g_list_free (keys);
  return ok;
}

static gboolean
set_uri (GstURIHandler *handler, const gchar *text, GError **error)
{
  WeirSwarmSrc *self = WEIR_SWARM_SRC (handler);
  GstUri *uri;
  gchar *path;
  gboolean ok;

  if (GST_STATE (self) > GST_STATE_READY) {
    g_set_error (error, GST_URI_ERROR, GST_URI_ERROR_BAD_STATE,
        "the torrent cannot be changed while the element runs");
    return FALSE;
  }
  if (g_str_has_prefix (text, "magnet:")) {
    g_object_set (self, "torrent", text, nullptr);
    return TRUE;
  }
  uri = gst_uri_from_string (text);
  path = uri ? gst_uri_get_path (uri) : nullptr;
  ok = path && path[0] == '/' && path[1] && !(gst_uri_get_host (uri) && *gst_uri_get_host (uri));
  if (!ok)
    g_set_error (error, GST_URI_ERROR, GST_URI_ERROR_BAD_URI,
        "\"%s\" is wrong; write swarm:///PATH.torrent", text);
  ok = ok && set_from_query (self, uri, error);
  if (ok)
    g_object_set (self, "torrent", path, nullptr);
  g_free (path);
  g_clear_pointer (&uri, gst_uri_unref);
  return ok;
}

static void
uri_init (gpointer klass, gpointer data)
{
  auto *handler = static_cast<GstURIHandlerInterface *> (klass);

  handler->get_type = get_uri_type;
  handler->get_protocols = get_protocols;
  handler->get_uri = get_uri;
  handler->set_uri = set_uri;
}

// ---- the class ----

static void
finalize (GObject *object)
{
  delete WEIR_SWARM_SRC (object)->inner;
  G_OBJECT_CLASS (weir_swarm_src_parent_class)->finalize (object);
}

static void
weir_swarm_src_class_init (WeirSwarmSrcClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *src_class = GST_BASE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (swarmsrc_debug, "swarmsrc", 0, "Weir swarm source");
  weir_element_class_set_default_name (object_class);
  object_class->finalize = finalize;
  weir_swarm_src_install_properties (object_class);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Swarm source", "Source/Network",
      "Reads a title from BitTorrent peers, and from its origin what would come too late", "Weir");
  element_class->change_state = change_state;
  src_class->start = start;
  src_class->stop = stop;
  src_class->create = create;
  src_class->get_size = get_size;
  src_class->is_seekable = is_seekable;
  src_class->unlock = unlock;
  src_class->unlock_stop = unlock_stop;
}

static void
weir_swarm_src_init (WeirSwarmSrc *self)
{
  self->inner = new SwarmSrcInner;
  gst_base_src_set_blocksize (GST_BASE_SRC (self), BLOCK_BYTES);
}
