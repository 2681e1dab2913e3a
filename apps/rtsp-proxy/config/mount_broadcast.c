// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_broadcast.h"

#include "text/config_error.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PREFIX_MIN 16 // 65536 groups, as many as a pool can hold (schedule/pool.h)
#define PORT_MIN 1024
#define PORT 5004 // the default
#define PORTS 16  // of a group: RTP and RTCP of 8 tracks
#define PORT_MAX (65536 - PORTS)
#define FIRST_MIN_MS 100
#define FIRST_MS 10000
#define RATE_MIN G_GUINT64_CONSTANT (64000)
#define RATE_MAX G_GUINT64_CONSTANT (100000000000)
#define CACHE_MIN (G_GUINT64_CONSTANT (1) << 20)
#define CACHE_MAX (G_GUINT64_CONSTANT (2) << 30)
#define CACHE_BYTES (G_GUINT64_CONSTANT (32) << 20)
#define NS_PER_MS G_GUINT64_CONSTANT (1000000)

static const gchar *const schemes[] = { "gdb", "greedy", "skyscraper", "staggered", "batching",
  "patching", "auto", NULL }; // by WeirSchemeKind

// ---- groups ----

// Reads "239.1.1.0/28" or "239.1.2.3". Returns FALSE if the text has another form.
static gboolean
parse_groups (const gchar *text, guint32 *first, guint *prefix)
{
  GStrv parts = g_strsplit (text, "/", 2);
  struct in_addr address;
  guint64 bits = 32;
  gboolean ok = parts[0] && inet_pton (AF_INET, parts[0], &address) == 1
                && (!parts[1] || g_ascii_string_to_unsigned (parts[1], 10, 0, 32, &bits, NULL));

  g_strfreev (parts);
  *first = ok ? ntohl (address.s_addr) : 0;
  *prefix = (guint) bits;
  return ok;
}

static guint32
get_first (const MountConfig *mount)
{
  return ntohl (inet_addr (mount->broadcast.groups));
}

static gchar *
dup_range (guint32 first, guint prefix)
{
  struct in_addr address = { htonl (first) };
  gchar text[INET_ADDRSTRLEN];

  inet_ntop (AF_INET, &address, text, sizeof text);
  return prefix < 32 ? g_strdup_printf ("%s/%u", text, prefix) : g_strdup (text);
}

// Returns the groups of a mount as they are written in a file. (transfer full)
static gchar *
dup_groups (const MountConfig *mount)
{
  return dup_range (get_first (mount), 33 - g_bit_storage (mount->broadcast.n_groups));
}

// Returns NULL, or an error message that the caller owns.
static gchar *
check_groups (guint32 first, guint prefix)
{
  guint32 others = prefix > 0 ? (guint32) ((G_GUINT64_CONSTANT (1) << (32 - prefix)) - 1) : ~0u;
  gchar *range, *wrong;

  if (!IN_MULTICAST (first))
    return g_strdup ("not a multicast address; take one of 239.0.0.0/8");
  if (prefix < PREFIX_MIN)
    return g_strdup_printf (
        "the range is too large; it has at most 65536 addresses (/%u)", PREFIX_MIN);
  if (first >> 8 == 0xe00000)
    return g_strdup ("224.0.0.0 to 224.0.0.255 are reserved for protocols of routers; take "
                     "addresses of 239.0.0.0/8");
  if (!(first & others))
    return NULL;
  range = dup_range (first & ~others, prefix);
  wrong =
      g_strdup_printf ("a range of %u addresses does not begin there; write %s", others + 1, range);
  g_free (range);
  return wrong;
}

static gboolean
read_groups (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  BroadcastConfig *broadcast = &((MountConfig *) object)->broadcast;
  const gchar *text = yaml_text (reader, node);
  guint32 first;
  guint prefix;
  gchar *wrong;

  if (!text || !parse_groups (text, &first, &prefix))
    return schema_fail (reader, node, key, error,
        "expected an IPv4 multicast address, or a range such as 239.1.1.0/28");
  wrong = check_groups (first, prefix);
  if (wrong)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
  g_free (broadcast->groups);
  broadcast->groups = dup_range (first, 32);
  broadcast->n_groups = 1u << (32 - prefix);
  return TRUE;
}

