// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Numbers with units, as arguments and in output.

#include <glib.h>

// Parse a rate such as "525M" or "800k" (bits a second), and a time such as "17ms" or "5s". Return
// FALSE if the text is not one, or is 0.
gboolean units_parse_rate (const gchar *text, guint64 *bits);
gboolean units_parse_time (const gchar *text, gdouble *seconds);

// Return text such as "1.2 GB", "6.0 Mb/s" and "1:02:03". (transfer full)
gchar *units_dup_size (guint64 bytes);
gchar *units_dup_rate (guint64 bits);
gchar *units_dup_time (gint64 ns);
