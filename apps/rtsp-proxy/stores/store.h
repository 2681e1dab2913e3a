// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where stored titles lie. Counted; any thread. What it is asked for may take its time.

#include <glib.h>

typedef struct _Store Store;

// A title is called what a path in UTF-8 is called, of at most so many bytes.
#define STORE_NAME_MAX 1024

// Is it a name that a title can have? No part of it begins with a dot, is empty, or has a backslash
// or a control character. Whoever opens it does not depend on that: it only keeps nonsense out of
// the log and away from the store.
gboolean store_is_name (const gchar *name);

// FALSE: it wants to know of no more. `size` is in bytes.
typedef gboolean (*StoreFoundFunc) (const gchar *name, guint64 size, gpointer data);

// A kind of store: a struct that begins with a Store, and what is done with it.
typedef struct {
  int (*open) (Store *self, const gchar *name, guint64 *size);
  gboolean (*list) (Store *self, StoreFoundFunc found, gpointer data);
  void (*free) (Store *self);
} StoreKind;

struct _Store {
  gatomicrefcount refs;
  const StoreKind *kind;
};

// For kinds.
void store_init (Store *self, const StoreKind *kind);

Store *store_ref (Store *self);
void store_unref (Store *self);

// Opens the title of this name for reading. `size`, which may be NULL, is in bytes. Returns a
// descriptor, or -1 with errno.
int store_open (Store *self, const gchar *name, guint64 *size);

// Calls `found` for each title, in no order. FALSE with errno: there is no store there.
gboolean store_list (Store *self, StoreFoundFunc found, gpointer data);
