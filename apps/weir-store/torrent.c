// SPDX-License-Identifier: LGPL-2.1-or-later
// The command torrent.

#include "commands.h"
#include "interrupt.h"
#include "metainfo.h"
#include "progress.h"
#include "run/clock.h"
#include "store/reading.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1 << 20)

typedef struct {
  const gchar *title; // its name in the store, or the name of the file
  guint64 bytes, done;
  guint32 piece_bytes;
  GChecksum *piece; // of the piece that is being read
  guint32 in_piece; // bytes of it
  GByteArray *hashes;
} Hashing;

// ---- hashing ----

static void
end_piece (Hashing *self)
{
  guint8 hash[METAINFO_HASH_BYTES];
  gsize length = sizeof hash;

  g_checksum_get_digest (self->piece, hash, &length);
  g_byte_array_append (self->hashes, hash, sizeof hash);
  g_checksum_reset (self->piece);
  self->in_piece = 0;
}

// Takes the next bytes of the title.
static void
hash_bytes (Hashing *self, const guint8 *bytes, gsize length)
{
  while (length > 0) {
    gsize n = MIN (length, self->piece_bytes - self->in_piece);

    g_checksum_update (self->piece, bytes, (gssize) n);
    self->in_piece += (guint32) n;
    self->done += n;
    bytes += n;
    length -= n;
    if (self->in_piece == self->piece_bytes || self->done == self->bytes)
      end_piece (self);
  }
  progress_show (self->title, self->done, self->bytes);
}

// Chooses the length of pieces, unless it is given. Returns FALSE with an error if it is too small.
static gboolean
begin_hashing (Hashing *self, guint64 bytes, guint32 piece_bytes, GError **error)
{
  guint64 n_pieces;

  self->bytes = bytes;
  self->piece_bytes = piece_bytes ? piece_bytes : metainfo_choose_piece (bytes);
  self->piece = g_checksum_new (G_CHECKSUM_SHA1);
  self->hashes = g_byte_array_new ();
  n_pieces = (bytes + self->piece_bytes - 1) / self->piece_bytes;
  if (n_pieces <= METAINFO_PIECES_MAX)
    return TRUE;
  g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
      "%s: %" G_GUINT64_FORMAT " pieces are more than the %u that clients take%s", self->title,
      n_pieces, METAINFO_PIECES_MAX, piece_bytes ? "; give a longer --piece" : "");
  return FALSE;
}

// Returns FALSE with an error, or when interrupted.
static gboolean
hash_file (Hashing *self, int fd, GError **error)
{
  g_autofree guint8 *chunk = g_malloc (CHUNK);
  gssize n = 1;

  while (n > 0 && self->done < self->bytes && !interrupted ()) {
    n = read (fd, chunk, MIN (CHUNK, self->bytes - self->done));
    if (n < 0) {
      g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED, "%s: cannot read: %s",
          self->title, g_strerror (errno));
      return FALSE;
    }
    hash_bytes (self, chunk, (gsize) n);
  }
  if (self->done < self->bytes && !interrupted ())
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "%s was changed while it was read; try again", self->title);
  return self->done == self->bytes;
}

static gboolean
open_and_hash_file (Hashing *self, const gchar *path, guint32 piece_bytes, GError **error)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  const gchar *problem = NULL;
  gboolean ok = FALSE;
  struct stat st;

  if (fd < 0 || fstat (fd, &st) < 0)
    problem = g_strerror (errno);
  else if (S_ISDIR (st.st_mode))
    problem = "a folder; name a title of the store, too";
  else if (!S_ISREG (st.st_mode))
    problem = "not a file";
  else if (st.st_size == 0)
    problem = "the file is empty";
  if (problem)
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED, "%s: %s", path, problem);
  else
    ok = begin_hashing (self, (guint64) st.st_size, piece_bytes, error)
         && hash_file (self, fd, error);
  if (fd >= 0)
    close (fd);
  return ok;
}

// Returns FALSE with an error, or when interrupted.
static gboolean
hash_blocks (Hashing *self, WeirStoredTitle *title, GError **error)
{
  const WeirIndex *index = weir_stored_title_get_index (title);

  for (guint32 i = 0; i < index->n_blocks; i++) {
    GError *why = NULL;
    WeirBlock *block = weir_block_read (title, i, weir_now_ns (), interrupt_get (), &why);
    const guint8 *bytes;
    gsize length;

    if (!block) {
      if (!interrupted ())
        g_propagate_error (error, g_steal_pointer (&why));
      g_clear_error (&why);
      return FALSE;
    }
    bytes = weir_block_get_bytes (block, &length);
    hash_bytes (self, bytes, length);
    weir_block_unref (block);
  }
  return TRUE;
}

static gboolean
open_and_hash_title (Hashing *self, const gchar *dir, guint32 piece_bytes, GError **error)
{
  WeirBlockStore *store = weir_block_store_open (dir, error);
  WeirStoredTitle *title = store ? weir_block_store_open_title (store, self->title, error) : NULL;
  gboolean ok = title != NULL;

  ok = ok && begin_hashing (self, weir_stored_title_get_index (title)->bytes, piece_bytes, error)
       && hash_blocks (self, title, error);
  g_clear_pointer (&title, weir_stored_title_unref);
  g_clear_pointer (&store, weir_block_store_unref);
  return ok;
}

// ---- the result ----

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *value)
{
  json_builder_set_member_name (builder, name);
  if (value)
    json_builder_add_string_value (builder, value);
  else
    json_builder_add_null_value (builder);
}

static void
add_int (JsonBuilder *builder, const gchar *name, guint64 value)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, (gint64) value);
}

