// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>
#include <sys/socket.h>

// What is read: a URL without its credentials, where its server is, and who asks.
typedef struct {
  gchar *uri;
  gchar *user, *password; // or NULL
  struct sockaddr_storage address;
  socklen_t address_len;
} Target;

// Credentials in the URL go before `user` and `password`. False, with a line on stderr, if there is
// no such server.
gboolean target_init (Target *self, const gchar *url, const gchar *user, const gchar *password);
void target_clear (Target *self);
