// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rules.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// linux/netfilter.h and linux/netfilter_ipv4/ip_tables.h clash with the headers of libc.
#define IPT_SO_GET_INFO 64
#define FAMILY_INET 1   // of nftables: IPv4 and IPv6
#define FAMILY_NETDEV 5 // of nftables: network devices
#define HOOKS 5
#define HOOK_OUTPUT 3
#define HOOK_POSTROUTING 4
#define HOOK_EGRESS 1 // of a network device

typedef struct {
  char name[32];
  guint32 valid_hooks, hook_entry[HOOKS], underflow[HOOKS], num_entries, size;
} IptablesInfo;

static const gchar *const tables[] = { "raw", "mangle", "nat", "filter", "security", NULL };

static const gchar *_Atomic rules;

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

// Reports whether clones go round the hook of a family of nftables.
static gboolean
is_passed_round (guint8 family, guint32 hook)
{
  if (family == FAMILY_NETDEV)
    return hook == HOOK_EGRESS;
  return (family == AF_INET || family == FAMILY_INET)
         && (hook == HOOK_OUTPUT || hook == HOOK_POSTROUTING);
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

  if (!hook)
    return FALSE;
  number = read_number (find_attribute (
      (const char *) hook + NLA_HDRLEN, hook->nla_len - NLA_HDRLEN, NFTA_HOOK_HOOKNUM));
  if (!is_passed_round (body->nfgen_family, number))
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

// Returns the names of those tables whose modules are in a list of modules.
static gchar *
keep_loaded (const gchar *modules)
{
  GString *names = g_string_new (NULL);

  for (guint i = 0; tables[i]; i++) {
    g_autofree gchar *module = g_strconcat ("iptable_", tables[i], " ", NULL);

    if (strstr (modules, module))
      g_string_append_printf (names, "%s ", tables[i]);
  }
  return g_string_free (names, FALSE);
}

// Returns a text that names the tables of iptables that may have rules. Asking for a table that is
// not there would load it. Only root may read which ones are there. Others see the modules, one for
// each table; if those are built in, all tables are asked for.
static gchar *
name_tables (void)
{
  g_autofree gchar *modules = NULL;
  gchar *names = NULL;
  GError *err = NULL;
  gboolean denied;

  if (g_file_get_contents ("/proc/self/net/ip_tables_names", &names, NULL, &err))
    return names;
  denied = g_error_matches (err, G_FILE_ERROR, G_FILE_ERROR_ACCES);
  g_error_free (err);
  if (!denied)
    return NULL;
  if (g_file_get_contents ("/proc/modules", &modules, NULL, NULL) && strstr (modules, "ip_tables "))
    return keep_loaded (modules);
  return g_strjoinv (" ", (gchar **) tables);
}

static gboolean
has_iptables_rules (void)
{
  g_autofree gchar *names = name_tables ();
  gboolean found = FALSE;
  int fd;

  if (!names || !*names)
    return FALSE;
  fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return TRUE;
  for (guint i = 0; tables[i]; i++) {
    IptablesInfo info = { 0 };
    socklen_t len = sizeof info;

    g_strlcpy (info.name, tables[i], sizeof info.name);
    if (!strstr (names, info.name) || getsockopt (fd, IPPROTO_IP, IPT_SO_GET_INFO, &info, &len) < 0)
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

static const gchar *
find_rules (void)
{
  if (has_nftables_rules ())
    return "a rule of nftables for output, postrouting or egress";
  if (has_iptables_rules ())
    return "a rule of iptables in OUTPUT or POSTROUTING";
  if (has_ipsec_policies ())
    return "a policy of IPsec for packets that leave";
  return NULL;
}

const gchar *
weir_rules_get (void)
{
  return atomic_load (&rules);
}

gboolean
weir_rules_read (void)
{
  const gchar *now = find_rules (), *before = atomic_exchange (&rules, now);
  static gboolean again;

  if (again && now && now != before)
    g_message (
        "kernel path: the system has %s, which clones go round: with kernel=auto, readers are "
        "served by sends",
        now);
  else if (again && now != before)
    g_message ("kernel path: no rule is left that clones go round: with kernel=auto, readers get "
               "clones");
  again = TRUE;
  return now != before;
}

int
weir_rules_watch (void)
{
  struct sockaddr_nl address = { .nl_family = AF_NETLINK,
    .nl_groups = 1u << (NFNLGRP_NFTABLES - 1) };
  int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

  if (fd >= 0 && bind (fd, (struct sockaddr *) &address, sizeof address) < 0) {
    close (fd);
    fd = -1;
  }
  return fd;
}

void
weir_rules_drain (int fd)
{
  char byte;

  // ENOBUFS: so many changes came that some were lost.
  while (recv (fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0 || errno == EINTR || errno == ENOBUFS)
    continue;
}
