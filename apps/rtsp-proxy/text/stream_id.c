// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/stream_id.h"

#include "text/printable.h"

#include <string.h>

#define KEYED "#!::"

// Returns the path of a mount, with the slash that it may lack. (transfer full)
static gchar *
dup_url (const gchar *path)
{
  return g_strconcat (*path == '/' ? "" : "/", path, NULL);
}

static StreamIdVerdict
refuse_id (const gchar **wrong, StreamIdVerdict verdict, const gchar *text)
{
  *wrong = text;
  return verdict;
}

static StreamIdVerdict
set_mode (StreamId *self, const gchar *mode, const gchar **wrong)
{
  self->publishes = g_str_equal (mode, "publish");
  if (self->publishes || g_str_equal (mode, "request"))
    return STREAM_ID_GOOD;
  return refuse_id (wrong, STREAM_ID_BAD_MODE, "its mode (m=) is neither request nor publish");
}

// ---- "#!::" ----

// Returns the field for a key, or NULL if the key has no use here.
static gchar **
find_field (StreamId *self, gchar key)
{
  return key == 'r' ? &self->url : key == 'u' ? &self->user : key == 's' ? &self->secret : NULL;
}

static StreamIdVerdict
read_pair (StreamId *self, const gchar *pair, const gchar **wrong)
{
  gchar **field;

  if (!g_ascii_isalpha (pair[0]) || !strchr (pair, '='))
    return refuse_id (wrong, STREAM_ID_MALFORMED, "after #!:: it must have KEY=VALUE,KEY=VALUE...");
  if (pair[1] != '=')
    return STREAM_ID_GOOD; // a key of the user's own
  if (pair[0] == 'm')
    return set_mode (self, pair + 2, wrong);
  if (pair[0] == 't' && !g_str_equal (pair + 2, "stream"))
    return refuse_id (wrong, STREAM_ID_BAD_MODE, "its type (t=) is not stream");
  field = find_field (self, pair[0]);
  if (!field)
    return STREAM_ID_GOOD;
  if (*field)
    return refuse_id (wrong, STREAM_ID_MALFORMED, "it has a key twice");
  *field = g_strdup (pair + 2);
  return STREAM_ID_GOOD;
}

static StreamIdVerdict
read_keyed (StreamId *self, const gchar *text, const gchar **wrong)
{
  gchar **pairs = g_strsplit (text, ",", -1), *path;
  StreamIdVerdict verdict = STREAM_ID_GOOD;

  for (gchar **pair = pairs; *pair && verdict == STREAM_ID_GOOD; pair++)
    verdict = read_pair (self, *pair, wrong);
  g_strfreev (pairs);
  if (verdict == STREAM_ID_GOOD && !self->url)
    return refuse_id (wrong, STREAM_ID_MALFORMED, "it names no path (r=)");
  path = self->url;
  self->url = path ? dup_url (path) : NULL;
  g_free (path);
  return verdict;
}

// ---- "publish:PATH:USER:SECRET" ----

static StreamIdVerdict
read_plain (StreamId *self, const gchar *text, const gchar **wrong)
{
  gchar **parts = g_strsplit (text, ":", 4);    // a secret may have colons
  const gchar *mode = parts[0] ? parts[0] : ""; // no parts if the text is empty

  self->publishes = g_str_equal (mode, "publish");
  if (!*mode || !parts[1] || (!self->publishes && !g_str_equal (mode, "read"))) {
    g_strfreev (parts);
    return refuse_id (wrong, STREAM_ID_MALFORMED,
        "it must be read:PATH, publish:PATH, either with :USER:SECRET, or #!::r=PATH,...");
  }
  self->url = dup_url (parts[1]);
  self->user = g_strdup (parts[2]);
  self->secret = parts[2] ? g_strdup (parts[3]) : NULL;
  g_strfreev (parts);
  return STREAM_ID_GOOD;
}

// ---- both ----

StreamIdVerdict
stream_id_read (StreamId *self, const gchar *text, const gchar **wrong)
{
  StreamIdVerdict verdict;

  *self = (StreamId) { 0 };
  *wrong = NULL;
  if (strlen (text) > STREAM_ID_MAX)
    return refuse_id (wrong, STREAM_ID_MALFORMED, "it is longer than 512 bytes");
  if (!text_is_printable (text))
    return refuse_id (wrong, STREAM_ID_MALFORMED, "it is not UTF-8, or has control characters");
  verdict = g_str_has_prefix (text, KEYED) ? read_keyed (self, text + strlen (KEYED), wrong)
                                           : read_plain (self, text, wrong);
  if (verdict != STREAM_ID_GOOD)
    stream_id_clear (self);
  return verdict;
}

void
stream_id_clear (StreamId *self)
{
  if (self->secret)
    explicit_bzero (self->secret, strlen (self->secret));
  g_clear_pointer (&self->url, g_free);
  g_clear_pointer (&self->user, g_free);
  g_clear_pointer (&self->secret, g_free);
}
