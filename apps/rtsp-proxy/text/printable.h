// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// Reports whether a text of a peer is UTF-8 without control characters.
static inline gboolean
text_is_printable (const gchar *text)
{
  for (const gchar *c = text; *c; c++) {
    if (g_ascii_iscntrl (*c))
      return FALSE;
  }
  return g_utf8_validate (text, -1, NULL);
}
