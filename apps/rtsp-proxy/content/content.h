// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The content that an outlet serves: a live presentation or a stored title, behind one interface
// that knows no protocol. The content is in use as long as a reference exists. Reference counted;
// call from any thread.

#include <glib.h>

typedef struct _Content Content;

typedef enum { CONTENT_READY, CONTENT_STARTING, CONTENT_FAILED } ContentState;
typedef void (*ContentDoneFunc) (gpointer data);

// The operations of one kind of content.
typedef struct {
  gboolean shared; // clients that request the same path share the content; else each has its own
  // Returns the state. Sets `error`, which may be NULL, if the content has failed.
  ContentState (*ask) (gpointer object, GError **error);
  // Calls `done` once: at once if the content is not starting, else when its start has succeeded or
  // failed. Only one caller may wait at a time. Called with no lock held.
  void (*wait) (gpointer object, ContentDoneFunc done, gpointer data);
  // Called when the outlet keeps the content's media ready itself from now on. May be NULL.
  void (*hand_over) (gpointer object);
  const gchar *(*get_path) (gpointer object); // the mount's path, or a path below it
  const gchar *(*get_mount_path) (gpointer object);
  const gchar *(*get_label) (gpointer object); // for the log
  void (*release) (gpointer object);           // ends the use
} ContentKind;

// Takes ownership of a reference to `object`, and of a use if its kind counts uses.
Content *content_new (const ContentKind *kind, gpointer object);
Content *content_ref (Content *self);
void content_unref (Content *self);

// The operations above.
ContentState content_ask (Content *self, GError **error);
void content_wait (Content *self, ContentDoneFunc done, gpointer data);
void content_hand_over (Content *self);
const gchar *content_get_path (Content *self);
const gchar *content_get_mount_path (Content *self);
const gchar *content_get_label (Content *self);

gboolean content_is_shared (Content *self);

// Returns the object, or NULL if the content is of another kind. `self` may be NULL.
gpointer content_get (Content *self, const ContentKind *kind);
