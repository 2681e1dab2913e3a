// SPDX-License-Identifier: LGPL-2.1-or-later

// The thread of a schedulesrc that joins groups and receives from them.
#include "config.h"

#include <errno.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "broadcast/schedulesrc_private.h"
#include "core/ingest/udp.h"
#include "core/run/clock.h"

GST_DEBUG_CATEGORY_EXTERN (schedulesrc_debug);
#define GST_CAT_DEFAULT schedulesrc_debug

#define TRACKS WEIR_DESCRIPTION_TRACKS_MAX
#define WAKE UINT64_MAX
#define EVENTS 16
#define SOCKET_BUFFER (512 << 10)
#define SLEEP_MAX_NS (100 * GST_MSECOND)

typedef struct {
  WeirScheduleSrc *owner;
  gint epoll_fd;
  guint iface;
  gint (*fds)[TRACKS]; // for each receive; -1: closed
  WeirReceiver receiver;
  GArray *joins, *leaves; // guint32, numbers of receives
} Receiver;

static void
leave_group (Receiver *r, guint32 number)
{
  for (guint i = 0; i < TRACKS; i++) {
    if (r->fds[number][i] >= 0)
      close (r->fds[number][i]); // also ends its place in the epoll
    r->fds[number][i] = -1;
  }
}

static gint
open_track (Receiver *r, guint32 number, guint32 track)
{
  const WeirDescription *d = r->owner->description;
  const WeirDescribedChannel *channel =
      weir_description_find_channel (d, d->receives[number].channel);
  struct epoll_event event = { .events = EPOLLIN, .data.u64 = (guint64) number * TRACKS + track };
  WeirAddress group = channel->group;
  in_port_t *port = group.any.sa_family == AF_INET6 ? &group.v6.sin6_port : &group.v4.sin_port;
  gint fd;

  *port = g_htons ((guint16) (g_ntohs (*port) + 2 * track));
  fd = weir_udp_open (&group, r->iface, SOCKET_BUFFER, TRUE);
  if (fd >= 0 && epoll_ctl (r->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
    gint error = -errno;

    close (fd);
    fd = error;
  }
  return fd;
}

// Returns 0 or a negative errno.
static gint
join_group (Receiver *r, guint32 number)
{
  const WeirDescription *d = r->owner->description;

  for (guint32 track = 0; track < d->n_tracks; track++) {
    const WeirPacketRange *range = &d->receives[number].packets[track];
    gint fd;

    if (range->from == range->to)
      continue;
    fd = open_track (r, number, track);
    if (fd < 0) {
      leave_group (r, number);
      return fd;
    }
    r->fds[number][track] = fd;
  }
  return 0;
}

static void
warn_of_join (Receiver *r, guint32 number, gint error)
{
  GST_WARNING_OBJECT (r->owner,
      "cannot join the group of channel %u: %s; its packets come by unicast",
      r->owner->description->receives[number].channel, g_strerror (-error));
}

static void
join_live (Receiver *r)
{
  gint result = join_group (r, 0);

  if (result < 0)
    warn_of_join (r, 0, result);
}

// Leaves all groups, and goes on with those of a description that came at `now`.
static void
change_description (Receiver *r, WeirDescription *next, gint64 now)
{
  WeirScheduleSrc *self = r->owner;
  WeirDescription *d = self->description;
  gint result = 0;

  if (self->is_live && memcmp (d->channels, next->channels, sizeof d->channels[0]) == 0)
    return;
  for (guint i = 0; i < d->n_receives; i++)
    leave_group (r, i);
  g_mutex_lock (&self->lock);
  if (!self->is_live)
    result = weir_follow_resume (&self->follow, next, now);
  if (result == 0) {
    d->n_channels = next->n_channels;
    d->n_receives = next->n_receives;
    memcpy (d->channels, next->channels, sizeof d->channels);
    memcpy (d->receives, next->receives, sizeof d->receives);
    self->follow.description = d;
  }
  g_mutex_unlock (&self->lock);
  if (self->is_live)
    join_live (r);
  else if (result < 0)
    GST_WARNING_OBJECT (self, "cannot go on with groups: %s", g_strerror (-result));
  else
    GST_INFO_OBJECT (self, "goes on with %u transmissions of groups", d->n_receives);
}

// Joins and leaves groups as the schedule says. Returns when to do so next.
static gint64
join_and_leave (Receiver *r)
{
  WeirScheduleSrc *self = r->owner;
  guint32 number;
  gint64 next, now = weir_now_ns ();

  g_array_set_size (r->joins, 0);
  g_array_set_size (r->leaves, 0);
  g_mutex_lock (&self->lock);
  while (weir_follow_leave (&self->follow, now, &number))
    g_array_append_val (r->leaves, number);
  while (weir_follow_join (&self->follow, now, &number))
    g_array_append_val (r->joins, number);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < r->leaves->len; i++)
    leave_group (r, g_array_index (r->leaves, guint32, i));
  for (guint i = 0; i < r->joins->len; i++) {
    gint result;

    number = g_array_index (r->joins, guint32, i);
    result = join_group (r, number);
    if (result == 0)
      continue;
    warn_of_join (r, number, result);
    g_mutex_lock (&self->lock);
    weir_follow_leave_now (&self->follow, number);
    g_mutex_unlock (&self->lock);
  }
  g_mutex_lock (&self->lock);
  next = weir_follow_next (&self->follow);
  g_mutex_unlock (&self->lock);
  return next;
}

