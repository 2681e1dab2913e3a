// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/rtsp_parser.h"

#include <stdlib.h>
#include <string.h>

#define PACKET_HEADER 4 // '$', the channel, and the length in 16 bits
#define PACKET_MIN 8    // bytes of the smallest RTCP
#define METHOD_MAX 32   // characters of a method

const gchar *
rtsp_message_get (const RtspMessage *self, const gchar *name, guint nth)
{
  for (guint i = 0; i < self->n_headers; i++) {
    if (!g_ascii_strcasecmp (self->headers[i].name, name) && nth-- == 0)
      return self->headers[i].value;
  }
  return NULL;
}

void
rtsp_parser_init (RtspParser *self, const RtspParserOps *ops, gpointer data)
{
  *self = (RtspParser) { .ops = ops, .data = data };
}

void
rtsp_parser_clear (RtspParser *self)
{
  g_clear_pointer (&self->kept, g_free);
  self->n_kept = 0;
}

void
rtsp_parser_stop (RtspParser *self)
{
  self->stopped = TRUE;
}

gsize
rtsp_parser_restore (RtspParser *self, guint8 *buffer)
{
  gsize n = self->n_kept;

  if (n)
    memcpy (buffer, self->kept, n);
  rtsp_parser_clear (self);
  return n;
}

// ---- the head of a message ----

// Returns the length of the head with its empty line, or 0 if it is incomplete. Lines may end with
// CR LF, LF or CR.
static gsize
find_head (const guint8 *bytes, gsize len)
{
  for (gsize i = 0; i < len; i++) {
    const guint8 *end = bytes + i;
    gsize left = len - i;

    if (left >= 4 && !memcmp (end, "\r\n\r\n", 4))
      return i + 4;
    if (left >= 2 && (!memcmp (end, "\n\n", 2) || !memcmp (end, "\r\r", 2)))
      return i + 2;
  }
  return 0;
}

// Ends the next line with a 0 and joins the lines that continue it. Returns the text behind it.
static gchar *
cut_line (gchar *line)
{
  gchar *end = line;

  while (*(end += strcspn (end, "\r\n"))) {
    gchar *next = end + (end[0] == '\r' && end[1] == '\n' ? 2 : 1);

    if (*next != ' ' && *next != '\t') {
      *end = '\0';
      return next;
    }
    memset (end, ' ', (gsize) (next - end));
  }
  return end;
}

static gboolean
parse_first_line (RtspMessage *message, gchar *line)
{
  gchar *uri, *version, *rest;

  if (g_str_has_prefix (line, "RTSP/")) {
    message->status = (guint) strtoul (line + strcspn (line, " \t"), &rest, 10);
    return message->status >= 100 && message->status <= 999 && (!*rest || g_ascii_isspace (*rest));
  }
  uri = strchr (line, ' ');
  version = uri ? strrchr (uri + 1, ' ') : NULL;
  if (!version || !g_str_has_prefix (version + 1, "RTSP/"))
    return FALSE;
  *uri = *version = '\0';
  message->method = line;
  message->uri = g_strstrip (uri + 1);
  return TRUE;
}

// Lines without a name are ignored.
static gboolean
parse_head (RtspMessage *message, gchar *head)
{
  gchar *next = cut_line (head);

  if (!parse_first_line (message, head))
    return FALSE;
  while (*next && message->n_headers < RTSP_HEADERS_MAX) {
    gchar *line = next, *colon;

    next = cut_line (line);
    colon = strchr (line, ':');
    if (!colon || colon == line)
      continue;
    *colon = '\0';
    message->headers[message->n_headers++] =
        (RtspHeader) { g_strchomp (line), g_strstrip (colon + 1) };
  }
  return TRUE;
}

// ---- messages and packets ----

static gboolean
is_expected (const RtspParser *self, guint8 channel)
{
  return self->channels[channel / 64] >> channel % 64 & 1;
}

// Each returns the number of bytes that it took, or 0 if they are incomplete, and may set `wrong`.

static gsize
take_packet (RtspParser *self, guint8 *bytes, gsize len)
{
  gsize size;

  if (len < PACKET_HEADER)
    return 0;
  size = (gsize) bytes[2] << 8 | bytes[3];
  if (len < PACKET_HEADER + size)
    return 0;
  self->is_synced |= is_expected (self, bytes[1]);
  self->ops->packet (self->data, bytes[1], bytes + PACKET_HEADER, size);
  return PACKET_HEADER + size;
}

static gboolean
get_body_length (const RtspMessage *message, gsize *length)
{
  const gchar *text = rtsp_message_get (message, "Content-Length", 0);
  guint64 number = 0;

  *length = 0;
  if (text && !g_ascii_string_to_unsigned (text, 10, 0, RTSP_BODY_MAX, &number, NULL))
    return FALSE;
  *length = number;
  return TRUE;
}

// The head is parsed in a copy while the body is incomplete.
static gsize
take_message (RtspParser *self, guint8 *bytes, gsize len, const gchar **wrong)
{
  gsize head = find_head (bytes, MIN (len, RTSP_HEAD_MAX)), body = 0;
  RtspMessage message;
  gchar *text;
  guint8 behind;

  if (head == 0) {
    if (len >= RTSP_HEAD_MAX)
      *wrong = "a message's headers do not end";
    return 0;
  }
  if (memchr (bytes, '\0', head)) {
    *wrong = "a message has a byte 0";
    return 0;
  }
  message = (RtspMessage) { .n_headers = 0 };
  text = g_strndup ((gchar *) bytes, head);
  if (!parse_head (&message, text))
    *wrong = "it is neither an RTSP message nor an interleaved packet";
  else if (!get_body_length (&message, &body))
    *wrong = "a message's Content-Length is wrong or too large";
  if (*wrong || len - head < body) {
    g_free (text);
    return 0;
  }
  message.body = (gchar *) bytes + head;
  message.body_len = body;
  behind = bytes[head + body];
  bytes[head + body] = '\0';
  self->ops->message (self->data, &message);
  bytes[head + body] = behind;
  g_free (text);
  return head + body;
}

