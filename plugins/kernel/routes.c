// SPDX-License-Identifier: LGPL-2.1-or-later
#include "routes.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "features.h"
#include "netlink.h"
#include "program.h"
#include "rules.h"

// Routes and rules are looked up again after this time, as the system does not tell of changes of
// an MTU, of iptables and of IPsec.
#define LOOK_AGAIN_MS 5000

// Most packets in a row over a device that does not segment: they are as many entries of its queue,
// which is not emptied meanwhile. The receiving queue of a virtual device has 1000 entries.
#define PACKETS_AT_ONCE 256

// The first numbers of IP of the readers are multiples of this, in 16 bits: as far apart as can be,
// however many readers there are.
#define FIRST_IDS_APART 40503

#define CACHE_LINE 64 // bytes
#define HEADER_WORDS (sizeof (struct clone_reader) / sizeof (guint64))

struct weir_clone_route {
  // What senders read comes first, in one cache line.
  // Written by the thread. `version` is odd during a change.
  atomic_uint version, device;
  _Atomic guint64 header[HEADER_WORDS]; // a struct clone_reader
  atomic_bool single;                   // its device does not segment
  atomic_int why_not;                   // WeirClones
  atomic_uint next_id;                  // of IP, for the next packet; written by the sender

  atomic_uint refs;
  guint32 to, from; // `from` is 0 if the socket is bound to no address
  guint16 to_port, from_port;
  gboolean force;

  // For the thread.
  guint at; // its place among the routes
  gboolean found;
  WeirNetRoute hop;
};

typedef struct {
  WeirNetDevice net;
  int attached;      // see weir_program_attach()
  gboolean segments; // it segments UDP
  gboolean told;     // that it does not, which matters to a reader
} Device;

// What the thread knows. `lock` guards `added`, `released` and `watchers`; the rest is the
// thread's.
static struct {
  GMutex lock;
  GPtrArray *added, *released; // of WeirCloneRoute: new ones, and those that no reader uses
  GArray *watchers;            // of int: see weir_routes_watch()
  int wake_fd, ask_fd, watch_fd, rules_fd;
  GHashTable *devices;    // interface index -> Device
  GHashTable *neighbours; // key -> WeirNetNeighbour
  GPtrArray *routes;
  gboolean told_route; // that there is no plain route to a reader
  gboolean changed;    // all routes have to be looked up
  gboolean published;  // since the watchers were told
} self;

G_STATIC_ASSERT (sizeof (struct clone_reader) % sizeof (guint64) == 0);

// ---- one route ----

static void
route_unref (WeirCloneRoute *route)
{
  if (atomic_fetch_sub_explicit (&route->refs, 1, memory_order_acq_rel) == 1)
    g_aligned_free (route);
}

static void
publish (WeirCloneRoute *route, guint device, const struct clone_reader *reader)
{
  guint64 words[HEADER_WORDS] = { 0 };

  self.published = TRUE;
  if (device)
    memcpy (words, reader, sizeof words);
  atomic_fetch_add_explicit (&route->version, 1, memory_order_acq_rel);
  atomic_thread_fence (memory_order_release);
  for (gsize i = 0; i < HEADER_WORDS; i++)
    atomic_store_explicit (&route->header[i], words[i], memory_order_relaxed);
  atomic_store_explicit (&route->device, device, memory_order_relaxed);
  atomic_fetch_add_explicit (&route->version, 1, memory_order_release);
}

// Copies the headers of a route. Returns FALSE if the route changes now, or leads over another
// device.
static gboolean
copy_header (WeirCloneRoute *route, guint device, struct clone_reader *reader)
{
  guint version = atomic_load_explicit (&route->version, memory_order_acquire);
  guint64 words[HEADER_WORDS];
  gboolean same;

  for (gsize i = 0; i < HEADER_WORDS; i++)
    words[i] = atomic_load_explicit (&route->header[i], memory_order_relaxed);
  same = atomic_load_explicit (&route->device, memory_order_relaxed) == device;
  atomic_thread_fence (memory_order_acquire);
  memcpy (reader, words, sizeof words);
  return same && version % 2 == 0
         && atomic_load_explicit (&route->version, memory_order_relaxed) == version;
}

