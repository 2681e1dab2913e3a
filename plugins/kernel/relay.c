// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay.h"

#include <errno.h>
#include <linux/if.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/ingest/udp.h"
#include "core/net/send.h"
#include "core/run/clock.h"
#include "handover.h"
#include "kernel.h"
#include "relayprogram.h"
#include "routes.h"

// Since Linux 5.19; the headers of libc may be older.
#ifndef SO_RCVMARK
#define SO_RCVMARK 75
#endif

#define RECEIVE_BUFFER (1 << 20)
#define MOST_AT_ONCE 256 // packets that are handled before the thread looks at anything else
#define RTP_HEADER 12
#define RTCP_HEADER 8

// Another sender may take over after this time.
#define SILENCE_NS G_GINT64_CONSTANT (1000000000)

// Readers who were sent nothing by the thread for so long are sent the next packet by it, so that
// the system keeps their neighbours' hardware addresses fresh.
#define REFRESH_NS G_GINT64_CONSTANT (10000000000)
#define REFRESH_MS 10000

typedef struct {
  WeirAddress rtp, rtcp;
  const WeirCloner *cloner;
  WeirCloneRoute *route; // NULL if there can be none
} Reader;

struct weir_relay {
  WeirAddress address;
  int rtp, rtcp, wake; // sockets, and an eventfd
  GThread *thread;

  GMutex lock;    // guards the fields up to `stopping`; not held during a system call
  GArray *coming; // of WeirAddress: the new readers; NULL: no change
  WeirRelayProgram *program;
  gboolean kernel;      // the property
  WeirRelayStats stats; // what the thread has done
  gboolean stopping;

  // Of the thread.
  GArray *readers; // of Reader
  WeirHandover handover;
  gboolean has_sender, has_sender_rtcp;
  WeirAddress sender, sender_rtcp;
  gint64 sender_ns; // when the thread last got a packet of the sender
  gint64 sent_ns;   // when the thread last sent to the readers
};

// ---- giving to the program and taking back ----

static void
set_why_not (WeirRelay *self, const gchar *why_not)
{
  g_mutex_lock (&self->lock);
  self->stats.kernel = why_not;
  g_mutex_unlock (&self->lock);
}

static void
leave (WeirRelay *self)
{
  if (weir_handover_leave (&self->handover))
    set_why_not (self, "waiting");
}

static void
enter (WeirRelay *self)
{
  if (weir_handover_enter (&self->handover))
    set_why_not (self, "ingress");
}

static guint32
mtu_of (WeirRelay *self, guint device)
{
  struct ifreq request = { .ifr_ifindex = (int) device };

  if (ioctl (self->rtp, SIOCGIFNAME, &request) < 0 || ioctl (self->rtp, SIOCGIFMTU, &request) < 0)
    return 0;
  return (guint32) request.ifr_mtu;
}

// Writes the readers for the program. Returns why it cannot relay to one of them, or NULL.
static const gchar *
write_readers (WeirRelay *self)
{
  struct relay *shared = self->handover.shared;
  guint device = 0;

  if (self->readers->len > RELAY_READERS)
    return "too-many";
  shared->n = self->readers->len;
  shared->largest = G_MAXUINT16;
  for (guint i = 0; i < self->readers->len; i++) {
    const Reader *reader = &g_array_index (self->readers, Reader, i);
    struct relay_reader *to = &shared->readers[i];

    if (!reader->route)
      return weir_clones_name (WEIR_CLONES_UNFIT);
    if (!weir_route_read (reader->route, &to->device, &to->headers)) {
      WeirClones why_not = reader->cloner->why_not (reader->route);

      return weir_clones_name (why_not == WEIR_CLONES_SENT ? WEIR_CLONES_UNKNOWN : why_not);
    }
    if (to->device != device)
      shared->largest = MIN (shared->largest, mtu_of (self, to->device));
    device = to->device;
  }
  return NULL;
}

// Takes the packets back from the program, and prepares giving them again.
static void
arrange (WeirRelay *self)
{
  const gchar *why_not = "off";
  gboolean kernel;

  leave (self);
  g_mutex_lock (&self->lock);
  kernel = self->kernel;
  if (self->program && !self->handover.shared)
    self->handover.shared = weir_relay_program_memory (self->program);
  g_mutex_unlock (&self->lock);
  if (kernel && !self->has_sender)
    why_not = "no-sender";
  else if (kernel)
    why_not = write_readers (self);
  self->handover.ready = why_not == NULL;
  if (self->handover.ready && self->handover.shared->source == 0) {
    self->handover.shared->source_port = self->sender.v4.sin_port;
    self->handover.shared->source = self->sender.v4.sin_addr.s_addr;
    weir_handover_expect_packet (&self->handover);
  }
  set_why_not (self, why_not ? why_not : "waiting");
}

