// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_swarm.h"

#include "config/folder_check.h"
#include "config/mount_pulls.h"
#include "text/config_error.h"

#include <gio/gio.h>
#include <string.h>

#define STORAGE_MIN (G_GUINT64_CONSTANT (1) << 20)
#define UPLOAD_MIN 64000

static const gchar *const pickers[] = { "rarest", "in-order", "beta", "hybrid", "adaptive", NULL };
static const gchar *const leaves[] = { "download", "stream", "seed", NULL };
static const gchar *const chokings[] = { "tit-for-tat", "rate-blind", NULL };

static gchar *
check_origin (SchemaText *it)
{
  g_autoptr (GUri) uri = g_uri_parse (it->text, G_URI_FLAGS_ENCODED, NULL);
  const gchar *scheme = uri ? g_uri_get_scheme (uri) : "";

  if ((g_str_equal (scheme, "http") || g_str_equal (scheme, "https")) && g_uri_get_host (uri)
      && *g_uri_get_host (uri))
    return NULL;
  return g_strdup ("expected a URL such as http://10.0.0.1/films/");
}

static gchar *
check_upload (SchemaText *it)
{
  guint64 rate;

  return schema_parse_rate (it->text, &rate) && rate >= UPLOAD_MIN
             ? NULL
             : g_strdup ("expected at least 64k bits a second, such as 6M");
}

static gchar *
check_storage (SchemaText *it)
{
  const gchar *text = it->text;
  const gsize digits = strspn (text, "0123456789");
  guint64 bytes, percent = g_ascii_strtoull (text, NULL, 10);

  if (g_str_equal (text + digits, "%") ? percent >= 1 && percent <= 100
                                       : schema_parse_bytes (text, &bytes) && bytes >= STORAGE_MIN)
    return NULL;
  return g_strdup ("expected a size of at least 1M, or 1% to 100% of a title");
}

static gchar *
check_folder (SchemaText *it)
{
  return folder_check_writable (it, "it must exist and be writable");
}

static gboolean
is_network (const gchar *text)
{
  g_autoptr (GInetAddressMask) mask = g_inet_address_mask_new_from_string (text, NULL);

  return mask != NULL;
}

// Tells whether networks have all addresses.
static gboolean
are_all (const gchar *networks)
{
  g_auto (GStrv) items = g_strsplit (networks ? networks : "", ",", -1);
  gboolean v4 = FALSE, v6 = FALSE;

  for (guint i = 0; items[i]; i++) {
    g_autoptr (GInetAddressMask) mask = g_inet_address_mask_new_from_string (items[i], NULL);

    if (!mask || g_inet_address_mask_get_length (mask) > 0)
      continue;
    v4 |= g_inet_address_mask_get_family (mask) == G_SOCKET_FAMILY_IPV4;
    v6 |= g_inet_address_mask_get_family (mask) == G_SOCKET_FAMILY_IPV6;
  }
  return v4 && v6;
}

// Tells whether the text is a numeric address and a port: 10.0.0.1:6881 or [::1]:6881.
static gboolean
is_endpoint (const gchar *text)
{
  const gchar *colon = strrchr (text, ':');
  g_autofree gchar *host = colon ? g_strndup (text, (gsize) (colon - text)) : NULL;
  g_autoptr (GInetAddress) address = NULL;
  gsize length = host ? strlen (host) : 0;
  gboolean bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';
  guint64 port;

  if (bracketed)
    host[length - 1] = '\0';
  address = host ? g_inet_address_new_from_string (host + bracketed) : NULL;
  return address && bracketed == (g_inet_address_get_family (address) == G_SOCKET_FAMILY_IPV6)
         && g_ascii_string_to_unsigned (colon + 1, 10, 0, 65535, &port, NULL);
}

static gboolean
is_list (const gchar *text, gboolean (*is_item) (const gchar *item))
{
  g_auto (GStrv) items = g_strsplit (text, ",", -1);
  gboolean good = items[0] != NULL;

  for (guint i = 0; items[i]; i++)
    good = good && is_item (items[i]);
  return good;
}

static gchar *
check_networks (SchemaText *it)
{
  return is_list (it->text, is_network)
             ? NULL
             : g_strdup ("expected networks such as 10.0.0.0/8,192.168.1.0/24");
}

static gchar *
check_endpoints (SchemaText *it)
{
  return is_list (it->text, is_endpoint)
             ? NULL
             : g_strdup ("expected addresses with ports such as 10.0.0.7:6881,[::1]:0");
}

// ---- the keys ----

#define AT(field) G_STRUCT_OFFSET (MountConfig, swarm.field)
#define TEXT(field, text, how)                                                                     \
  SCHEMA_TEXT, AT (field), .form = text, .check = how, .effect = MOUNT_EFFECT_SERVING
#define WORD(field, text, names)                                                                   \
  SCHEMA_WORD, AT (field), text, .words = names, .effect = MOUNT_EFFECT_SERVING
#define FLAG(field, text) SCHEMA_FLAG, AT (field), text, .effect = MOUNT_EFFECT_SERVING

