// SPDX-License-Identifier: LGPL-2.1-or-later
// One reader: its settings, and its counters.
#include <stdlib.h>
#include <string.h>

#include "fanout/fanout_private.h"

const char *
weir_reader_state_name (WeirReaderState state)
{
  static const char *const names[] = {
    [WEIR_READER_OK] = "ok",
    [WEIR_READER_NO_UPPER_LAYERS] = "no-upper-layers",
    [WEIR_READER_REFERENCES] = "references",
    [WEIR_READER_KEYFRAMES] = "keyframes",
    [WEIR_READER_CLOSED] = "closed",
  };

  return (unsigned) state <= WEIR_READER_CLOSED ? names[state] : "unknown";
}

// ---- readers ----

static WeirReader *
reader_new (void)
{
  WeirReader *reader = aligned_alloc (CACHE_LINE, sizeof *reader);

  if (!reader)
    return NULL;
  memset (reader, 0, sizeof *reader);
  atomic_init (&reader->refs, 1);
  atomic_init (&reader->times, 1);
  atomic_init (&reader->wanted_layers, ALL_LAYERS);
  atomic_init (&reader->current_layers, ALL_LAYERS);
  reader->steady = true;
  reader->steady_layers = ALL_LAYERS;
  reader->fd = -1;
  return reader;
}

WeirReader *
weir_reader_new_udp (void)
{
  return reader_new ();
}

WeirReader *
weir_reader_new_conn (WeirConn *conn, WeirFraming framing, uint8_t channel)
{
  WeirReader *reader = reader_new ();

  if (!reader)
    return NULL;
  reader->conn = weir_conn_ref (conn);
  reader->framing = framing;
  reader->channel = channel;
  return reader;
}

WeirReader *
weir_reader_ref (WeirReader *reader)
{
  atomic_fetch_add_explicit (&reader->refs, 1, memory_order_relaxed);
  return reader;
}

void
weir_reader_unref (WeirReader *reader)
{
  if (atomic_fetch_sub_explicit (&reader->refs, 1, memory_order_acq_rel) != 1)
    return;
  if (reader->conn)
    weir_conn_unref (reader->conn);
  weir_resends_free (reader->resends);
  if (reader->is_protected)
    reader->protect.release (reader->protect.data);
  if (reader->cloner)
    reader->cloner->release (reader->clone_route);
  free (reader);
}

void
weir_reader_set_route (WeirReader *reader, int fd, const WeirAddress *address)
{
  reader->fd = fd;
  reader->address = *address;
}

void
weir_reader_set_clone_route (WeirReader *reader, const WeirCloner *cloner, WeirCloneRoute *route)
{
  const WeirCloner *old_cloner;
  WeirCloneRoute *old;

  weir_reader_hold (reader);
  old_cloner = reader->cloner;
  old = reader->clone_route;
  reader->cloner = route ? cloner : NULL;
  reader->clone_route = route;
  reader->clones_again_ns = 0;
  reader_set_clones (reader, route ? WEIR_CLONES_UNKNOWN : WEIR_CLONES_UNFIT);
  reader_release (reader);
  if (old_cloner)
    old_cloner->release (old);
}

void
weir_reader_set_protect (WeirReader *reader, const WeirProtect *protect)
{
  reader->protect = *protect;
  reader->is_protected = true;
  if (protect->protect_again && !reader->conn)
    reader->resends = weir_resends_new ();
}

void
weir_reader_set_times (WeirReader *reader, unsigned times)
{
  atomic_store_explicit (&reader->times, times, memory_order_relaxed);
}

void
weir_reader_set_layers (WeirReader *reader, WeirLayerSet wanted)
{
  atomic_store_explicit (&reader->wanted_layers, pack_layers (wanted), memory_order_relaxed);
}

WeirLayerSet
weir_reader_get_layers (const WeirReader *reader)
{
  return unpack_layers (atomic_load_explicit (&reader->wanted_layers, memory_order_relaxed));
}

void
weir_reader_restrict (WeirReader *reader, WeirReaderState least)
{
  atomic_store_explicit (&reader->restricted, (int) least, memory_order_relaxed);
}

void
weir_reader_set_delay (WeirReader *reader, int64_t delay_ns)
{
  atomic_store_explicit (&reader->delay_ns, delay_ns, memory_order_relaxed);
}

