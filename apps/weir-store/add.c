// SPDX-License-Identifier: LGPL-2.1-or-later
// The command add.

#include "commands.h"
#include "cuts.h"
#include "files.h"
#include "interrupt.h"
#include "probe.h"
#include "progress.h"
#include "store/writing.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (1 << 20)
#define BLOCK_MIN (64 << 10)
#define BLOCK_MAX (128 << 20)
#define TS_BYTES 188

typedef struct {
  const AddFile *file;
  WeirTitleWriter *writer;
  Cuts *cuts;
  GByteArray *bytes; // read, but not written
  GArray *keyframes; // of CutsKeyframe, in `bytes` or before
  guint64 offset;    // of the first of `bytes` in the file
  gsize target;      // bytes of a block
  gsize n_blocks;
} Adding;

// Returns the number of bytes of the next block, which ends at the keyframe nearest to the slice,
// if there is one between half a slice and one and a half.
static gsize
choose_length (const Adding *self)
{
  gsize best = self->target, distance = self->target / 2;

  for (guint i = 0; i < self->keyframes->len; i++) {
    guint64 offset = g_array_index (self->keyframes, CutsKeyframe, i).offset;
    gsize length = offset > self->offset ? (gsize) (offset - self->offset) : 0;
    gsize off = length > self->target ? length - self->target : self->target - length;

    if (length > 0 && length < self->bytes->len && off < distance) {
      best = length;
      distance = off;
    }
  }
  return best;
}

// Writes the first `length` bytes as a block.
static gboolean
write_block (Adding *self, gsize length, GError **error)
{
  WeirIndexBlockFlags flags = 0;
  gint64 time_ns = WEIR_INDEX_NO_TIME;
  guint n_past = 0;

  for (; n_past < self->keyframes->len; n_past++) {
    const CutsKeyframe *keyframe = &g_array_index (self->keyframes, CutsKeyframe, n_past);

    if (keyframe->offset >= self->offset + length)
      break;
    if (keyframe->offset == self->offset) {
      flags = WEIR_BLOCK_KEYFRAME;
      time_ns = keyframe->time_ns;
    }
  }
  if (!weir_title_writer_add_block (
          self->writer, self->bytes->data, length, 0, time_ns, flags, error))
    return FALSE;
  self->n_blocks++;
  self->offset += length;
  g_byte_array_remove_range (self->bytes, 0, (guint) length);
  g_array_remove_range (self->keyframes, 0, n_past);
  return TRUE;
}

// Returns FALSE with an error, or when interrupted.
static gboolean
copy (Adding *self, int fd, GError **error)
{
  guint8 *chunk = g_malloc (CHUNK);
  gboolean ok = TRUE;
  gssize n = 1;

  while (ok && n > 0 && !interrupted ()) {
    n = read (fd, chunk, CHUNK);
    if (n < 0) {
      g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED, "%s: cannot read: %s",
          self->file->path, g_strerror (errno));
      ok = FALSE;
      break;
    }
    cuts_feed (self->cuts, chunk, (gsize) n, self->keyframes);
    g_byte_array_append (self->bytes, chunk, (guint) n);
    while (ok && self->bytes->len >= self->target + self->target / 2 && !interrupted ())
      ok = write_block (self, choose_length (self), error);
    progress_show (self->file->name, self->offset, self->file->bytes);
  }
  if (ok && !interrupted () && self->bytes->len > 0)
    ok = write_block (self, self->bytes->len, error);
  g_free (chunk);
  return ok && !interrupted ();
}

static gboolean
write_title (Adding *self, int fd, guint64 rate, gint64 duration_ns, GError **error)
{
  if (!copy (self, fd, error))
    return FALSE;
  if (self->offset != self->file->bytes) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "%s was changed while it was read; add it again", self->file->path);
    return FALSE;
  }
  return weir_title_writer_finish (self->writer, rate, duration_ns, error);
}

// Returns the bytes of a block of one slice.
static gsize
block_bytes (WeirBlockStore *store, guint64 rate, guint64 bytes, CutsKind kind)
{
  gdouble slice = (gdouble) weir_block_store_get_slice (store) / 1e9;
  gsize target = (gsize) CLAMP ((gdouble) rate * slice / 8, BLOCK_MIN, BLOCK_MAX);

  // An index has a bounded number of blocks, of which each may have half the bytes.
  target = MAX (target, (gsize) (bytes / (WEIR_INDEX_BLOCKS_MAX / 4)) + 1);
  return kind == CUTS_TS ? target / TS_BYTES * TS_BYTES : target;
}

static CutsKind
guess (int fd, const gchar *caps)
{
  guint8 begin[3 * TS_BYTES];
  gssize n = pread (fd, begin, sizeof begin, 0);

  return cuts_guess (begin, (gsize) MAX (n, 0), caps);
}

