// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What an RTMP publisher calls its stream: the application of its connection and the name of the
// stream, in which clients split rtmp://HOST/APP/NAME?QUERY in different ways. The path of the
// mount is that of the URL. `user` and `pass` of the query are credentials.

#include <glib.h>

typedef struct {
  gchar *url;    // begins with a slash; may have a query, without the credentials
  gchar *user;   // NULL: no credentials
  gchar *secret; // NULL: no credentials, or the empty one
} RtmpName;

// Reads both, which may be any text. Returns FALSE and sets `*wrong` to a static text that says
// what is wrong; otherwise clear `self` with rtmp_name_clear(), which also overwrites the secret.
gboolean rtmp_name_read (RtmpName *self, const gchar *app, const gchar *name, const gchar **wrong);
void rtmp_name_clear (RtmpName *self);
