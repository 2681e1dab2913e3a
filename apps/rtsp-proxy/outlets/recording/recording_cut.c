// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_cut.h"

#include <errno.h>
#include <gio/gio.h>
#include <unistd.h>

#include "outlets/recording/recording_folder.h"

#define CHUNK (256 * 1024)
#define SEGMENTS_MAX 100000
#define PARTED_NS G_GINT64_CONSTANT (2000000000) // of the clock and the stream's time
#define NS_PER_S G_GINT64_CONSTANT (1000000000)

typedef struct {
  RecordingFacts facts;
  guint64 from, to; // in the file
  guint64 at;       // in the result
  gint64 base_ns;   // the stream's time at the result's time 0
} Piece;

struct _RecordingCut {
  gchar *folder, *mount;
  GArray *pieces; // of Piece
  guint64 size;
  gint64 start_us;
  gint64 lead_ns; // where the leading track begins in the result
  gint64 next_us; // of the segment with another format that ends the stretch; 0: none does
  guint64 tag;

  // The place.
  guint piece; // whose file is open, if `fd` is not -1
  int fd;
  guint64 at;        // in the result
  guint64 copy_left; // bytes of the current box, which are copied as they are
  guint64 skip;      // bytes that are read but not given
};

static Piece *
nth (const RecordingCut *self, guint i)
{
  return &g_array_index (self->pieces, Piece, i);
}

static gboolean
fail (const RecordingCut *self, const gchar *what, GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "the recording of %s %s", self->mount, what);
  return FALSE;
}

static int
open_piece (const RecordingCut *self, const Piece *piece, GError **error)
{
  int fd = recording_folder_open_file (self->folder, self->mount, piece->facts.start_us);

  if (fd < 0)
    fail (self, errno == ENOENT ? "has been deleted meanwhile" : "cannot be opened", error);
  return fd;
}

// ---- places in a file ----

static gint64
get_lead_ns (const Piece *piece, const WeirMp4Moof *moof)
{
  const guint lead = piece->facts.init.lead;

  return recording_facts_get_ns (&piece->facts, lead, moof->trafs[lead].start);
}

// Returns a moof at or before `at` from which on boxes can be followed; by the index if there is
// one.
static guint64
find_box_before (int fd, const Piece *piece, guint64 at)
{
  g_autoptr (GArray) entries =
      piece->facts.complete ? recording_file_read_entries (fd, &piece->facts) : NULL;
  guint64 found = piece->facts.init.size;

  for (guint i = 0; entries && i < entries->len; i++) {
    guint64 entry = g_array_index (entries, WeirMp4Entry, i).at;

    if (entry <= at && entry >= found)
      found = entry;
  }
  return found;
}

// Returns where decoders can start in the file of a piece. (transfer full)
static GArray *
read_entries (int fd, const Piece *piece)
{
  RecordingFacts facts = piece->facts;
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (WeirMp4Entry));

  if (!facts.complete)
    recording_file_read (fd, &facts, entries);
  if (!facts.complete)
    return entries;
  g_array_unref (entries);
  return recording_file_read_entries (fd, &facts);
}

// Returns the newest of the entries before `ns` of the stream's time, or `from` if that is later in
// the file.
static guint64
find_entry (const GArray *entries, const Piece *piece, guint64 from, gint64 ns)
{
  const RecordingFacts *facts = &piece->facts;
  guint64 found = from;

  for (guint i = 0; i < entries->len; i++) {
    const WeirMp4Entry *entry = &g_array_index (entries, WeirMp4Entry, i);

    if (recording_facts_get_ns (facts, facts->init.lead, entry->time) >= ns)
      break;
    if (entry->at > found && entry->at < facts->end)
      found = entry->at;
  }
  return found;
}

// Returns where the first part begins that is at `ns` or later.
static guint64
find_end (int fd, const Piece *piece, guint64 from, gint64 ns)
{
  guint64 part = from;
  WeirMp4Moof moof;
  WeirMp4Box box;

  for (guint64 at = from; recording_file_read_box (fd, at, piece->facts.end, &box);
      at += box.size) {
    guint8 *bytes = g_str_equal (box.type, "moof")
                        ? recording_file_read_moof (fd, &piece->facts, at, box.size, &moof)
                        : NULL;
    gboolean over =
        bytes && moof.trafs[piece->facts.init.lead].has && get_lead_ns (piece, &moof) >= ns;

    g_free (bytes);
    if (over)
      return part;
    if (g_str_equal (box.type, "mdat"))
      part = at + box.size;
  }
  return piece->facts.end;
}

