// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// URLs of other servers in the configuration.

#include <glib.h>

// Reports whether a text is an http or https URL, not a file.
gboolean web_url_is (const gchar *text);

// Checks an http or https URL. Returns NULL, or what is wrong with it (transfer full), without
// quoting a password.
gchar *web_url_check (const gchar *text);

// Reports whether requests to a valid URL travel over the network without TLS.
gboolean web_url_is_exposed (const gchar *text);
