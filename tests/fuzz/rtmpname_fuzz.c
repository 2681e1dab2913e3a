// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of what RTMP publishers call their streams: an application, a line break and a
// name.

#include "app.h"

#include <string.h>

#include "text/printable.h"
#include "text/rtmp_name.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_strndup ((const gchar *) data, size), *second = strchr (text, '\n');
  const gchar *wrong;
  RtmpName name, again;
  gboolean good;

  if (second)
    *second++ = '\0';
  good = rtmp_name_read (&name, text, second ? second : "", &wrong);
  require (good == (wrong == NULL) && good == (name.url != NULL));
  require (good || (!name.user && !name.secret));
  require (!good || (name.url[0] == '/' && name.url[1] != '/' && text_is_printable (name.url)));
  if (good) {
    require (rtmp_name_read (&again, name.url, "", &wrong) && !again.user && !again.secret);
    require (strcmp (name.url, again.url) == 0);
    rtmp_name_clear (&again);
  }
  rtmp_name_clear (&name);
  g_free (text);
  return 0;
}
