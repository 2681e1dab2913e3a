// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A file that takes buffers for which memory is too small. It is mapped in pieces, each of which is
// used again when nobody has any of its bytes any more: a ring, as the oldest go first, and one
// that never writes over what a reader still has. The file has no name: it goes with the last
// piece, and nobody can remove or cut it meanwhile.
//
// Who stores may wait for the disk: for room in the file, and where the system has more to write
// out than it wants to have.
//
// Which pieces stay in memory as well can be left to the system, or follow a rule, by what readers
// ask for.

#include <gst/gst.h>

#include "core/window/policy.h"

G_BEGIN_DECLS

typedef struct _CacheSpill CacheSpill;

// NULL, and errno, if there can't be such a file. Who makes it writes it, and closes it.
CacheSpill *cache_spill_new (const gchar *dir, guint64 max_bytes);
void cache_spill_close (CacheSpill *spill);
CacheSpill *cache_spill_ref (CacheSpill *spill);
void cache_spill_unref (CacheSpill *spill);

// Before anything is written.
void cache_spill_set_rule (CacheSpill *spill, WeirPolicyRule rule, guint64 bytes_in_memory);

// Where a buffer or list lies in the file. What has no metas leaves nothing of it in memory, and is
// made anew when it is loaded; else there is a copy with its bytes in the file.
typedef struct _CachePiece CachePiece;
typedef struct {
  CachePiece *piece;   // a reference, or NULL
  guint32 offset;      // in it
  GstMiniObject *copy; // or this one
  guint64 number;      // of the piece in which it begins: pieces have numbers of their own, from 1
} CacheStored;

// FALSE if there is no room.
gboolean cache_spill_store (CacheSpill *spill, GstMiniObject *object, CacheStored *stored);

// Takes the reference.
GstMiniObject *cache_spill_load (CachePiece *piece, guint32 offset);
CachePiece *cache_piece_ref (CachePiece *piece);
void cache_piece_unref (CachePiece *piece);

// A reader comes to a piece. TRUE if it is in memory, by the rule. Else it will be, and what has to
// go for it is let go by the other function, which may take a while. NULL is fine.
typedef struct _CacheSpillGone CacheSpillGone;
gboolean cache_spill_ask (CacheSpill *spill, guint64 piece, CacheSpillGone **gone);
void cache_spill_let_go (CacheSpillGone *gone);

// The bytes that the file may have. Less than it was made for, if the disk has turned out to be
// full.
guint64 cache_spill_capacity (CacheSpill *spill);

G_END_DECLS
