// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "system/needs.h"

#include "ingest/udp.h"
#include "net/send.h"
#include "outlets/rtsp/kernel_path.h"
#include "outlets/rtsp/rtsp_outlet.h"
#include "sources/engine_tracks.h"
#include "sources/isolated_pull.h"

#include "store/blockstore.h"

#include <string.h>

#define TRACKS 2    // of a mount: video and sound
#define PACKET 1200 // bytes of payload
#define SOUND_PACKETS_PER_S 50
#define READERS_LEAST 100
#define WINDOW_S 10 // default of fanoutsink's window-time, in seconds
#define WINDOW_BYTES (8 << 20)
#define WINDOW_MAP (4 << 20) // bytes of a window's file in one mapping
#define MAPS 512             // of the process, without threads and mounts
#define MAPS_OF_MOUNT 8
#define MAPS_OF_THREAD 2 // its stack, and the guard
#define REPORT_BYTES 768 // memory of the kernel for an RTCP report
#define REPORT_INTERVAL_S 5

// What each thing takes, as measured with the clip of tests/data; tests/app/system.py compares the
// sums with a running proxy.
typedef struct {
  guint64 files, threads, memory;
} Cost;

static const Cost process = { 64, 32, 32 << 20 };
static const Cost processor = { 4, 3, 1 << 20 };
static const Cost served_mount = { 3, 0, 128 << 10 };
static const Cost served_track = { 4, 0, 128 << 10 };
static const Cost light_upstream = { 1, 0, 64 << 10 };
static const Cost light_track = { 2, 0, 64 << 10 };
static const Cost rtspsrc_upstream = { 4, 4, 1 << 20 };
static const Cost rtspsrc_track = { 11, 6, 1 << 20 };
static const Cost other_upstream = { 8, 6, 2 << 20 };
static const Cost isolated_upstream = { 2, 8, 8 << 20 }; // with its worker process
static const Cost stage = { 4, 8, 64 << 20 }; // a decoder or encoder has threads for the processors
static const Cost reader = { 1, 0, 32 << 10 };
static const Cost tls_reader = { 3, 0, 64 << 10 }; // the same reader, if it comes over TLS

static void
add (SystemNeeds *self, const Cost *cost, guint64 n)
{
  self->files += cost->files * n;
  self->threads += cost->threads * n;
  self->memory += cost->memory * n;
}

// ---- the expectation ----

gboolean
expectation_parse (const gchar *text, Expectation *expectation)
{
  static const gchar units[] = "kMG";
  Expectation read = { 0, EXPECT_DEFAULT };
  gchar *end = NULL;
  const gchar *unit;

  if (!g_ascii_isdigit (*text))
    return FALSE;
  read.rate = g_ascii_strtoull (text, &end, 10);
  unit = *end ? strchr (units, *end) : NULL;
  for (glong n = unit ? unit - units + 1 : 0; n > 0 && read.rate < G_GUINT64_CONSTANT (1) << 40;
      n--)
    read.rate *= 1000;
  if (unit)
    end++;
  if (*end == ',' && !g_ascii_string_to_unsigned (end + 1, 10, 0, 1000000, &read.readers, NULL))
    return FALSE;
  if ((*end && *end != ',') || read.rate < 1000 || read.rate > G_GUINT64_CONSTANT (10000000000))
    return FALSE;
  *expectation = read;
  return TRUE;
}

// ---- upstreams ----

static gboolean
has_scheme (const PullConfig *pull, const gchar *scheme)
{
  return g_str_has_prefix (pull->uri, scheme);
}

// Adds a receiving UDP port for media and one for RTCP, of each of `tracks`.
static void
add_udp (SystemNeeds *self, guint64 tracks, guint64 buffer)
{
  guint64 second =
      weir_udp_buffer_for (self->rate / 8, self->rate / 8 / PACKET) + tracks * REPORT_BYTES;

  self->ports += 2 * tracks;
  self->flows += 2 * tracks;
  self->udp_bytes += second;
  self->receive_buffer = MAX (self->receive_buffer, buffer);
}

// Returns the largest receive buffer that the engine sets for a track. The kernel doubles it.
static guint64
engine_buffer (const SystemNeeds *self)
{
  return MAX (ENGINE_TRACK_BUFFER, weir_udp_buffer_for (self->rate / 8, self->rate / 8 / PACKET))
         / 2;
}