// ---- readers ----

static void
reader_clear (gpointer data)
{
  Reader *reader = data;

  if (reader->route)
    reader->cloner->release (reader->route);
}

static WeirAddress
next_port (const WeirAddress *address)
{
  WeirAddress next = *address;

  next.v4.sin_port = htons ((guint16) (ntohs (address->v4.sin_port) + 1));
  return next;
}

static gboolean
same (const WeirAddress *a, const WeirAddress *b)
{
  return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr && a->v4.sin_port == b->v4.sin_port;
}

// Puts the reader of an address at a place: it stays as it is if it was there before.
static void
place_reader (GArray *readers, const WeirAddress *address, guint at)
{
  Reader added = { .rtp = *address, .rtcp = next_port (address) }, other;
  guint i = at;

  while (i < readers->len && !same (&g_array_index (readers, Reader, i).rtp, address))
    i++;
  if (i == readers->len)
    g_array_append_val (readers, added);
  other = g_array_index (readers, Reader, at);
  g_array_index (readers, Reader, at) = g_array_index (readers, Reader, i);
  g_array_index (readers, Reader, i) = other;
}

static void
take_readers (WeirRelay *self)
{
  gboolean kernel;
  GArray *coming;

  g_mutex_lock (&self->lock);
  coming = g_steal_pointer (&self->coming);
  kernel = self->program != NULL;
  g_mutex_unlock (&self->lock);
  if (coming) {
    for (guint i = 0; i < coming->len; i++)
      place_reader (self->readers, &g_array_index (coming, WeirAddress, i), i);
    g_array_set_size (self->readers, coming->len);
    g_array_unref (coming);
  }
  for (guint i = 0; kernel && i < self->readers->len; i++) {
    Reader *reader = &g_array_index (self->readers, Reader, i);

    if (!reader->route)
      reader->route = weir_kernel_route_new (self->rtp, &reader->rtp, TRUE, &reader->cloner);
  }
  g_mutex_lock (&self->lock);
  self->stats.readers = self->readers->len;
  g_mutex_unlock (&self->lock);
}

// ---- relaying by the thread ----

static void
send_rtp (WeirRelay *self, const guint8 *data, gsize len)
{
  gboolean drops = weir_handover_drops (&self->handover, weir_now_ns ());
  guint n = self->readers->len;
  guint64 sent = 0, no_buffers = 0, backlog = drops ? n : 0;

  for (guint i = 0; i < n && !drops; i++) {
    int r = weir_udp_send (self->rtp, &g_array_index (self->readers, Reader, i).rtp, data, len);

    sent += r == 0;
    no_buffers += r == -EAGAIN || r == -ENOBUFS;
  }
  self->sent_ns = weir_now_ns ();
  g_mutex_lock (&self->lock);
  self->stats.packets++;
  self->stats.due += n;
  self->stats.sent += sent;
  self->stats.no_buffers += no_buffers;
  self->stats.backlog += backlog;
  self->stats.failed += n - sent - no_buffers - backlog;
  g_mutex_unlock (&self->lock);
}

static void
count (WeirRelay *self, guint64 *counter)
{
  g_mutex_lock (&self->lock);
  (*counter)++;
  g_mutex_unlock (&self->lock);
}

// Reports whether a packet is of the sender that is relayed. A new sender takes over after silence.
static gboolean
is_of_sender (WeirRelay *self, const WeirAddress *from)
{
  gint64 now = weir_now_ns (), last = self->sender_ns;

  if (self->handover.shared)
    last = MAX (last, (gint64) __atomic_load_n (&self->handover.shared->arrived, __ATOMIC_RELAXED));
  if (!self->has_sender || (!same (from, &self->sender) && now - last > SILENCE_NS)) {
    leave (self);
    self->has_sender = TRUE;
    self->has_sender_rtcp = FALSE;
    self->sender = *from;
    if (self->handover.shared)
      self->handover.shared->source = 0;
    arrange (self);
  }
  if (!same (from, &self->sender))
    return FALSE;
  self->sender_ns = now;
  return TRUE;
}

static gboolean
is_rtcp (const guint8 *data, gsize len)
{
  return len >= RTCP_HEADER && data[0] >> 6 == 2 && (data[1] & 0x60) == 0x40;
}

// The sender's RTCP goes to all readers, to the ports where they get RTP if it came so (RFC 5761).
static void
send_rtcp (WeirRelay *self, const guint8 *data, gsize len, gboolean with_rtp)
{
  for (guint i = 0; i < self->readers->len; i++) {
    const Reader *reader = &g_array_index (self->readers, Reader, i);

    weir_udp_send (
        with_rtp ? self->rtp : self->rtcp, with_rtp ? &reader->rtp : &reader->rtcp, data, len);
  }
  self->sent_ns = weir_now_ns ();
  count (self, &self->stats.rtcp);
}

