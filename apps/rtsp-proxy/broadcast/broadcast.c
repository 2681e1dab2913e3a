// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/broadcast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "broadcast/broadcast_private.h"
#include "broadcast/broadcast_sdp.h"
#include "broadcast/packet_ranges.h"

#define PACKETIZERS 2 // titles that are packetized at a time
#define READERS 2     // threads for broadcast_read()
#define LOOKERS 2     // threads for broadcast_look()
#define READS_MAX 256 // requests that wait
#define TIDY_NS ((gint64) GST_SECOND)
#define EXTRA_S 30 // a description is valid until the title has been played, and so much longer

// ---- references ----

static Broadcast *
hold (Broadcast *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
free_title (gpointer data)
{
  broadcast_title_free (data);
}

static void
release (Broadcast *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  // This may be a thread of a pool, so it cannot wait for that. No job is left.
  g_thread_pool_free (self->packetizers, FALSE, FALSE);
  g_thread_pool_free (self->readers, FALSE, FALSE);
  g_thread_pool_free (self->lookers, FALSE, FALSE);
  g_hash_table_unref (self->titles);
  weir_group_pool_free (&self->pool);
  block_cache_unref (self->cache);
  store_unref (self->store);
  g_mutex_clear (&self->lock);
  g_free (self->config.iface);
  g_free (self->mount_path);
  g_free (self->run);
  g_free (self);
}

Broadcast *
broadcast_ref (Broadcast *self)
{
  g_atomic_ref_count_inc (&self->users);
  return self;
}

static void
stop_titles (Broadcast *self)
{
  GHashTableIter iter;
  gpointer title;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, NULL, &title)) {
    broadcast_title_stop (title, clock_now ());
    if (((BroadcastTitle *) title)->file)
      block_cache_forget (self->cache, ((BroadcastTitle *) title)->file);
  }
  g_mutex_unlock (&self->lock);
}

void
broadcast_unref (Broadcast *self)
{
  if (!g_atomic_ref_count_dec (&self->users))
    return;
  g_atomic_int_set (&self->stopped, TRUE);
  sender_free (self->sender);
  stop_titles (self);
  release (self);
}

// ---- groups ----

// `group` is less than the configured number of groups.
static void
fill_address (gpointer owner, guint group, MulticastAddress *address)
{
  const Broadcast *self = owner;
  guint32 number;

  memcpy (&number, self->first_group, 4);
  number = GUINT32_FROM_BE (number) + group;
  number = GUINT32_TO_BE (number);
  inet_ntop (AF_INET, &number, address->group, sizeof address->group);
  address->label = self->mount_path;
  address->port = self->config.port;
  address->ttl = self->config.ttl;
  address->iface = self->config.iface;
}

// ---- jobs ----

// Work that may wait for a disk.
typedef struct {
  void (*run) (Broadcast *self, gpointer data);
  gpointer data;
} Job;

static void
do_job (gpointer data, gpointer owner)
{
  Job *job = data;

  thread_set_name ("broadcast-job");
  job->run (owner, job->data);
  g_free (job);
  thread_set_name (THREAD_IDLE);
  release (owner);
}

void
broadcast_push_job (
    Broadcast *self, GThreadPool *pool, void (*run) (Broadcast *, gpointer), gpointer data)
{
  Job *job = g_new (Job, 1);

  *job = (Job) { run, data };
  hold (self);
  g_thread_pool_push (pool, job, NULL);
}

// ---- what is sent; in the sender's threads ----

typedef struct {
  SenderRound *round;
  PacketFile *file;
} Due;

static void
on_due (void *data, const WeirChannel *channel, uint32_t from, uint32_t to, int64_t at_ns)
{
  const Due *due = data;

  if (channel->type == WEIR_CHANNEL_MULTICAST)
    sender_add (due->round, channel->number, due->file, from, to, at_ns);
}

// Deletes the packet file of a title, which may take some time.
static void
bury (Broadcast *self, gpointer data)
{
  BroadcastTitle *title = data;

  if (title->file)
    block_cache_forget (self->cache, title->file);
  broadcast_title_free (title);
}

