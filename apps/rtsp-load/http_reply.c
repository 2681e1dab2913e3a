// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "http_reply.h"

#include <string.h>

#define HTTP_LINE_MAX 8192
#define HTTP_BODY_MAX (4 * 1024 * 1024)

enum { STATUS, HEADERS, BODY, CHUNK_SIZE, CHUNK_END, TRAILERS, DONE };

void
http_reply_init (HttpReply *self)
{
  *self = (HttpReply) { .body = g_string_new (NULL), .line = g_string_new (NULL) };
}

void
http_reply_clear (HttpReply *self)
{
  g_free (self->location);
  g_free (self->cookie);
  g_string_free (self->body, TRUE);
  g_string_free (self->line, TRUE);
}

void
http_reply_reset (HttpReply *self, gboolean keeps)
{
  g_clear_pointer (&self->location, g_free);
  g_clear_pointer (&self->cookie, g_free);
  g_string_truncate (self->body, 0);
  g_string_truncate (self->line, 0);
  self->keeps = keeps;
  self->closes = self->chunked = FALSE;
  self->phase = STATUS;
  self->n_body = self->left = 0;
}

static gboolean
take_status (HttpReply *self, const gchar *line)
{
  if (strncmp (line, "HTTP/1.", 7) != 0 || strlen (line) < 12 || line[8] != ' ')
    return FALSE;
  self->status = (guint) g_ascii_strtoull (line + 9, NULL, 10);
  self->closes = line[7] == '0';
  self->phase = HEADERS;
  return self->status >= 100 && self->status < 600;
}

static gboolean
take_header (HttpReply *self, const gchar *line)
{
  const gchar *colon = strchr (line, ':');
  gchar *name, *value, *end = NULL;
  gboolean ok = TRUE;

  if (!colon)
    return FALSE;
  name = g_ascii_strdown (line, colon - line);
  value = g_strstrip (g_strdup (colon + 1));
  if (!strcmp (name, "content-length")) {
    self->left = g_ascii_strtoull (value, &end, 10);
    ok = g_ascii_isdigit (*value) && *end == '\0';
  } else if (!strcmp (name, "transfer-encoding")) {
    self->chunked = ok = !g_ascii_strcasecmp (value, "chunked");
  } else if (!strcmp (name, "connection")) {
    self->closes = !g_ascii_strcasecmp (value, "close");
  } else if (!strcmp (name, "location")) {
    g_free (self->location);
    self->location = g_strdup (value);
  } else if (!strcmp (name, "set-cookie")) {
    g_free (self->cookie);
    self->cookie = g_strndup (value, strcspn (value, ";"));
  }
  g_free (name);
  g_free (value);
  return ok;
}

static void
end_headers (HttpReply *self)
{
  if (self->status < 200)
    self->phase = STATUS;
  else if (self->chunked)
    self->phase = CHUNK_SIZE;
  else
    self->phase = self->left > 0 ? BODY : DONE;
}

static gboolean
take_chunk_size (HttpReply *self, const gchar *line)
{
  gchar *end;

  self->left = g_ascii_strtoull (line, &end, 16);
  self->phase = self->left > 0 ? BODY : TRAILERS;
  return g_ascii_isxdigit (*line) && (*end == '\0' || *end == ';' || *end == ' ');
}

static gboolean
take_line (HttpReply *self, const gchar *line)
{
  switch (self->phase) {
    case STATUS:
      return take_status (self, line);
    case HEADERS:
      if (*line)
        return take_header (self, line);
      end_headers (self);
      return TRUE;
    case CHUNK_SIZE:
      return take_chunk_size (self, line);
    case CHUNK_END:
      self->phase = CHUNK_SIZE;
      return *line == '\0';
    default:
      if (*line == '\0')
        self->phase = DONE;
      return TRUE;
  }
}

static void
end_body (HttpReply *self)
{
  if (self->left == 0)
    self->phase = self->chunked ? CHUNK_END : DONE;
}

gsize
http_reply_skippable (const HttpReply *self)
{
  return self->phase == BODY && !self->keeps ? (gsize) MIN (self->left, G_MAXINT) : 0;
}

gboolean
http_reply_skip (HttpReply *self, gsize n)
{
  self->left -= n;
  self->n_body += n;
  end_body (self);
  return self->phase == DONE;
}

static gboolean
take_body (HttpReply *self, const gchar *data, gsize n)
{
  if (self->keeps) {
    if (self->body->len + n > HTTP_BODY_MAX)
      return FALSE;
    g_string_append_len (self->body, data, (gssize) n);
  }
  http_reply_skip (self, n);
  return TRUE;
}

gssize
http_reply_read (HttpReply *self, const gchar *data, gsize len, gboolean *done)
{
  gsize at = 0;

  while (at < len && self->phase != DONE) {
    gsize n = len - at;

    if (self->phase == BODY) {
      n = (gsize) MIN (n, self->left);
      if (!take_body (self, data + at, n))
        return -1;
    } else {
      const gchar *end = memchr (data + at, '\n', n);

      n = end ? (gsize) (end - (data + at)) + 1 : n;
      g_string_append_len (self->line, data + at, (gssize) (end ? n - 1 : n));
      if (self->line->len > HTTP_LINE_MAX)
        return -1;
      if (end) {
        g_strchomp (self->line->str);
        if (!take_line (self, self->line->str))
          return -1;
        g_string_truncate (self->line, 0);
      }
    }
    at += n;
  }
  *done = self->phase == DONE;
  return (gssize) at;
}