// ---- the plan ----

// Sets when the result begins: with the earliest track of the first fragment.
static gboolean
set_first_base (RecordingCut *self, int fd, GError **error)
{
  Piece *first = nth (self, 0);
  const WeirMp4Init *init = &first->facts.init;
  guint64 at = first->from;
  g_autofree guint8 *bytes = NULL;
  WeirMp4Moof moof;
  WeirMp4Box box = { 0 };
  gint64 lead_ns;

  while (recording_file_read_box (fd, at, first->to, &box) && g_str_equal (box.type, "styp"))
    at += box.size;
  if (at < first->to)
    bytes = recording_file_read_moof (fd, &first->facts, at, box.size, &moof);
  if (!bytes || !moof.trafs[init->lead].has)
    return fail (self, "cannot be read", error);
  first->base_ns = lead_ns = get_lead_ns (first, &moof);
  self->start_us =
      first->facts.start_us + (lead_ns - recording_facts_get_first_ns (&first->facts)) / 1000;
  for (guint i = 0; i < init->n_tracks; i++) {
    if (moof.trafs[i].has)
      first->base_ns =
          MIN (first->base_ns, recording_facts_get_ns (&first->facts, i, moof.trafs[i].start));
  }
  self->lead_ns = lead_ns - first->base_ns;
  return TRUE;
}

// Sets the time of a later piece. `end_ns` is where the one before ends in the result.
static void
set_base (RecordingCut *self, guint i, gint64 *end_ns)
{
  Piece *piece = nth (self, i);
  const Piece *before = i > 0 ? nth (self, i - 1) : NULL;
  gint64 wall_ns = before ? (piece->facts.start_us - before->facts.start_us) * 1000 : 0;
  gint64 first_ns = recording_facts_get_first_ns (&piece->facts);
  gint64 media_ns = before ? first_ns - recording_facts_get_first_ns (&before->facts) : 0;

  if (before && piece->facts.first >= before->facts.last && ABS (wall_ns - media_ns) < PARTED_NS)
    piece->base_ns = before->base_ns;
  else if (before)
    piece->base_ns =
        first_ns - MAX ((piece->facts.start_us - self->start_us) * 1000 + self->lead_ns, *end_ns);
  *end_ns = piece->facts.over_ns - piece->base_ns;
}

// Returns the newest keyframe at `us` after the beginning of the first piece or before, or the
// first one. Times of the API are whole microseconds.
static guint64
find_key (const GArray *entries, const Piece *piece, gint64 us)
{
  const RecordingFacts *facts = &piece->facts;
  gint64 zero_ns = entries->len == 0 ? 0
                                     : recording_facts_get_ns (facts, facts->init.lead,
                                           g_array_index (entries, WeirMp4Entry, 0).time);

  return find_entry (entries, piece, piece->from, zero_ns + MAX ((us + 1) * 1000, 1));
}

// Leaves out what the file of the first or the last piece has before and after the stretch.
static gboolean
trim (RecordingCut *self, guint i, gint64 start_us, gint64 end_us, GError **error)
{
  Piece *piece = nth (self, i);
  gint64 zero_us = piece->facts.start_us;
  gint64 end_ns = recording_facts_get_first_ns (&piece->facts) + (end_us - zero_us) * 1000;
  int fd = open_piece (self, piece, error);
  g_autoptr (GArray) entries = NULL;
  gboolean ok = TRUE;

  if (fd < 0)
    return FALSE;
  entries = read_entries (fd, piece);
  if (i == 0)
    piece->from = find_key (entries, piece, start_us - zero_us);
  if (i == self->pieces->len - 1)
    piece->to = find_end (fd, piece, find_entry (entries, piece, piece->from, end_ns), end_ns);
  if (i == 0)
    ok = set_first_base (self, fd, error);
  close (fd);
  return ok;
}