// ---- other keys ----

static gboolean
read_first (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint ms;

  if (!text || !schema_parse_duration (text, &ms) || ms < FIRST_MIN_MS)
    return schema_fail (reader, node, key, error, "expected a time from 100ms to 24h, such as 10s");
  ((MountConfig *) object)->broadcast.first_ns = ms * NS_PER_MS;
  return TRUE;
}

static gboolean
read_threshold (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint ms = 0;

  if (!text || (!g_str_equal (text, "auto") && (!schema_parse_duration (text, &ms) || ms == 0)))
    return schema_fail (
        reader, node, key, error, "expected auto, or a time from 1ms to 24h, such as 60s");
  ((MountConfig *) object)->broadcast.threshold_ns = ms * NS_PER_MS;
  return TRUE;
}

static gboolean
read_port (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint64 port;

  if (!text || !g_ascii_string_to_unsigned (text, 10, PORT_MIN, PORT_MAX, &port, NULL)
      || port % 2 != 0)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf (
            "expected an even number from %u to %u, such as 5004", PORT_MIN, PORT_MAX));
  ((MountConfig *) object)->broadcast.port = (guint16) port;
  return TRUE;
}

static gboolean
read_iface (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  BroadcastConfig *broadcast = &((MountConfig *) object)->broadcast;
  const gchar *text = yaml_text (reader, node);

  if (!text)
    return schema_fail (reader, node, key, error, "expected a single value");
  if (if_nametoindex (text) == 0)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_ABSENT, error,
        g_strdup_printf ("no such network interface: %s; `ip link` lists them", text));
  g_free (broadcast->iface);
  broadcast->iface = g_strdup (text);
  return TRUE;
}

static gboolean
read_rate (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint64 rate;

  if (!text || !schema_parse_rate (text, &rate) || rate < RATE_MIN || rate > RATE_MAX)
    return schema_fail (
        reader, node, key, error, "expected bits a second from 64k to 100G, such as 100M");
  ((MountConfig *) object)->broadcast.rate = rate;
  return TRUE;
}

static gboolean
read_cache (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  guint64 bytes;

  if (!text || !schema_parse_bytes (text, &bytes) || bytes < CACHE_MIN || bytes > CACHE_MAX)
    return schema_fail (reader, node, key, error, "expected a size from 1M to 2G, such as 32M");
  ((MountConfig *) object)->broadcast.cache_bytes = bytes;
  return TRUE;
}

static const SchemaValue groups_value = { .read = read_groups };
static const SchemaValue first_value = { .read = read_first };
static const SchemaValue threshold_value = { .read = read_threshold };
static const SchemaValue port_value = { .read = read_port };
static const SchemaValue iface_value = { .read = read_iface };
static const SchemaValue rate_value = { .read = read_rate };
static const SchemaValue cache_value = { .read = read_cache };

#define AT(field) G_STRUCT_OFFSET (MountConfig, broadcast.field)

