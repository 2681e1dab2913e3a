// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/origin_title.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/log.h"

#define GRACE_MS 300 // for which an origin may answer later than the other
#define TRIES 3      // of a read, if there is one origin only
#define PAUSE_US 300000
#define RATE_UNKNOWN 8000000 // bits a second

static OriginTitle *
title_new (OriginHttp *http, OriginCache *cache, guint timeout_ms)
{
  OriginTitle *self = g_new0 (OriginTitle, 1);

  self->http = origin_http_ref (http);
  self->cache = cache ? origin_cache_ref (cache) : NULL;
  self->timeout_ms = timeout_ms;
  self->duration_ns = WEIR_INDEX_NO_TIME;
  g_mutex_init (&self->lock);
  return self;
}

void
origin_title_free (gpointer data)
{
  OriginTitle *self = data;

  for (guint i = 0; i < ORIGINS_MAX; i++) {
    g_free (self->urls[i]);
    g_free (self->tags[i]);
  }
  origin_http_unref (self->http);
  g_clear_pointer (&self->cache, origin_cache_unref);
  g_mutex_clear (&self->lock);
  g_free (self);
}

OriginTitle *
origin_title_copy (OriginTitle *self)
{
  OriginTitle *copy = title_new (self->http, self->cache, self->timeout_ms);

  copy->size = self->size;
  copy->duration_ns = self->duration_ns;
  memcpy (copy->id, self->id, sizeof copy->id);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < ORIGINS_MAX; i++) {
    copy->urls[i] = g_strdup (self->urls[i]);
    copy->tags[i] = g_strdup (self->tags[i]);
  }
  g_mutex_unlock (&self->lock);
  return copy;
}

// ---- finding ----

static void
set_error (GError **error, const OriginRange *range)
{
  gint code = G_IO_ERROR_PROXY_FAILED;

  if (range->error == ENOENT)
    code = G_IO_ERROR_NOT_FOUND;
  else if (range->error == ETIMEDOUT)
    code = G_IO_ERROR_TIMED_OUT;
  g_set_error (error, G_IO_ERROR, code, "%s: %s", range->url, range->why);
}

// Takes what an origin says of the title. One that does not answer may have it all the same, and is
// asked again with the first block.
static void
take_answer (OriginTitle *self, guint i, const OriginRange *range)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 10000 };

  if (range->error == ENOENT) {
    g_clear_pointer (&self->urls[i], g_free);
  } else if (range->error) {
    log_event_limited (&limit, "%s: %s; the other origin is asked", range->url, range->why);
  } else if (self->size != 0 && range->total != self->size) {
    log_event_limited (&limit,
        "%s: this origin has %" G_GUINT64_FORMAT " bytes and the other one %" G_GUINT64_FORMAT
        ", so it is not asked for this title",
        range->url, range->total, self->size);
    g_clear_pointer (&self->urls[i], g_free);
  } else {
    self->size = range->total;
    self->tags[i] = g_strdup (range->found);
  }
}

OriginTitle *
origin_title_find (const gchar *const *bases, const gchar *name, OriginHttp *http,
    OriginCache *cache, guint timeout_ms, guint read_timeout_ms, GError **error)
{
  OriginTitle *self = title_new (http, cache, read_timeout_ms);
  g_autofree gchar *path = g_uri_escape_string (name, "/", FALSE);
  OriginRange ranges[ORIGINS_MAX] = { 0 };
  const OriginRange *good = NULL, *bad = NULL;
  guint8 bytes[ORIGINS_MAX];
  guint n = 0;

  for (; n < ORIGINS_MAX && bases[n]; n++) {
    self->urls[n] = g_strconcat (bases[n], path, NULL);
    ranges[n] = (OriginRange) { .url = self->urls[n], .length = 1, .bytes = &bytes[n] };
  }
  origin_http_get (http, ranges, n, timeout_ms, GRACE_MS);
  for (guint i = 0; i < n; i++) {
    if (!ranges[i].error)
      good = &ranges[i];
    else if (!bad || bad->error == ENOENT)
      bad = &ranges[i]; // that a file is not there counts only if no origin has it
  }
  if (!good)
    set_error (error, bad);
  for (guint i = 0; i < n && good; i++)
    take_answer (self, i, &ranges[i]);
  for (guint i = 0; i < n; i++) {
    g_free (ranges[i].why);
    g_free (ranges[i].found);
  }
  if (good && self->size <= ORIGIN_TITLE_BYTES_MAX)
    return self;
  if (good)
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_PROXY_FAILED, "%s: the title is larger than 1 TiB", name);
  origin_title_free (self);
  return NULL;
}

// ---- identity ----

