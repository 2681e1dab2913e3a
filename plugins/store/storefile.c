// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads by libyaml's events: what is not expected at a place is refused there, at no depth beyond
// that of the file's format.

#include "store/storefile.h"

#include "store/files.h"

#include <string.h>
#include <yaml.h>

#define MS G_GINT64_CONSTANT (1000000)

typedef struct {
  const gchar *path;
  yaml_parser_t parser;
  yaml_event_t event;
  WeirStoreFile *file;
  gint64 version;
  GError **error;
} Reader;

static void
clear_disk (gpointer disk)
{
  g_free (((WeirStoreFileDisk *) disk)->path);
}

WeirStoreFile *
weir_store_file_new (void)
{
  WeirStoreFile *self = g_new0 (WeirStoreFile, 1);

  self->disks = g_array_new (FALSE, TRUE, sizeof (WeirStoreFileDisk));
  g_array_set_clear_func (self->disks, clear_disk);
  return self;
}

void
weir_store_file_free (WeirStoreFile *self)
{
  g_array_unref (self->disks);
  g_free (self);
}

static gboolean
has_number (const WeirStoreFile *self, guint16 number)
{
  for (guint i = 0; i < self->disks->len; i++) {
    if (g_array_index (self->disks, WeirStoreFileDisk, i).number == number)
      return TRUE;
  }
  return FALSE;
}

guint16
weir_store_file_add_disk (WeirStoreFile *self, const gchar *path)
{
  WeirStoreFileDisk disk = { 0, FALSE, g_strdup (path) };

  while (has_number (self, disk.number))
    disk.number++;
  g_array_append_val (self->disks, disk);
  return disk.number;
}

gboolean
weir_block_store_parse_slice (const gchar *text, gint64 *ns)
{
  gchar *unit;
  gdouble value = g_ascii_strtod (text, &unit), scale = 0;

  if (g_str_equal (unit, "s"))
    scale = 1000 * MS;
  else if (g_str_equal (unit, "ms"))
    scale = MS;
  if (unit == text || !(value * scale >= WEIR_STORE_SLICE_MIN_NS)
      || !(value * scale <= WEIR_STORE_SLICE_MAX_NS))
    return FALSE;
  *ns = (gint64) (value * scale + 0.5);
  return TRUE;
}

/* Reading */

static gboolean
fail_mark (Reader *reader, yaml_mark_t mark, gint code, const gchar *text)
{
  g_set_error (reader->error, WEIR_STORE_ERROR, code, "%s:%zu:%zu: %s", reader->path, mark.line + 1,
      mark.column + 1, text);
  return FALSE;
}

// Sets an error at the last event.
static gboolean G_GNUC_PRINTF (2, 3) fail (Reader *reader, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  return fail_mark (reader, reader->event.start_mark, WEIR_STORE_ERROR_NO_STORE, text);
}

static gboolean
next (Reader *reader)
{
  yaml_event_delete (&reader->event);
  if (yaml_parser_parse (&reader->parser, &reader->event))
    return TRUE;
  return fail_mark (reader, reader->parser.problem_mark, WEIR_STORE_ERROR_NO_STORE,
      reader->parser.problem ? reader->parser.problem : "no YAML");
}

static gboolean
expect (Reader *reader, yaml_event_type_t type, const gchar *name)
{
  if (!next (reader))
    return FALSE;
  return reader->event.type == type || fail (reader, "%s is expected here", name);
}

// Returns the text of the next scalar, valid until the next event, or NULL.
static const gchar *
next_text (Reader *reader, const gchar *key)
{
  const gchar *text;

  if (!next (reader))
    return NULL;
  text = (const gchar *) reader->event.data.scalar.value;
  if (reader->event.type != YAML_SCALAR_EVENT || *text == '\0') {
    fail (reader, "%s: a value is expected here", key);
    return NULL;
  }
  return text;
}

static gboolean
read_number (Reader *reader, const gchar *key, guint64 max, guint64 *value)
{
  const gchar *text = next_text (reader, key);

  if (!text)
    return FALSE;
  return g_ascii_string_to_unsigned (text, 10, 0, max, value, NULL)
         || fail (reader, "%s: '%s' is not a number from 0 to %" G_GUINT64_FORMAT, key, text, max);
}