static const SchemaKey broadcast_keys[] = {
  { "groups", SCHEMA_OTHER, .form = "ADDRESS or ADDRESS/BITS", .value = &groups_value,
      .effect = MOUNT_EFFECT_NONE,
      .help = "the IPv4 multicast addresses of the groups, at most 65536; one for a stream; "
              "required" },
  { "scheme", SCHEMA_INDEX, AT (scheme), "auto", .words = schemes, .effect = MOUNT_EFFECT_NONE,
      .help =
          "what is sent when; `auto`: `patching`, and `gdb` while clients come so often that it "
          "costs less" },
  { "first", SCHEMA_OTHER, .preset = "10s", .form = "time from 100ms to 24h", .value = &first_value,
      .effect = MOUNT_EFFECT_NONE,
      .help = "for titles: the longest wait of a client: the length of the first segment, or the "
              "time between "
              "two starts of `staggered` and `batching`; not for `patching`" },
  { "threshold", SCHEMA_OTHER, .preset = "auto", .form = "`auto`, or time from 1ms to 24h",
      .value = &threshold_value, .effect = MOUNT_EFFECT_NONE,
      .help = "for `patching` and `auto`: a client that comes later than this after the start of a "
              "title starts it anew; `auto`: the time that costs least at the present arrival "
              "rate" },
  { "port", SCHEMA_OTHER, .preset = "5004", .form = "even number from 1024 to 65520",
      .value = &port_value, .effect = MOUNT_EFFECT_NONE,
      .help = "the port of the first track; each further track is 2 above the one before it" },
  { "ttl", SCHEMA_NUMBER, AT (ttl), "1", 0, 255, .effect = MOUNT_EFFECT_NONE,
      .help = "how many networks a packet may pass, that is 1 more than the number of multicast "
              "routers; 0: packets stay on this machine" },
  { "iface", SCHEMA_OTHER, .form = "NAME", .value = &iface_value, .effect = MOUNT_EFFECT_NONE,
      .help = "the network interface that sends, such as `eth0`; without it, the system's route to "
              "the group decides" },
  { "rate", SCHEMA_OTHER, .form = "RATE", .value = &rate_value, .effect = MOUNT_EFFECT_NONE,
      .help = "for titles: limit for all groups together, from `64k` to `100G` bits a second (k, M "
              "and G are "
              "powers of 1000); a client for whom it does not suffice gets 453. Without it, there "
              "is no limit" },
  { "cache", SCHEMA_OTHER, .preset = "32M", .form = "size from 1M to 2G", .value = &cache_value,
      .effect = MOUNT_EFFECT_NONE,
      .help = "for titles: memory for their packets; K, M and G are powers of 1024" },
  { NULL },
};

#undef AT

const SchemaKey *
mount_broadcast_keys (void)
{
  return broadcast_keys;
}

// ---- the key as a whole ----

static void
clear_broadcast (gpointer object)
{
  MountConfig *mount = object;

  g_clear_pointer (&mount->broadcast.groups, g_free);
  g_clear_pointer (&mount->broadcast.iface, g_free);
}

static void
reset_broadcast (const SchemaKey *key, gpointer object)
{
  MountConfig *mount = object;

  clear_broadcast (mount);
  mount->broadcast = (BroadcastConfig) {
    .first_ns = FIRST_MS * NS_PER_MS, .port = PORT, .cache_bytes = CACHE_BYTES
  };
  schema_init (broadcast_keys, mount);
}

static gboolean
is_loopback (const gchar *iface)
{
  struct ifreq request = { 0 };
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  gboolean loopback;

  g_strlcpy (request.ifr_name, iface, sizeof request.ifr_name);
  loopback =
      fd >= 0 && ioctl (fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0;
  if (fd >= 0)
    close (fd);
  return loopback;
}

static gboolean
read_broadcast (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  reset_broadcast (key, object);
  if (!yaml_is_mapping (node))
    return schema_fail (reader, node, key, error,
        "expected {groups: ADDRESS/BITS}, such as {groups: 239.1.1.0/28, scheme: gdb}");
  return schema_read (broadcast_keys, object, reader, node, key->name, SCHEMA_WHOLE, error);
}

static gboolean
equal_broadcasts (gconstpointer a, gconstpointer b)
{
  const BroadcastConfig *x = &((const MountConfig *) a)->broadcast;
  const BroadcastConfig *y = &((const MountConfig *) b)->broadcast;

  return x->scheme == y->scheme && x->first_ns == y->first_ns && x->threshold_ns == y->threshold_ns
         && !g_strcmp0 (x->groups, y->groups) && x->n_groups == y->n_groups && x->port == y->port
         && x->ttl == y->ttl && !g_strcmp0 (x->iface, y->iface) && x->rate == y->rate
         && x->cache_bytes == y->cache_bytes;
}

static void
write_text (JsonBuilder *builder, const gchar *name, gchar *text)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, text);
  g_free (text);
}

