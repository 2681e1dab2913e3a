// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The page that plays a live mount in a browser (/watch/PATH), the one that publishes to it
// (/publish/PATH), the list of the mounts that the visitor may read (/), and the icon of all. They
// are routes of the HTTP outlet. Call from any thread.

#include "access/access.h"
#include "outlets/http/http_route.h"

typedef struct {
  Mounts *mounts;
  Access *access;
} PageOutlet;

#define PAGE_PREFIX "/watch/"

// Return the routes. `self` must outlive them.
HttpRoute page_outlet_get_watch_route (PageOutlet *self);
HttpRoute page_outlet_get_publish_route (PageOutlet *self);
HttpRoute page_outlet_get_list_route (PageOutlet *self);
HttpRoute page_outlet_get_icon_route (PageOutlet *self);