static void
note_in_tag (RecordingCut *self, guint64 number)
{
  self->tag = (self->tag ^ number) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  self->tag ^= self->tag >> 32;
}

static gboolean
plan (RecordingCut *self, gint64 start_us, gint64 end_us, GError **error)
{
  guint n = self->pieces->len;
  gint64 end_ns = 0;

  for (guint i = 0; i < n; i++) {
    Piece *piece = nth (self, i);

    piece->from = piece->facts.init.size;
    piece->to = piece->facts.end;
    if ((i == 0 || i == n - 1) && !trim (self, i, start_us, end_us, error))
      return FALSE;
    set_base (self, i, &end_ns);
    piece->at = self->size;
    self->size += piece->to - piece->from;
    note_in_tag (self, (guint64) piece->facts.start_us);
    note_in_tag (self, piece->facts.format);
    note_in_tag (self, piece->from);
    note_in_tag (self, piece->to);
    note_in_tag (self, (guint64) piece->base_ns);
  }
  return TRUE;
}

RecordingCut *
recording_cut_new (const gchar *folder, const gchar *mount, RecordingList *list, gint64 start_us,
    gint64 duration_us, GError **error)
{
  RecordingCut *self = g_new0 (RecordingCut, 1);
  g_autoptr (GArray) found =
      recording_list_dup (list, start_us, start_us + duration_us, SEGMENTS_MAX);

  self->folder = g_strdup (folder);
  self->mount = g_strdup (mount);
  self->pieces = g_array_sized_new (FALSE, FALSE, sizeof (Piece), found->len);
  self->fd = -1;
  for (guint i = 0; i < found->len; i++) {
    Piece piece = { .facts = g_array_index (found, RecordingFacts, i) };

    if (i > 0 && piece.facts.format != nth (self, 0)->facts.format) {
      self->next_us = piece.facts.start_us;
      break;
    }
    g_array_append_val (self->pieces, piece);
  }
  if (self->pieces->len == 0) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "the recording of %s has nothing in this time", mount);
    g_clear_pointer (&self, recording_cut_free);
    return NULL;
  }
  self->size = nth (self, 0)->facts.init.size;
  if (!plan (self, start_us, start_us + duration_us, error))
    g_clear_pointer (&self, recording_cut_free);
  return self;
}

static void
close_piece (RecordingCut *self)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

void
recording_cut_free (RecordingCut *self)
{
  close_piece (self);
  g_array_unref (self->pieces);
  g_free (self->folder);
  g_free (self->mount);
  g_free (self);
}

guint64
recording_cut_get_size (const RecordingCut *self)
{
  return self->size;
}

gint64
recording_cut_get_start_us (const RecordingCut *self)
{
  return self->start_us;
}

gint64
recording_cut_get_next_us (const RecordingCut *self)
{
  return self->next_us;
}

guint64
recording_cut_get_tag (const RecordingCut *self)
{
  return self->tag;
}

// ---- reading ----

// Opens the piece with the current place. Returns NULL on failure.
static const Piece *
enter (RecordingCut *self, GError **error)
{
  const Piece *piece = nth (self, self->piece);

  while (self->at >= piece->at + (piece->to - piece->from)) {
    close_piece (self);
    self->copy_left = 0;
    piece = nth (self, ++self->piece);
  }
  if (self->fd < 0)
    self->fd = open_piece (self, piece, error);
  return self->fd >= 0 ? piece : NULL;
}

static gboolean
append_file (RecordingCut *self, GByteArray *out, guint64 at, gsize size, GError **error)
{
  guint len = out->len;
  gssize n;

  g_byte_array_set_size (out, len + (guint) size);
  n = pread (self->fd, out->data + len, size, (off_t) at);
  g_byte_array_set_size (out, len + (guint) MAX (n, 0));
  return n > 0 || fail (self, "cannot be read", error);
}