static gchar *
dup_time (guint64 ns)
{
  guint64 ms = ns / NS_PER_MS;

  return ms % 1000 ? g_strdup_printf ("%" G_GUINT64_FORMAT "ms", ms)
                   : g_strdup_printf ("%" G_GUINT64_FORMAT "s", ms / 1000);
}

static gchar *
dup_rate (guint64 rate)
{
  if (rate % 1000000 == 0)
    return g_strdup_printf ("%" G_GUINT64_FORMAT "M", rate / 1000000);
  return rate % 1000 ? g_strdup_printf ("%" G_GUINT64_FORMAT, rate)
                     : g_strdup_printf ("%" G_GUINT64_FORMAT "k", rate / 1000);
}

static gchar *
dup_size (guint64 bytes)
{
  return bytes % (1 << 20) ? g_strdup_printf ("%" G_GUINT64_FORMAT "K", bytes >> 10)
                           : g_strdup_printf ("%" G_GUINT64_FORMAT "M", bytes >> 20);
}

// Writes the keys that are for titles only.
static void
write_titles_keys (const BroadcastConfig *broadcast, JsonBuilder *builder)
{
  WeirSchemeKind scheme = broadcast->scheme;

  write_text (builder, "scheme", g_strdup (schemes[scheme]));
  if (scheme != WEIR_SCHEME_PATCHING)
    write_text (builder, "first", dup_time (broadcast->first_ns));
  if (scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_AUTO)
    write_text (builder, "threshold",
        broadcast->threshold_ns ? dup_time (broadcast->threshold_ns) : g_strdup ("auto"));
  if (broadcast->rate > 0)
    write_text (builder, "rate", dup_rate (broadcast->rate));
  write_text (builder, "cache", dup_size (broadcast->cache_bytes));
}

static void
write_broadcast (gconstpointer object, JsonBuilder *builder)
{
  const BroadcastConfig *broadcast = &((const MountConfig *) object)->broadcast;

  if (!broadcast->groups)
    return;
  json_builder_set_member_name (builder, "broadcast");
  json_builder_begin_object (builder);
  write_text (builder, "groups", dup_groups (object));
  if (mount_config_get_titles (object))
    write_titles_keys (broadcast, builder);
  json_builder_set_member_name (builder, "port");
  json_builder_add_int_value (builder, broadcast->port);
  json_builder_set_member_name (builder, "ttl");
  json_builder_add_int_value (builder, broadcast->ttl);
  if (broadcast->iface)
    write_text (builder, "iface", g_strdup (broadcast->iface));
  json_builder_end_object (builder);
}

static void
copy_broadcast (gpointer to, gconstpointer from)
{
  BroadcastConfig *broadcast = &((MountConfig *) to)->broadcast;

  *broadcast = ((const MountConfig *) from)->broadcast;
  broadcast->groups = g_strdup (broadcast->groups);
  broadcast->iface = g_strdup (broadcast->iface);
}

const SchemaValue mount_broadcast_value = { read_broadcast, reset_broadcast, equal_broadcasts,
  write_broadcast, copy_broadcast, clear_broadcast, NULL };

// ---- checks ----

// The keys of the mount, for errors that name their places.
typedef struct {
  const MountConfig *mount;
  YamlReader *reader;
  YamlNode *value, *place; // of `broadcast`, or NULL; of the mount
  GError **error;
} Check;

static YamlNode *
find_key (const Check *self, const gchar *name)
{
  return self->value ? yaml_get (self->reader, self->value, name) : NULL;
}

// Sets the error for a key of `broadcast`. Takes ownership of `text`. Returns FALSE.
static gboolean
fail (const Check *self, const gchar *name, gchar *text)
{
  YamlNode *node = find_key (self, name);

  if (!node)
    node = self->value ? self->value : self->place;
  return yaml_fail_take (self->reader, node, name, CONFIG_ERROR_VALUE, self->error, text);
}

