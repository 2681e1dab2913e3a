// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What blockstoresink and blockstoresrc share: the properties that name a title, and its URI.

#include <gst/gst.h>

G_BEGIN_DECLS

// The first property ids of both elements.
enum {
  WEIR_STORE_PROP_LOCATION = 1,
  WEIR_STORE_PROP_TITLE,
  WEIR_STORE_PROP_LAST = WEIR_STORE_PROP_TITLE,
};

// Under the element's object lock; not changed while it runs.
typedef struct {
  gchar *location, *title; // NULL: not set
} WeirStorePlace;

// Flags of properties that cannot be changed while the element runs.
#define WEIR_STORE_PROP_FLAGS (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY)

void weir_store_place_install (GObjectClass *klass, const gchar *title_blurb);
void weir_store_place_clear (WeirStorePlace *self);

// Object lock held. Return FALSE if `id` is another property.
gboolean weir_store_place_set (WeirStorePlace *self, guint id, const GValue *value);
gboolean weir_store_place_get (const WeirStorePlace *self, guint id, GValue *value);

// Reports whether both properties are set. If not, posts an error.
gboolean weir_store_place_check (const WeirStorePlace *self, GstElement *element);

// Finds store and title of a URI such as store:///srv/store/comedy/duck%20soup.mp4. The store is
// the first folder of the path that is one. Looks at folders, which may block.
gboolean weir_store_place_from_uri (WeirStorePlace *self, const gchar *uri, GError **error);

// Object lock held. Returns the URI (transfer full), or NULL if a property is not set.
gchar *weir_store_place_dup_uri (const WeirStorePlace *self);

G_END_DECLS
