// SPDX-License-Identifier: LGPL-2.1-or-later
#include "system/probe.h"

#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pwd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FEATURES_MAX 1024
#define ANSWER_BYTES 32768

// ---- sockets ----

// Returns the largest buffer that can be set, without the double that the kernel adds.
static guint64
try_buffer (int fd, int option)
{
  int size = G_MAXINT / 2;
  socklen_t len = sizeof size;

  if (setsockopt (fd, SOL_SOCKET, option, &size, sizeof size) < 0
      || getsockopt (fd, SOL_SOCKET, option, &size, &len) < 0)
    return 0;
  return (guint64) size / 2;
}

static gboolean
has_option (int fd, int option)
{
  int value = 0;
  socklen_t len = sizeof value;

  return getsockopt (fd, SOL_UDP, option, &value, &len) == 0;
}

static void
probe_sockets (System *system)
{
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  if (fd < 0)
    return;
  system->receive_buffer = try_buffer (fd, SO_RCVBUF);
  system->send_buffer = try_buffer (fd, SO_SNDBUF);
  system->udp_segment = has_option (fd, UDP_SEGMENT);
  system->udp_gro = has_option (fd, UDP_GRO);
  close (fd);
}

// ---- ethtool ----

static gboolean
ask_device (int fd, const gchar *name, gpointer command)
{
  struct ifreq request = { .ifr_data = command };

  g_strlcpy (request.ifr_name, name, sizeof request.ifr_name);
  return ioctl (fd, SIOCETHTOOL, &request) == 0;
}

static void
read_ring (int fd, SystemDevice *device)
{
  struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };

  if (!ask_device (fd, device->name, &ring))
    return;
  device->rx_ring = ring.rx_pending;
  device->rx_ring_max = ring.rx_max_pending;
}

// Returns the number of features that the kernel knows; 0 if it does not say.
static guint
count_features (int fd, const gchar *device)
{
  struct {
    struct ethtool_sset_info info;
    guint32 count;
  } set = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES } };

  return ask_device (fd, device, &set) && set.info.sset_mask && set.count <= FEATURES_MAX
             ? set.count
             : 0;
}

static Offload
offload_of (const struct ethtool_gfeatures *features, guint bit)
{
  const struct ethtool_get_features_block *block = &features->features[bit / 32];
  guint32 mask = 1U << bit % 32;

  if (block->active & mask)
    return OFFLOAD_ON;
  return block->available & ~block->never_changed & mask ? OFFLOAD_OFF : OFFLOAD_NONE;
}

static void
read_features (int fd, SystemDevice *device)
{
  guint n = count_features (fd, device->name), blocks = (n + 31) / 32;
  g_autofree struct ethtool_gstrings *names = g_malloc0 (sizeof *names + n * ETH_GSTRING_LEN);
  g_autofree struct ethtool_gfeatures *features =
      g_malloc0 (sizeof *features + blocks * sizeof *features->features);

  *names = (struct ethtool_gstrings) { ETHTOOL_GSTRINGS, ETH_SS_FEATURES, n };
  *features = (struct ethtool_gfeatures) { ETHTOOL_GFEATURES, blocks };
  if (n > 0 && ask_device (fd, device->name, names) && ask_device (fd, device->name, features)) {
    for (guint i = 0; i < MIN (n, names->len); i++) {
      const gchar *name = (const gchar *) names->data + i * ETH_GSTRING_LEN;

      if (strncmp (name, "rx-gro", ETH_GSTRING_LEN) == 0)
        device->gro = offload_of (features, i);
      else if (strncmp (name, "tx-udp-segmentation", ETH_GSTRING_LEN) == 0)
        device->udp_segmentation = offload_of (features, i);
    }
  }
}

// ---- queues ----

// Sends the question for all queues. Returns a socket with the answer, or -1.
static int
ask_queues (void)
{
  struct {
    struct nlmsghdr header;
    struct tcmsg message;
  } question = { { sizeof question, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 },
    { .tcm_family = AF_UNSPEC } };
  struct timeval patience = { .tv_sec = 1 };
  int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

  if (fd < 0)
    return -1;
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (send (fd, &question, sizeof question, 0) == (gssize) sizeof question)
    return fd;
  close (fd);
  return -1;
}

