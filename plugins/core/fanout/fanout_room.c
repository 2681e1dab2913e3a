// SPDX-License-Identifier: LGPL-2.1-or-later
// Room in the sockets of UDP readers. A shard that met a full socket is woken when it has room.
#include <stdlib.h>
#include <unistd.h>

#include "fanout/fanout_private.h"

// A duplicate of the descriptor is watched, so the owner may close the original.
struct room {
  WeirPolled polled;
  Room *next;
  int fd; // the readers' descriptor
  bool watched;
  _Atomic int64_t moved_ns; // last time that a waiting reader got room

  pthread_mutex_t lock;
  WeirFanout *fanout; // under `lock`; NULL: stopped
};

static void
on_room (WeirPolled *polled)
{
  Room *room = (Room *) polled;

  pthread_mutex_lock (&room->lock);
  if (room->fanout)
    weir_fanout_wake_waiting (room->fanout);
  pthread_mutex_unlock (&room->lock);
}

static void
room_free (WeirPolled *polled)
{
  Room *room = (Room *) polled;

  pthread_mutex_destroy (&room->lock);
  free (room);
}

static Room *
room_new (WeirFanout *fanout, int fd)
{
  Room *room = calloc (1, sizeof *room);

  if (!room)
    return NULL;
  pthread_mutex_init (&room->lock, NULL);
  room->fanout = fanout;
  room->fd = fd;
  room->polled = (WeirPolled) { .fd = -1, .writable = on_room, .free = room_free };
  // Without workers there is no task to wake.
  if (fanout->workers && (room->polled.fd = dup (fd)) >= 0) {
    room->watched = weir_poller_add (&room->polled) == 0;
    if (!room->watched)
      close (room->polled.fd);
  }
  return room;
}

void
weir_rooms_free (Room *rooms)
{
  while (rooms) {
    Room *room = rooms;

    rooms = room->next;
    pthread_mutex_lock (&room->lock);
    room->fanout = NULL;
    pthread_mutex_unlock (&room->lock);
    if (room->watched)
      weir_poller_retire (&room->polled);
    else
      room_free (&room->polled);
  }
}

// Under the engine's lock.
static Room *
find (const WeirFanout *fanout, int fd)
{
  Room *room = fanout->rooms;

  while (room && room->fd != fd)
    room = room->next;
  return room;
}

Room *
weir_room_of (WeirFanout *fanout, int fd)
{
  Room *room, *made;

  pthread_mutex_lock (&fanout->lock);
  room = find (fanout, fd);
  pthread_mutex_unlock (&fanout->lock);
  if (room || !(made = room_new (fanout, fd)))
    return room;
  pthread_mutex_lock (&fanout->lock);
  if (!(room = find (fanout, fd))) {
    made->next = fanout->rooms;
    fanout->rooms = room = made;
    made = NULL;
  }
  pthread_mutex_unlock (&fanout->lock);
  weir_rooms_free (made);
  return room;
}

int64_t
weir_room_moved (const Room *room)
{
  return atomic_load_explicit (&room->moved_ns, memory_order_relaxed);
}

void
weir_room_note (Room *room, int64_t now_ns)
{
  atomic_store_explicit (&room->moved_ns, now_ns, memory_order_relaxed);
}

bool
weir_room_watch (Room *room, Shard *shard)
{
  if (!room->watched)
    return false;
  // Set before the socket can become writable, so that the wake-up finds it.
  atomic_store (&shard->waiting, true);
  return weir_poller_arm (&room->polled) == 0;
}