static void
print_json (const Metainfo *metainfo, const gchar *path, const gchar *info_hash)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  add_text (builder, "file", path);
  add_text (builder, "name", metainfo->name);
  add_text (builder, "info-hash", info_hash);
  add_int (builder, "bytes", metainfo->bytes);
  add_int (builder, "piece-length", metainfo->piece_bytes);
  add_int (builder, "pieces", metainfo->hashes->len / METAINFO_HASH_BYTES);
  json_builder_set_member_name (builder, "private");
  json_builder_add_boolean_value (builder, metainfo->is_private);
  add_text (builder, "origin", metainfo->origin);
  json_builder_set_member_name (builder, "trackers");
  json_builder_begin_array (builder);
  for (guint i = 0; metainfo->trackers && metainfo->trackers[i]; i++)
    json_builder_add_string_value (builder, metainfo->trackers[i]);
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  commands_print_json (builder);
}

static void
print (const Metainfo *metainfo, const gchar *path, const gchar *info_hash)
{
  g_autofree gchar *size = units_dup_size (metainfo->bytes);

  printf ("wrote %s: %s in %u pieces of %u KiB, info hash %s\n", path, size,
      metainfo->hashes->len / METAINFO_HASH_BYTES, metainfo->piece_bytes >> 10, info_hash);
}

static gboolean
write_file (const Metainfo *metainfo, const Args *args, GError **error)
{
  g_autofree gchar *usual = g_strconcat (metainfo->name, ".torrent", NULL), *info_hash = NULL;
  const gchar *path = args->output ? args->output : usual;
  GByteArray *file = metainfo_write (metainfo, &info_hash);
  gboolean ok = g_file_set_contents_full (path, (const gchar *) file->data, (gssize) file->len,
      G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0644, error);

  g_byte_array_unref (file);
  if (ok && args->json)
    print_json (metainfo, path, info_hash);
  else if (ok)
    print (metainfo, path, info_hash);
  return ok;
}

// ---- arguments ----

static gboolean
is_url (const gchar *text, const gchar *const *schemes)
{
  g_autoptr (GUri) uri = g_uri_parse (text, G_URI_FLAGS_ENCODED, NULL);

  return uri && g_uri_get_host (uri) && *g_uri_get_host (uri)
         && g_strv_contains (schemes, g_uri_get_scheme (uri));
}

static gboolean
parse_piece (const gchar *text, guint32 *bytes)
{
  gchar *end;
  guint64 value = g_ascii_strtoull (text, &end, 10);
  guint shift = g_str_equal (end, "K") ? 10 : g_str_equal (end, "M") ? 20 : 0;

  if (!g_ascii_isdigit (*text) || !shift || value > METAINFO_PIECE_MAX)
    return FALSE;
  value <<= shift;
  *bytes = (guint32) value;
  return value >= METAINFO_PIECE_MIN && value <= METAINFO_PIECE_MAX && (value & (value - 1)) == 0;
}

// Returns EXIT_SUCCESS, or the exit status after printing what is wrong.
static int
check_arguments (const Args *args, guint32 *piece_bytes)
{
  static const gchar *const web[] = { "http", "https", NULL };
  static const gchar *const trackers[] = { "http", "https", "udp", NULL };

  if (args->piece && !parse_piece (args->piece, piece_bytes))
    return commands_usage (
        "--piece must be a power of two from 16K to 16M, such as 512K, not '%s'", args->piece);
  if (args->origin && !is_url (args->origin, web))
    return commands_usage (
        "--origin must be a URL such as https://host/films/, not '%s'", args->origin);
  for (guint i = 0; args->trackers && args->trackers[i]; i++) {
    if (!is_url (args->trackers[i], trackers))
      return commands_usage (
          "--tracker must be a URL such as http://host:6969/announce, not '%s'", args->trackers[i]);
  }
  if (args->name
      && (!*args->name || *args->name == '.' || strchr (args->name, '/')
          || !g_utf8_validate (args->name, -1, NULL)))
    return commands_usage ("--name must be a file name, not '%s'", args->name);
  return EXIT_SUCCESS;
}

// Returns the URL of the title at the origin (transfer full), or NULL.
static gchar *
dup_origin (const Args *args, const gchar *title)
{
  g_autofree gchar *path = NULL;

  if (!args->origin || !g_str_has_suffix (args->origin, "/"))
    return g_strdup (args->origin);
  path = g_uri_escape_string (title, "/", FALSE);
  return g_strconcat (args->origin, path, NULL);
}

int
torrent_run (const Args *args)
{
  const gchar *path = args->words[1] ? NULL : args->words[0];
  g_autofree gchar *name = g_path_get_basename (path ? path : args->words[1]);
  Hashing hashing = { .title = path ? name : args->words[1] };
  g_autofree gchar *origin = dup_origin (args, hashing.title);
  GError *error = NULL;
  guint32 piece_bytes = 0;
  gboolean ok;
  int status = check_arguments (args, &piece_bytes);

  if (status != EXIT_SUCCESS)
    return status;
  ok = path ? open_and_hash_file (&hashing, path, piece_bytes, &error)
            : open_and_hash_title (&hashing, args->words[0], piece_bytes, &error);
  progress_clear ();
  if (ok) {
    Metainfo metainfo = { .name = args->name ? args->name : name,
      .bytes = hashing.bytes,
      .piece_bytes = hashing.piece_bytes,
      .hashes = hashing.hashes,
      .origin = origin,
      .trackers = (const gchar *const *) args->trackers,
      .is_private = args->is_private };

    ok = write_file (&metainfo, args, &error);
  }
  g_clear_pointer (&hashing.piece, g_checksum_free);
  g_clear_pointer (&hashing.hashes, g_byte_array_unref);
  return ok ? EXIT_SUCCESS : error ? commands_fail (error) : EXIT_FAILURE;
}