static gboolean
is_published (const WeirCloneRoute *route, guint device, const struct clone_reader *reader)
{
  guint64 words[HEADER_WORDS];

  memcpy (words, reader, sizeof words);
  for (gsize i = 0; i < HEADER_WORDS; i++) {
    if (atomic_load_explicit (&route->header[i], memory_order_relaxed) != words[i])
      return FALSE;
  }
  return atomic_load_explicit (&route->device, memory_order_relaxed) == device;
}

static guint64
neighbour_key (guint32 device, guint32 address)
{
  return (guint64) device << 32 | address;
}

// Returns why clones cannot take the route; WEIR_CLONES_SENT: they can.
static WeirClones
judge (const WeirCloneRoute *route, const Device *device, const WeirNetNeighbour *neighbour)
{
  if (weir_rules_get () && !route->force)
    return WEIR_CLONES_RULES;
  if (!route->found)
    return WEIR_CLONES_ROUTE;
  if (!device || !device->net.up || device->attached < 0)
    return WEIR_CLONES_DEVICE;
  if (!device->segments && !route->force)
    return WEIR_CLONES_SEGMENTS;
  return neighbour && neighbour->usable ? WEIR_CLONES_SENT : WEIR_CLONES_NEIGHBOUR;
}

// Logs once for each reason and device that its readers are served by sends for good. A device that
// is down or refuses the program is not named: the system says the former, on_device() the latter.
static void
tell_why_not (WeirClones why_not, Device *device)
{
  gboolean *told = why_not == WEIR_CLONES_SEGMENTS ? &device->told : &self.told_route;

  if (*told || (why_not != WEIR_CLONES_SEGMENTS && why_not != WEIR_CLONES_ROUTE))
    return;
  *told = TRUE;
  if (why_not == WEIR_CLONES_SEGMENTS)
    g_message (
        "kernel path: with kernel=auto, readers over the device %s are served by sends, as it "
        "does not segment UDP messages",
        device->net.name);
  else
    g_message (
        "kernel path: some readers are served by sends, as they are on this host, or the route "
        "to them is not plain");
}

// Publishes what is known of the route.
static void
update (WeirCloneRoute *route)
{
  struct clone_reader reader = {
    .source = route->hop.source,
    .target = route->to,
    .source_port = route->from_port,
    .target_port = route->to_port,
  };
  const WeirNetNeighbour *neighbour = NULL;
  Device *device = NULL;
  WeirClones why_not;
  guint64 key;

  if (route->found) {
    key = neighbour_key (route->hop.device, route->hop.via);
    neighbour = g_hash_table_lookup (self.neighbours, &key);
    device = g_hash_table_lookup (self.devices, GUINT_TO_POINTER (route->hop.device));
  }
  why_not = judge (route, device, neighbour);
  if (atomic_exchange (&route->why_not, (int) why_not) != (int) why_not) {
    self.published = TRUE;
    tell_why_not (why_not, device);
  }
  if (why_not != WEIR_CLONES_SENT) {
    if (atomic_load_explicit (&route->device, memory_order_relaxed))
      publish (route, 0, NULL);
    return;
  }
  atomic_store (&route->single, !device->segments);
  memcpy (reader.to, neighbour->hardware, sizeof reader.to);
  memcpy (reader.from, device->net.address, sizeof reader.from);
  if (!is_published (route, route->hop.device, &reader))
    publish (route, route->hop.device, &reader);
}

static void
look_up (WeirCloneRoute *route)
{
  route->found = weir_netlink_find_route (self.ask_fd, route->to, route->from, &route->hop);
  update (route);
}

