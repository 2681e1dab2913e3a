// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of the stream ids of SRT callers.

#include "app.h"

#include "text/stream_id.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_strndup ((const gchar *) data, size);
  const gchar *wrong;
  StreamId id;
  gboolean good = stream_id_read (&id, text, &wrong) == STREAM_ID_GOOD;

  require (good == (wrong == NULL) && good == (id.url != NULL));
  require (!good || (strlen (text) <= STREAM_ID_MAX && id.url[0] == '/'));
  require (good || (!id.user && !id.secret));
  stream_id_clear (&id);
  g_free (text);
  return 0;
}
