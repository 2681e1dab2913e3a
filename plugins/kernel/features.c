// SPDX-License-Identifier: LGPL-2.1-or-later
#include "features.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

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