// Looks all routes up. Those that follow each other and lead from one address to one other, as the
// tracks of a reader do, are looked up once.
static void
look_up_all (void)
{
  const WeirCloneRoute *before = NULL;

  for (guint i = 0; i < self.routes->len; i++) {
    WeirCloneRoute *route = g_ptr_array_index (self.routes, i);

    if (before && before->to == route->to && before->from == route->from) {
      route->found = before->found;
      route->hop = before->hop;
      update (route);
    } else {
      look_up (route);
    }
    before = route;
  }
}

// ---- changes of the system ----

static void
device_free (gpointer data)
{
  Device *device = data;

  if (device->attached > 0)
    close (device->attached);
  g_free (device);
}

static void
on_device (const WeirNetDevice *net, gpointer data)
{
  gpointer key = GUINT_TO_POINTER (net->device);
  Device *device = g_hash_table_lookup (self.devices, key);

  self.changed = TRUE;
  if (net->gone || !net->ethernet) {
    g_hash_table_remove (self.devices, key);
  } else {
    if (!device) {
      device = g_new0 (Device, 1);
      device->attached = weir_program_attach (net->device);
      if (device->attached < 0)
        g_message ("kernel path: the device %s refuses the program: %s", net->name,
            g_strerror (-device->attached));
      g_hash_table_insert (self.devices, key, device);
    }
    device->net = *net;
    device->segments = weir_device_segments_udp (net->name);
  }
}

static void
on_neighbour (const WeirNetNeighbour *neighbour, gpointer data)
{
  guint64 key = neighbour_key (neighbour->device, neighbour->address);

  if (neighbour->usable)
    g_hash_table_insert (
        self.neighbours, g_memdup2 (&key, sizeof key), g_memdup2 (neighbour, sizeof *neighbour));
  else
    g_hash_table_remove (self.neighbours, &key);
  for (guint i = 0; i < self.routes->len; i++) {
    WeirCloneRoute *route = g_ptr_array_index (self.routes, i);

    if (route->found && route->hop.via == neighbour->address
        && route->hop.device == neighbour->device)
      update (route);
  }
}

static void
on_routes (gpointer data)
{
  self.changed = TRUE;
}

static const WeirNetChanges changes = { on_device, on_neighbour, on_routes };

// ---- the thread ----

static void
forget (WeirCloneRoute *route)
{
  guint at = route->at;

  g_ptr_array_remove_index_fast (self.routes, at);
  if (at < self.routes->len)
    ((WeirCloneRoute *) g_ptr_array_index (self.routes, at))->at = at;
}

// Takes the new routes in, and forgets those that no reader uses.
static void
take_routes (void)
{
  GPtrArray *added, *released;

  g_mutex_lock (&self.lock);
  added = self.added;
  released = self.released;
  self.added = g_ptr_array_new ();
  self.released = g_ptr_array_new ();
  g_mutex_unlock (&self.lock);
  for (guint i = 0; i < added->len; i++) {
    WeirCloneRoute *route = g_ptr_array_index (added, i);

    route->at = self.routes->len;
    g_ptr_array_add (self.routes, route);
    look_up (route);
  }
  for (guint i = 0; i < released->len; i++)
    forget (g_ptr_array_index (released, i));
  g_ptr_array_free (added, TRUE);
  g_ptr_array_free (released, TRUE);
}

static void
list_again (void)
{
  g_hash_table_remove_all (self.neighbours);
  weir_netlink_list (self.ask_fd, &changes, NULL);
  self.changed = TRUE;
}

static void
tell_watchers (void)
{
  g_mutex_lock (&self.lock);
  for (guint i = 0; i < self.watchers->len; i++)
    eventfd_write (g_array_index (self.watchers, int, i), 1);
  g_mutex_unlock (&self.lock);
  self.published = FALSE;
}

// Returns the time until a moment, in ms for poll().
static int
ms_until (gint64 moment)
{
  return (int) CLAMP ((moment - g_get_monotonic_time ()) / 1000 + 1, 0, LOOK_AGAIN_MS);
}

