// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_broadcast.h"

#include "config/mount_pulls.h"
#include "text/config_error.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PREFIX_MIN 16 // 65536 groups, as many as a pool can hold (schedule/pool.h)
#define PORT_MIN 1024
#define PORTS 16 // of a group: RTP and RTCP of 8 tracks
#define PORT_MAX (65536 - PORTS)
#define FIRST_MIN_MS 100
#define RATE_MIN G_GUINT64_CONSTANT (64000)
#define RATE_MAX G_GUINT64_CONSTANT (100000000000)
#define CACHE_MIN (G_GUINT64_CONSTANT (1) << 20)
#define CACHE_MAX (G_GUINT64_CONSTANT (2) << 30)
#define NS_PER_MS G_GUINT64_CONSTANT (1000000)

static const gchar *const schemes[] = { "gdb", "greedy", "skyscraper", "staggered", "batching",
  "patching", "auto", NULL }; // by WeirSchemeKind

// ---- groups ----

// Reads "239.1.1.0/28" or "239.1.2.3". Returns FALSE if the text has another form.
static gboolean
parse_groups (const gchar *text, guint32 *first, guint *prefix)
{
  g_auto (GStrv) parts = g_strsplit (text, "/", 2);
  struct in_addr address;
  guint64 bits = 32;
  gboolean ok = parts[0] && inet_pton (AF_INET, parts[0], &address) == 1
                && (!parts[1] || g_ascii_string_to_unsigned (parts[1], 10, 0, 32, &bits, NULL));

  *first = ok ? ntohl (address.s_addr) : 0;
  *prefix = (guint) bits;
  return ok;
}

static gchar *
dup_range (guint32 first, guint prefix)
{
  struct in_addr address = { htonl (first) };
  gchar text[INET_ADDRSTRLEN];

  inet_ntop (AF_INET, &address, text, sizeof text);
  return prefix < 32 ? g_strdup_printf ("%s/%u", text, prefix) : g_strdup (text);
}

// Returns NULL, or an error message that the caller owns.
static gchar *
check_range (guint32 first, guint prefix)
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

// Keeps the groups in one form.
static gchar *
check_groups (SchemaText *it)
{
  guint32 first;
  guint prefix;
  gchar *wrong;

  if (!parse_groups (it->text, &first, &prefix))
    return g_strdup ("expected an IPv4 multicast address, or a range such as 239.1.1.0/28");
  wrong = check_range (first, prefix);
  if (!wrong)
    it->value = dup_range (first, prefix);
  return wrong;
}

// ---- other keys ----

static gchar *
check_port (SchemaText *it)
{
  guint64 port;

  if (g_ascii_string_to_unsigned (it->text, 10, PORT_MIN, PORT_MAX, &port, NULL) && port % 2 == 0)
    return NULL;
  return g_strdup_printf (
      "expected an even number from %u to %u, such as 5004", PORT_MIN, PORT_MAX);
}

static gchar *
check_iface (SchemaText *it)
{
  if (if_nametoindex (it->text) != 0)
    return NULL;
  it->code = CONFIG_ERROR_ABSENT;
  return g_strdup_printf ("no such network interface: %s; `ip link` lists them", it->text);
}

#define AT(field) G_STRUCT_OFFSET (MountConfig, broadcast.field)

static const SchemaKey broadcast_keys[] = {
  { "groups", SCHEMA_TEXT, AT (groups), .form = "ADDRESS or ADDRESS/BITS", .check = check_groups,
      .missing = "the groups are missing; add groups: ADDRESS/BITS", .effect = MOUNT_EFFECT_NONE,
      .help = "the IPv4 multicast addresses of the groups, at most 65536; one for a stream; "
              "required" },
  { "scheme", SCHEMA_INDEX, AT (scheme), "auto", .words = schemes, .effect = MOUNT_EFFECT_NONE,
      .help =
          "what is sent when; `auto`: `patching`, and `gdb` while clients come so often that it "
          "costs less" },
  { "first", SCHEMA_DURATION, AT (first_ms), "10s", FIRST_MIN_MS, .effect = MOUNT_EFFECT_NONE,
      .help = "for titles: the longest wait of a client: the length of the first segment, or the "
              "time between "
              "two starts of `staggered` and `batching`; not for `patching`" },
  { "threshold", SCHEMA_DURATION, AT (threshold_ms), "auto", 1, .zero = "auto",
      .effect = MOUNT_EFFECT_NONE,
      .help = "for `patching` and `auto`: a client that comes later than this after the start of a "
              "title starts it anew; `auto`: the time that costs least at the present arrival "
              "rate" },
  { "port", SCHEMA_NUMBER, AT (port), "5004", PORT_MIN, PORT_MAX, .check = check_port,
      .form = "even number from 1024 to 65520", .effect = MOUNT_EFFECT_NONE,
      .help = "the port of the first track; each further track is 2 above the one before it" },
  { "ttl", SCHEMA_NUMBER, AT (ttl), "1", 0, 255, .effect = MOUNT_EFFECT_NONE,
      .help = "how many networks a packet may pass, that is 1 more than the number of multicast "
              "routers; 0: packets stay on this machine" },
  { "iface", SCHEMA_TEXT, AT (iface), .form = "NAME", .check = check_iface,
      .effect = MOUNT_EFFECT_NONE,
      .help = "the network interface that sends, such as `eth0`; without it, the system's route to "
              "the group decides" },
  { "rate", SCHEMA_RATE, AT (rate), .min = RATE_MIN, .max = RATE_MAX, .form = "RATE",
      .effect = MOUNT_EFFECT_NONE,
      .help = "for titles: limit for all groups together, from `64k` to `100G` bits a second (k, M "
              "and G are "
              "powers of 1000); a client for whom it does not suffice gets 453. Without it, there "
              "is no limit" },
  { "cache", SCHEMA_SIZE, AT (cache), "32M", CACHE_MIN, CACHE_MAX, .effect = MOUNT_EFFECT_NONE,
      .help = "for titles: memory for their packets; K, M and G are powers of 1024" },
  { NULL },
};