// Checks a key that has no meaning with some schemes.
static gboolean
check_unused (const Check *self, const gchar *name, gboolean used)
{
  return used || !find_key (self, name)
         || fail (self, name,
             g_strdup_printf ("the scheme %s has none; remove this key",
                 schemes[self->mount->broadcast.scheme]));
}

static gboolean
check_titles (const Check *self)
{
  const BroadcastConfig *broadcast = &self->mount->broadcast;
  WeirSchemeKind scheme = broadcast->scheme;
  gboolean patches = scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_AUTO;

  if (!check_unused (self, "threshold", patches)
      || !check_unused (self, "first", scheme != WEIR_SCHEME_PATCHING))
    return FALSE;
  return broadcast->n_groups > 1 || scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_BATCHING
         || fail (self, "groups",
             g_strdup_printf (
                 "the scheme %s needs at least 2 groups, as each segment of a title has its own",
                 schemes[scheme]));
}

static gboolean
check_stream (const Check *self)
{
  static const gchar *const for_titles[] = { "scheme", "first", "threshold", "rate", "cache" };

  for (guint i = 0; i < G_N_ELEMENTS (for_titles); i++) {
    if (find_key (self, for_titles[i]))
      return fail (self, for_titles[i],
          g_strdup ("this key is for stored titles; remove it, as the upstream is a stream"));
  }
  if (self->mount->broadcast.n_groups > 1)
    return fail (self, "groups",
        g_strdup ("the upstream is a stream, which needs one group; write one address"));
  if (self->mount->interval_ms > 0)
    return fail (self, "broadcast",
        g_strdup ("with interval, each session plays the upstream anew; remove one of both keys"));
  return !self->mount->on_demand
         || fail (self, "broadcast",
             g_strdup ("the group gets the stream all the time; add on-demand: no to the mount"));
}

gboolean
mount_broadcast_check (const MountConfig *mount, YamlReader *reader, YamlNode *place,
    YamlNode *mapping, GError **error)
{
  const BroadcastConfig *broadcast = &mount->broadcast;
  Check self = { mount, reader, yaml_get (reader, mapping, "broadcast"), place, error };

  if (self.value && yaml_is_null (self.value))
    return TRUE;
  if (!broadcast->groups)
    return !self.value
           || fail (
               &self, "broadcast", g_strdup ("the groups are missing; add groups: ADDRESS/BITS"));
  if (broadcast->ttl == 0 && !(broadcast->iface && is_loopback (broadcast->iface)))
    return fail (&self, "ttl",
        g_strdup ("with 0 no packet leaves this machine; set at least 1, or iface: lo"));
  return mount_config_get_titles (mount) ? check_titles (&self) : check_stream (&self);
}

// ---- other mounts ----

static gboolean
share_interface (const BroadcastConfig *a, const BroadcastConfig *b)
{
  return !a->iface || !b->iface || g_str_equal (a->iface, b->iface);
}

static gboolean
share_groups (const MountConfig *a, const MountConfig *b)
{
  guint32 x = get_first (a), y = get_first (b);

  return x <= y ? y - x < a->broadcast.n_groups : x - y < b->broadcast.n_groups;
}

gchar *
mount_broadcast_find_overlap (const GPtrArray *mounts, const MountConfig *mount)
{
  for (guint i = 0; mount->broadcast.groups && i < mounts->len; i++) {
    const MountConfig *other = g_ptr_array_index (mounts, i);
    gchar *groups, *text;

    if (other == mount || !other->broadcast.groups
        || ABS (other->broadcast.port - mount->broadcast.port) >= PORTS
        || !share_interface (&other->broadcast, &mount->broadcast) || !share_groups (other, mount))
      continue;
    groups = dup_groups (other);
    text = g_strdup_printf ("%s sends on %s, port %u to %u, too; choose other groups or a port "
                            "that is 16 away",
        other->path, groups, other->broadcast.port, other->broadcast.port + PORTS - 1);
    g_free (groups);
    return text;
  }
  return NULL;
}
