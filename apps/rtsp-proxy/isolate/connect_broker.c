// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/connect_broker.h"

#include <errno.h>
#include <gio/gio.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/threads.h"

#define DNS_PORT 53
// Of one worker. A socket that blocks keeps a thread.
#define CONNECTING_MAX 16

struct _ConnectBroker {
  gboolean local;
  gint n_connecting; // atomic
};

typedef struct {
  ConnectBroker *broker;
  gint pid;
  struct sockaddr_storage address;
  socklen_t size;
  gint socket, answer;
} Request;

typedef enum { PORT_UNKNOWN, PORT_ALLOWED, PORT_REFUSED } PortRule;

static guint8 ports[65536]; // of PortRule; each is written and read atomically

// ---- the rules ----

void
connect_broker_allow_port (guint16 port)
{
  if (ports[port] == PORT_UNKNOWN)
    ports[port] = PORT_ALLOWED;
}

void
connect_broker_refuse_port (guint16 port)
{
  ports[port] = PORT_REFUSED;
}

static void
allow_number (const gchar *text)
{
  guint64 port = g_ascii_isdigit (*text) ? g_ascii_strtoull (text, NULL, 10) : 0;

  if (port > 0 && port <= G_MAXUINT16)
    connect_broker_allow_port ((guint16) port);
}

// Allows the usual port of the URL whose "://" is at `at`, if it names no port.
static void
allow_usual (const gchar *text, const gchar *at)
{
  static const struct {
    const gchar *scheme;
    guint16 port;
  } usual[] = { { "http", 80 }, { "https", 443 }, { "rtsp", 554 }, { "rtsps", 322 },
    { "rtmp", 1935 } };
  gchar *host = g_strndup (at + 3, strcspn (at + 3, "/?\"' \t\n"));
  const gchar *bracket = strrchr (host, ']'), *colon = strrchr (bracket ? bracket : host, ':');
  const gchar *scheme = at;

  while (scheme > text && g_ascii_isalpha (scheme[-1]))
    scheme--;
  for (guint i = 0; i < G_N_ELEMENTS (usual) && !colon; i++) {
    if (strlen (usual[i].scheme) == (gsize) (at - scheme)
        && g_str_has_prefix (scheme, usual[i].scheme))
      connect_broker_allow_port (usual[i].port);
  }
  g_free (host);
}

void
connect_broker_allow_text (const gchar *text)
{
  for (const gchar *at = strchr (text, ':'); at; at = strchr (at + 1, ':')) {
    allow_number (at + 1);
    if (g_str_has_prefix (at, "://"))
      allow_usual (text, at);
  }
  for (const gchar *at = strstr (text, "port="); at; at = strstr (at + 1, "port="))
    allow_number (at + strlen ("port="));
}

static gboolean
is_bound_to (const struct ifaddrs *interface, const GInetAddress *address)
{
  const struct sockaddr *own = interface->ifa_addr;
  g_autoptr (GInetAddress) each = NULL;

  if (!own || (own->sa_family != AF_INET && own->sa_family != AF_INET6))
    return FALSE;
  each = own->sa_family == AF_INET
             ? g_inet_address_new_from_bytes (
                   (const guint8 *) &((const struct sockaddr_in *) own)->sin_addr,
                   G_SOCKET_FAMILY_IPV4)
             : g_inet_address_new_from_bytes (
                   (const guint8 *) &((const struct sockaddr_in6 *) own)->sin6_addr,
                   G_SOCKET_FAMILY_IPV6);
  return g_inet_address_equal (each, (GInetAddress *) address);
}

// Reports whether this machine has the address, or cannot say.
static gboolean
is_local (GInetAddress *address)
{
  gboolean local = g_inet_address_get_is_loopback (address) || g_inet_address_get_is_any (address);
  struct ifaddrs *all = NULL;

  if (local || getifaddrs (&all) < 0)
    return TRUE;
  for (const struct ifaddrs *each = all; each && !local; each = each->ifa_next)
    local = is_bound_to (each, address);
  freeifaddrs (all);
  return local;
}

static gboolean
admits_address (GInetAddress *address, guint16 port, gboolean local)
{
  PortRule rule = ports[port];
  gboolean admits = rule == PORT_ALLOWED || (rule == PORT_UNKNOWN && (local || port == DNS_PORT))
                    || !is_local (address);

  g_object_unref (address);
  return admits;
}

static gboolean
admits_in (const struct sockaddr_in *in, gboolean local)
{
  return admits_address (
      g_inet_address_new_from_bytes ((const guint8 *) &in->sin_addr, G_SOCKET_FAMILY_IPV4),
      ntohs (in->sin_port), local);
}