static void
append_moof (RecordingCut *self, const Piece *piece, GByteArray *out, guint8 *bytes, gsize size,
    const WeirMp4Moof *moof)
{
  const WeirMp4Init *init = &piece->facts.init;
  gint64 earlier[WEIR_MP4_TRACKS_MAX] = { 0 };

  for (guint i = 0; i < init->n_tracks; i++)
    earlier[i] = piece->base_ns / NS_PER_S * init->timescales[i]
                 + piece->base_ns % NS_PER_S * init->timescales[i] / NS_PER_S;
  // A number that grows with the place is the same for every range.
  weir_mp4_move (bytes, moof, (guint32) (self->at / 64 + 1), earlier);
  g_byte_array_append (out, bytes, (guint) size);
}

// Appends the current box, or some of it.
static gboolean
append_some (RecordingCut *self, GByteArray *out, GError **error)
{
  const Piece *piece = enter (self, error);
  guint before = out->len;
  WeirMp4Moof moof;
  WeirMp4Box box;
  g_autofree guint8 *bytes = NULL;
  guint64 at;
  gsize size;

  if (!piece)
    return FALSE;
  at = piece->from + (self->at - piece->at);
  if (self->copy_left == 0) {
    if (!recording_file_read_box (self->fd, at, piece->to, &box))
      return fail (self, "cannot be read", error);
    if (g_str_equal (box.type, "moof")) {
      bytes = recording_file_read_moof (self->fd, &piece->facts, at, box.size, &moof);
      if (!bytes)
        return fail (self, "cannot be read", error);
      append_moof (self, piece, out, bytes, box.size, &moof);
      self->at += box.size;
      return TRUE;
    }
    self->copy_left = box.size;
  }
  size = MIN (self->copy_left, CHUNK);
  if (!append_file (self, out, at, size, error))
    return FALSE;
  self->at += out->len - before;
  self->copy_left -= out->len - before;
  return TRUE;
}

static gboolean
append_beginning (RecordingCut *self, GByteArray *out, GError **error)
{
  static const WeirMp4Times none;
  const Piece *first = nth (self, 0);
  gsize size = first->facts.init.size;
  g_autofree guint8 *bytes = NULL;

  self->piece = 0;
  close_piece (self);
  self->fd = open_piece (self, first, error);
  if (self->fd < 0)
    return FALSE;
  bytes = recording_file_read_init (self->fd, &first->facts, &none);
  if (!bytes)
    return fail (self, "cannot be read", error);
  g_byte_array_append (out, bytes + self->at, (guint) (size - self->at));
  self->at = size;
  return TRUE;
}

GBytes *
recording_cut_read (RecordingCut *self, GError **error)
{
  GByteArray *out;
  gboolean ok = TRUE;

  if (self->at >= self->size)
    return NULL;
  out = g_byte_array_new ();
  while (ok && self->at < self->size && out->len < CHUNK)
    ok = self->at < nth (self, 0)->facts.init.size ? append_beginning (self, out, error)
                                                   : append_some (self, out, error);
  if (ok && self->skip > 0)
    g_byte_array_remove_range (out, 0, (guint) self->skip);
  self->skip = 0;
  if (ok)
    return g_byte_array_free_to_bytes (out);
  g_byte_array_unref (out);
  return NULL;
}

// Follows the boxes of the current piece up to the one with the place `to`.
static gboolean
follow (RecordingCut *self, guint64 to, GError **error)
{
  const Piece *piece = enter (self, error);
  guint64 target = piece ? piece->from + (to - piece->at) : 0, at;
  WeirMp4Box box;
  gboolean ok;

  if (!piece)
    return FALSE;
  at = MAX (find_box_before (self->fd, piece, target), piece->from);
  while ((ok = recording_file_read_box (self->fd, at, piece->to, &box)) && at + box.size <= target)
    at += box.size;
  if (!ok)
    return fail (self, "cannot be read", error);
  if (at < target && !g_str_equal (box.type, "moof")) {
    self->copy_left = at + box.size - target;
    at = target;
  }
  self->at = piece->at + (at - piece->from);
  self->skip = target - at; // within a moof, or the box ahead
  return TRUE;
}

gboolean
recording_cut_seek (RecordingCut *self, guint64 at, GError **error)
{
  close_piece (self);
  self->piece = 0;
  self->at = at;
  self->copy_left = self->skip = 0;
  return at <= nth (self, 0)->facts.init.size || at >= self->size || follow (self, at, error);
}