static gpointer
follow (gpointer data)
{
  gint64 again = 0;

  for (;;) {
    struct pollfd fds[] = { { .fd = self.watch_fd, .events = POLLIN },
      { .fd = self.wake_fd, .events = POLLIN }, { .fd = self.rules_fd, .events = POLLIN } };
    gboolean is_time;
    eventfd_t n;

    poll (fds, G_N_ELEMENTS (fds), ms_until (again));
    is_time = g_get_monotonic_time () >= again;

    if (fds[1].revents)
      eventfd_read (self.wake_fd, &n);
    self.changed = FALSE;
    if (fds[0].revents && !weir_netlink_read (self.watch_fd, &changes, NULL))
      list_again ();
    // A route that changes is not used until it has been looked up.
    for (guint i = 0; i < self.routes->len && self.changed; i++)
      publish (g_ptr_array_index (self.routes, i), 0, NULL);
    if (fds[2].revents)
      weir_rules_drain (self.rules_fd);
    if (fds[2].revents || is_time)
      self.changed |= weir_rules_read ();
    if (self.changed || is_time)
      look_up_all ();
    if (is_time)
      again = g_get_monotonic_time () + LOOK_AGAIN_MS * G_TIME_SPAN_MILLISECOND;
    take_routes ();
    if (self.published)
      tell_watchers ();
  }
  return NULL;
}

gboolean
weir_routes_start (GError **error)
{
  self.wake_fd = eventfd (0, EFD_CLOEXEC);
  self.watch_fd = weir_netlink_watch ();
  self.ask_fd = weir_netlink_open ();
  self.rules_fd = weir_rules_watch ();
  self.added = g_ptr_array_new ();
  self.released = g_ptr_array_new ();
  self.watchers = g_array_new (FALSE, FALSE, sizeof (int));
  self.routes = g_ptr_array_new_with_free_func ((GDestroyNotify) route_unref);
  self.devices = g_hash_table_new_full (NULL, NULL, NULL, device_free);
  self.neighbours = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  if (self.wake_fd < 0 || self.watch_fd < 0 || self.ask_fd < 0
      || !weir_netlink_list (self.ask_fd, &changes, NULL)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
        "cannot read the routes of the system by netlink: the process needs sockets of the family "
        "AF_NETLINK");
    return FALSE;
  }
  weir_rules_read ();
  g_thread_unref (g_thread_new ("weir-routes", follow, NULL));
  return TRUE;
}

// ---- routes ----

static gboolean
has_option (int fd, int option)
{
  gchar value[IFNAMSIZ] = { 0 };
  socklen_t len = sizeof value;

  if (getsockopt (fd, SOL_SOCKET, option, value, &len) < 0)
    return FALSE;
  for (socklen_t i = 0; i < len; i++) {
    if (value[i])
      return TRUE;
  }
  return FALSE;
}

static gboolean
is_paced (int fd)
{
  guint32 rate = G_MAXUINT32;
  socklen_t len = sizeof rate;

  getsockopt (fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &len);
  return rate != G_MAXUINT32;
}

WeirCloneRoute *
weir_route_new (int fd, const WeirAddress *address, gboolean force)
{
  static atomic_uint first_id;
  struct sockaddr_in own = { 0 };
  socklen_t len = sizeof own;
  WeirCloneRoute *route;

  if (address->any.sa_family != AF_INET || weir_address_is_multicast (address)
      || getsockname (fd, (struct sockaddr *) &own, &len) < 0 || own.sin_family != AF_INET
      || own.sin_port == 0 || has_option (fd, SO_MARK) || has_option (fd, SO_BINDTODEVICE)
      || (is_paced (fd) && !force))
    return NULL;
  route = g_aligned_alloc0 (1, sizeof *route, CACHE_LINE);
  atomic_init (&route->why_not, WEIR_CLONES_UNKNOWN);
  atomic_init (&route->next_id, atomic_fetch_add (&first_id, FIRST_IDS_APART));
  atomic_init (&route->refs, 2); // the caller's, and the thread's
  route->to = address->v4.sin_addr.s_addr;
  route->to_port = address->v4.sin_port;
  route->from = own.sin_addr.s_addr;
  route->from_port = own.sin_port;
  route->force = force;
  g_mutex_lock (&self.lock);
  g_ptr_array_add (self.added, route);
  g_mutex_unlock (&self.lock);
  eventfd_write (self.wake_fd, 1);
  return route;
}

