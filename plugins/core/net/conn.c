// SPDX-License-Identifier: LGPL-2.1-or-later
#include "net/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net/pacingrate.h"
#include "net/poller.h"

#define HEADER_MAX 4
#define PACKETS_AT_ONCE 64

typedef struct watcher {
  struct watcher *next;
  void (*writable) (void *data);
  void *data;
  bool due;     // to be called in the current round
  bool removed; // removed during its own call
} Watcher;

// Bytes that wait to be written, from `start` to `end`.
typedef struct {
  uint8_t *bytes;
  size_t start, end;
  size_t size; // of `bytes`; for control data only
} Waiting;

struct weir_conn {
  WeirPolled polled;
  const WeirConnOps *ops;
  atomic_uint refs;

  pthread_mutex_t lock; // guards all fields below; held across writes, which never block
  pthread_cond_t called;
  int error;
  bool full; // no room: the poller is armed
  uint64_t packets, bytes;
  Waiting tail;    // rest of a packet that was partly written
  Waiting control; // control data, written after `tail`
  Watcher *watchers;
  Watcher *calling;
};

static const WeirConnOps system_ops = { sendmsg };

// ---- writing ----

static size_t
waiting (const Waiting *w)
{
  return w->end - w->start;
}

static size_t
n_waiting (const WeirConn *conn)
{
  return waiting (&conn->tail) + waiting (&conn->control);
}

static void
drop (Waiting *w)
{
  free (w->bytes);
  *w = (Waiting) { 0 };
}

static void
break_locked (WeirConn *conn, int error)
{
  if (conn->error)
    return;
  conn->error = error > 0 ? error : EPIPE;
  drop (&conn->tail);
  drop (&conn->control);
  shutdown (conn->polled.fd, SHUT_RDWR);
  // A socket that is shut down is always ready, so the watchers are called soon.
  conn->full = true;
  weir_poller_arm (&conn->polled);
}

static void
wait_for_room (WeirConn *conn)
{
  int error;

  if (conn->full || conn->error)
    return;
  error = weir_poller_arm (&conn->polled);
  if (error != 0)
    break_locked (conn, -error);
  else
    conn->full = true;
}

