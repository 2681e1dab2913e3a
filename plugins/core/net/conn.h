// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A connected stream socket (TCP, or any other) and its one writer, which several senders share:
// the video and the audio of a reader, their RTCP, and the answers to its requests.
//
// Nothing here waits. What is sent goes out in one vectored write as far as there is room. A packet
// that was begun is kept and finished first, by a thread of its own that watches all connections
// for room; so packets and answers never mix. Nothing else is kept: a packet that was not taken is
// still the sender's, who asks again when it is told that there is room.
//
// All functions may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define WEIR_CONN_PACKET_MAX 65535
#define WEIR_CONN_CONTROL_MAX (256 * 1024)

// The kernel takes no more than this beyond what it could send at once, where it can be told to
// (TCP): a reader that lags shows here, and not after megabytes that nobody can take back.
#define WEIR_CONN_UNSENT_MAX (256 * 1024)

typedef enum {
  WEIR_FRAMING_NONE,
  WEIR_FRAMING_RFC4571,    // a length of two bytes
  WEIR_FRAMING_INTERLEAVED // '$', channel, a length of two bytes: RFC 2326, 10.12
} WeirFraming;

// The system as a connection sees it. Tests put their own here.
typedef struct {
  ssize_t (*sendmsg) (int fd, const struct msghdr *msg, int flags);
} WeirConnOps;

typedef struct {
  uint64_t packets; // taken
  uint64_t bytes;   // that the kernel took, framing and control included
  size_t waiting;   // here: the rest of a packet, and control
  size_t unsent;    // in the kernel: not sent, or not acknowledged
} WeirConnCounters;

typedef struct weir_conn WeirConn;

// `fd` is duplicated and stays the caller's, who may read from it; nobody else may write to it.
// `ops` NULL is the system itself. NULL with errno: ENOTCONN for a socket that is not connected,
// ENOTSUP for one that is no stream, or what the system said.
WeirConn *weir_conn_new (int fd, const WeirConnOps *ops);
WeirConn *weir_conn_ref (WeirConn *conn);

// The last one closes the duplicate, and what waits is lost.
void weir_conn_unref (WeirConn *conn);

// Sends packets, each with its framing; gives how many were taken, 0 to n. Of the last of them a
// part may still wait here. Fewer than n: there is no room, and every watcher is called when there
// is. Negative: -EMSGSIZE if one is longer than WEIR_CONN_PACKET_MAX (none is taken), any other
// errno is what the connection broke by, and stays.
int weir_conn_send (
    WeirConn *conn, WeirFraming framing, uint8_t channel, const struct iovec *packets, size_t n);

// Sends bytes of another kind, such as the answer to a request: after the packet that was begun,
// before any that is sent later. What finds no room is copied and kept. 0, -ENOBUFS if more than
// WEIR_CONN_CONTROL_MAX would wait (nothing of it is sent), or what the connection broke by.
int weir_conn_send_control (WeirConn *conn, const void *data, size_t len);

// The most that the kernel sends per second, whoever sends here; 0: as much as there is.
void weir_conn_set_max_pacing_rate (WeirConn *conn, uint64_t bits_per_s);

// The end: what waits is dropped, the peer is told, whoever reads the socket finds its end. The
// first error (a positive errno) stays.
void weir_conn_break (WeirConn *conn, int error);

// 0, or the positive errno by which it broke.
int weir_conn_error (WeirConn *conn);

void weir_conn_counters (WeirConn *conn, WeirConnCounters *counters);

// `writable` is called when what waited is out and there is room again, and when the connection has
// broken: from the thread that watches for room, without a lock, so it may call
// anything here. It should be short, as all connections share that thread. Watchers take turns in
// being the first. False if there is no memory.
bool weir_conn_watch (WeirConn *conn, void (*writable) (void *data), void *data);

// No call is running or comes when this returns; from within `writable` itself, none comes any
// more. Whoever calls it must not hold what its `writable` waits for. To be called before the
// caller's last unref.
void weir_conn_unwatch (WeirConn *conn, void (*writable) (void *data), void *data);