static void
take_queue (System *system, struct nlmsghdr *header)
{
  struct tcmsg *message = NLMSG_DATA (header);
  struct rtattr *attribute = (struct rtattr *) (message + 1);
  int left = (int) header->nlmsg_len - (int) NLMSG_LENGTH (sizeof *message);
  gchar name[IF_NAMESIZE];

  if (left < 0 || message->tcm_parent != TC_H_ROOT
      || !if_indextoname ((guint) message->tcm_ifindex, name))
    return;
  for (; RTA_OK (attribute, left); attribute = RTA_NEXT (attribute, left)) {
    for (guint i = 0; attribute->rta_type == TCA_KIND && i < system->devices->len; i++) {
      SystemDevice *device = g_ptr_array_index (system->devices, i);

      if (g_str_equal (device->name, name) && !device->qdisc)
        device->qdisc = g_strndup (RTA_DATA (attribute), RTA_PAYLOAD (attribute));
    }
  }
}

// Returns FALSE after the last message of the answer.
static gboolean
take_queues (System *system, gpointer bytes, gssize n)
{
  unsigned left = (unsigned) n;

  for (struct nlmsghdr *header = bytes; NLMSG_OK (header, left);
      header = NLMSG_NEXT (header, left)) {
    if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR)
      return FALSE;
    if (header->nlmsg_type == RTM_NEWQDISC)
      take_queue (system, header);
  }
  return TRUE;
}

static void
read_queues (System *system)
{
  g_autofree gpointer bytes = g_malloc (ANSWER_BYTES);
  int fd = ask_queues ();
  gssize n;

  while (fd >= 0 && (n = recv (fd, bytes, ANSWER_BYTES, 0)) > 0 && take_queues (system, bytes, n))
    ;
  if (fd >= 0)
    close (fd);
}

// ---- devices ----

static gboolean
is_known (const System *system, const gchar *name)
{
  for (guint i = 0; i < system->devices->len; i++) {
    if (g_str_equal (((SystemDevice *) g_ptr_array_index (system->devices, i))->name, name))
      return TRUE;
  }
  return FALSE;
}

static void
probe_devices (System *system)
{
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifaddrs *addresses = NULL;

  if (getifaddrs (&addresses) == 0) {
    for (struct ifaddrs *each = addresses; each; each = each->ifa_next) {
      gboolean ip =
          each->ifa_addr
          && (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6);

      if (ip && each->ifa_flags & IFF_UP && !(each->ifa_flags & IFF_LOOPBACK)
          && !is_known (system, each->ifa_name))
        system_add_device (system, each->ifa_name);
    }
    freeifaddrs (addresses);
  }
  for (guint i = 0; fd >= 0 && i < system->devices->len; i++) {
    read_ring (fd, g_ptr_array_index (system->devices, i));
    read_features (fd, g_ptr_array_index (system->devices, i));
  }
  if (fd >= 0)
    close (fd);
  read_queues (system);
}

// ---- all ----

static guint64
hard_limit (int resource)
{
  struct rlimit limit;

  if (getrlimit (resource, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
    return G_MAXUINT64;
  return limit.rlim_max;
}

static gboolean
has_capabilities (guint a, guint b)
{
  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

  return syscall (SYS_capget, &header, data) == 0
         && data[CAP_TO_INDEX (a)].effective & CAP_TO_MASK (a)
         && data[CAP_TO_INDEX (b)].effective & CAP_TO_MASK (b);
}

static void
probe_service_user (System *system)
{
  const struct passwd *user = getpwnam (SYSTEM_SERVICE_USER);

  if (!user)
    return;
  system->has_service_user = TRUE;
  system->service_uid = user->pw_uid;
  system->service_gid = user->pw_gid;
}

System *
probe_system (void)
{
  System *self = system_new ("");

  self->files = hard_limit (RLIMIT_NOFILE);
  if (geteuid () != 0) // the kernel does not limit root
    self->user_threads = hard_limit (RLIMIT_NPROC);
  self->may_clone = has_capabilities (CAP_BPF, CAP_NET_ADMIN);
  sandbox_get_guards (&self->guards);
  probe_service_user (self);
  probe_sockets (self);
  probe_devices (self);
  return self;
}
