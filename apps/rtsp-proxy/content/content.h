// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The content that an outlet serves: a live presentation or a stored title, behind one interface
// that knows no protocol. A reference is a use: dropping the last one ends the use. Counted; call
// from any thread.

#include <glib.h>

typedef struct _Content Content;

typedef enum { CONTENT_READY, CONTENT_STARTING, CONTENT_FAILED } ContentState;
typedef void (*ContentToldFunc) (gpointer data);

// The operations of one kind of content.
typedef struct {
  gboolean shared; // all clients that ask for the same path share it; else each client has its own
  // Returns the state. Sets `error`, which may be NULL, if the content has failed.
  ContentState (*ask) (gpointer object, GError **error);
  // Calls `told` once: when the content is no longer starting, or at once if it is not. Only one
  // caller may wait at a time. Called with no lock held.
  void (*wait) (gpointer object, ContentToldFunc told, gpointer data);
  // Tells the content that the outlet now keeps it ready itself. May be NULL.
  void (*hand_over) (gpointer object);
  const gchar *(*get_path) (gpointer object); // the mount's path, or a path below it
  const gchar *(*get_mount_path) (gpointer object);
  const gchar *(*get_label) (gpointer object); // for the log
  void (*release) (gpointer object);           // ends the use
} ContentKind;

// Takes ownership of a reference to `object`, and of a use where its kind counts uses.
Content *content_new (const ContentKind *kind, gpointer object);
Content *content_ref (Content *self);
void content_unref (Content *self);

// The operations above.
ContentState content_ask (Content *self, GError **error);
void content_wait (Content *self, ContentToldFunc told, gpointer data);
void content_hand_over (Content *self);
const gchar *content_get_path (Content *self);
const gchar *content_get_mount_path (Content *self);
const gchar *content_get_label (Content *self);

gboolean content_is_shared (Content *self);

// Returns the object, or NULL if the content is of another kind. `self` may be NULL.
gpointer content_get (Content *self, const ContentKind *kind);
