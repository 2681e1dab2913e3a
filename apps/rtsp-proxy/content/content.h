// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is used: a live presentation or a stored title, by whatever outlet. Who holds one uses it;
// when the last lets it go, it is given back. Counted; any thread.

#include <glib.h>

typedef struct _Content Content;

typedef enum { CONTENT_READY, CONTENT_STARTING, CONTENT_FAILED } ContentState;
typedef void (*ContentToldFunc) (gpointer data);

// One kind of it.
typedef struct {
  gboolean shared; // by all who ask for the same; else each has one of his own
  // Is it known what it gives? The error, which may be left out, says why it has failed.
  ContentState (*ask) (gpointer object, GError **error);
  // Calls `told`, once, when it is not starting any more; maybe at once. With no lock held. One at
  // a time may wait.
  void (*wait) (gpointer object, ContentToldFunc told, gpointer data);
  // The outlet has it ready by itself from now on; may be NULL.
  void (*hand_over) (gpointer object);
  const gchar *(*get_path) (gpointer object);       // below that of its mount, or the same
  const gchar *(*get_mount_path) (gpointer object); //
  const gchar *(*get_label) (gpointer object);      // as logs call it
  void (*release) (gpointer object);
} ContentKind;

// `object` comes with a use, which is taken over.
Content *content_new (const ContentKind *kind, gpointer object);
Content *content_ref (Content *self);
void content_unref (Content *self);

ContentState content_ask (Content *self, GError **error);
void content_wait (Content *self, ContentToldFunc told, gpointer data);
void content_hand_over (Content *self);
const gchar *content_get_path (Content *self);
const gchar *content_get_mount_path (Content *self);
const gchar *content_get_label (Content *self);

gboolean content_is_shared (Content *self);

// What it is; NULL: it is of another kind. `self` may be NULL.
gpointer content_get (Content *self, const ContentKind *kind);
