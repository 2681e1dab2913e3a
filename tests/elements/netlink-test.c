// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Routes of the system, in a network namespace of the test's own.

#include "kernel/netlink.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static gboolean
make_namespace (void)
{
  static const gchar *const commands[] = { "ip link add veth0 type veth peer name veth1",
    "ip address add 10.9.0.1/24 dev veth0", "ip link set veth0 up",
    "ip route add 10.9.1.0/24 via 10.9.0.5" };

  if (unshare (CLONE_NEWNET) < 0)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++) {
    gint status;

    if (!g_spawn_command_line_sync (commands[i], NULL, NULL, &status, NULL) || status != 0)
      return FALSE;
  }
  return TRUE;
}

// Asks for the way to an address, and does not read the answer.
static void
ask (int fd, guint32 to)
{
  struct {
    struct nlmsghdr header;
    struct rtmsg route;
    struct rtattr attribute;
    guint32 to;
  } request = { { sizeof request, RTM_GETROUTE, NLM_F_REQUEST, 4711, 0 },
    { .rtm_family = AF_INET, .rtm_dst_len = 32 }, { RTA_LENGTH (4), RTA_DST }, to };

  g_assert_cmpint (send (fd, &request, sizeof request, 0), ==, sizeof request);
}

static void
check_route (int fd, const gchar *to, const gchar *via)
{
  WeirNetRoute route;

  g_assert_true (weir_netlink_find_route (fd, inet_addr (to), 0, &route));
  g_assert_cmphex (route.via, ==, inet_addr (via));
  g_assert_cmphex (route.source, ==, inet_addr ("10.9.0.1"));
}

static void
the_answer_to_an_earlier_request_is_not_taken (void)
{
  int fd;

  if (!make_namespace ()) {
    g_test_skip ("no network namespace can be made");
    return;
  }
  fd = weir_netlink_open ();
  g_assert_cmpint (fd, >=, 0);
  check_route (fd, "10.9.0.7", "10.9.0.7");
  check_route (fd, "10.9.1.7", "10.9.0.5");
  ask (fd, inet_addr ("10.9.1.7"));
  check_route (fd, "10.9.0.7", "10.9.0.7");
  check_route (fd, "10.9.1.7", "10.9.0.5");
  close (fd);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/netlink/earlier", the_answer_to_an_earlier_request_is_not_taken);
  return g_test_run ();
}
