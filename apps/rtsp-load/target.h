// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Parses the URLs of the command line and resolves their hosts.

#include <glib.h>
#include <sys/socket.h>

// A URL to read: without its credentials, with the address of its server, the user and the
// password.
typedef struct {
  gchar *uri;
  gchar *user, *password; // or NULL
  struct sockaddr_storage address;
  socklen_t address_len;
} Target;

// Credentials in the URL override `user` and `password`. Returns FALSE, with a line on stderr, if
// the URL is invalid or its host is unknown.
gboolean target_init (Target *self, const gchar *url, const gchar *user, const gchar *password);
// The same for an http:// URL, without credentials.
gboolean target_init_http (
    Target *self, const gchar *url, const gchar *user, const gchar *password);
void target_clear (Target *self);

// Returns the path and the query of a URL (transfer full), or NULL if it is none.
gchar *target_dup_path (const gchar *url);

// Opens a TCP connection to the server, without waiting for it. Returns its socket, or -1 and sets
// `errno`.
int target_connect (const Target *self);

// Appends what an HTTP request says of its server and user: the header fields Host and, with a
// user, Authorization.
void target_add_fields (const Target *self, GString *request);