// ---- counters ----

// Returns the reader's state. A stricter state that it adopts at the next frame counts already.
static WeirReaderState
reader_state (const WeirReader *reader)
{
  int state = atomic_load_explicit (&reader->state, memory_order_relaxed);
  int wanted = atomic_load_explicit (&reader->wanted, memory_order_relaxed);
  int restricted = atomic_load_explicit (&reader->restricted, memory_order_relaxed);

  wanted = wanted > restricted ? wanted : restricted;
  return (WeirReaderState) (wanted > state ? wanted : state);
}

int
weir_reader_take_error (WeirReader *reader)
{
  return atomic_exchange_explicit (&reader->error, 0, memory_order_relaxed);
}

bool
weir_reader_take_news (WeirReader *reader, WeirReaderNews *news)
{
  WeirReaderState state = reader_state (reader);

  *news = (WeirReaderNews) {
    .gso_error = atomic_exchange_explicit (&reader->gso_error, 0, memory_order_relaxed),
    .before = (WeirReaderState) atomic_exchange_explicit (
        &reader->told_state, (int) state, memory_order_relaxed),
    .state = state,
    .closed_by = state == WEIR_READER_CLOSED ? weir_conn_error (reader->conn) : 0,
  };
  return news->gso_error || news->before != news->state;
}

WeirReaderTime
weir_reader_time (const WeirFanout *fanout, const WeirReader *reader)
{
  const WeirWindow *window = &fanout->window;
  int64_t cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  int64_t at = cursor > window->tail ? cursor : window->tail;
  const WeirPacket *packet = weir_window_next_rtp (window, at);
  int64_t newest = packet ? at : weir_window_rtp_before (window, at);

  if (!packet && newest < at)
    packet = weir_window_at (window, newest);
  return packet ? (WeirReaderTime) { true, (uint32_t) packet->rtp_time } : (WeirReaderTime) { 0 };
}

void
weir_reader_counters (
    WeirFanout *fanout, WeirReader *reader, int64_t now_ns, WeirReaderCounters *counters)
{
  const WeirWindow *window = &fanout->window;
  int64_t cursor, paused_ns;
  WeirReaderTime time;

  pthread_mutex_lock (&fanout->lock);
  paused_ns = reader_paused (reader);
  time = atomic_load (&reader->removed) ? reader->left : weir_reader_time (fanout, reader);
  cursor = atomic_load_explicit (&reader->cursor, memory_order_relaxed);
  *counters = (WeirReaderCounters) {
    .due = get_count (&reader->due),
    .packets = get_count (&reader->packets),
    .bytes = get_count (&reader->bytes),
    .state = reader_state (reader),
    .restricted =
        (WeirReaderState) atomic_load_explicit (&reader->restricted, memory_order_relaxed),
    .priority = atomic_load (&reader->shard) ? atomic_load (&reader->shard)->priority : 0,
    .catching_up = reader_joining (reader),
    .rtp_time_known = time.known,
    .rtp_time = time.rtp_time,
    .delay_ns = reader_delay (reader) + (paused_ns ? now_ns - paused_ns : 0),
    .paused = paused_ns != 0,
    .clones = (WeirClones) atomic_load_explicit (&reader->clones, memory_order_relaxed),
    .moved = atomic_load_explicit (&reader->moved, memory_order_relaxed),
    .resent = get_count (&reader->resent),
    .resend_refused = get_count (&reader->resend_refused),
    .probed = get_count (&reader->probed),
    .wanted_layers =
        unpack_layers (atomic_load_explicit (&reader->wanted_layers, memory_order_relaxed)),
    .current_layers =
        unpack_layers (atomic_load_explicit (&reader->current_layers, memory_order_relaxed)),
  };
  for (size_t i = 0; i < WEIR_N_DROPS; i++)
    counters->dropped[i] = get_count (&reader->dropped[i]);
  counters->lag_packets = weir_reader_lag (fanout, reader, now_ns);
  if (counters->lag_packets > 0) {
    int64_t at = cursor < window->tail ? window->tail : cursor;

    counters->lag_ns = now_ns - counters->delay_ns - weir_window_at (window, at)->arrival_ns;
  }
  pthread_mutex_unlock (&fanout->lock);
}
