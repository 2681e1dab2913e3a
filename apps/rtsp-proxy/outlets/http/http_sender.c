// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_sender.h"

#include <errno.h>
#include <gio/gio.h>
#include <sys/sendfile.h>

#include "outlets/http/http_counts.h"
#include "outlets/http/http_pieces.h"
#include "run/clock.h"

#define CHUNKS 4 // of a time slice
#define CHUNK_MIN 4096
#define CHUNK_MAX (1024 * 1024)
#define PIECE_CHUNK (256 * 1024)
#define AT_ONCE (4 * 1024 * 1024) // bytes before other connections have their turn

static gsize
get_chunk (const StoreBytes *bytes)
{
  gdouble slice = (gdouble) bytes->rate / 8 * (gdouble) bytes->slice_ns / 1e9;

  // Rounded up, so that a slice is no more than so many chunks.
  return bytes->rate > 0 ? (gsize) CLAMP (slice / CHUNKS + 1, CHUNK_MIN, CHUNK_MAX) : CHUNK_MAX;
}

void
http_sender_init (HttpSender *self, StoreBytes *bytes, guint64 start, guint64 length,
    gboolean is_piece, StoreRegionDone ready, gpointer data)
{
  const WeirPaceSettings settings = {
    .mode = WEIR_PACE_BLOCK, .max_burst = 1, .bitrate = bytes->rate, .block_ns = bytes->slice_ns
  };

  *self = (HttpSender) { .bytes = store_bytes_ref (bytes),
    .at = start,
    .end = start + length,
    .chunk = is_piece ? PIECE_CHUNK : get_chunk (bytes),
    .is_piece = is_piece,
    .ready = ready,
    .data = data };
  weir_pacer_init (&self->pacer, &settings);
}

void
http_sender_clear (HttpSender *self)
{
  if (!self->bytes)
    return;
  store_region_free (self->region);
  store_region_free (self->next);
  weir_pacer_free (&self->pacer);
  store_bytes_unref (self->bytes);
  g_clear_error (&self->error);
  self->bytes = NULL;
}

// ---- regions ----

static gboolean
is_within (const StoreRegion *region, guint64 at)
{
  return region && at >= region->start && at < region->end;
}

// Makes `region` the one with the next byte, and asks for the one after it, which is needed a time
// slice later. The disks read for those who play before they read for pieces.
static void
move_on (HttpSender *self, gint64 now)
{
  store_region_free (self->region);
  self->region = g_steal_pointer (&self->next);
  if (!self->region)
    self->region = store_bytes_ask (self->bytes, self->at,
        self->is_piece ? now + self->bytes->slice_ns : now, self->ready, self->data);
  if (self->region->end < self->end)
    self->next = store_bytes_ask (
        self->bytes, self->region->end, now + self->bytes->slice_ns, self->ready, self->data);
}

// ---- pacing ----

static gint64
get_due_of_piece (HttpSender *self, gint64 now)
{
  if (self->chunk_left == 0) {
    self->chunk_left = MIN (self->chunk, self->end - self->at);
    self->due_ns = http_pieces_take_line (self->chunk_left, self->bytes->rate, now);
  }
  return self->due_ns;
}

// Returns when the next bytes may leave.
static gint64
get_due (HttpSender *self, gint64 now)
{
  WeirPacePacket packet = { .time_ns = WEIR_PACE_NO_TIME };

  if (self->is_piece)
    return get_due_of_piece (self, now);
  if (self->bytes->rate == 0 || self->begun)
    return now;
  if (weir_pacer_queued (&self->pacer) == 0) {
    packet.size = MIN (self->chunk, self->end - self->at);
    self->chunk_left = 0;
    if (weir_pacer_push (&self->pacer, &packet, now) < 0)
      return now; // without memory, the bytes leave unpaced
    self->chunk_left = packet.size;
  }
  return weir_pacer_due (&self->pacer, now);
}

// Counts bytes that have left.
static void
note_sent (HttpSender *self, gsize n, gint64 now)
{
  HttpStarved cause = self->was_full ? HTTP_STARVED_READER : HTTP_STARVED_STORE;
  guint64 starved;

  self->at += n;
  self->sent += n;
  if (self->is_piece) {
    self->chunk_left -= n;
    return;
  }
  if (self->bytes->rate == 0 || self->chunk_left == 0)
    return;
  if (self->begun)
    weir_pacer_go_on (&self->pacer, self->chunk_left, now);
  else
    weir_pacer_pop (&self->pacer, now);
  starved = self->pacer.counts.starvations - self->n_starved;
  self->starved[cause] += starved;
  self->n_starved += starved;
  http_counts_add_starved (cause, starved);
  self->deficit_ns = self->pacer.deficit_ns;
  self->was_full = FALSE;
  self->chunk_left -= n;
  self->begun = self->chunk_left > 0;
}

// ---- sending ----

static HttpSenderState
fail_sender (HttpSender *self, int problem)
{
  if (problem == EAGAIN)
    return HTTP_SENDER_SOCKET_FULL;
  // EIO is of the disk: the other errors of a socket mean that its peer has gone.
  if (problem != 0 && problem != EIO)
    return HTTP_SENDER_GONE;
  g_set_error_literal (&self->error, G_IO_ERROR, G_IO_ERROR_FAILED,
      problem == 0 ? "the file has become shorter" : g_strerror (problem));
  return HTTP_SENDER_FAILED;
}

// Sends up to the end of the chunk. Returns HTTP_SENDER_DONE if something has left.
static HttpSenderState
send_some (HttpSender *self, int socket, gint64 now)
{
  gsize length, most = self->chunk_left > 0 ? self->chunk_left : self->chunk;
  off_t offset;
  gssize n;
  int fd;

  store_region_get (self->region, self->at, &fd, &offset, &length);
  length = MIN (MIN (length, most), self->end - self->at);
  do
    n = sendfile (socket, fd, &offset, length);
  while (n < 0 && errno == EINTR);
  if (n <= 0)
    return fail_sender (self, n < 0 ? errno : 0);
  note_sent (self, (gsize) n, now);
  return HTTP_SENDER_DONE;
}

static HttpSenderState
send_next (HttpSender *self, int socket, gint64 now)
{
  HttpSenderState state;

  self->wake_ns = get_due (self, now);
  if (self->wake_ns > now)
    return HTTP_SENDER_AGAIN;
  if (!is_within (self->region, self->at))
    move_on (self, now);
  if (!store_region_is_ready (self->region, &self->error)) {
    self->wake_ns = WEIR_NEVER;
    return self->error ? HTTP_SENDER_FAILED : HTTP_SENDER_AGAIN;
  }
  state = send_some (self, socket, now);
  if (state == HTTP_SENDER_DONE) {
    self->full_since_ns = 0;
  } else if (state == HTTP_SENDER_SOCKET_FULL) {
    self->was_full = TRUE;
    if (self->full_since_ns == 0)
      self->full_since_ns = now;
  }
  return state;
}

HttpSenderState
http_sender_run (HttpSender *self, int socket, gint64 now_ns)
{
  HttpSenderState state = HTTP_SENDER_DONE;

  for (guint64 limit = self->sent + AT_ONCE;
      state == HTTP_SENDER_DONE && self->at < self->end && self->sent < limit;)
    state = send_next (self, socket, now_ns);
  if (state == HTTP_SENDER_DONE && self->at < self->end) {
    self->wake_ns = now_ns;
    return HTTP_SENDER_AGAIN;
  }
  return state;
}