static void
add_rtsp (SystemNeeds *self, const PullConfig *pull)
{
  gboolean light = pull_config_is_light (pull);

  add (self, light ? &light_upstream : &rtspsrc_upstream, 1);
  add (self, light ? &light_track : &rtspsrc_track, TRACKS);
  self->ports++;
  self->flows++;
  if (pull->transport != PULL_TCP)
    add_udp (self, TRACKS, light ? engine_buffer (self) : UDP_INPUT_BUFFER);
}

static void
add_upstream (SystemNeeds *self, const PullConfig *pull, Isolate isolate)
{
  guint64 tracks = has_scheme (pull, "sdp:") ? TRACKS : 1;
  gboolean isolated = isolated_pull_covers (isolate, pull);

  if (isolated)
    add (self, &isolated_upstream, 1);
  if (has_scheme (pull, "rtsp")) {
    add_rtsp (self, pull);
  } else if (pull_config_is_light (pull)) {
    add (self, &light_track, tracks);
    add_udp (self, tracks, engine_buffer (self));
  } else {
    if (!isolated)
      add (self, &other_upstream, 1);
    if (has_scheme (pull, "udp:") || has_scheme (pull, "rtp:"))
      add_udp (self, tracks, UDP_INPUT_BUFFER);
  }
  if (!has_scheme (pull, "file:") && !has_scheme (pull, "launch:"))
    self->packets_per_s += self->rate / 8 / PACKET + SOUND_PACKETS_PER_S;
}

// Adds the host of an RTSP upstream, unless it is in `hosts` already.
static void
add_host (SystemNeeds *self, GHashTable *hosts, const PullConfig *pull)
{
  gchar *host = NULL;

  if (!has_scheme (pull, "rtsp"))
    return;
  if (g_uri_split (pull->uri, G_URI_FLAGS_NONE, NULL, NULL, &host, NULL, NULL, NULL, NULL, NULL)
      && host && g_hash_table_add (hosts, host))
    self->hosts++;
}

// ---- mounts ----

static void
free_folder (gpointer data)
{
  FolderNeed *folder = data;

  g_ptr_array_unref (folder->counted);
  g_free (folder->path);
  g_free (folder);
}

static FolderNeed *
add_folder (SystemNeeds *self, const gchar *folder, guint64 bytes)
{
  g_autofree gchar *path = g_canonicalize_filename (folder, NULL);
  FolderNeed *found = NULL;

  for (guint i = 0; i < self->folders->len && !found; i++) {
    found = g_ptr_array_index (self->folders, i);
    if (!g_str_equal (found->path, path))
      found = NULL;
  }
  if (!found) {
    found = g_new0 (FolderNeed, 1);
    found->path = g_strdup (path);
    found->counted = g_ptr_array_new_with_free_func (g_free);
    g_ptr_array_add (self->folders, found);
  }
  found->bytes += bytes;
  return found;
}

static void
add_recordings (SystemNeeds *self, const MountConfig *mount)
{
  guint64 most = mount->record.limit.bytes ? mount->record.limit.bytes : G_MAXUINT64;
  guint64 kept = mount->record.keep_s ? self->rate / 8 * mount->record.keep_s : G_MAXUINT64;
  gboolean endless = !mount->record.limit.bytes && !mount->record.keep_s;
  FolderNeed *folder = add_folder (self, mount->record.folder, endless ? 0 : MIN (kept, most));

  folder->endless |= endless;
  g_ptr_array_add (folder->counted, g_build_filename (folder->path, mount->path, NULL));
}

// The proxy repairs and balances stores.
static void
add_store (SystemNeeds *self, const gchar *path)
{
  WeirBlockStore *store = weir_block_store_open (path, NULL);
  g_autofree WeirStoreDisk *disks = store ? g_new (WeirStoreDisk, WEIR_STORE_DISKS_MAX) : NULL;
  guint n = store ? weir_block_store_get_disks (store, disks, WEIR_STORE_DISKS_MAX) : 0;

  add_folder (self, path, 0);
  for (guint i = 0; i < n; i++)
    add_folder (self, disks[i].path, 0);
  g_clear_pointer (&store, weir_block_store_unref);
}