static gboolean
read_disk_key (Reader *reader, WeirStoreFileDisk *disk, const gchar *key, gboolean *numbered)
{
  const gchar *text;
  guint64 number;

  if (g_str_equal (key, "number")) {
    if (!read_number (reader, key, G_MAXUINT16 - 1, &number))
      return FALSE;
    disk->number = (guint16) number;
    *numbered = TRUE;
    return TRUE;
  }
  if (!g_str_equal (key, "path") && !g_str_equal (key, "removing"))
    return fail (reader, "disks: unknown key '%s'; known are number, path and removing", key);
  text = next_text (reader, key);
  if (!text)
    return FALSE;
  if (g_str_equal (key, "removing")) {
    disk->removing = g_str_equal (text, "true");
    return disk->removing || g_str_equal (text, "false")
           || fail (reader, "removing: '%s' is neither true nor false", text);
  }
  g_free (disk->path);
  disk->path = g_strdup (text);
  return g_path_is_absolute (text) || fail (reader, "path: '%s' is not an absolute path", text);
}

static gboolean
check_disk (Reader *reader, const WeirStoreFileDisk *disk, gboolean numbered)
{
  GArray *disks = reader->file->disks;

  if (!numbered || !disk->path)
    return fail (reader, "disks: this disk needs a number and a path");
  for (guint i = 0; i < disks->len; i++) {
    const WeirStoreFileDisk *other = &g_array_index (disks, WeirStoreFileDisk, i);

    if (other->number == disk->number)
      return fail (reader, "disks: number %u appears twice", disk->number);
    if (g_str_equal (other->path, disk->path))
      return fail (reader, "disks: path '%s' appears twice", disk->path);
  }
  return disks->len < WEIR_STORE_DISKS_MAX
         || fail (reader, "disks: more than %d disks", WEIR_STORE_DISKS_MAX);
}

static gboolean
read_disk (Reader *reader)
{
  WeirStoreFileDisk disk = { 0 };
  gboolean numbered = FALSE, ok;

  while ((ok = next (reader)) && reader->event.type == YAML_SCALAR_EVENT) {
    g_autofree gchar *key = g_strdup ((const gchar *) reader->event.data.scalar.value);

    ok = read_disk_key (reader, &disk, key, &numbered);
    if (!ok)
      break;
  }
  if (ok && reader->event.type != YAML_MAPPING_END_EVENT)
    ok = fail (reader, "disks: a key is expected here");
  if (ok && check_disk (reader, &disk, numbered)) {
    g_array_append_val (reader->file->disks, disk);
    return TRUE;
  }
  g_free (disk.path);
  return FALSE;
}

static gboolean
read_disks (Reader *reader)
{
  if (!expect (reader, YAML_SEQUENCE_START_EVENT, "disks: a list of disks"))
    return FALSE;
  while (next (reader)) {
    if (reader->event.type == YAML_SEQUENCE_END_EVENT)
      return TRUE;
    if (reader->event.type != YAML_MAPPING_START_EVENT)
      return fail (reader, "disks: a disk with number and path is expected here");
    if (!read_disk (reader))
      return FALSE;
  }
  return FALSE;
}

static gboolean
read_version (Reader *reader)
{
  guint64 version;

  if (!read_number (reader, "version", G_MAXUINT32, &version))
    return FALSE;
  reader->version = (gint64) version;
  if (version > WEIR_STORE_FILE_VERSION) {
    g_set_error (reader->error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NEWER,
        "%s:%zu:%zu: version %u of the store is newer than version %d, which this program reads; "
        "update the program",
        reader->path, reader->event.start_mark.line + 1, reader->event.start_mark.column + 1,
        (guint) version, WEIR_STORE_FILE_VERSION);
    return FALSE;
  }
  return version > 0 || fail (reader, "version: 0 is not a version");
}

static gboolean
read_key (Reader *reader, const gchar *key)
{
  WeirStoreFile *file = reader->file;
  const gchar *text;
  gint policy;

  if (g_str_equal (key, "version"))
    return read_version (reader);
  if (g_str_equal (key, "disks"))
    return read_disks (reader);
  if (!g_str_equal (key, "id") && !g_str_equal (key, "slice") && !g_str_equal (key, "policy"))
    return fail (reader, "unknown key '%s'; known are version, id, policy, slice and disks", key);
  text = next_text (reader, key);
  if (!text)
    return FALSE;
  if (g_str_equal (key, "id")) {
    if (strlen (text) != 32 || strspn (text, "0123456789abcdef") != 32)
      return fail (reader, "id: '%s' has not 32 hexadecimal digits", text);
    g_strlcpy (file->id, text, sizeof file->id);
    return TRUE;
  }
  if (g_str_equal (key, "slice"))
    return weir_block_store_parse_slice (text, &file->slice_ns)
           || fail (reader, "slice: '%s' is not a time from 100ms to 60s", text);
  policy = weir_placement_policy (text);
  file->policy = (WeirPlacementPolicy) MAX (policy, 0);
  return policy >= 0
         || fail (reader, "policy: '%s' is none of naive, raid0, raid1, random, rda", text);
}

