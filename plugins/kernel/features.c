// SPDX-License-Identifier: LGPL-2.1-or-later
#include "features.h"

#include <linux/ethtool.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// linux/netfilter.h and linux/netfilter_ipv4/ip_tables.h clash with the headers of libc.
#define IPT_SO_GET_INFO 64
#define FAMILY_INET 1 // of nftables: IPv4 and IPv6
#define HOOKS 5
#define HOOK_OUTPUT 3
#define HOOK_POSTROUTING 4

typedef struct {
  char name[32];
  guint32 valid_hooks, hook_entry[HOOKS], underflow[HOOKS], num_entries, size;
} IptablesInfo;

// ---- devices ----

static gboolean
ask_ethtool (int fd, const gchar *name, gpointer command)
{
  struct ifreq request = { .ifr_data = command };

  g_strlcpy (request.ifr_name, name, sizeof request.ifr_name);
  return ioctl (fd, SIOCETHTOOL, &request) == 0;
}

// Returns the number of a feature, or -1.
static gint
find_feature (int fd, const gchar *device, const gchar *feature, guint *n)
{
  struct {
    struct ethtool_sset_info head;
    guint32 n;
  } count = { .head = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_FEATURES } };
  g_autofree struct ethtool_gstrings *strings = NULL;

  if (!ask_ethtool (fd, device, &count) || count.n == 0)
    return -1;
  *n = count.n;
  strings = g_malloc0 (sizeof *strings + *n * ETH_GSTRING_LEN);
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_FEATURES;
  strings->len = *n;
  if (!ask_ethtool (fd, device, strings))
    return -1;
  for (guint i = 0; i < *n; i++) {
    if (strncmp ((gchar *) strings->data + i * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN) == 0)
      return (gint) i;
  }
  return -1;
}

gboolean
weir_device_segments_udp (const gchar *name)
{
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  guint n = 0;
  gint at = fd < 0 ? -1 : find_feature (fd, name, "tx-udp-segmentation", &n);
  gboolean active = FALSE;

  if (at >= 0) {
    guint blocks = (n + 31) / 32;
    g_autofree struct ethtool_gfeatures *features =
        g_malloc0 (sizeof *features + blocks * sizeof features->features[0]);

    features->cmd = ETHTOOL_GFEATURES;
    features->size = blocks;
    active = ask_ethtool (fd, name, features) && features->features[at / 32].active >> at % 32 & 1;
  }
  if (fd >= 0)
    close (fd);
  return active;
}

// ---- rules ----

// Reads a number of 32 bits in network byte order; 0 if there is none.
static guint32
read_number (const struct nlattr *attribute)
{
  guint32 value;

  if (!attribute || attribute->nla_len < NLA_HDRLEN + sizeof value)
    return 0;
  memcpy (&value, (const char *) attribute + NLA_HDRLEN, sizeof value);
  return ntohl (value);
}

static const struct nlattr *
find_attribute (const void *from, gsize len, guint16 type)
{
  const char *at = from, *end = at + len;

  while (end - at >= NLA_HDRLEN) {
    const struct nlattr *attribute = (const struct nlattr *) at;

    if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > end - at)
      return NULL;
    if ((attribute->nla_type & NLA_TYPE_MASK) == type)
      return attribute;
    at += MIN (NLA_ALIGN (attribute->nla_len), end - at);
  }
  return NULL;
}

// Reports whether a chain of nftables has rules for packets that leave this machine.
static gboolean
chain_applies (const struct nlmsghdr *message)
{
  const struct nfgenmsg *body = NLMSG_DATA (message);
  const char *from = (const char *) body + NLMSG_ALIGN (sizeof *body);
  gsize len = message->nlmsg_len - NLMSG_SPACE (sizeof *body);
  const struct nlattr *hook = find_attribute (from, len, NFTA_CHAIN_HOOK);
  const struct nlattr *policy = find_attribute (from, len, NFTA_CHAIN_POLICY);
  guint32 number;

  if (!hook || (body->nfgen_family != AF_INET && body->nfgen_family != FAMILY_INET))
    return FALSE;
  number = read_number (find_attribute (
      (const char *) hook + NLA_HDRLEN, hook->nla_len - NLA_HDRLEN, NFTA_HOOK_HOOKNUM));
  if (number != HOOK_OUTPUT && number != HOOK_POSTROUTING)
    return FALSE;
  return read_number (find_attribute (from, len, NFTA_CHAIN_USE)) > 0
         || (policy && read_number (policy) == 0);
}

