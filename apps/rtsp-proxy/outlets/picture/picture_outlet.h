// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Still pictures of live mounts over HTTP: GET /CAM/picture.jpg. Call from the main thread only.

#include "outlets/http/http_route.h"
#include "proxy/proxy.h"

typedef struct _PictureOutlet PictureOutlet;

PictureOutlet *picture_outlet_new (Proxy *proxy);
HttpRoute picture_outlet_get_route (PictureOutlet *self);

// Call when no request is answered any more.
void picture_outlet_free (PictureOutlet *self);
