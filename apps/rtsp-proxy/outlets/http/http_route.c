// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_route.h"

#include <string.h>

#include "outlets/http/http_answer.h"

static gboolean
has_prefix (const gchar *target, const gchar *prefix)
{
  gsize length = strlen (prefix);
  gboolean is_whole = length == 1 || prefix[length - 1] != '/';

  return strncmp (target, prefix, length) == 0
         && (!is_whole || !target[length] || target[length] == '?');
}

const gchar *
http_route_find_suffix (const gchar *target, const gchar *suffix)
{
  const gsize path = strcspn (target, "?"), length = strlen (suffix);
  const gchar *last = g_strrstr_len (target, (gssize) path, "/"), *before;

  if (!last || last == target)
    return NULL;
  if (path - (gsize) (last - target) - 1 == length && strncmp (last + 1, suffix, length) == 0)
    return last + 1;
  before = g_strrstr_len (target, last - target, "/");
  if (!before || before == target || (gsize) (last - before) - 1 != length)
    return NULL;
  return strncmp (before + 1, suffix, length) == 0 ? before + 1 : NULL;
}

const HttpRoute *
http_route_find (const HttpRoute *routes, const gchar *target)
{
  for (; routes->prefix || routes->suffix; routes++) {
    if (routes->suffix ? http_route_find_suffix (target, routes->suffix) != NULL
                       : has_prefix (target, routes->prefix))
      return routes;
  }
  return NULL;
}

guint
http_route_get_methods (const HttpRoute *self)
{
  guint methods = self && self->methods ? self->methods : HTTP_GET | HTTP_HEAD;

  return self && self->is_shared ? methods | HTTP_OPTIONS : methods;
}

void
http_route_add_allow (const HttpRoute *self, GString *answer)
{
  g_autofree gchar *methods = http_request_dup_methods (http_route_get_methods (self));

  http_answer_add (answer, "Allow", methods);
}

void
http_route_add_options (const HttpRoute *self, GString *answer)
{
  gchar *methods = http_request_dup_methods (http_route_get_methods (self));

  http_answer_add (answer, "Allow", methods);
  http_answer_add (answer, "Access-Control-Allow-Methods", methods);
  http_answer_add (
      answer, "Access-Control-Allow-Headers", self->given ? self->given : "Authorization, Range");
  http_answer_add (answer, "Access-Control-Max-Age", "7200");
  if (self->accepts)
    http_answer_add (answer, "Accept-Post", self->accepts);
  g_free (methods);
}