static gboolean
add_opened (WeirBlockStore *store, const AddFile *file, int fd, const Probe *probe, guint64 rate,
    gsize *n_blocks, GError **error)
{
  CutsKind kind = guess (fd, probe->caps);
  Adding self = { .file = file };
  gint64 duration_ns = probe->duration_ns;
  gboolean ok;

  if (duration_ns > 0)
    rate = (guint64) ((gdouble) file->bytes * 8e9 / (gdouble) duration_ns);
  else
    duration_ns = (gint64) ((gdouble) file->bytes * 8e9 / (gdouble) rate);
  self.writer = weir_title_writer_new (store, file->name, probe->caps, file->bytes, error);
  if (!self.writer)
    return FALSE;
  weir_title_writer_leave_room (self.writer, file->bytes_after);
  self.target = block_bytes (store, rate, file->bytes, kind);
  self.cuts = cuts_new (kind);
  self.bytes = g_byte_array_new ();
  self.keyframes = g_array_new (FALSE, FALSE, sizeof (CutsKeyframe));
  ok = write_title (&self, fd, rate, duration_ns, error);
  *n_blocks = self.n_blocks;
  weir_title_writer_free (self.writer);
  cuts_free (self.cuts);
  g_byte_array_unref (self.bytes);
  g_array_unref (self.keyframes);
  return ok;
}

// Adds a file. Returns FALSE with an error, or when interrupted.
static gboolean
add_file (WeirBlockStore *store, const AddFile *file, guint64 rate, gsize *n_blocks, GError **error)
{
  int fd = open (file->path, O_RDONLY | O_CLOEXEC);
  gboolean ok = FALSE;
  Probe probe;

  if (fd < 0) {
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED, "%s: cannot read: %s",
        file->path, g_strerror (errno));
    return FALSE;
  }
  posix_fadvise (fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  probe_file (&probe, file->path);
  if (probe.duration_ns > 0 || rate > 0)
    ok = add_opened (store, file, fd, &probe, rate, n_blocks, error);
  else
    g_set_error (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
        "%s: cannot find its duration%s%s; give its --rate to add it all the same", file->path,
        probe.problem ? ": " : "", probe.problem ? probe.problem : "");
  probe_clear (&probe);
  close (fd);
  return ok;
}

/* All files */

static void
print_added (JsonBuilder *builder, const AddFile *file, gsize n_blocks)
{
  if (builder) {
    json_builder_begin_object (builder);
    json_builder_set_member_name (builder, "name");
    json_builder_add_string_value (builder, file->name);
    json_builder_set_member_name (builder, "bytes");
    json_builder_add_int_value (builder, (gint64) file->bytes);
    json_builder_set_member_name (builder, "blocks");
    json_builder_add_int_value (builder, (gint64) n_blocks);
    json_builder_end_object (builder);
  } else {
    g_autofree gchar *size = units_dup_size (file->bytes);

    printf ("added %s: %s in %" G_GSIZE_FORMAT " block%s\n", file->name, size, n_blocks,
        n_blocks == 1 ? "" : "s");
    fflush (stdout);
  }
}

// Adds the files. Goes on after a file that cannot be added, unless the disks are full.
static int
add_all (WeirBlockStore *store, const GArray *files, guint64 rate, JsonBuilder *builder)
{
  int status = EXIT_SUCCESS;
  gboolean full = FALSE;

  for (guint i = 0; i < files->len && !full && !interrupted (); i++) {
    const AddFile *file = &g_array_index (files, AddFile, i);
    GError *error = NULL;
    gsize n_blocks;
    gboolean ok = add_file (store, file, rate, &n_blocks, &error);

    progress_clear ();
    full = g_error_matches (error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NO_SPACE);
    if (ok)
      print_added (builder, file, n_blocks);
    else if (error)
      status = commands_fail (error);
    else
      status = EXIT_FAILURE; // interrupted
  }
  return status;
}

static int
add_files (WeirBlockStore *store, const Args *args, guint64 rate)
{
  GError *error = NULL;
  GArray *files = files_find (args->words + 1, args->name, &error);
  JsonBuilder *builder = args->json ? json_builder_new () : NULL;
  guint n_refused = 0;
  int status;

  if (!files || !files_check (store, files, &n_refused, &error)) {
    status = commands_fail (error);
  } else {
    if (builder)
      json_builder_begin_array (builder);
    status = add_all (store, files, rate, builder);
    if (n_refused > 0)
      status = EXIT_FAILURE;
    if (builder) {
      json_builder_end_array (builder);
      commands_print_json (g_steal_pointer (&builder));
    }
  }
  g_clear_object (&builder);
  g_clear_pointer (&files, g_array_unref);
  return status;
}

int
add_run (const Args *args)
{
  WeirBlockStore *store;
  guint64 rate = 0;
  int status;

  if (args->rate && !units_parse_rate (args->rate, &rate))
    return commands_usage ("--rate must be a rate such as 6M, not '%s'", args->rate);
  store = commands_open (args);
  if (!store)
    return EXIT_FAILURE;
  gst_init (NULL, NULL);
  status = add_files (store, args, rate);
  weir_block_store_unref (store);
  return status;
}