#undef AT

// ---- the key as a whole ----

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

static void
write_text (JsonBuilder *builder, const gchar *name, gchar *text)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, text);
  g_free (text);
}

static gchar *
dup_size (guint64 bytes)
{
  return bytes % (1 << 20) ? g_strdup_printf ("%" G_GUINT64_FORMAT "K", bytes >> 10)
                           : g_strdup_printf ("%" G_GUINT64_FORMAT "M", bytes >> 20);
}

// Writes the keys that are for titles only.
static void
write_titles_keys (const MountConfig *mount, JsonBuilder *builder)
{
  const WeirSchemeKind scheme = mount->broadcast.scheme;
  const guint threshold = mount->broadcast.threshold_ms;

  write_text (builder, "scheme", g_strdup (schemes[scheme]));
  if (scheme != WEIR_SCHEME_PATCHING)
    write_text (builder, "first", schema_dup_duration (mount->broadcast.first_ms));
  if (scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_AUTO)
    write_text (
        builder, "threshold", threshold ? schema_dup_duration (threshold) : g_strdup ("auto"));
  if (mount->broadcast.rate > 0)
    write_text (builder, "rate", schema_dup_rate (mount->broadcast.rate));
  write_text (builder, "cache", dup_size (mount->broadcast.cache.bytes));
}

static void
write_broadcast (gconstpointer object, JsonBuilder *builder)
{
  const MountConfig *mount = object;

  write_text (builder, "groups", g_strdup (mount->broadcast.groups));
  if (mount_config_get_titles (mount))
    write_titles_keys (mount, builder);
  json_builder_set_member_name (builder, "port");
  json_builder_add_int_value (builder, mount->broadcast.port);
  json_builder_set_member_name (builder, "ttl");
  json_builder_add_int_value (builder, mount->broadcast.ttl);
  if (mount->broadcast.iface)
    write_text (builder, "iface", g_strdup (mount->broadcast.iface));
}

static gboolean
is_shown (gconstpointer object)
{
  return ((const MountConfig *) object)->broadcast.groups != NULL;
}

const SchemaObject mount_broadcast_object = { .keys = broadcast_keys,
  .expected = "expected {groups: ADDRESS/BITS}, such as {groups: 239.1.1.0/28, scheme: gdb}",
  .is_shown = is_shown,
  .write = write_broadcast };

BroadcastConfig
mount_broadcast_get (const MountConfig *mount)
{
  BroadcastConfig config = { .scheme = mount->broadcast.scheme,
    .first_ns = mount->broadcast.first_ms * NS_PER_MS,
    .threshold_ns = mount->broadcast.threshold_ms * NS_PER_MS,
    .port = (guint16) mount->broadcast.port,
    .ttl = mount->broadcast.ttl,
    .iface = mount->broadcast.iface,
    .rate = mount->broadcast.rate,
    .cache_bytes = mount->broadcast.cache.bytes };
  guint32 first;
  guint prefix;
  g_autofree gchar *address = NULL;

  if (!mount->broadcast.groups || !parse_groups (mount->broadcast.groups, &first, &prefix))
    return config;
  address = dup_range (first, 32);
  g_strlcpy (config.groups, address, sizeof config.groups);
  config.n_groups = 1u << (32 - prefix);
  return config;
}

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
  const BroadcastConfig broadcast = mount_broadcast_get (self->mount);
  WeirSchemeKind scheme = broadcast.scheme;
  gboolean patches = scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_AUTO;

  if (!check_unused (self, "threshold", patches)
      || !check_unused (self, "first", scheme != WEIR_SCHEME_PATCHING))
    return FALSE;
  return broadcast.n_groups > 1 || scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_BATCHING
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
  if (mount_broadcast_get (self->mount).n_groups > 1)
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
  const gchar *iface = mount->broadcast.iface;
  Check self = { mount, reader, yaml_get (reader, mapping, "broadcast"), place, error };

  if (!mount->broadcast.groups)
    return TRUE;
  if (mount->broadcast.ttl == 0 && !(iface && is_loopback (iface)))
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
share_groups (const BroadcastConfig *a, const BroadcastConfig *b)
{
  guint32 x = ntohl (inet_addr (a->groups)), y = ntohl (inet_addr (b->groups));

  return x <= y ? y - x < a->n_groups : x - y < b->n_groups;
}

gchar *
mount_broadcast_find_overlap (const GPtrArray *mounts, const MountConfig *mount)
{
  const BroadcastConfig own = mount_broadcast_get (mount);

  for (guint i = 0; own.n_groups > 0 && i < mounts->len; i++) {
    const MountConfig *config = g_ptr_array_index (mounts, i);
    const BroadcastConfig other = mount_broadcast_get (config);

    if (config == mount || other.n_groups == 0 || ABS (other.port - own.port) >= PORTS
        || !share_interface (&other, &own) || !share_groups (&other, &own))
      continue;
    return g_strdup_printf ("%s sends on %s, port %u to %u, too; choose other groups or a port "
                            "that is 16 away",
        config->path, config->broadcast.groups, other.port, other.port + PORTS - 1);
  }
  return NULL;
}
