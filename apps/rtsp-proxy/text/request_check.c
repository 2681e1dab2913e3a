// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/request_check.h"

#include <string.h>

#define METHOD_MAX 19 // gst-rtsp-server reads no more

static gboolean
fail_check (RequestCheck *self, RequestFault fault)
{
  self->fault = fault;
  return FALSE;
}

// A line without its end.
typedef struct {
  const gchar *text;
  gsize len;
} Line;

// Takes the next word from the front of a line. Returns FALSE if there is none.
static gboolean
take_word (Line *line, Line *word)
{
  while (line->len > 0 && g_ascii_isspace (*line->text)) {
    line->text++;
    line->len--;
  }
  word->text = line->text;
  while (line->len > 0 && !g_ascii_isspace (*line->text)) {
    line->text++;
    line->len--;
  }
  word->len = (gsize) (line->text - word->text);
  return word->len > 0;
}

static gboolean
is_word (const Line *word, const gchar *text)
{
  return word->len == strlen (text) && g_ascii_strncasecmp (word->text, text, word->len) == 0;
}

static gboolean
is_method (const Line *word)
{
  for (gsize i = 0; i < word->len; i++) {
    if (!g_ascii_isalnum (word->text[i]) && !strchr ("_-.", word->text[i]))
      return FALSE;
  }
  return word->len <= METHOD_MAX;
}

static gboolean
is_version (const RequestCheck *self, const Line *word)
{
  return self->http ? is_word (word, "HTTP/1.1") || is_word (word, "HTTP/1.0")
                    : is_word (word, "RTSP/1.0");
}

static gboolean
check_first_line (RequestCheck *self, Line line)
{
  Line method, url, version, rest;

  if (!take_word (&line, &method) || !is_method (&method) || !take_word (&line, &url)
      || !take_word (&line, &version) || take_word (&line, &rest)
      || !memchr (version.text, '/', version.len))
    return fail_check (self, REQUEST_MALFORMED);
  if (!is_version (self, &version))
    return fail_check (self, REQUEST_VERSION_WRONG);
  self->is_new = is_word (&version, "HTTP/1.1");
  return TRUE;
}

// Reads a number of digits only. Returns FALSE for other text, and for more than 18 digits.
static gboolean
read_number (const Line *text, guint64 *number)
{
  *number = 0;
  for (gsize i = 0; i < text->len; i++) {
    if (!g_ascii_isdigit (text->text[i]))
      return FALSE;
    *number = 10 * *number + (guint64) (text->text[i] - '0');
  }
  return text->len > 0 && text->len <= 18;
}

static gboolean
note_length (RequestCheck *self, const RequestLimits *limits, const Line *value)
{
  guint64 length;

  if (!read_number (value, &length) || (self->has_length && length != self->body))
    return fail_check (self, REQUEST_MALFORMED);
  if (length > limits->body)
    return fail_check (self, REQUEST_BODY_LARGE);
  self->has_length = TRUE;
  self->body = (guint) length;
  return TRUE;
}

static gboolean
check_header (RequestCheck *self, const RequestLimits *limits, Line line)
{
  const gchar *colon = memchr (line.text, ':', line.len);
  Line name = { line.text, colon ? (gsize) (colon - line.text) : 0 }, value;

  // A line that begins with a space would continue the one before. Of a name before a space,
  // servers make different headers (RFC 9112, 5.1).
  if (name.len == 0 || g_ascii_isspace (*name.text)
      || (self->http && g_ascii_isspace (name.text[name.len - 1])))
    return fail_check (self, REQUEST_MALFORMED);
  value = (Line) { colon + 1, line.len - name.len - 1 };
  while (name.len > 0 && g_ascii_isspace (name.text[name.len - 1]))
    name.len--;
  while (value.len > 0 && g_ascii_isspace (*value.text)) {
    value.text++;
    value.len--;
  }
  while (value.len > 0 && g_ascii_isspace (value.text[value.len - 1]))
    value.len--;
  if (is_word (&name, "Content-Length"))
    return note_length (self, limits, &value);
  if (is_word (&name, "Expect"))
    self->continues = self->is_new && is_word (&value, "100-continue");
  if (is_word (&name, "CSeq") && !self->has_cseq)
    self->has_cseq = read_number (&value, &self->cseq);
  return TRUE;
}

static gboolean
has_control_characters (Line line)
{
  for (gsize i = 0; i < line.len; i++) {
    if (g_ascii_iscntrl (line.text[i]) && line.text[i] != '\t')
      return TRUE;
  }
  return FALSE;
}

// Checks a line. An empty one is the end of the head.
static gboolean
check_line (RequestCheck *self, const RequestLimits *limits, Line line, gsize end)
{
  if (line.len > limits->line)
    return fail_check (self, self->n_lines == 0 ? REQUEST_LINE_LONG : REQUEST_HEADER_LONG);
  if (has_control_characters (line))
    return fail_check (self, REQUEST_MALFORMED);
  if (self->n_lines == 0) {
    if (!check_first_line (self, line))
      return FALSE;
  } else if (line.len == 0) {
    self->head = end;
    return TRUE;
  } else if (self->n_lines > limits->headers) {
    return fail_check (self, REQUEST_HEADERS_MANY);
  } else if (!check_header (self, limits, line)) {
    return FALSE;
  }
  self->n_lines++;
  return TRUE;
}

// Checks the next line if it is complete, else that it is not too long yet.
static gboolean
advance (RequestCheck *self, const RequestLimits *limits, const guint8 *bytes, gsize len)
{
  const guint8 *end = memchr (bytes + self->searched, '\n', len - self->searched);
  gsize at = end ? (gsize) (end - bytes) : len;
  Line line = { (const gchar *) bytes + self->line, at - self->line };

  self->searched = at;
  if (line.len > (gsize) limits->line + 1) // 1: a CR
    return fail_check (self, self->n_lines == 0 ? REQUEST_LINE_LONG : REQUEST_HEADER_LONG);
  if (at >= limits->head)
    return fail_check (self, REQUEST_HEAD_LARGE);
  if (!end)
    return FALSE;
  if (line.len > 0 && line.text[line.len - 1] == '\r')
    line.len--;
  else
    self->bare = TRUE;
  self->line = self->searched = at + 1;
  return check_line (self, limits, line, at + 1);
}

gsize
request_check (RequestCheck *self, const RequestLimits *limits, const guint8 *bytes, gsize len)
{
  while (len > 0 && self->head == 0 && advance (self, limits, bytes, len))
    ;
  if (self->head == 0 || self->fault != REQUEST_FINE || len - self->head < self->body)
    return 0;
  return self->head + self->body;
}

GByteArray *
request_dup_head (const RequestCheck *self, const guint8 *bytes)
{
  GByteArray *head = g_byte_array_sized_new ((guint) self->head);

  if (!self->bare)
    return g_byte_array_append (head, bytes, (guint) self->head);
  for (gsize at = 0; at < self->head; at++) {
    if (bytes[at] == '\n')
      g_byte_array_append (head, (const guint8 *) "\r\n", 2);
    else if (bytes[at] != '\r')
      g_byte_array_append (head, bytes + at, 1);
  }
  return head;
}
