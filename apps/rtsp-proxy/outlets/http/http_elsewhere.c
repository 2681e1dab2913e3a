// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_elsewhere.h"

#include "outlets/http/http_pieces.h"
#include "outlets/http/http_refusal.h"
#include "readers/elsewhere.h"

// Reports whether another member may answer. The client of a swarm has more sources.
static gboolean
begins_reader (const HttpRoute *route, const HttpRequest *request, const Resolved *resolved)
{
  if (route)
    return route->begins && route->begins (request);
  return request->kind == HTTP_GET && resolved->title
         && !http_request_get (request, HTTP_PIECES_HEADER);
}

gchar *
http_elsewhere_dup_url (const HttpRoute *route, const HttpRequest *request, const Demand *demand,
    const Resolved *resolved, AccessPeer *visitor)
{
  if (request->target[0] != '/' || !begins_reader (route, request, resolved))
    return NULL;
  return elsewhere_dup_url (
      g_str_equal (access_peer_get_protocol (visitor), "https") ? ELSEWHERE_HTTPS : ELSEWHERE_HTTP,
      request->target, !demand->moved && http_refusal_is_full (resolved->mount));
}
