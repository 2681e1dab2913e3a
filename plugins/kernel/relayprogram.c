// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relayprogram.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program.h"
#include "relay_object.h"

// In enum bpf_attach_type since Linux 6.6; the headers of Debian 12 are older.
#define ATTACH_TCX_INGRESS 46

struct weir_relay_program {
  struct bpf_object *object;
  struct relay *memory;
  int link; // detaches the program when it is closed
};

static gboolean
has_ethernet_headers (const gchar *device)
{
  struct ifreq request = { 0 };
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  gboolean ok;

  g_strlcpy (request.ifr_name, device, sizeof request.ifr_name);
  ok = fd >= 0 && ioctl (fd, SIOCGIFHWADDR, &request) == 0
       && request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
  if (fd >= 0)
    close (fd);
  return ok;
}

// Returns the index of the device that has an address, or 0 and an error.
static guint
find_device (guint32 address, GError **error)
{
  gchar text[INET_ADDRSTRLEN], device[IF_NAMESIZE] = "";
  struct ifaddrs *all = NULL;
  guint index = 0;

  inet_ntop (AF_INET, &address, text, sizeof text);
  getifaddrs (&all);
  for (const struct ifaddrs *one = all; one && !*device; one = one->ifa_next) {
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET
        && ((const struct sockaddr_in *) one->ifa_addr)->sin_addr.s_addr == address)
      if_indextoname (if_nametoindex (one->ifa_name), device);
  }
  freeifaddrs (all);
  if (!*device)
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "no network device has the address %s", text);
  else if (!has_ethernet_headers (device))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "the network device %s, which has the address %s, has no Ethernet headers", device, text);
  else
    index = if_nametoindex (device);
  return index;
}

static gboolean
load (WeirRelayProgram *self, guint device, GError **error)
{
  struct bpf_program *program;
  int r;

  self->object = bpf_object__open_mem (relay_object, sizeof relay_object, NULL);
  if (!self->object)
    return weir_program_fail (error, errno, "cannot read the relay program");
  if ((r = bpf_object__load (self->object)) < 0)
    return weir_program_fail (error, -r, "cannot load the relay program");
  self->memory = mmap (NULL, sizeof *self->memory, PROT_READ | PROT_WRITE, MAP_SHARED,
      bpf_map__fd (bpf_object__find_map_by_name (self->object, "relays")), 0);
  if (self->memory == MAP_FAILED) {
    self->memory = NULL;
    return weir_program_fail (error, errno, "cannot map the memory of the relay program");
  }
  // A filter of clsact, as older kernels have it, would go on relaying after the process.
  program = bpf_object__find_program_by_name (self->object, "relay_stream");
  self->link = bpf_link_create (
      bpf_program__fd (program), (int) device, (enum bpf_attach_type) ATTACH_TCX_INGRESS, NULL);
  if (self->link < 0 && errno == EINVAL) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "the kernel is too old: relaying at ingress needs Linux 6.6 or later");
    return FALSE;
  }
  return self->link >= 0
         || weir_program_fail (error, errno, "cannot attach the relay program to its device");
}

WeirRelayProgram *
weir_relay_program_new (guint32 address, GError **error)
{
  guint device = find_device (address, error);
  WeirRelayProgram *self;

  if (device == 0)
    return NULL;
  self = g_new0 (WeirRelayProgram, 1);
  self->link = -1;
  if (!load (self, device, error))
    g_clear_pointer (&self, weir_relay_program_free);
  return self;
}

void
weir_relay_program_free (WeirRelayProgram *self)
{
  if (self->link >= 0)
    close (self->link);
  if (self->memory)
    munmap (self->memory, sizeof *self->memory);
  bpf_object__close (self->object);
  g_free (self);
}

struct relay *
weir_relay_program_memory (WeirRelayProgram *self)
{
  return self->memory;
}
