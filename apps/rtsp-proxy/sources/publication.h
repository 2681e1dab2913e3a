// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where publishers meet the upstreams that wait for them: an outlet claims a mount for a publisher,
// and the upstream `publish` of that mount takes the publisher's packets. At most one publisher has
// a mount. Call from any thread, unless the function says otherwise.
//
// A publisher who sends several layers (simulcast) has a publication of each rank, beside that of
// rank 0, which is the best one that flows. An upstream takes those of its own rank.

#include "sources/pull.h"

// A publisher's claim of a mount, and its packets.
typedef struct _Publication Publication;

// Functions of the publisher. They are called from any thread, with no lock held.
typedef struct {
  // Another publisher has taken the mount over.
  void (*displaced) (gpointer owner);
  void (*ask_key) (gpointer owner, guint track);
} PublicationOps;

typedef struct {
  const gchar *path, *peer; // the mount, and the publisher's address and port
  const gchar *identity;    // who it is: the same text for the same publisher
  gboolean takeover;        // displace another publisher
  gint64 now;               // ns
  guint rank;
} PublicationClaim;

// Claims a mount. Fails with G_IO_ERROR_BUSY if another publisher has it, unless that is to be
// displaced: with `takeover`, or if it is the same one and has sent nothing for a second, as after
// a line was lost. Calls `free` on `owner` when the functions are not called any more. (transfer
// full)
Publication *publication_claim (const PublicationClaim *claim, const PublicationOps *ops,
    gpointer owner, GDestroyNotify free, GError **error);

// Notes that the publisher sends media. `now` is in ns.
void publication_hear (Publication *self, gint64 now);

// Reports whether the mount has a publisher whose tracks have begun, and which one with this
// identity would not displace.
gboolean publication_is_taken (const gchar *path, const gchar *identity, gint64 now);

// Notes which layer the publication of rank 0 has now, for publication_find().
void publication_note_layer (Publication *self, const gchar *layer);

// Reports whether the mount has a publisher, whether its tracks have begun or not.
gboolean publication_is_claimed (const gchar *path);

// Says which tracks come from now on, and how: a GstCaps of application/x-rtp for each, and the
// static name of their transport. An upstream that runs takes them; one that starts later does so
// then. Call it again when the tracks have changed: the upstream goes on with the new ones.
void publication_begin (Publication *self, const gchar *transport, GPtrArray *caps);

// Gives the mount back, so that another publisher may claim it. Packets may still come: the
// upstream takes those of the next publisher after publication_end().
void publication_give_back (Publication *self);

// Gives the mount back, if that is not done yet, and frees the claim. The upstream has then failed
// with `reason`. No publication_enter() may run or come later.
void publication_end (Publication *self, const gchar *reason);

// Sets who is told that the mount `path` has got a publisher whose tracks have begun, or has it no
// more: publication_find() says which. `changed` is called from any thread, with no lock held,
// until it is set to NULL; it must not block.
void publication_set_watch (void (*changed) (const gchar *path));

typedef struct {
  gchar *peer;            // address and port
  const gchar *transport; // static
  gint64 since;           // Unix time in us at which its tracks began
  gchar *layer;           // of several; NULL: it sends one stream
} PublisherFacts;

// Tells who publishes to the mount `path`. Returns FALSE if nobody does, or if its tracks have not
// begun. The caller frees `peer` and `layer`.
gboolean publication_find (const gchar *path, PublisherFacts *facts);

// An upstream that takes packets, until publication_leave(). NULL: none does.
typedef struct _PublishRun PublishRun;

PublishRun *publication_enter (Publication *self);
const PullContext *publication_context (const PublishRun *run);
guint64 publication_get_number (const PublishRun *run); // from 1 on; unique in the process
void publication_leave (PublishRun *run);