// Takes the titles that nobody needs out of the table. Call with the lock.
static GSList *
tidy (Broadcast *self, gint64 now_ns)
{
  GSList *unneeded = NULL;
  GHashTableIter iter;
  gpointer title;

  if (now_ns < self->tidy_ns)
    return NULL;
  self->tidy_ns = now_ns + TIDY_NS;
  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, NULL, &title)) {
    if (broadcast_title_tidy (title, now_ns)) {
      g_hash_table_iter_steal (&iter);
      unneeded = g_slist_prepend (unneeded, title);
    }
  }
  return unneeded;
}

// Returns when the next frame of any title is due. Call with the lock.
static gint64
add_due (Broadcast *self, gint64 from_ns, gint64 to_ns, gboolean ahead, SenderRound *round)
{
  gint64 next = g_hash_table_size (self->titles) > 0 ? self->tidy_ns : G_MAXINT64;
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    BroadcastTitle *title = value;
    Due due = { round, title->file };

    if (!title->is_sent)
      continue;
    if (title->next_ns < to_ns)
      weir_transmission_due (&title->scheme.transmission, from_ns, to_ns, 0, on_due, &due);
    if (!ahead && title->next_ns < to_ns)
      title->next_ns = weir_transmission_next (&title->scheme.transmission, to_ns);
    next = MIN (next, title->next_ns);
  }
  return next;
}

static gint64
on_round (gpointer owner, gint64 from_ns, gint64 to_ns, gboolean ahead, SenderRound *round)
{
  Broadcast *self = owner;
  GSList *unneeded = NULL;
  gint64 next;

  g_mutex_lock (&self->lock);
  if (!ahead)
    unneeded = tidy (self, to_ns);
  next = add_due (self, from_ns, to_ns, ahead, round);
  if (!ahead)
    self->due_ns = to_ns;
  g_mutex_unlock (&self->lock);
  for (GSList *each = unneeded; each; each = each->next)
    broadcast_push_job (self, self->readers, bury, each->data);
  g_slist_free (unneeded);
  return next;
}

static const SenderOwner sender_owner = { on_round, fill_address };

// ---- clients ----

static guint32
frames_in (const PacketFile *file, guint64 ns)
{
  return (guint32) CLAMP (
      (ns + (guint64) file->frame_ns / 2) / (guint64) file->frame_ns, 1, G_MAXUINT32 - 1);
}

// Starts to send a title, apart from the others. Call with the lock.
static gint
start (Broadcast *self, BroadcastTitle *title, gint64 now_ns, gchar *why)
{
  const BroadcastConfig *config = &self->config;
  const WeirSchemeConfig of_title = { .kind = config->scheme,
    .first = frames_in (title->file, config->first_ns),
    .threshold = config->threshold_ns == 0
                     ? 0
                     : MIN (frames_in (title->file, config->threshold_ns), title->file->n_frames),
    .rate = title->file->rate };
  g_autoptr (GArray) pulses = g_array_new (FALSE, FALSE, sizeof (WeirPulse));
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    if (((BroadcastTitle *) value)->has_pulse)
      g_array_append_val (pulses, ((BroadcastTitle *) value)->pulse);
  }
  return broadcast_title_start (title, &of_title, (const WeirPulse *) (const void *) pulses->data,
      pulses->len, &self->pool, now_ns, why);
}

// Call with the lock.
static void
refuse (Broadcast *self, gint failed, const gchar *why, GError **error)
{
  const gboolean is_full = failed == -EBUSY || failed == -EDQUOT;

  if (failed == -EBUSY)
    self->stats.refused_groups++;
  else if (failed == -EDQUOT)
    self->stats.refused_rate++;
  else
    self->stats.refused_other++;
  g_set_error_literal (
      error, G_IO_ERROR, is_full ? G_IO_ERROR_NO_SPACE : G_IO_ERROR_NOT_SUPPORTED, why);
}

// Returns a number that changes when something else is to be sent on groups.
static guint64
hash_works (const BroadcastTitle *title)
{
  const WeirTransmission *transmission = &title->scheme.transmission;
  guint64 hash = 0;

  for (gsize i = 0; title->is_sent && i < transmission->n_channels; i++) {
    const WeirChannel *channel = &transmission->channels[i];

    for (gsize k = 0; channel->type == WEIR_CHANNEL_MULTICAST && k < channel->n_works; k++)
      hash = hash * 31 + (guint64) channel->works[k].start_ns + channel->works[k].repeat + 1;
  }
  return hash;
}

