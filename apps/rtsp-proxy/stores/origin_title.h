// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A title at one or two origins: what they say of it, and how its blocks are fetched. Call from any
// thread.

#include "store/remote.h"
#include "stores/origin_cache.h"
#include "stores/origin_http.h"

#define ORIGINS_MAX ORIGIN_RANGES_MAX
#define ORIGIN_BLOCK_BYTES (1u << 20)
#define ORIGIN_TITLE_BYTES_MAX (G_GUINT64_CONSTANT (1) << 40)

typedef struct {
  gchar *urls[ORIGINS_MAX]; // NULL: this origin does not have the title
  gchar *tags[ORIGINS_MAX]; // NULL: not known; with `lock`
  guint64 size;
  guint8 id[ORIGIN_ID_BYTES]; // another one if the bytes have changed
  gint64 duration_ns;         // -1: unknown; WEIR_INDEX_NO_TIME: nobody has looked
  OriginHttp *http;
  OriginCache *cache; // NULL: none
  guint timeout_ms;   // of a read
  GMutex lock;
} OriginTitle;

// Asks the origins at `bases`, which end with a slash, for the title `name`, for at most
// `timeout_ms`. Returns NULL and sets an error of the domain G_IO_ERROR if none has it; the
// references are taken in any case.
OriginTitle *origin_title_find (const gchar *const *bases, const gchar *name, OriginHttp *http,
    OriginCache *cache, guint timeout_ms, guint read_timeout_ms, GError **error);

// Makes the id of a title, from the size and the first tag, or takes that of `known`, which is the
// same title as it was found before; NULL: none. If `known` is another state of the title, forgets
// origins that still have that.
void origin_title_identify (OriginTitle *self, const gchar *name, const OriginTitle *known);

// Returns the average rate in bits a second, 0 if it is unknown; and the time of a block in ns at a
// rate.
guint64 origin_title_get_rate (const OriginTitle *self);
gint64 origin_title_get_slice (guint64 rate);

// Makes an index of the title.
void origin_title_fill_index (const OriginTitle *self, const gchar *name, WeirIndex *index);

OriginTitle *origin_title_copy (OriginTitle *self);
void origin_title_free (gpointer self);

// Functions whose `data` is an OriginTitle.
extern const WeirRemoteKind origin_title_kind;
