// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_forwarded.h"

#include <string.h>

#include "base/address.h"

#define FOR "X-Forwarded-For"
#define PROTO "X-Forwarded-Proto"
#define FORWARDED "Forwarded"

struct _HttpProxies {
  GPtrArray *masks; // of GInetAddressMask
};

static gboolean
trusts (const HttpProxies *self, GInetAddress *address)
{
  for (guint i = 0; i < self->masks->len; i++) {
    if (g_inet_address_mask_matches (g_ptr_array_index (self->masks, i), address))
      return TRUE;
  }
  return FALSE;
}

// ---- the headers ----

// Returns the address of a node, such as 192.0.2.1:80, "[2001:db8::1]:80" or unknown; NULL: none is
// there.
static GInetAddress *
read_node (const gchar *node)
{
  g_autofree gchar *text = g_strdup (node);
  gchar *start = g_strstrip (text), *end;

  if (*start == '"') {
    start++;
    start[strcspn (start, "\"")] = '\0';
  }
  if (*start == '[') {
    start++;
    start[strcspn (start, "]")] = '\0';
  } else if ((end = strchr (start, ':')) && !strchr (end + 1, ':')) {
    *end = '\0';
  }
  return address_parse (start);
}

// Returns the value of a parameter in an element of Forwarded, such as `for=192.0.2.1;proto=https`;
// "" if it is not there. (transfer full)
static gchar *
dup_parameter (const gchar *element, const gchar *name)
{
  g_auto (GStrv) pairs = g_strsplit (element, ";", -1);
  gsize len = strlen (name);

  for (gchar **pair = pairs; *pair; pair++) {
    const gchar *at = *pair + strspn (*pair, " \t");

    if (g_ascii_strncasecmp (at, name, len) == 0 && at[len] == '=')
      return g_strdup (at + len + 1);
  }
  return g_strdup ("");
}

// Returns the nodes, of which the last is the one that the proxy at the connection has seen.
static GStrv
split_nodes (const gchar *list, gboolean is_forwarded)
{
  GStrv nodes = g_strsplit (list, ",", -1);

  for (gchar **node = nodes; is_forwarded && *node; node++) {
    gchar *value = dup_parameter (*node, "for");

    g_free (*node);
    *node = value;
  }
  return nodes;
}

// Returns the client: the last node of no trusted proxy. An unreadable node ends the search.
static GInetAddress *
find_client (const HttpProxies *self, GInetAddress *from, gchar **nodes)
{
  GInetAddress *client = g_object_ref (from);

  for (guint i = g_strv_length (nodes); i > 0 && trusts (self, client); i--) {
    GInetAddress *before = read_node (nodes[i - 1]);

    if (!before)
      break;
    g_object_unref (client);
    client = before;
  }
  return client;
}

static gboolean
has_tls (const HttpRequest *request, const gchar *forwarded)
{
  const gchar *list =
      forwarded ? forwarded : soup_message_headers_get_list (request->headers, PROTO);
  const gchar *comma = list ? strrchr (list, ',') : NULL;
  g_autofree gchar *last = g_strdup (comma ? comma + 1 : list ? list : "");
  g_autofree gchar *value = forwarded ? dup_parameter (last, "proto") : g_strdup (last);

  return g_ascii_strcasecmp (g_strstrip (value), "https") == 0
         || g_ascii_strcasecmp (value, "\"https\"") == 0;
}

// ---- clients ----

// Keeps the peer if it is the same, because it remembers that the client has logged in.
static void
set_visitor (GInetAddress *client, const gchar *protocol, AccessPeer **visitor)
{
  g_autofree gchar *address = g_inet_address_to_string (client);

  if (g_str_equal (access_peer_get_address (*visitor), address)
      && g_str_equal (access_peer_get_protocol (*visitor), protocol))
    return;
  access_peer_unref (*visitor);
  *visitor = access_peer_new_forwarded (address, protocol);
}

const gchar *
http_proxies_find_client (
    const HttpProxies *self, const HttpRequest *request, GInetAddress *from, AccessPeer **visitor)
{
  const gchar *list, *forwarded;
  g_autoptr (GInetAddress) client = NULL;
  g_auto (GStrv) nodes = NULL;

  if (!self || !trusts (self, from))
    return NULL;
  list = soup_message_headers_get_list (request->headers, FOR);
  forwarded = soup_message_headers_get_list (request->headers, FORWARDED);
  // A proxy that writes one of them passes the other one on as the client has written it.
  if (list && forwarded)
    return "it has " FOR " and " FORWARDED ", of which the reverse proxy must remove one";
  nodes = split_nodes (forwarded ? forwarded : list ? list : "", forwarded != NULL);
  client = find_client (self, from, nodes);
  set_visitor (client, has_tls (request, forwarded) ? "https" : "http", visitor);
  return NULL;
}

HttpProxies *
http_proxies_new (gchar *const *networks)
{
  HttpProxies *self;

  if (!networks || !*networks)
    return NULL;
  self = g_new (HttpProxies, 1);
  self->masks = g_ptr_array_new_with_free_func (g_object_unref);
  for (; *networks; networks++)
    g_ptr_array_add (self->masks, g_inet_address_mask_new_from_string (*networks, NULL));
  return self;
}

void
http_proxies_free (HttpProxies *self)
{
  if (!self)
    return;
  g_ptr_array_unref (self->masks);
  g_free (self);
}