// ---- bytes that are neither ----

void
rtsp_parser_expect (RtspParser *self, guint8 channel)
{
  self->channels[channel / 64] |= G_GUINT64_CONSTANT (1) << channel % 64;
}

typedef enum {
  LOOKS_LIKE_NEITHER,
  LOOKS_LIKE_ONE,
  LOOKS_SHORT, // more bytes are needed
} Looks;

// Reports whether bytes look like a packet of a channel that is expected: of RTP or RTCP.
static Looks
look_for_packet (const RtspParser *self, const guint8 *bytes, gsize len)
{
  if (len < PACKET_HEADER + 1)
    return LOOKS_SHORT;
  return is_expected (self, bytes[1]) && (bytes[2] << 8 | bytes[3]) >= PACKET_MIN
                 && bytes[PACKET_HEADER] >> 6 == 2
             ? LOOKS_LIKE_ONE
             : LOOKS_LIKE_NEITHER;
}

static Looks
look_for (const gchar *text, const guint8 *bytes, gsize len)
{
  gsize size = strlen (text);

  if (memcmp (bytes, text, MIN (len, size)) != 0)
    return LOOKS_LIKE_NEITHER;
  return len < size ? LOOKS_SHORT : LOOKS_LIKE_ONE;
}

// Reports whether bytes begin like a message: with a version, or with a method and a blank.
static Looks
look_for_message (const guint8 *bytes, gsize len)
{
  Looks looks = look_for ("RTSP/", bytes, len);
  gsize n;

  for (n = 0; looks == LOOKS_LIKE_NEITHER && n < len && n < METHOD_MAX; n++) {
    if (bytes[n] == ' ')
      return LOOKS_LIKE_ONE;
    if (!g_ascii_isupper (bytes[n]) && bytes[n] != '_')
      return LOOKS_LIKE_NEITHER;
  }
  return looks == LOOKS_LIKE_NEITHER && n == len ? LOOKS_SHORT : looks;
}

// Skips bytes up to the next packet or answer. Returns the number of bytes that are neither.
static gsize
skip_bytes (RtspParser *self, const guint8 *bytes, gsize len)
{
  for (gsize i = 0; i < len; i++) {
    Looks looks = bytes[i] == '$'   ? look_for_packet (self, bytes + i, len - i)
                  : bytes[i] == 'R' ? look_for ("RTSP/1.0 ", bytes + i, len - i)
                                    : LOOKS_LIKE_NEITHER;

    if (looks == LOOKS_LIKE_ONE)
      self->is_lost = FALSE;
    if (looks != LOOKS_LIKE_NEITHER)
      return i;
  }
  return len;
}

// Begins to skip bytes, if they may be skipped.
static gboolean
lose (RtspParser *self)
{
  if (!self->is_synced)
    return FALSE;
  self->is_lost = TRUE;
  if (self->n_skipped == 0 && self->ops->skipped)
    self->ops->skipped (self->data);
  return TRUE;
}

// Takes what comes next, and returns the number of its bytes; 0 if they are incomplete.
static gsize
take_next (RtspParser *self, guint8 *bytes, gsize len, const gchar **wrong)
{
  static const gchar neither[] = "it is neither an RTSP message nor an interleaved packet";
  Looks looks = LOOKS_LIKE_ONE;
  gsize taken;

  if (self->is_lost) {
    taken = skip_bytes (self, bytes, len);
    self->n_skipped += taken;
    if (self->n_skipped > RTSP_SKIP_MAX)
      *wrong = neither;
    if (taken > 0 || self->is_lost || *wrong)
      return taken;
  }
  if (bytes[0] == '\r' || bytes[0] == '\n')
    return 1;
  if (g_ascii_isalpha (bytes[0]) && self->is_synced)
    looks = look_for_message (bytes, len);
  else if (bytes[0] != '$' && !g_ascii_isalpha (bytes[0]))
    looks = LOOKS_LIKE_NEITHER;
  if (looks == LOOKS_LIKE_NEITHER) {
    if (!lose (self)) {
      *wrong = neither;
      return 0;
    }
    self->n_skipped++;
    return 1;
  }
  if (looks == LOOKS_SHORT)
    return 0;
  taken = bytes[0] == '$' ? take_packet (self, bytes, len) : take_message (self, bytes, len, wrong);
  if (taken > 0)
    self->n_skipped = 0;
  return taken;
}

const gchar *
rtsp_parser_take (RtspParser *self, guint8 *bytes, gsize len)
{
  const gchar *wrong = NULL;

  while (len > 0 && !self->stopped && !wrong) {
    gsize taken = take_next (self, bytes, len, &wrong);

    if (taken == 0)
      break;
    bytes += taken;
    len -= taken;
  }
  if (len > 0 && !self->stopped && !wrong) {
    self->kept = g_memdup2 (bytes, len);
    self->n_kept = len;
  }
  return wrong;
}