// Admits a client to a title that is packetized. Call with the lock.
static BroadcastAnswer
admit (Broadcast *self, BroadcastTitle *title, const gchar *source, gchar **sdp, guint *valid_s,
    GError **error)
{
  // Frames before `due_ns` will not be sent any more.
  const gint64 now = MAX (clock_now (), self->due_ns);
  WeirScheme *scheme = &title->scheme;
  gchar why[WEIR_SCHEME_WHY];
  WeirReception reception;
  BroadcastSdp from = { .file = title->file,
    .base = title->sdp,
    .transmission = &scheme->transmission,
    .reception = &reception,
    .source = source,
    .now_ns = now,
    .real_s = g_get_real_time () / G_USEC_PER_SEC,
    .address = fill_address,
    .owner = self };
  const guint64 works = hash_works (title);
  gint failed = start (self, title, now, why);

  if (failed == 0)
    failed = broadcast_title_admit (title, now, &reception, why);
  if (failed < 0) {
    refuse (self, failed, why, error);
    return BROADCAST_FAILED;
  }
  self->wakes |= hash_works (title) != works;
  from.scheme = weir_scheme_name (self->config.scheme == WEIR_SCHEME_AUTO && scheme->broadcasting
                                      ? WEIR_SCHEME_GDB
                                      : self->config.scheme);
  from.valid_s = EXTRA_S + (guint) ((title->needed_ns - now) / (gint64) GST_SECOND);
  *valid_s = from.valid_s;
  *sdp = broadcast_sdp_make (&from, error);
  self->stats.admitted += *sdp != NULL;
  self->stats.refused_other += *sdp == NULL;
  return *sdp ? BROADCAST_READY : BROADCAST_FAILED;
}

// Call with the lock.
static BroadcastAnswer
answer (Broadcast *self, const gchar *name, const gchar *source, gchar **sdp, gchar **etag,
    guint *valid_s, guint *retry_s, GError **error)
{
  BroadcastTitle *title = broadcast_find_title (self, name);
  BroadcastAnswer answer = BROADCAST_FAILED;

  if (!title)
    title = broadcast_add_title (self, name, error);
  if (!title)
    return BROADCAST_FAILED;
  if (title->state == TITLE_READY) {
    answer = admit (self, title, source, sdp, valid_s, error);
    *etag = answer == BROADCAST_READY ? g_strdup (title->file->id) : NULL;
  } else if (title->state == TITLE_FAILED) {
    self->stats.refused_other++;
    g_propagate_error (error, g_error_copy (title->error));
  } else {
    self->stats.refused_preparing++;
    *retry_s = broadcast_title_estimate (title, clock_now ());
    answer = BROADCAST_PREPARING;
  }
  return answer;
}

BroadcastAnswer
broadcast_describe (Broadcast *self, const gchar *name, const gchar *source_address, gchar **sdp,
    gchar **etag, guint *valid_s, guint *retry_s, GError **error)
{
  BroadcastAnswer given;
  gboolean wakes;

  g_mutex_lock (&self->lock);
  given = answer (self, name, source_address, sdp, etag, valid_s, retry_s, error);
  wakes = self->wakes;
  self->wakes = FALSE;
  g_mutex_unlock (&self->lock);
  if (wakes)
    sender_wake (self->sender);
  return given;
}

// ---- single packets ----

typedef struct {
  PacketFile *file;
  PacketRange ranges[PACKET_RANGES_MAX];
  guint n_ranges;
  BroadcastPacketsFunc done;
  gpointer data;
} Reading;