static gboolean
read_document (Reader *reader)
{
  gboolean ok;

  if (!expect (reader, YAML_STREAM_START_EVENT, "YAML")
      || !expect (reader, YAML_DOCUMENT_START_EVENT, "a document")
      || !expect (reader, YAML_MAPPING_START_EVENT, "a key such as 'policy'"))
    return FALSE;
  while ((ok = next (reader)) && reader->event.type == YAML_SCALAR_EVENT) {
    g_autofree gchar *key = g_strdup ((const gchar *) reader->event.data.scalar.value);

    if (!read_key (reader, key))
      return FALSE;
  }
  if (!ok)
    return FALSE;
  if (reader->event.type != YAML_MAPPING_END_EVENT)
    return fail (reader, "a key is expected here");
  if (reader->version == 0 || reader->file->id[0] == '\0' || reader->file->slice_ns == 0
      || reader->file->disks->len == 0)
    return fail (reader, "version, id, slice or disks are missing");
  return TRUE;
}

WeirStoreFile *
weir_store_file_parse (const gchar *path, const gchar *text, gsize length, GError **error)
{
  Reader reader = { .path = path, .error = error };
  gboolean ok;

  reader.file = weir_store_file_new ();
  yaml_parser_initialize (&reader.parser);
  yaml_parser_set_input_string (&reader.parser, (const guint8 *) text, length);
  ok = read_document (&reader);
  yaml_event_delete (&reader.event);
  yaml_parser_delete (&reader.parser);
  if (!ok)
    g_clear_pointer (&reader.file, weir_store_file_free);
  return reader.file;
}

WeirStoreFile *
weir_store_file_read (const gchar *dir, GError **error)
{
  g_autofree gchar *path = g_build_filename (dir, WEIR_STORE_FILE, NULL), *text = NULL;
  g_autoptr (GError) problem = NULL;
  gsize length;

  if (g_file_get_contents (path, &text, &length, &problem))
    return weir_store_file_parse (path, text, length, error);
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_STORE, "%s is not a store: %s", dir,
      g_error_matches (problem, G_FILE_ERROR, G_FILE_ERROR_NOENT)
          ? "it has no store.yaml; make a store with weir-store init"
          : problem->message);
  return NULL;
}

/* Writing */

static void
put_quoted (GString *out, const gchar *text)
{
  g_string_append_c (out, '"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      g_string_append_printf (out, "\\%c", *text);
    else if ((guchar) *text < 0x20 || *text == 0x7f)
      g_string_append_printf (out, "\\x%02x", (guchar) *text);
    else
      g_string_append_c (out, *text);
  }
  g_string_append_c (out, '"');
}

gboolean
weir_store_file_write (const WeirStoreFile *self, const gchar *dir, GError **error)
{
  g_autofree gchar *path = g_build_filename (dir, WEIR_STORE_FILE, NULL);
  g_autofree gchar *part = g_strconcat (path, ".part", NULL);
  g_autoptr (GString) out = g_string_new ("# Written by weir-store. Paths may be changed.\n");

  g_string_append_printf (out,
      "version: %d\nid: %s\npolicy: %s\nslice: %" G_GINT64_FORMAT "ms\ndisks:\n",
      WEIR_STORE_FILE_VERSION, self->id, weir_placement_name (self->policy), self->slice_ns / MS);
  for (guint i = 0; i < self->disks->len; i++) {
    const WeirStoreFileDisk *disk = &g_array_index (self->disks, WeirStoreFileDisk, i);

    g_string_append_printf (out, "- number: %u\n  path: ", disk->number);
    put_quoted (out, disk->path);
    g_string_append (out, disk->removing ? "\n  removing: true\n" : "\n");
  }
  return weir_files_write (path, part, (const guint8 *) out->str, out->len, error)
         && weir_files_sync_folder (dir, error);
}