static void
take_rtp (WeirRelay *self, const guint8 *data, gsize len, const WeirAddress *from)
{
  if (is_rtcp (data, len)) {
    if (self->has_sender && same (from, &self->sender))
      send_rtcp (self, data, len, TRUE);
    else
      count (self, &self->stats.foreign);
  } else if (len < RTP_HEADER || data[0] >> 6 != 2) {
    count (self, &self->stats.malformed);
  } else if (is_of_sender (self, from)) {
    send_rtp (self, data, len);
  } else {
    count (self, &self->stats.foreign);
  }
}

static gboolean
is_reader (WeirRelay *self, const WeirAddress *from)
{
  for (guint i = 0; i < self->readers->len; i++) {
    if (same (from, &g_array_index (self->readers, Reader, i).rtcp))
      return TRUE;
  }
  return FALSE;
}

static void
take_rtcp (WeirRelay *self, const guint8 *data, gsize len, const WeirAddress *from)
{
  WeirAddress to;

  if (!is_rtcp (data, len)) {
    count (self, &self->stats.malformed);
  } else if (self->has_sender && is_reader (self, from)) {
    to = self->has_sender_rtcp ? self->sender_rtcp : next_port (&self->sender);
    weir_udp_send (self->rtcp, &to, data, len);
    count (self, &self->stats.rtcp);
  } else if (self->has_sender && from->v4.sin_addr.s_addr == self->sender.v4.sin_addr.s_addr) {
    self->has_sender_rtcp = TRUE;
    self->sender_rtcp = *from;
    send_rtcp (self, data, len, FALSE);
  } else {
    count (self, &self->stats.foreign);
  }
}

// Receives a datagram. Returns its length, or -1 if none waits. Sets `mark` to 0 if it has none.
static gssize
receive (int fd, guint8 *data, gsize size, WeirAddress *from, guint32 *mark)
{
  union {
    struct cmsghdr align;
    char bytes[256];
  } control;
  struct iovec part = { data, size };
  struct msghdr message = {
    .msg_name = from,
    .msg_namelen = sizeof *from,
    .msg_iov = &part,
    .msg_iovlen = 1,
    .msg_control = &control,
    .msg_controllen = sizeof control,
  };
  gssize len = recvmsg (fd, &message, MSG_DONTWAIT);

  *mark = 0;
  for (struct cmsghdr *c = len < 0 ? NULL : CMSG_FIRSTHDR (&message); c;
      c = CMSG_NXTHDR (&message, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_MARK)
      memcpy (mark, CMSG_DATA (c), sizeof *mark);
  }
  return len;
}

// Handles what waits in a socket.
static void
drain (WeirRelay *self, int fd,
    void (*take) (WeirRelay *self, const guint8 *data, gsize len, const WeirAddress *from))
{
  static const gsize size = 65536;
  g_autofree guint8 *data = g_malloc (size);

  for (guint i = 0; i < MOST_AT_ONCE; i++) {
    WeirAddress from;
    guint32 mark;
    gssize len = receive (fd, data, size, &from, &mark);

    if (len < 0) {
      if (fd == self->rtp)
        weir_handover_note_empty (&self->handover);
      break;
    }
    take (self, data, (gsize) len, &from);
    if (mark > 0)
      weir_handover_note_mark (&self->handover, mark);
    if (self->handover.dropping)
      enter (self);
  }
}

// ---- the thread ----

static gpointer
run_relay (gpointer data)
{
  WeirRelay *self = data;
  gboolean stopping = FALSE;

  while (!stopping) {
    struct pollfd fds[] = { { .fd = self->rtp, .events = POLLIN },
      { .fd = self->rtcp, .events = POLLIN }, { .fd = self->wake, .events = POLLIN } };
    eventfd_t n;

    poll (fds, G_N_ELEMENTS (fds), self->handover.active ? REFRESH_MS : -1);
    if (fds[2].revents) {
      eventfd_read (self->wake, &n);
      leave (self);
      take_readers (self);
      arrange (self);
    }
    if (fds[0].revents)
      drain (self, self->rtp, take_rtp);
    if (fds[1].revents)
      drain (self, self->rtcp, take_rtcp);
    if (self->handover.active && weir_now_ns () - self->sent_ns >= REFRESH_NS) {
      leave (self);
      weir_handover_expect_packet (&self->handover);
    }
    enter (self);
    g_mutex_lock (&self->lock);
    stopping = self->stopping;
    g_mutex_unlock (&self->lock);
  }
  leave (self);
  return NULL;
}