static void
read_packets (Broadcast *self, gpointer data)
{
  Reading *reading = data;
  g_autoptr (GError) error = NULL;
  guint n_packets;
  g_autoptr (GBytes) body = packet_ranges_read (self->cache, reading->file, reading->ranges,
      reading->n_ranges, BROADCAST_PACKETS_MAX, BROADCAST_BODY_MAX, &n_packets, &error);

  if (body) {
    g_mutex_lock (&self->lock);
    self->stats.unicast_packets += n_packets;
    self->stats.unicast_bytes += g_bytes_get_size (body);
    g_mutex_unlock (&self->lock);
  }
  reading->done (body, reading->file->id, error, reading->data);
  packet_file_unref (reading->file);
  g_free (reading);
}

static PacketFile *
find_file (Broadcast *self, const gchar *name)
{
  BroadcastTitle *title;
  PacketFile *file = NULL;

  g_mutex_lock (&self->lock);
  title = broadcast_find_title (self, name);
  if (title && title->file) {
    title->needed_ns = MAX (title->needed_ns, clock_now ());
    file = packet_file_ref (title->file);
  }
  g_mutex_unlock (&self->lock);
  return file;
}

void
broadcast_read (Broadcast *self, const gchar *name, const gchar *ranges, gsize length,
    BroadcastPacketsFunc done, gpointer data)
{
  PacketFile *file = find_file (self, name);
  Reading *reading = g_new0 (Reading, 1);
  GError *error = NULL;

  if (!file)
    g_set_error (&error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "%s is not packetized; ask for its description first", name);
  else if (g_thread_pool_unprocessed (self->readers) >= READS_MAX)
    g_set_error (&error, G_IO_ERROR, G_IO_ERROR_BUSY, "%u requests for packets wait", READS_MAX);
  else
    reading->n_ranges = packet_ranges_parse (file, ranges, length, reading->ranges, &error);
  if (!error) {
    reading->file = file;
    reading->done = done;
    reading->data = data;
    broadcast_push_job (self, self->readers, read_packets, reading);
    return;
  }
  done (NULL, NULL, error, data);
  g_error_free (error);
  g_clear_pointer (&file, packet_file_unref);
  g_free (reading);
}

// ---- statistics ----

const gchar *
broadcast_get_run (Broadcast *self)
{
  return self->run;
}

void
broadcast_get_stats (Broadcast *self, BroadcastStats *stats)
{
  BlockCacheStats cache;
  SenderStats sender;

  sender_get_stats (self->sender, &sender);
  block_cache_get_stats (self->cache, &cache);
  g_mutex_lock (&self->lock);
  *stats = self->stats;
  stats->titles = broadcast_count_titles (self, TITLE_READY, TITLE_READY);
  stats->preparing = broadcast_count_titles (self, TITLE_WAITS, TITLE_PACKETIZES);
  stats->rate = weir_group_pool_rate (&self->pool, clock_now ());
  g_mutex_unlock (&self->lock);
  stats->channels = sender.channels;
  stats->packets_sent = sender.packets;
  stats->bytes_sent = sender.bytes;
  stats->frames_sent = sender.frames;
  stats->frames_late = sender.frames_late;
  stats->frames_missed = sender.frames_missed;
  stats->cache_asked = cache.asked;
  stats->cache_hits = cache.hits;
  stats->cache_bytes_read = cache.bytes_read;
}

// ---- construction ----

Broadcast *
broadcast_new (const gchar *mount_path, const BroadcastConfig *config, Store *store)
{
  Broadcast *self = g_new0 (Broadcast, 1);

  g_atomic_ref_count_init (&self->users);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->mount_path = g_strdup (mount_path);
  self->run = g_uuid_string_random ();
  self->config = *config;
  self->config.iface = g_strdup (config->iface);
  inet_pton (AF_INET, config->groups, self->first_group);
  self->store = store_ref (store);
  self->titles = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, free_title);
  weir_group_pool_init (&self->pool, config->n_groups);
  self->pool.rate_limit = config->rate;
  self->packetizers = g_thread_pool_new (do_job, self, PACKETIZERS, FALSE, NULL);
  self->readers = g_thread_pool_new (do_job, self, READERS, FALSE, NULL);
  self->lookers = g_thread_pool_new (do_job, self, LOOKERS, FALSE, NULL);
  self->cache = block_cache_new (config->cache_bytes, WEIR_POLICY_LFU);
  self->sender = sender_new (self->cache, &sender_owner, self);
  return self;
}
