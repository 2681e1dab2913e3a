// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the proxy and the worker process of swarms say about a reader of a title. The job is a
// message to the worker (WIRE_SWARM). Then each message is one packet of the reader's
// SOCK_SEQPACKET socket. Figures are in a page of memory that both have. The proxy takes nothing
// for granted: the worker may be in the hands of a peer.

#include "isolate/wire.h"
#include "stores/swarm_reader_title.h"

#define SWARM_WIRE_CHUNK 60000u // bytes of a title in a message
#define SWARM_WIRE_READ_MAX (16u << 20)

typedef enum {
  // To the worker.
  SWARM_WIRE_READ = 1, // bytes from an offset on
  SWARM_WIRE_REST,     // the reader reads no more, and stays in the swarm
  // From the worker.
  SWARM_WIRE_OPENED, // the size; first of all, unless the reader has failed
  SWARM_WIRE_BYTES,  // the next bytes that were asked for
  SWARM_WIRE_FAILED, // a code of the domain G_IO_ERROR, and the reason
} SwarmWireType;

// The descriptors of a job. Without a file for the pieces, the last one is left out.
enum { SWARM_FD_SOCKET, SWARM_FD_PAGE, SWARM_FD_TORRENT, SWARM_FD_STORAGE, SWARM_FDS_MAX };

// ---- jobs ----

// Fills in the message. `title` is without its descriptors, and its properties without `folder`.
void swarm_wire_put_job (
    WireMessage *message, const SwarmReaderTitle *title, guint64 rate, guint timeout_s);

// Returns a title (transfer full; without descriptors), or NULL if the message is malformed.
SwarmReaderTitle *swarm_wire_read_job (
    const guint8 *data, gsize length, guint64 *rate, guint *timeout_s);
void swarm_wire_free_title (SwarmReaderTitle *title);

// ---- a reader's messages ----

void swarm_wire_put_read (WireMessage *message, guint64 offset, guint32 length);
void swarm_wire_put_failure (WireMessage *message, const GError *error);

typedef struct {
  SwarmWireType type;
  guint64 number;      // the offset, or the size
  guint32 length;      // of what is to be read, or of `bytes`
  const guint8 *bytes; // within the message
  GError *error;       // of a failure (transfer full)
} SwarmWireMessage;

// Reads a message of either side. Returns FALSE if it is malformed.
gboolean swarm_wire_read (const guint8 *data, gsize length, SwarmWireMessage *message);

// ---- the page ----

typedef struct {
  guint64 beats; // that the worker counts while it lives
  guint64 figures[sizeof (StoreSwarmTitle) / sizeof (guint64)];
} SwarmPage;

// Returns a page (NULL with errno on failure), and its file, which the caller owns. Nobody can make
// the file shorter.
SwarmPage *swarm_page_new (int *file);
SwarmPage *swarm_page_map (int file); // NULL if it is no such page
void swarm_page_free (SwarmPage *self);

void swarm_page_put (SwarmPage *self, const StoreSwarmTitle *figures);
void swarm_page_get (const SwarmPage *self, StoreSwarmTitle *figures);
void swarm_page_beat (SwarmPage *self);
guint64 swarm_page_get_beats (const SwarmPage *self);