static const SchemaKey swarm_keys[] = {
  { "origin", TEXT (origin, "URL", check_origin),
      .help = "where pieces come from that no peer has in time; one that ends with a slash has "
              "each title below it. Without it: the web seed of each torrent, if its host is an "
              "address within `networks`" },
  { "upload", TEXT (upload, "RATE", check_upload),
      .help =
          "limit for what peers get of each title, at least `64k` bits a second (k, M and G are "
          "powers of 1000); without it, there is no limit" },
  { "storage", TEXT (storage, "SIZE or PERCENT", check_storage), .preset = "256M",
      .help =
          "how much of each title is kept; K, M and G are powers of 1024; `50%` is half of it, but "
          "at least 3 pieces" },
  { "folder", TEXT (folder, "FOLDER", check_folder),
      .help = "keeps the pieces in a file in this folder; without it they are kept in memory" },
  { "picker", WORD (picker, "hybrid", pickers),
      .help =
          "which pieces are asked of peers; `hybrid`: in order within `window`, then at random; "
          "`adaptive`: the same, with more left to the origin while peers bring too little" },
  { "window", SCHEMA_DURATION, AT (window_ms), "15m", .min = 1000, .effect = MOUNT_EFFECT_SERVING,
      .help = "of `hybrid` and `adaptive`" },
  { "leave", WORD (leave, "seed", leaves),
      .help = "when a title leaves the swarm; `download`: when all its pieces have been there; "
              "`stream`: a minute after its last reader; `seed`: when `titles` others came later" },
  { "titles", SCHEMA_NUMBER, AT (titles), "16", 1, 1024, .effect = MOUNT_EFFECT_SERVING,
      .help = "how many titles may be in the swarm when not all have readers" },
  { "choking", WORD (choking, "tit-for-tat", chokings),
      .help = "which peers get pieces; `tit-for-tat`: those who send most; `rate-blind`: all" },
  { "peers", TEXT (peers, "ADDRESS:PORT,...", check_endpoints),
      .help = "peers that are asked without a tracker" },
  { "networks", TEXT (networks, "NETWORK,...", check_networks),
      .help = "where peers, trackers and web seeds may be, such as `10.0.0.0/8`; without it: "
              "loopback, private and link-local networks" },
  { "listen", TEXT (listen, "ADDRESS:PORT,...", check_endpoints), .preset = "0.0.0.0:0,[::]:0",
      .help = "where peers reach this proxy; port 0: any, as where a port is taken" },
  { "trackers", FLAG (trackers, "yes"), .help = "whether the trackers of the torrents are asked" },
  { "exchange", FLAG (exchange, "yes"),
      .help = "whether peers tell of other peers (never of a private torrent)" },
  { "dht", FLAG (dht, "no"),
      .help = "whether peers are looked for in the distributed hash table (never for a private "
              "torrent); its nodes are anywhere, so `networks` must be `0.0.0.0/0,::/0`" },
  { "local-discovery", FLAG (local_discovery, "no"),
      .help = "whether peers are looked for by multicast (never for a private torrent)" },
  { NULL },
};

#undef AT

static gboolean
check_swarm (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const MountConfig *mount = object;

  return !mount->swarm.dht || are_all (mount->swarm.networks)
         || yaml_fail (reader, yaml_get (reader, node, "dht"), "dht", CONFIG_ERROR_VALUE, error,
             "the nodes of the hash table are anywhere: set networks to 0.0.0.0/0,::/0, or dht to "
             "no");
}

static gboolean
is_shown (gconstpointer object)
{
  return mount_config_get_titles (object) == PULL_TITLES_SWARM;
}

const SchemaObject mount_swarm_object = { .keys = swarm_keys,
  .expected = "expected {KEY: VALUE, ...}, such as {upload: 6M}",
  .check = check_swarm,
  .is_shown = is_shown };

// ---- for the store ----

static void
add (GStrvBuilder *builder, const gchar *name, const gchar *value)
{
  if (!value)
    return;
  g_strv_builder_add (builder, name);
  g_strv_builder_add (builder, value);
}

static void
add_number (GStrvBuilder *builder, const gchar *name, guint64 number)
{
  g_autofree gchar *text = g_strdup_printf ("%" G_GUINT64_FORMAT, number);

  add (builder, name, text);
}

GStrv
mount_swarm_dup_properties (const MountConfig *mount)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  guint64 upload = 0;

  if (mount->swarm.upload)
    schema_parse_rate (mount->swarm.upload, &upload);
  add (builder, "origin", mount->swarm.origin);
  add_number (builder, "upload", upload);
  add (builder, "storage", mount->swarm.storage);
  add (builder, "folder", mount->swarm.folder);
  add (builder, "picker", mount->swarm.picker);
  add_number (builder, "window", mount->swarm.window_ms * G_GUINT64_CONSTANT (1000000));
  // Otherwise the title leaves when the store drops it.
  add (builder, "leave", g_str_equal (mount->swarm.leave, "download") ? "download" : "seed");
  add (builder, "choking", mount->swarm.choking);
  add (builder, "peers", mount->swarm.peers);
  add (builder, "networks", mount->swarm.networks);
  add (builder, "listen", mount->swarm.listen);
  add (builder, "tracker", mount->swarm.trackers ? "true" : "false");
  add (builder, "exchange", mount->swarm.exchange ? "true" : "false");
  add (builder, "dht", mount->swarm.dht ? "true" : "false");
  add (builder, "lsd", mount->swarm.local_discovery ? "true" : "false");
  return g_strv_builder_end (builder);
}

gboolean
mount_swarm_seeds (const MountConfig *mount)
{
  return !g_str_equal (mount->swarm.leave, "stream");
}