// The window of a mount: almost all of its bytes are video.
static void
add_window (SystemNeeds *self, const MountConfig *mount)
{
  guint64 s = mount->cache.time_ms > 0 ? mount->cache.time_ms / 1000 + 1 : WINDOW_S;
  guint64 most = mount->cache.time_ms > 0 ? mount->cache.size.bytes : WINDOW_BYTES;
  guint64 bytes = MIN (self->rate / 8 * s, most);

  if (!mount->cache.spill.path) {
    self->memory += bytes;
    return;
  }
  add_folder (self, mount->cache.spill.path, bytes);
  self->maps += bytes / WINDOW_MAP + TRACKS;
  self->files += TRACKS;
}

// Adds `n` things that readers share: presentations, or open titles.
static void
add_served (SystemNeeds *self, const MountConfig *mount, guint64 n)
{
  add (self, &served_mount, n);
  add (self, &served_track, TRACKS * n);
  self->ports += 2 * TRACKS * n;
  self->tracks += TRACKS * n;
}

static void
add_titles (SystemNeeds *self, const MountConfig *mount)
{
  guint64 titles = MIN (mount->max_titles, MAX (self->readers / self->mounts, 1));

  add_served (self, mount, titles);
  add (self, &other_upstream, titles);
  if (mount->cache.spill.path)
    add_folder (self, mount->cache.spill.path, mount->cache.size.bytes);
  if (mount->swarm.folder)
    add_folder (self, mount->swarm.folder, 0);
  if (WITH_STORE && mount_config_get_titles (mount) == PULL_TITLES_BLOCK_STORE)
    add_store (self, mount_config_get_folder (mount));
}

static void
add_mount (SystemNeeds *self, GHashTable *hosts, const MountConfig *mount, Isolate isolate)
{
  if (mount_config_get_titles (mount)) {
    add_titles (self, mount);
    return;
  }
  if (mount->record.folder)
    add_recordings (self, mount);
  add_served (self, mount, 1);
  add_window (self, mount);
  // Of several upstreams one is read, and at times the next one is connected.
  for (guint i = 0; i < MIN (mount->pulls->len, 2); i++)
    add_upstream (self, g_ptr_array_index (mount->pulls, i), isolate);
  if (mount->source_chain)
    add (self, &stage, mount->source_chain->len * MIN (mount->pulls->len, 2));
  for (guint i = 0; i < mount->pulls->len; i++)
    add_host (self, hosts, g_ptr_array_index (mount->pulls, i));
  add (self, &stage, MAX (mount->stages->len, 1) - 1);
}

SystemNeeds *
system_needs_new (const ProxyConfig *config, const Expectation *expectation)
{
  g_autoptr (GHashTable) hosts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  SystemNeeds *self = g_new0 (SystemNeeds, 1);

  self->mounts = config->mounts->len;
  self->rate = expectation->rate;
  self->readers = expectation->readers == EXPECT_DEFAULT ? MAX (2 * self->mounts, READERS_LEAST)
                                                         : expectation->readers;
  self->folders = g_ptr_array_new_with_free_func (free_folder);
  self->send_buffer = WEIR_SEND_BUFFER;
  self->backlog = RTSP_BACKLOG;
  self->clones = config->kernel != KERNEL_PATH_OFF;
  add (self, &process, 1);
  add (self, &processor, g_get_num_processors ());
  for (guint i = 0; i < config->mounts->len; i++)
    add_mount (self, hosts, g_ptr_array_index (config->mounts, i), config->isolate);
  add (self, &reader, self->readers);
  if (config->tls.pair)
    add (self, &tls_reader, self->readers);
  self->maps += MAPS + MAPS_OF_MOUNT * self->mounts + MAPS_OF_THREAD * self->threads;
  // A connection, and the ports of media and RTCP of each track.
  self->flows += self->readers * (1 + 2 * TRACKS);
  self->hosts += self->readers;
  // All readers may read one mount.
  self->default_buffer = self->readers * REPORT_BYTES / REPORT_INTERVAL_S;
  return self;
}

void
system_needs_free (SystemNeeds *self)
{
  g_ptr_array_unref (self->folders);
  g_free (self);
}
