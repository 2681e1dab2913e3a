// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `push` of a mount: servers and receivers to which the mount's stream is sent.

#include "text/schema.h"

#define PUSHES_MAX 8

// For the row of the key: the check of a URI, and what the API shows of it.
gchar *push_check (SchemaText *it);
gchar *push_dup_shown (const gchar *uri);

typedef enum { PUSH_UDP, PUSH_SRT, PUSH_RTMP } PushKind;

// A parsed URI of the key. Clear it with push_uri_clear().
typedef struct {
  PushKind kind;
  gchar *uri, *host;
  guint port;
  guint ttl;    // of datagrams to a group
  gchar *iface; // for these; NULL: the system's choice
  gchar *shown; // without secrets: those of a query, and the name of a stream at an RTMP server
} PushUri;

// Parses a URI. Returns what is wrong with it (transfer full), or NULL.
gchar *push_uri_parse (const gchar *uri, PushUri *out);
void push_uri_clear (PushUri *self);
