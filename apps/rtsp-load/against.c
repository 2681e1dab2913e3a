// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "against.h"

#include <string.h>

#define SETS 8192
#define WAYS 8
#define WAITING 262144

typedef struct {
  guint64 key;
  gint64 arrival_ns; // 0: empty
} Entry;

struct Against {
  Entry origin[SETS][WAYS]; // by key; a new entry replaces the oldest of its set
  Entry waiting[WAITING];   // readers' packets: a ring
  guint first, n;
};

Against *
against_new (void)
{
  return g_new0 (Against, 1);
}

void
against_free (Against *self)
{
  g_free (self);
}

static guint64
mix (guint64 hash, guint64 word)
{
  hash = (hash ^ word) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  return hash ^ hash >> 32;
}

guint64
against_key (guint32 timestamp, const guint8 *payload, gsize len)
{
  guint64 hash = mix (len, timestamp), word;

  for (; len >= sizeof word; len -= sizeof word, payload += sizeof word) {
    memcpy (&word, payload, sizeof word);
    hash = mix (hash, word);
  }
  word = 0;
  if (len)
    memcpy (&word, payload, len);
  return mix (hash, word);
}

void
against_add_origin (Against *self, guint64 key, gint64 arrival_ns)
{
  Entry *set = self->origin[key % SETS], *oldest = set;

  for (guint i = 1; i < WAYS; i++) {
    if (set[i].arrival_ns < oldest->arrival_ns)
      oldest = &set[i];
  }
  *oldest = (Entry) { key, arrival_ns };
}

gboolean
against_is_full (const Against *self)
{
  return self->n == WAITING;
}

void
against_add_reader (Against *self, guint64 key, gint64 arrival_ns)
{
  self->waiting[(self->first + self->n++) % WAITING] = (Entry) { key, arrival_ns };
}

static const Entry *
find_origin (const Against *self, guint64 key)
{
  const Entry *set = self->origin[key % SETS];

  for (guint i = 0; i < WAYS; i++) {
    if (set[i].key == key && set[i].arrival_ns)
      return &set[i];
  }
  return NULL;
}

guint64
against_match (Against *self, gint64 until_ns, WeirHistogram *delays)
{
  guint64 unmatched = 0;

  for (; self->n > 0; self->n--) {
    const Entry *packet = &self->waiting[self->first], *origin;

    if (packet->arrival_ns > until_ns)
      break;
    origin = find_origin (self, packet->key);
    if (origin)
      weir_histogram_add (delays, packet->arrival_ns - origin->arrival_ns);
    else
      unmatched++;
    self->first = (self->first + 1) % WAITING;
  }
  return unmatched;
}