static int
open_port (const WeirAddress *address, GError **error)
{
  int fd = weir_udp_open (address, 0, RECEIVE_BUFFER, FALSE), size = WEIR_SEND_BUFFER;

  if (fd < 0)
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (-fd),
        "cannot receive on UDP port %u: %s", weir_address_port (address), g_strerror (-fd));
  else
    setsockopt (fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  return fd;
}

WeirRelay *
weir_relay_new (const WeirAddress *address, GError **error)
{
  WeirAddress rtcp = next_port (address);
  WeirRelay *self = g_new0 (WeirRelay, 1);

  self->address = *address;
  self->rtp = self->rtcp = -1;
  self->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  self->readers = g_array_new (FALSE, TRUE, sizeof (Reader));
  g_array_set_clear_func (self->readers, reader_clear);
  g_mutex_init (&self->lock);
  self->stats.kernel = "off";
  if ((self->rtp = open_port (address, error)) < 0 || (self->rtcp = open_port (&rtcp, error)) < 0) {
    weir_relay_free (self);
    return NULL;
  }
  self->thread = g_thread_new ("weir-relay", run_relay, self);
  return self;
}

void
weir_relay_free (WeirRelay *self)
{
  if (self->thread) {
    g_mutex_lock (&self->lock);
    self->stopping = TRUE;
    g_mutex_unlock (&self->lock);
    eventfd_write (self->wake, 1);
    g_thread_join (self->thread);
  }
  if (self->program) {
    weir_routes_unwatch (self->wake);
    weir_relay_program_free (self->program);
  }
  for (guint i = 0; i < 3; i++) {
    int fd = (const int[]) { self->rtp, self->rtcp, self->wake }[i];

    if (fd >= 0)
      close (fd);
  }
  g_array_unref (self->readers);
  g_clear_pointer (&self->coming, g_array_unref);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- for any thread ----

static int
get_option (int fd, int name)
{
  int value = 0;
  socklen_t len = sizeof value;

  getsockopt (fd, IPPROTO_IP, name, &value, &len);
  return value;
}

// Returns NULL and an error if the program cannot be loaded.
static WeirRelayProgram *
load (WeirRelay *self, GError **error)
{
  WeirRelayProgram *program;
  struct relay *shared;
  int on = 1;

  if (!weir_kernel_use (TRUE, error)
      || !(program = weir_relay_program_new (self->address.v4.sin_addr.s_addr, error)))
    return NULL;
  if (setsockopt (self->rtp, SOL_SOCKET, SO_RCVMARK, &on, sizeof on) < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno),
        "cannot receive the marks of packets: %s", g_strerror (errno));
    weir_relay_program_free (program);
    return NULL;
  }
  shared = weir_relay_program_memory (program);
  shared->address = self->address.v4.sin_addr.s_addr;
  shared->port = self->address.v4.sin_port;
  shared->tos = (guint8) get_option (self->rtp, IP_TOS);
  shared->ttl = (guint8) get_option (self->rtp, IP_TTL);
  weir_routes_watch (self->wake);
  return program;
}

gboolean
weir_relay_set_kernel (WeirRelay *self, gboolean on, GError **error)
{
  WeirRelayProgram *program = NULL;
  gboolean loaded;

  g_mutex_lock (&self->lock);
  loaded = self->program != NULL;
  g_mutex_unlock (&self->lock);
  if (on && !loaded && !(program = load (self, error)))
    return FALSE;
  g_mutex_lock (&self->lock);
  self->kernel = on;
  if (program)
    self->program = program;
  g_mutex_unlock (&self->lock);
  eventfd_write (self->wake, 1);
  return TRUE;
}

void
weir_relay_set_readers (WeirRelay *self, const WeirAddress *readers, guint n)
{
  GArray *coming = g_array_sized_new (FALSE, FALSE, sizeof *readers, n), *old;

  g_array_append_vals (coming, readers, n);
  g_mutex_lock (&self->lock);
  old = self->coming;
  self->coming = coming;
  g_mutex_unlock (&self->lock);
  if (old)
    g_array_unref (old);
  eventfd_write (self->wake, 1);
}

static guint64
read_count (const __u64 *count)
{
  return __atomic_load_n (count, __ATOMIC_ACQUIRE);
}

void
weir_relay_get_stats (WeirRelay *self, WeirRelayStats *stats)
{
  const struct relay *shared;

  g_mutex_lock (&self->lock);
  *stats = self->stats;
  shared = self->program ? weir_relay_program_memory (self->program) : NULL;
  g_mutex_unlock (&self->lock);
  if (!shared)
    return;
  stats->kernel_packets = read_count (&shared->packets);
  stats->packets += stats->kernel_packets;
  stats->due += read_count (&shared->due);
  stats->sent += read_count (&shared->sent);
  stats->no_buffers += read_count (&shared->full);
  stats->failed += read_count (&shared->failed);
  stats->longest_ns = read_count (&shared->longest);
}