static void
release (WeirCloneRoute *route)
{
  g_mutex_lock (&self.lock);
  g_ptr_array_add (self.released, route);
  g_mutex_unlock (&self.lock);
  eventfd_write (self.wake_fd, 1);
  route_unref (route);
}

// Takes numbers of IP for the next packets of a reader. A router may split packets, and puts the
// parts together by these numbers, so readers with one address need numbers of their own.
static guint16
take_ids (WeirCloneRoute *route, gsize n_packets)
{
  guint id = atomic_fetch_add_explicit (&route->next_id, (guint) n_packets, memory_order_relaxed);

  return g_htons ((guint16) id);
}

gboolean
weir_route_read (WeirCloneRoute *route, guint *device, struct clone_reader *reader)
{
  *device = atomic_load_explicit (&route->device, memory_order_relaxed);
  if (!*device || !copy_header (route, *device, reader))
    return FALSE;
  reader->id = take_ids (route, 0);
  return TRUE;
}

void
weir_routes_watch (int fd)
{
  g_mutex_lock (&self.lock);
  g_array_append_val (self.watchers, fd);
  g_mutex_unlock (&self.lock);
}

void
weir_routes_unwatch (int fd)
{
  g_mutex_lock (&self.lock);
  for (guint i = self.watchers->len; i-- > 0;) {
    if (g_array_index (self.watchers, int, i) == fd)
      g_array_remove_index_fast (self.watchers, i);
  }
  g_mutex_unlock (&self.lock);
}

static unsigned
get_device (WeirCloneRoute *route)
{
  return atomic_load_explicit (&route->device, memory_order_relaxed);
}

static WeirClones
get_why_not (WeirCloneRoute *route)
{
  return (WeirClones) atomic_load_explicit (&route->why_not, memory_order_relaxed);
}

// Returns the error of a clone's result (layout.h).
static int
error_of (gint32 result)
{
  if (result == 0 || result == CLONE_CONGESTED)
    return 0;
  return result > 0 ? ENOBUFS : -result;
}

// Returns to how many readers, from the first on, it was sent.
static gsize
send_some (const WeirCloneMessage *message, int fd, WeirCloneTarget *targets, gsize n)
{
  guint device = get_device (targets[0].route);
  WeirProgramReaders readers;

  readers.n = n;
  readers.n_plain = 0;
  for (gsize i = 0; i < n; i++) {
    const WeirCloneTarget *target = &targets[i];

    if (!device || !copy_header (target->route, device, &readers.headers[i]))
      return 0;
    readers.headers[i].id = take_ids (target->route, message->n_packets);
    readers.numbers[i] =
        (struct clone_numbers) { target->time_ahead, target->seq_ahead, target->picture_ahead };
    if (readers.n_plain == i && weir_clone_is_plain (target))
      readers.n_plain++;
  }
  n = weir_program_send (message, fd, device, &readers);
  for (gsize i = 0; i < n; i++)
    targets[i].error = error_of (readers.results[i]);
  return n;
}

static size_t
send_clones (const WeirCloneMessage *message, int fd, WeirCloneTarget *targets, size_t n)
{
  gsize at_once = CLONE_READERS, n_sent = 0;

  if (atomic_load_explicit (&targets[0].route->single, memory_order_relaxed))
    at_once = CLAMP (PACKETS_AT_ONCE / message->n_packets, 1, CLONE_READERS);
  while (n_sent < n) {
    gsize n_asked = MIN (at_once, n - n_sent);
    gsize n_now = send_some (message, fd, targets + n_sent, n_asked);

    n_sent += n_now;
    if (n_now < n_asked)
      break;
  }
  return n_sent;
}

const WeirCloner weir_route_cloner = { get_device, get_why_not, send_clones, release };