// On the loopback interface, Linux sends to groups from 0.0.0.0.
static gboolean
is_loopback (const WeirAddress *address)
{
  return address->any.sa_family == AF_INET
         && g_ntohl (address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static gboolean
is_of_source (const WeirDescription *d, guint32 number, const WeirMessage *message)
{
  const WeirDescribedChannel *channel =
      weir_description_find_channel (d, d->receives[number].channel);
  const WeirAddress *source = &channel->source;

  if (source->any.sa_family == AF_INET && !is_loopback (source))
    return message->from_known && message->from.any.sa_family == AF_INET
           && message->from.v4.sin_addr.s_addr == source->v4.sin_addr.s_addr;
  if (source->any.sa_family == AF_INET6)
    return message->from_known && message->from.any.sa_family == AF_INET6
           && IN6_ARE_ADDR_EQUAL (&message->from.v6.sin6_addr, &source->v6.sin6_addr);
  return TRUE;
}

static void
take_packet (Receiver *r, guint32 number, guint32 track, const guint8 *data, gsize len)
{
  WeirScheduleSrc *self = r->owner;
  guint32 packet;
  WeirRtp rtp;
  gboolean wanted;

  if (weir_rtp_parse (data, len, &rtp) < 0)
    return;
  if (self->is_live) {
    schedule_src_put_live (self, track, &rtp, TRUE, data, len);
    return;
  }
  g_mutex_lock (&self->lock);
  wanted = weir_follow_heard (&self->follow, number, track, &rtp, len, weir_now_ns (), &packet);
  g_mutex_unlock (&self->lock);
  if (wanted)
    schedule_src_put (self, track, packet, &rtp, TRUE, packet_keep_spill (&self->keep, data, len));
}

static void
receive (Receiver *r, guint32 number, guint32 track)
{
  gint n, fd = r->fds[number][track];

  if (fd < 0) // left since the event
    return;
  do {
    n = weir_receiver_fill (&r->receiver, fd);
    for (gint i = 0; i < n; i++) {
      const WeirMessage *message = &r->receiver.messages[i];

      if (message->truncated || !is_of_source (r->owner->description, number, message))
        continue;
      for (gsize at = 0; at < message->len; at += message->segment)
        take_packet (
            r, number, track, message->data + at, MIN (message->segment, message->len - at));
    }
  } while (n == WEIR_RECEIVE_MESSAGES);
}

static void
wait_and_receive (Receiver *r, gint64 until)
{
  struct epoll_event events[EVENTS];
  gint64 wait = CLAMP (until - weir_now_ns (), 0, (gint64) SLEEP_MAX_NS);
  gint n = epoll_wait (r->epoll_fd, events, EVENTS, (gint) ((wait + 999999) / 1000000));

  for (gint i = 0; i < n; i++) {
    guint64 woken;

    if (events[i].data.u64 == WAKE)
      (void) !read (r->owner->wake_fd, &woken, sizeof woken);
    else
      receive (r, (guint32) (events[i].data.u64 / TRACKS), (guint32) (events[i].data.u64 % TRACKS));
  }
}

void
schedule_src_pass_description (WeirScheduleSrc *self, WeirDescription *description)
{
  WeirDescription *before;

  g_mutex_lock (&self->lock);
  before = self->next_description;
  self->next_description = description;
  self->next_ns = weir_now_ns ();
  g_mutex_unlock (&self->lock);
  g_free (before);
  schedule_src_wake_receiver (self);
}

// Takes a new description, if there is one. Returns FALSE if the element stops.
static gboolean
go_on (Receiver *r)
{
  WeirScheduleSrc *self = r->owner;
  WeirDescription *next;
  gboolean stopping;
  gint64 next_ns;

  g_mutex_lock (&self->lock);
  next_ns = self->next_ns;
  next = g_steal_pointer (&self->next_description);
  stopping = self->stopping;
  g_mutex_unlock (&self->lock);
  if (next)
    change_description (r, next, next_ns);
  g_free (next);
  return !stopping;
}

static gboolean
receiver_init (Receiver *r, WeirScheduleSrc *self)
{
  struct epoll_event wake = { .events = EPOLLIN, .data.u64 = WAKE };

  *r = (Receiver) { .owner = self, .epoll_fd = epoll_create1 (EPOLL_CLOEXEC) };
  GST_OBJECT_LOCK (self);
  if (self->settings.iface && *self->settings.iface)
    r->iface = if_nametoindex (self->settings.iface);
  GST_OBJECT_UNLOCK (self);
  r->fds = g_malloc_n (WEIR_DESCRIPTION_RECEIVES_MAX, sizeof *r->fds);
  for (guint i = 0; i < WEIR_DESCRIPTION_RECEIVES_MAX * TRACKS; i++)
    r->fds[i / TRACKS][i % TRACKS] = -1;
  r->joins = g_array_new (FALSE, FALSE, sizeof (guint32));
  r->leaves = g_array_new (FALSE, FALSE, sizeof (guint32));
  return r->epoll_fd >= 0 && epoll_ctl (r->epoll_fd, EPOLL_CTL_ADD, self->wake_fd, &wake) == 0
         && weir_receiver_init (&r->receiver, NULL) == 0;
}

gpointer
schedule_src_receive (gpointer data)
{
  WeirScheduleSrc *self = data;
  Receiver r;

  if (!receiver_init (&r, self))
    schedule_src_fail (self, GST_RESOURCE_ERROR_FAILED, "no resources to receive from groups");
  else {
    if (self->is_live)
      join_live (&r);
    while (go_on (&r))
      wait_and_receive (&r, self->is_live ? WEIR_NEVER : join_and_leave (&r));
    weir_receiver_clear (&r.receiver);
  }
  for (guint i = 0; i < self->description->n_receives; i++)
    leave_group (&r, i);
  if (r.epoll_fd >= 0)
    close (r.epoll_fd);
  g_free (r.fds);
  g_array_unref (r.joins);
  g_array_unref (r.leaves);
  return NULL;
}
