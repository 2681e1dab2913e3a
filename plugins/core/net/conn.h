// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A connected stream socket (TCP or any other) and its only writer, which several senders share:
// the video and audio of a reader, their RTCP, and the answers to its requests.
//
// Nothing here blocks. A send is a vectored write of up to 64 packets. The rest of a partly written
// packet is kept, and a thread that watches all connections writes it first, so packets and answers
// never mix. No other packet is kept: a packet that was not taken stays the sender's, which tries
// again when it is told that there is room.
//
// Call all functions from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/tcp_line.h"

#define WEIR_CONN_PACKET_MAX 65535
#define WEIR_CONN_CONTROL_MAX (64 * 1024)
#define WEIR_CONN_CONTROL_ALONE_MAX (264 * 1024) // of one call, if no other control data waits

// The kernel buffers at most this much unsent data (TCP_NOTSENT_LOWAT, TCP only), so that a slow
// reader shows early, and not after megabytes that cannot be taken back.
#define WEIR_CONN_UNSENT_MAX (256 * 1024)

typedef enum {
  WEIR_FRAMING_NONE,
  WEIR_FRAMING_RFC4571,    // two bytes of length
  WEIR_FRAMING_INTERLEAVED // '$', channel, two bytes of length (RFC 2326, 10.12)
} WeirFraming;

// The system calls that a connection makes; tests substitute them.
typedef struct {
  ssize_t (*sendmsg) (int fd, const struct msghdr *msg, int flags);
} WeirConnOps;

typedef struct {
  uint64_t packets; // packets taken
  uint64_t bytes;   // bytes written to the kernel, framing and control data included
  size_t waiting;   // bytes waiting here: the rest of a packet, and control data
  size_t unsent;    // bytes in the kernel's buffer, unsent or not acknowledged
} WeirConnCounters;

typedef struct weir_conn WeirConn;

// Creates a connection. Duplicates `fd`, which stays the caller's: the caller may read from it, but
// nothing else may write to it. `ops` is NULL for the real system calls. Returns NULL with errno:
// ENOTCONN if the socket is not connected, ENOTSUP if it is not a stream socket, or the system's
// error. The caller owns the result (weir_conn_unref()).
WeirConn *weir_conn_new (int fd, const WeirConnOps *ops);
WeirConn *weir_conn_ref (WeirConn *conn);

// The last unref closes the duplicate and drops the waiting bytes.
void weir_conn_unref (WeirConn *conn);

// Sends `n` packets, each with its framing (`channel` is for WEIR_FRAMING_INTERLEAVED only).
// Returns the number taken, from 0 to `n`; part of the last one may still wait here. If it is less
// than `n`, there is no room, and every watcher is called when there is. Returns -EMSGSIZE, with
// none taken, if a packet is longer than WEIR_CONN_PACKET_MAX; any other negative errno says why
// the connection broke, and stays.
int weir_conn_send (
    WeirConn *conn, WeirFraming framing, uint8_t channel, const struct iovec *packets, size_t n);

// Sends other bytes, such as the answer to a request: after a packet that is partly written, and
// before any packet sent later. Bytes that do not fit now are copied and sent later. Returns 0;
// -ENOBUFS, with nothing sent, if other control data waits and more than WEIR_CONN_CONTROL_MAX
// bytes would, or if there are more than WEIR_CONN_CONTROL_ALONE_MAX bytes; or the negative errno
// by which the connection broke.
int weir_conn_send_control (WeirConn *conn, const void *data, size_t len);

// Limits the rate at which the kernel sends, in bits per second; 0 removes the limit.
void weir_conn_set_max_pacing_rate (WeirConn *conn, uint64_t bits_per_s);

// Breaks the connection: drops the waiting bytes and shuts the socket down, so that both sides see
// its end. Keeps the first error (a positive errno).
void weir_conn_break (WeirConn *conn, int error);

// Returns 0, or the positive errno by which the connection broke.
int weir_conn_error (WeirConn *conn);

// Copies the counters.
void weir_conn_counters (WeirConn *conn, WeirConnCounters *counters);

// Reads what its socket tells of the line. Returns false if it tells nothing.
bool weir_conn_sample (WeirConn *conn, WeirTcpSample *out);

// Adds a watcher: `writable` is called when the waiting bytes are written and there is room again,
// and when the connection has broken. The thread that watches all connections calls it, without a
// lock: `writable` may call any function here, and must return soon. Watchers take turns in being
// called first. Returns false if there is no memory.
bool weir_conn_watch (WeirConn *conn, void (*writable) (void *data), void *data);

// Removes a watcher. No call of `writable` is running or comes when this returns; called from
// within `writable` itself, no further call comes. The caller must not hold a lock that its
// `writable` takes. Call it before the caller's last unref.
void weir_conn_unwatch (WeirConn *conn, void (*writable) (void *data), void *data);
