// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client that calls by a protocol of its own to publish to a mount or to read it: what those over
// RTMP and SRT have in common. Embed it in the connection. The outlet's loop calls the functions,
// unless the function says otherwise.

#include <gio/gio.h>

#include "access/access.h"
#include "access/connections.h"
#include "base/loop.h"
#include "mounts/mounts.h"
#include "mounts/publish_check.h"
#include "sources/published_stream.h"

// What all callers of an outlet share. Reference counted, as functions that come from other threads
// use it, perhaps after the outlet's end.
typedef struct {
  Mounts *mounts;
  Access *access;
  Connections *connections;
  Loop *loop; // for its own thread

  GMutex lock;
  gboolean has_ended; // the loop; protected by `lock`
} CallerContext;

// Starts the loop, whose thread has this name, a literal. Returns NULL and sets `error` if the
// system has no thread or descriptor left. Call from the main thread.
CallerContext *caller_context_new (
    Mounts *mounts, Access *access, const gchar *name, GError **error);

// Ends the loop; it lets all leave before. Call from the main thread.
void caller_context_stop (CallerContext *self);

// Call from any thread.
void caller_context_unref (CallerContext *self);

// Calls `function` in the loop's thread. Returns FALSE if the loop has ended. Call from any thread.
gboolean caller_context_post (CallerContext *self, void (*function) (gpointer data), gpointer data);

typedef struct _Caller Caller;

typedef struct {
  const gchar *protocol; // "RTMP", in the log
  // Something may have changed: the decision on access, or the reason to close. Not called after
  // caller_leave().
  void (*woken) (Caller *self);
  void (*free) (Caller *self); // the connection's structure; from any thread
} CallerOps;

struct _Caller {
  const CallerOps *ops;
  CallerContext *context;
  gchar *peer;                // its address and port
  Demand *demand;             // set by the connection
  AccessDecision *asked;      // or NULL
  PublishedStream *published; // or NULL

  // Private:
  gatomicrefcount refs; // of the outlet, and of who may call from other threads
  GInetAddress *address;
  AccessPeer *visitor;
  gboolean has_left;
  GMutex lock;
  gchar *closing; // why it is to end; protected by `lock`
};

// Initialises it. The client has been counted in the context's connections. `scheme` is that of its
// URLs. The outlet has one reference.
void caller_init (Caller *self, const CallerOps *ops, CallerContext *context,
    GInetSocketAddress *from, const gchar *scheme);

// Call from any thread.
gpointer caller_ref (Caller *self);
void caller_unref (gpointer self);

// Has `woken` called. Call from any thread.
void caller_wake (gpointer self);

// Has the connection end, for this reason, unless there is one already. Call from any thread.
void caller_close (gpointer self, const gchar *reason);

// Returns why it is to end, or NULL.
const gchar *caller_get_closing (Caller *self);

// Asks for access to the demand. `token` may be NULL, and so may the others.
void caller_ask (
    Caller *self, AccessAction action, const gchar *user, const gchar *secret, const gchar *token);

// Says whether it can publish now, and if not, why (`*why`, static).
PublishCheck caller_check_publish (Caller *self, const gchar **why);

// Begins to publish. Fails with G_IO_ERROR_BUSY if another one publishes to the mount.
gboolean caller_publish (Caller *self, GError **error);

// Has it end if the mount takes no publishers any more. Call once a second while it publishes.
void caller_check_mount (Caller *self);

// Ends what it publishes, and drops the outlet's reference. `reason` is for the log.
void caller_leave (Caller *self, const gchar *reason);
