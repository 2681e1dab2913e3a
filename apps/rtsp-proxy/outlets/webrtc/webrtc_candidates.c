// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_candidates.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#define ADDRESSES_MAX 16 // of each transport; a peer checks each

// Networks within this host, which container engines and hypervisors make.
static const gchar *const internal[] = { "docker", "br-", "veth", "virbr", "lxcbr", "lxdbr", "cni",
  "podman" };

static void
candidate_free (gpointer data)
{
  g_free (((WebrtcCandidate *) data)->address);
  g_free (data);
}

// ---- addresses ----

static void
add_address (GPtrArray *addresses, const gchar *address)
{
  if (addresses->len < ADDRESSES_MAX
      && !g_ptr_array_find_with_equal_func (addresses, address, g_str_equal, NULL))
    g_ptr_array_add (addresses, g_strdup (address));
}

static gboolean
is_internal (const gchar *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (internal); i++) {
    if (g_str_has_prefix (name, internal[i]))
      return TRUE;
  }
  return FALSE;
}

// Returns NULL if the interface has no address of `family` (AF_UNSPEC: any).
static GInetAddress *
get_inet (const struct ifaddrs *interface, int family)
{
  const struct sockaddr *address = interface->ifa_addr;

  if (!address || !(interface->ifa_flags & IFF_UP))
    return NULL;
  if (address->sa_family == AF_INET && family != AF_INET6)
    return g_inet_address_new_from_bytes (
        (const guint8 *) &((const struct sockaddr_in *) address)->sin_addr, G_SOCKET_FAMILY_IPV4);
  if (address->sa_family == AF_INET6 && family != AF_INET)
    return g_inet_address_new_from_bytes (
        ((const struct sockaddr_in6 *) address)->sin6_addr.s6_addr, G_SOCKET_FAMILY_IPV6);
  return NULL;
}

// From the best on.
typedef enum { REACHED_FROM_ELSEWHERE, REACHED_WITHIN_HOST, REACHED_BY_SELF, REACHES } Reach;

static Reach
get_reach (const gchar *interface, GInetAddress *inet)
{
  return g_inet_address_get_is_loopback (inet) ? REACHED_BY_SELF
         : is_internal (interface)             ? REACHED_WITHIN_HOST
                                               : REACHED_FROM_ELSEWHERE;
}

static void
add_interfaces (GPtrArray *addresses, int family, Reach reach)
{
  struct ifaddrs *all = NULL;

  if (getifaddrs (&all) < 0)
    return;
  for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
    GInetAddress *inet = get_inet (i, family);

    if (inet && !g_inet_address_get_is_link_local (inet)
        && get_reach (i->ifa_name, inet) == reach) {
      gchar *text = g_inet_address_to_string (inet);

      add_address (addresses, text);
      g_free (text);
    }
    g_clear_object (&inet);
  }
  freeifaddrs (all);
}

static void
add_own (GPtrArray *addresses, const gchar *address)
{
  GInetAddress *inet = g_inet_address_new_from_string (address);
  const guint before = addresses->len;

  if (!g_inet_address_get_is_any (inet)) {
    add_address (addresses, address);
  } else {
    // The socket of "::" is beside one of IPv4.
    const int family =
        g_inet_address_get_family (inet) == G_SOCKET_FAMILY_IPV4 ? AF_INET : AF_UNSPEC;

    for (Reach reach = 0; reach < REACHES && addresses->len == before; reach++)
      add_interfaces (addresses, family, reach);
  }
  g_object_unref (inet);
}

// ---- candidates ----

static void
add_candidates (GPtrArray *candidates, GPtrArray *addresses, gboolean is_tcp)
{
  for (guint i = 0; i < addresses->len; i++) {
    WebrtcCandidate *candidate = g_new (WebrtcCandidate, 1);

    *candidate = (WebrtcCandidate) { g_strdup (addresses->pdata[i]), is_tcp };
    g_ptr_array_add (candidates, candidate);
  }
}

GPtrArray *
webrtc_candidates_new (const gchar *address, const gchar *const *additional, gboolean has_tcp)
{
  GPtrArray *candidates = g_ptr_array_new_with_free_func (candidate_free);
  GPtrArray *addresses = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; additional && additional[i]; i++)
    add_address (addresses, additional[i]);
  add_own (addresses, address);
  add_candidates (candidates, addresses, FALSE);
  if (has_tcp)
    add_candidates (candidates, addresses, TRUE);
  g_ptr_array_unref (addresses);
  return candidates;
}

gchar *
webrtc_candidates_dup_text (GPtrArray *candidates)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < candidates->len; i++) {
    const WebrtcCandidate *candidate = candidates->pdata[i];

    g_string_append_printf (
        text, "%s%s (%s)", i ? ", " : "", candidate->address, candidate->is_tcp ? "TCP" : "UDP");
  }
  return g_string_free (text, FALSE);
}
