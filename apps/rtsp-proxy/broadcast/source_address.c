// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/source_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static gboolean
ask_interface (int fd, const gchar *iface, struct sockaddr_in *address)
{
  struct ifreq request = { 0 };

  g_strlcpy (request.ifr_name, iface, sizeof request.ifr_name);
  if (ioctl (fd, SIOCGIFADDR, &request) < 0)
    return FALSE;
  memcpy (address, &request.ifr_addr, sizeof *address);
  return TRUE;
}

// A connected socket has the address of its route. Nothing is sent.
static gboolean
ask_route (int fd, const gchar *group, struct sockaddr_in *address)
{
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons (9) };
  socklen_t len = sizeof *address;

  return inet_pton (AF_INET, group, &to.sin_addr) == 1
         && connect (fd, (struct sockaddr *) &to, sizeof to) == 0
         && getsockname (fd, (struct sockaddr *) address, &len) == 0;
}

gchar *
source_address_dup (const gchar *group, const gchar *iface)
{
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = { 0 };
  gchar text[INET_ADDRSTRLEN];
  gboolean known =
      fd >= 0 && (iface ? ask_interface (fd, iface, &address) : ask_route (fd, group, &address));

  if (fd >= 0)
    close (fd);
  return known ? g_strdup (inet_ntop (AF_INET, &address.sin_addr, text, sizeof text)) : NULL;
}