static gboolean
admits_in6 (const struct sockaddr_in6 *in, gboolean local)
{
  const guint8 *bytes = in->sin6_addr.s6_addr;
  gboolean mapped = IN6_IS_ADDR_V4MAPPED (&in->sin6_addr);

  return admits_address (g_inet_address_new_from_bytes (mapped ? bytes + 12 : bytes,
                             mapped ? G_SOCKET_FAMILY_IPV4 : G_SOCKET_FAMILY_IPV6),
      ntohs (in->sin6_port), local);
}

// What resolves names beside the DNS.
static gboolean
admits_unix (const struct sockaddr *address, gsize size)
{
  static const gchar *const known[] = { "/run/systemd/resolve/io.systemd.Resolve",
    "/run/avahi-daemon/socket", "/var/run/avahi-daemon/socket", "/run/nscd/socket",
    "/var/run/nscd/socket", NULL };
  const struct sockaddr_un *un = (const struct sockaddr_un *) address;
  gchar path[sizeof un->sun_path + 1] = { 0 };

  if (size > offsetof (struct sockaddr_un, sun_path))
    memcpy (path, un->sun_path,
        MIN (size - offsetof (struct sockaddr_un, sun_path), sizeof un->sun_path));
  return g_strv_contains (known, path);
}

gboolean
connect_broker_admits (const struct sockaddr *address, gsize size, gboolean local)
{
  if (size < sizeof address->sa_family)
    return FALSE;
  switch (address->sa_family) {
    case AF_UNSPEC: // ends a connection
    case AF_NETLINK:
      return TRUE;
    case AF_INET:
      return size >= sizeof (struct sockaddr_in)
             && admits_in ((const struct sockaddr_in *) address, local);
    case AF_INET6:
      return size >= sizeof (struct sockaddr_in6)
             && admits_in6 ((const struct sockaddr_in6 *) address, local);
    case AF_UNIX:
      return admits_unix (address, size);
    default:
      return FALSE;
  }
}

// ---- the connections ----

static void
answer (gint fd, gint result)
{
  // A worker that does not wait for it is none of ours any more.
  if (send (fd, &result, sizeof result, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return;
}

static void
finish (Request *self, gint result)
{
  answer (self->answer, result);
  close (self->answer);
  close (self->socket);
  g_atomic_int_add (&self->broker->n_connecting, -1);
  connect_broker_unref (self->broker);
  g_free (self);
}

static gchar *
dup_name (const Request *self)
{
  g_autoptr (GSocketAddress) address =
      g_socket_address_new_from_native ((gpointer) &self->address, self->size);

  return address ? g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (address))
                 : g_strdup ("an address of another kind");
}

static void
log_refusal (const Request *self)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };
  g_autofree gchar *name = dup_name (self);

  log_event_limited (&limit,
      "worker %d refused: it connects to %s, which is on this machine and in no upstream",
      self->pid, name);
}

static void
run_broker (gpointer data)
{
  Request *self = data;
  gint result;

  if (!connect_broker_admits (
          (struct sockaddr *) &self->address, self->size, self->broker->local)) {
    log_refusal (self);
    finish (self, -EACCES);
    return;
  }
  do
    result = connect (self->socket, (struct sockaddr *) &self->address, self->size);
  while (result < 0 && errno == EINTR);
  finish (self, result < 0 ? -errno : 0);
}

void
connect_broker_take (
    ConnectBroker *self, gint pid, gconstpointer message, gsize len, const gint *fds, guint n_fds)
{
  Request *request;

  if (n_fds != 2 || len > sizeof request->address) {
    for (guint i = 0; i < n_fds; i++)
      close (fds[i]);
    return;
  }
  request = g_new0 (Request, 1);
  *request = (Request) { .broker = g_atomic_rc_box_acquire (self),
    .pid = pid,
    .size = (socklen_t) len,
    .socket = fds[0],
    .answer = fds[1] };
  memcpy (&request->address, message, len);
  if (g_atomic_int_add (&self->n_connecting, 1) >= CONNECTING_MAX)
    finish (request, -EAGAIN);
  else
    thread_run ("worker-connect", run_broker, request);
}

ConnectBroker *
connect_broker_new (gboolean local)
{
  ConnectBroker *self = g_atomic_rc_box_new0 (ConnectBroker);

  self->local = local;
  return self;
}

void
connect_broker_unref (ConnectBroker *self)
{
  g_atomic_rc_box_release (self);
}