// Sends a request, and calls `applies` for each message of the answer until it returns TRUE.
// Returns whether it did.
static gboolean
ask_netlink (int protocol, gconstpointer request, gsize len,
    gboolean (*applies) (const struct nlmsghdr *message))
{
  int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  g_autofree gchar *buffer = g_malloc (65536);
  gboolean found = FALSE, done = fd < 0 || send (fd, request, len, 0) < 0;

  while (!done) {
    gssize r = recv (fd, buffer, 65536, 0);
    int left = (int) r;

    done = r <= 0;
    for (struct nlmsghdr *m = (struct nlmsghdr *) buffer; !done && NLMSG_OK (m, (guint) left);
        m = NLMSG_NEXT (m, left)) {
      gboolean last = m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR;

      found |= !last && applies (m);
      done |= last || !(m->nlmsg_flags & NLM_F_MULTI);
    }
  }
  if (fd >= 0)
    close (fd);
  return found;
}

static gboolean
has_nftables_rules (void)
{
  const struct {
    struct nlmsghdr header;
    struct nfgenmsg body;
  } request = { .header = { .nlmsg_len = NLMSG_LENGTH (sizeof (struct nfgenmsg)),
                    .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

  return ask_netlink (NETLINK_NETFILTER, &request, sizeof request, chain_applies);
}

static gboolean
has_iptables_rules (void)
{
  static const gchar *const tables[] = { "raw", "mangle", "nat", "filter", "security" };
  g_autofree gchar *loaded = NULL;
  gboolean found = FALSE;
  int fd;

  // Asking for a table would load it.
  if (!g_file_get_contents ("/proc/self/net/ip_tables_names", &loaded, NULL, NULL) || !*loaded
      || (fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
    return loaded && *loaded;
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++) {
    IptablesInfo info = { 0 };
    socklen_t len = sizeof info;

    g_strlcpy (info.name, tables[i], sizeof info.name);
    if (!strstr (loaded, tables[i])
        || getsockopt (fd, IPPROTO_IP, IPT_SO_GET_INFO, &info, &len) < 0)
      continue;
    for (guint hook = HOOK_OUTPUT; hook <= HOOK_POSTROUTING; hook++)
      found |= info.valid_hooks >> hook & 1 && info.hook_entry[hook] != info.underflow[hook];
  }
  close (fd);
  return found;
}

static gboolean
encrypts (const struct nlmsghdr *message)
{
  const char *from = (const char *) NLMSG_DATA (message) + NLMSG_ALIGN (sizeof (guint32));
  const struct nlattr *attribute =
      find_attribute (from, message->nlmsg_len - NLMSG_SPACE (sizeof (guint32)), XFRMA_SPD_INFO);
  struct xfrmu_spdinfo info;

  if (!attribute || attribute->nla_len < NLA_HDRLEN + sizeof info)
    return FALSE;
  memcpy (&info, (const char *) attribute + NLA_HDRLEN, sizeof info);
  return info.outcnt > 0;
}

static gboolean
has_ipsec_policies (void)
{
  const struct {
    struct nlmsghdr header;
    guint32 flags;
  } request = { .header = { .nlmsg_len = NLMSG_LENGTH (sizeof (guint32)),
                    .nlmsg_type = XFRM_MSG_GETSPDINFO,
                    .nlmsg_flags = NLM_F_REQUEST } };

  return ask_netlink (NETLINK_XFRM, &request, sizeof request, encrypts);
}

gchar *
weir_find_output_rules (void)
{
  if (has_nftables_rules ())
    return g_strdup ("a rule of nftables for output or postrouting");
  if (has_iptables_rules ())
    return g_strdup ("a rule of iptables in OUTPUT or POSTROUTING");
  if (has_ipsec_policies ())
    return g_strdup ("a policy of IPsec for packets that leave");
  return NULL;
}