// Writes without blocking. Returns the bytes written; fewer if there is no room, 0 also if the
// connection broke.
static size_t
write_out (WeirConn *conn, struct iovec *iov, size_t n)
{
  struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
  ssize_t r;

  do
    r = conn->ops->sendmsg (conn->polled.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (r < 0 && errno == EINTR);
  if (r < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != ENOMEM)
    break_locked (conn, errno);
  if (r <= 0)
    return 0;
  conn->bytes += (uint64_t) r;
  return (size_t) r;
}

// Removes up to `len` bytes from the front. Returns how many.
static size_t
advance (Waiting *w, size_t len)
{
  size_t step = len < waiting (w) ? len : waiting (w);

  w->start += step;
  return step;
}

// Writes the waiting bytes. Returns whether none are left.
static bool
flush (WeirConn *conn)
{
  while (!conn->error && n_waiting (conn) > 0) {
    struct iovec iov[2] = {
      { conn->tail.bytes + conn->tail.start, waiting (&conn->tail) },
      { conn->control.bytes + conn->control.start, waiting (&conn->control) },
    };
    bool begun = iov[0].iov_len > 0;
    size_t written = write_out (conn, begun ? iov : iov + 1, begun ? 2 : 1);

    if (written == 0)
      break;
    written -= advance (&conn->tail, written);
    advance (&conn->control, written);
  }
  if (conn->error || n_waiting (conn) > 0)
    return false;
  drop (&conn->control);
  return true;
}

static size_t
put_header (uint8_t *header, WeirFraming framing, uint8_t channel, size_t len)
{
  size_t n = 0;

  if (framing == WEIR_FRAMING_NONE)
    return 0;
  if (framing == WEIR_FRAMING_INTERLEAVED) {
    header[n++] = '$';
    header[n++] = channel;
  }
  header[n++] = (uint8_t) (len >> 8);
  header[n++] = (uint8_t) len;
  return n;
}

// Keeps the rest of a packet. Its header and data are iov[0] and iov[1]; `written` bytes of them
// are sent.
static void
keep_tail (WeirConn *conn, const struct iovec *iov, size_t written)
{
  if (!conn->tail.bytes)
    conn->tail.bytes = malloc (HEADER_MAX + WEIR_CONN_PACKET_MAX);
  if (!conn->tail.bytes) {
    break_locked (conn, ENOMEM);
    return;
  }
  conn->tail.start = conn->tail.end = 0;
  for (int i = 0; i < 2; i++) {
    size_t skip = written < iov[i].iov_len ? written : iov[i].iov_len;

    written -= skip;
    if (iov[i].iov_len > skip) {
      memcpy (conn->tail.bytes + conn->tail.end, (const uint8_t *) iov[i].iov_base + skip,
          iov[i].iov_len - skip);
      conn->tail.end += iov[i].iov_len - skip;
    }
  }
}

// Sends at most PACKETS_AT_ONCE packets. Returns how many were taken.
static size_t
send_some (
    WeirConn *conn, WeirFraming framing, uint8_t channel, const struct iovec *packets, size_t n)
{
  uint8_t headers[PACKETS_AT_ONCE][HEADER_MAX];
  struct iovec iov[2 * PACKETS_AT_ONCE];
  size_t written, taken;

  for (size_t i = 0; i < n; i++) {
    iov[2 * i] = (struct iovec) {
      .iov_base = headers[i],
      .iov_len = put_header (headers[i], framing, channel, packets[i].iov_len),
    };
    iov[2 * i + 1] = packets[i];
  }
  written = write_out (conn, iov, 2 * n);
  for (taken = 0; taken < n; taken++) {
    const struct iovec *frame = &iov[2 * taken];
    size_t len = frame[0].iov_len + frame[1].iov_len;

    if (written < len)
      break;
    written -= len;
  }
  if (taken < n && written > 0)
    keep_tail (conn, &iov[2 * taken++], written);
  conn->packets += taken;
  return taken;
}

int
weir_conn_send (
    WeirConn *conn, WeirFraming framing, uint8_t channel, const struct iovec *packets, size_t n)
{
  size_t taken = 0;
  int error;

  for (size_t i = 0; i < n; i++) {
    if (packets[i].iov_len > WEIR_CONN_PACKET_MAX)
      return -EMSGSIZE;
  }

  pthread_mutex_lock (&conn->lock);
  while (taken < n && !conn->full && !conn->error) {
    size_t some = n - taken < PACKETS_AT_ONCE ? n - taken : PACKETS_AT_ONCE;
    size_t r = send_some (conn, framing, channel, packets + taken, some);

    taken += r;
    if (r < some || waiting (&conn->tail) > 0)
      wait_for_room (conn);
  }
  error = conn->error;
  pthread_mutex_unlock (&conn->lock);
  return error ? -error : (int) taken;
}

static bool
control_fits (const WeirConn *conn, size_t len)
{
  size_t before = waiting (&conn->control);

  if (before == 0)
    return len <= WEIR_CONN_CONTROL_ALONE_MAX;
  return before < WEIR_CONN_CONTROL_MAX && len <= WEIR_CONN_CONTROL_MAX - before;
}

// Copies control data. The caller has checked that it fits.
static bool
keep_control (WeirConn *conn, const uint8_t *data, size_t len)
{
  Waiting *w = &conn->control;

  if (waiting (w) == 0) {
    drop (w);
    w->size = len > WEIR_CONN_CONTROL_MAX ? len : WEIR_CONN_CONTROL_MAX;
    w->bytes = malloc (w->size);
  }
  if (!w->bytes)
    return false;
  if (len > w->size - w->end) {
    memmove (w->bytes, w->bytes + w->start, waiting (w));
    w->end -= w->start;
    w->start = 0;
  }
  memcpy (w->bytes + w->end, data, len);
  w->end += len;
  return true;
}

int
weir_conn_send_control (WeirConn *conn, const void *data, size_t len)
{
  struct iovec iov = { (void *) data, len };
  size_t written = 0;
  int error = 0;

  pthread_mutex_lock (&conn->lock);
  if (conn->error)
    error = conn->error;
  else if (!control_fits (conn, len))
    error = ENOBUFS;
  else {
    if (!conn->full)
      written = write_out (conn, &iov, 1);
    if (!conn->error && written < len) {
      if (keep_control (conn, (const uint8_t *) data + written, len - written))
        wait_for_room (conn);
      else
        break_locked (conn, ENOMEM);
    }
    error = conn->error;
  }
  pthread_mutex_unlock (&conn->lock);
  return -error;
}

void
weir_conn_set_max_pacing_rate (WeirConn *conn, uint64_t bits_per_s)
{
  weir_set_max_pacing_rate (conn->polled.fd, bits_per_s);
}

// ---- watching ----

static void
remove_watcher (WeirConn *conn, Watcher *watcher)
{
  Watcher **at = &conn->watchers;

  while (*at != watcher)
    at = &(*at)->next;
  *at = watcher->next;
  free (watcher);
}

// Moves the first watcher to the end, so that watchers take turns in being first.
static void
rotate (WeirConn *conn)
{
  Watcher *first = conn->watchers, **end = &conn->watchers;

  if (!first || !first->next)
    return;
  while (*end)
    end = &(*end)->next;
  conn->watchers = first->next;
  first->next = NULL;
  *end = first;
}

static Watcher *
next_due (WeirConn *conn)
{
  Watcher *watcher = conn->watchers;

  while (watcher && !watcher->due)
    watcher = watcher->next;
  return watcher;
}

static void
call_watchers (WeirConn *conn)
{
  rotate (conn);
  for (Watcher *w = conn->watchers; w; w = w->next)
    w->due = true;
  while ((conn->calling = next_due (conn))) {
    Watcher *watcher = conn->calling;

    watcher->due = false;
    pthread_mutex_unlock (&conn->lock);
    watcher->writable (watcher->data);
    pthread_mutex_lock (&conn->lock);
    if (watcher->removed)
      remove_watcher (conn, watcher);
    pthread_cond_broadcast (&conn->called);
  }
}

static void
writable (WeirPolled *polled)
{
  WeirConn *conn = (WeirConn *) polled;

  pthread_mutex_lock (&conn->lock);
  if (conn->full) {
    conn->full = false;
    if (conn->error || flush (conn))
      call_watchers (conn);
    else
      wait_for_room (conn);
  }
  pthread_mutex_unlock (&conn->lock);
}

bool
weir_conn_watch (WeirConn *conn, void (*callback) (void *data), void *data)
{
  Watcher *watcher = calloc (1, sizeof *watcher);

  if (!watcher)
    return false;
  watcher->writable = callback;
  watcher->data = data;
  pthread_mutex_lock (&conn->lock);
  watcher->next = conn->watchers;
  conn->watchers = watcher;
  if (conn->error) {
    conn->full = true;
    weir_poller_arm (&conn->polled);
  }
  pthread_mutex_unlock (&conn->lock);
  return true;
}

static Watcher *
find_watcher (WeirConn *conn, void (*callback) (void *data), void *data)
{
  Watcher *watcher = conn->watchers;

  while (watcher && (watcher->removed || watcher->writable != callback || watcher->data != data))
    watcher = watcher->next;
  return watcher;
}

void
weir_conn_unwatch (WeirConn *conn, void (*callback) (void *data), void *data)
{
  Watcher *watcher;

  pthread_mutex_lock (&conn->lock);
  watcher = find_watcher (conn, callback, data);
  if (watcher && watcher == conn->calling && weir_poller_is_here ()) {
    watcher->removed = true;
    watcher->due = false;
  } else if (watcher) {
    while (conn->calling == watcher)
      pthread_cond_wait (&conn->called, &conn->lock);
    remove_watcher (conn, watcher);
  }
  pthread_mutex_unlock (&conn->lock);
}

// ---- the end ----

void
weir_conn_break (WeirConn *conn, int error)
{
  pthread_mutex_lock (&conn->lock);
  break_locked (conn, error);
  pthread_mutex_unlock (&conn->lock);
}

int
weir_conn_error (WeirConn *conn)
{
  int error;

  pthread_mutex_lock (&conn->lock);
  error = conn->error;
  pthread_mutex_unlock (&conn->lock);
  return error;
}

void
weir_conn_counters (WeirConn *conn, WeirConnCounters *counters)
{
  int unsent = 0;

  pthread_mutex_lock (&conn->lock);
  counters->packets = conn->packets;
  counters->bytes = conn->bytes;
  counters->waiting = n_waiting (conn);
  if (ioctl (conn->polled.fd, SIOCOUTQ, &unsent) < 0 || unsent < 0)
    unsent = 0;
  counters->unsent = (size_t) unsent;
  pthread_mutex_unlock (&conn->lock);
}

bool
weir_conn_sample (WeirConn *conn, WeirTcpSample *out)
{
  pthread_mutex_lock (&conn->lock);
  out->written = conn->bytes;
  pthread_mutex_unlock (&conn->lock);
  return weir_tcp_sample (conn->polled.fd, out);
}

static void
free_conn (WeirPolled *polled)
{
  WeirConn *conn = (WeirConn *) polled;

  while (conn->watchers)
    remove_watcher (conn, conn->watchers);
  drop (&conn->tail);
  drop (&conn->control);
  pthread_cond_destroy (&conn->called);
  pthread_mutex_destroy (&conn->lock);
  free (conn);
}

// ---- creating and freeing ----

static int
check_socket (int fd)
{
  struct sockaddr_storage peer;
  socklen_t len = sizeof peer, type_len = sizeof (int);
  int type;

  if (getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0)
    return errno;
  if (type != SOCK_STREAM)
    return ENOTSUP;
  return getpeername (fd, (struct sockaddr *) &peer, &len) < 0 ? errno : 0;
}

// Sets TCP options. They fail for other sockets, which do not need them.
static void
tune (int fd)
{
  int yes = 1, unsent = WEIR_CONN_UNSENT_MAX;

  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt (fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

WeirConn *
weir_conn_new (int fd, const WeirConnOps *ops)
{
  int error = check_socket (fd);
  WeirConn *conn;

  if (error) {
    errno = error;
    return NULL;
  }
  conn = calloc (1, sizeof *conn);
  if (!conn)
    return NULL;
  conn->polled = (WeirPolled) {
    .fd = fcntl (fd, F_DUPFD_CLOEXEC, 0),
    .writable = writable,
    .free = free_conn,
  };
  conn->ops = ops ? ops : &system_ops;
  atomic_init (&conn->refs, 1);
  pthread_mutex_init (&conn->lock, NULL);
  pthread_cond_init (&conn->called, NULL);
  error = conn->polled.fd < 0 ? -errno : weir_poller_add (&conn->polled);
  if (error) {
    if (conn->polled.fd >= 0)
      close (conn->polled.fd);
    free_conn (&conn->polled);
    errno = -error;
    return NULL;
  }
  tune (conn->polled.fd);
  return conn;
}

WeirConn *
weir_conn_ref (WeirConn *conn)
{
  atomic_fetch_add_explicit (&conn->refs, 1, memory_order_relaxed);
  return conn;
}

void
weir_conn_unref (WeirConn *conn)
{
  if (atomic_fetch_sub_explicit (&conn->refs, 1, memory_order_acq_rel) != 1)
    return;
  // The poller may be calling writable() now: it then finds nothing to do.
  pthread_mutex_lock (&conn->lock);
  conn->error = conn->error ? conn->error : ESHUTDOWN;
  conn->full = false;
  pthread_mutex_unlock (&conn->lock);
  weir_poller_retire (&conn->polled);
}
