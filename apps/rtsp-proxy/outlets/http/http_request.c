// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_request.h"

#include <string.h>

#include "config/host_names.h"

// ---- the head ----

static const gchar *const methods[] = { "GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS" };

static HttpMethod
read_method (const gchar *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (methods); i++) {
    if (g_str_equal (name, methods[i]))
      return 1 << i;
  }
  return 0;
}

gchar *
http_request_dup_methods (guint set)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (methods); i++) {
    if (set & 1u << i)
      g_string_append_printf (text, "%s%s", text->len > 0 ? ", " : "", methods[i]);
  }
  return g_string_free (text, FALSE);
}

static gboolean
keeps_connection (const HttpRequest *self, SoupHTTPVersion version)
{
  const gchar *options = http_request_get (self, "Connection");

  if (options && soup_header_contains (options, "close"))
    return FALSE;
  return version == SOUP_HTTP_1_1 || (options && soup_header_contains (options, "keep-alive"));
}

// A proxy's client may send a whole URL.
static gchar *
take_path (gchar *target)
{
  const gchar *authority = *target == '/' ? NULL : strstr (target, "://");
  const gchar *path = authority ? strchr (authority + 3, '/') : NULL;
  gchar *copy;

  if (!authority)
    return target;
  copy = g_strdup (path ? path : "/");
  g_free (target);
  return copy;
}

guint
http_request_read (HttpRequest *self, const guint8 *head, gsize length)
{
  SoupHTTPVersion version = SOUP_HTTP_1_0;

  *self = (HttpRequest) { .headers = soup_message_headers_new (SOUP_MESSAGE_HEADERS_REQUEST) };
  // libsoup wants the head without the empty line.
  while (length >= 4 && memcmp (head + length - 4, "\r\n\r\n", 4) == 0)
    length -= 2;
  if (length > G_MAXINT
      || soup_headers_parse_request ((const char *) head, (int) length, self->headers,
             &self->method, &self->target, &version)
             != SOUP_STATUS_OK)
    return SOUP_STATUS_BAD_REQUEST;
  self->target = take_path (self->target);
  self->keeps = keeps_connection (self, version);
  if (*self->target != '/' || (version == SOUP_HTTP_1_1 && !http_request_get (self, "Host")))
    return SOUP_STATUS_BAD_REQUEST;
  self->kind = read_method (self->method);
  self->head = self->kind == HTTP_HEAD;
  return http_request_get (self, "Transfer-Encoding") ? SOUP_STATUS_LENGTH_REQUIRED : 0;
}

void
http_request_clear (HttpRequest *self)
{
  g_clear_pointer (&self->headers, soup_message_headers_unref);
  g_clear_pointer (&self->method, g_free);
  g_clear_pointer (&self->target, g_free);
  g_clear_pointer (&self->body, g_bytes_unref);
}

const gchar *
http_request_get (const HttpRequest *self, const gchar *header)
{
  return soup_message_headers_get_list (self->headers, header);
}

gboolean
http_request_names_us (const HttpRequest *self, gchar *const *hosts)
{
  const gchar *host = http_request_get (self, "Host");

  return !host || host_names_take (hosts, host);
}

gboolean
http_request_is_foreign (const HttpRequest *self, const gchar *scheme, const gchar *const *allowed)
{
  const gchar *origin = http_request_get (self, "Origin"), *host = http_request_get (self, "Host");
  gchar *own = g_strdup_printf ("%s://%s", scheme, host ? host : "");
  gboolean is_foreign =
      origin && !g_str_equal (origin, own)
      && !(allowed && (g_strv_contains (allowed, "*") || g_strv_contains (allowed, origin)));

  g_free (own);
  return is_foreign;
}

// ---- conditions and ranges ----

// Returns seconds since the epoch, or -1.
static gint64
read_date (const gchar *text)
{
  GDateTime *date = text ? soup_date_time_new_from_http_string (text) : NULL;
  gint64 seconds = date ? g_date_time_to_unix (date) : -1;

  g_clear_pointer (&date, g_date_time_unref);
  return seconds;
}

// Reports whether the list of an If-None-Match names the file. Weak tags match, too.
static gboolean
names (const gchar *list, const gchar *etag)
{
  const gchar *found = strstr (list, etag);
  gsize length = strlen (etag);

  return g_str_equal (list, "*") || (found && (!found[length] || strchr (", \t", found[length])));
}

static gboolean
has_file (const HttpRequest *self, const gchar *etag, gint64 modified)
{
  const gchar *tags = http_request_get (self, "If-None-Match");
  const gchar *since = http_request_get (self, "If-Modified-Since");

  if (tags)
    return names (tags, etag);
  return since && modified > 0 && read_date (since) >= modified;
}

// Reports whether the range of the request is of this version of the file.
static gboolean
is_same_version (const HttpRequest *self, const gchar *etag, gint64 modified)
{
  const gchar *version = http_request_get (self, "If-Range");

  return !version || g_str_equal (version, etag)
         || (modified > 0 && read_date (version) == modified);
}

static gboolean
get_range (const HttpRequest *self, SoupRange *range)
{
  SoupRange *ranges;
  int n;
  gboolean one;

  // Without a size, libsoup neither sorts the ranges nor leaves any out.
  if (!soup_message_headers_get_ranges (self->headers, 0, &ranges, &n))
    return FALSE;
  one = n == 1;
  if (one)
    *range = ranges[0];
  soup_message_headers_free_ranges (self->headers, ranges);
  return one;
}

// Reports whether the range is written as the last bytes of the file.
static gboolean
is_suffix (const HttpRequest *self)
{
  const gchar *equals = strchr (http_request_get (self, "Range"), '=');

  return equals && equals[1 + strspn (equals + 1, " \t")] == '-';
}

// A range from the end has a negative start; one to the end has an end of -1.
static void
choose_range (const SoupRange *range, gboolean suffix, guint64 size, HttpBody *body)
{
  guint64 end = size;

  if (suffix != (range->start < 0)) // the last 0 bytes, or from a byte beyond 2^63 on
    body->start = size;
  else if (range->start < 0)
    body->start = size - MIN (size, (guint64) - (range->start + 1) + 1);
  else
    body->start = MIN (size, (guint64) range->start);
  if (range->start >= 0 && range->end >= 0)
    end = MIN (size, (guint64) range->end + 1);
  body->status =
      body->start < end ? SOUP_STATUS_PARTIAL_CONTENT : SOUP_STATUS_REQUESTED_RANGE_NOT_SATISFIABLE;
  body->length = body->start < end ? end - body->start : 0;
}

void
http_request_choose_range (
    const HttpRequest *self, guint64 size, const gchar *etag, gint64 modified, HttpBody *body)
{
  SoupRange range;

  *body = (HttpBody) { SOUP_STATUS_OK, 0, size };
  if (get_range (self, &range) && is_same_version (self, etag, modified))
    choose_range (&range, is_suffix (self), size, body);
}

void
http_request_choose (
    const HttpRequest *self, guint64 size, const gchar *etag, gint64 modified, HttpBody *body)
{
  if (has_file (self, etag, modified))
    *body = (HttpBody) { SOUP_STATUS_NOT_MODIFIED, 0, 0 };
  else
    http_request_choose_range (self, size, etag, modified, body);
}

const gchar *
http_request_find_origin (const HttpRequest *self, const gchar *const *allowed)
{
  const gchar *origin = http_request_get (self, "Origin");

  if (allowed && g_strv_contains (allowed, "*"))
    return "*";
  return allowed && origin && g_strv_contains (allowed, origin) ? origin : NULL;
}