void
origin_title_identify (OriginTitle *self, const gchar *name, const OriginTitle *known)
{
  guint n_same = 0, n_changed = 0;
  const gchar *tag = NULL;
  g_autofree gchar *text = NULL;
  XXH128_hash_t hash;

  for (guint i = 0; i < ORIGINS_MAX; i++) {
    const gchar *before = known ? known->tags[i] : NULL;

    if (!self->tags[i])
      continue;
    n_same += g_strcmp0 (before, self->tags[i]) == 0;
    n_changed += before && strcmp (before, self->tags[i]) != 0;
  }
  if (n_same > 0 && n_changed == 0 && known->size == self->size) {
    memcpy (self->id, known->id, sizeof self->id);
    self->duration_ns = known->duration_ns;
    for (guint i = 0; i < ORIGINS_MAX; i++) {
      if (!self->tags[i] && self->urls[i])
        self->tags[i] = g_strdup (known->tags[i]);
    }
    return;
  }
  for (guint i = 0; i < ORIGINS_MAX; i++) {
    if (n_changed > 0 && self->tags[i] && g_strcmp0 (known->tags[i], self->tags[i]) == 0)
      g_clear_pointer (&self->urls[i], g_free);
    if (!tag && self->urls[i])
      tag = self->tags[i];
  }
  text = g_strdup_printf ("%s\n%" G_GUINT64_FORMAT "\n%s", name, self->size, tag ? tag : "");
  hash = XXH3_128bits (text, strlen (text));
  memcpy (self->id, &hash, sizeof self->id);
}

guint64
origin_title_get_rate (const OriginTitle *self)
{
  if (self->duration_ns <= 0)
    return 0;
  return (guint64) MIN ((gdouble) self->size * 8e9 / (gdouble) self->duration_ns + 1, 1e12);
}

gint64
origin_title_get_slice (guint64 rate)
{
  return (gint64) CLAMP (ORIGIN_BLOCK_BYTES * 8e9 / (gdouble) MAX (rate, 1), 1e8, 6e10);
}

void
origin_title_fill_index (const OriginTitle *self, const gchar *name, WeirIndex *index)
{
  WeirIndexBlock block = { .time_ns = WEIR_INDEX_NO_TIME };
  const guint64 rate = origin_title_get_rate (self);

  for (guint i = 0; i < ORIGINS_MAX; i++) {
    if (self->urls[i])
      block.disks[block.n_copies++] = (guint16) (i + 1);
  }
  memset (index, 0, sizeof *index);
  memcpy (index->id, self->id, sizeof index->id);
  index->name = strdup (name);
  index->caps = strdup ("");
  index->bytes = self->size;
  index->duration_ns = self->duration_ns > 0 ? self->duration_ns : WEIR_INDEX_NO_TIME;
  index->rate = rate > 0 ? rate : RATE_UNKNOWN;
  index->slice_ns = origin_title_get_slice (index->rate);
  index->n_blocks = (guint32) ((self->size + ORIGIN_BLOCK_BYTES - 1) / ORIGIN_BLOCK_BYTES);
  index->blocks = calloc (index->n_blocks, sizeof block);
  for (guint32 i = 0; i < index->n_blocks; i++) {
    block.offset = (guint64) i * ORIGIN_BLOCK_BYTES;
    block.length = (guint32) MIN (ORIGIN_BLOCK_BYTES, self->size - block.offset);
    index->blocks[i] = block;
  }
}

// ---- reading ----

static gboolean
is_cached (gpointer data, guint32 number)
{
  OriginTitle *self = data;

  return self->cache && origin_cache_ask (self->cache, self->id, number);
}

// Reads once from an origin, and learns its tag.
static gint
fetch (OriginTitle *self, guint origin, guint64 offset, guint8 *bytes, gsize length, gchar **why)
{
  OriginRange range = {
    .url = self->urls[origin], .offset = offset, .length = length, .bytes = bytes
  };
  g_autofree gchar *tag = NULL;

  g_mutex_lock (&self->lock);
  tag = g_strdup (self->tags[origin]);
  g_mutex_unlock (&self->lock);
  range.tag = tag;
  origin_http_get (self->http, &range, 1, self->timeout_ms, 0);
  if (!range.error && range.total != self->size) {
    range.error = ESTALE;
    range.why = g_strdup ("the file was replaced by one of another size");
  }
  g_mutex_lock (&self->lock);
  if (!range.error && !self->tags[origin])
    self->tags[origin] = g_steal_pointer (&range.found);
  g_mutex_unlock (&self->lock);
  g_free (range.found);
  g_free (*why);
  *why = range.why;
  return range.error;
}

static gint
read_block (gpointer data, guint disk, guint32 number, guint64 offset, guint8 *bytes, gsize length,
    gchar **why)
{
  OriginTitle *self = data;
  guint tries = self->urls[0] && self->urls[1] ? 1 : TRIES;
  gint error;

  if (disk == WEIR_REMOTE_CACHE)
    return origin_cache_read (self->cache, self->id, number, bytes, length) ? 0 : EIO;
  error = fetch (self, disk - 1, offset, bytes, length, why);
  while (error == EIO && --tries > 0) {
    g_usleep (PAUSE_US);
    error = fetch (self, disk - 1, offset, bytes, length, why);
  }
  if (!error && self->cache)
    origin_cache_write (self->cache, self->id, number, bytes, length);
  return error;
}

const WeirRemoteKind origin_title_kind = { is_cached, read_block, origin_title_free };
