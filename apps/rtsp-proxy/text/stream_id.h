// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The stream id with which an SRT caller says what it wants: "read:PATH", "publish:PATH",
// "publish:PATH:USER:SECRET", or the form of SRT's access control guidelines,
// "#!::m=publish,r=PATH,u=USER,s=SECRET". In that form the mode is "request" if it is left out.

#include <glib.h>

#define STREAM_ID_MAX 512 // bytes, as SRT allows

typedef struct {
  gboolean publishes; // else it reads
  gchar *url;         // begins with a slash; may have a query
  gchar *user;        // NULL: no credentials
  gchar *secret;      // NULL: no credentials, or the empty one
} StreamId;

typedef enum {
  STREAM_ID_GOOD,
  STREAM_ID_MALFORMED,
  STREAM_ID_BAD_MODE, // neither to read nor to publish
} StreamIdVerdict;

// Reads a stream id, which may be any text. Sets `*wrong` to a static text that says what is wrong,
// unless the verdict is STREAM_ID_GOOD; then clear `self` with stream_id_clear(), which also
// overwrites the secret.
StreamIdVerdict stream_id_read (StreamId *self, const gchar *text, const gchar **wrong);
void stream_id_clear (StreamId *self);
