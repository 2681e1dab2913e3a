// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INIT_MAX (256 * 1024)
#define MOOF_MAX (4 * 1024 * 1024)
#define INDEX_MAX (64 * 1024 * 1024)
#define NS_PER_S G_GINT64_CONSTANT (1000000000)

// ---- names ----

static gchar *
print_time (gint64 start_us, const gchar *format, const gchar *end)
{
  const time_t seconds = (time_t) (start_us / G_USEC_PER_SEC);
  gchar text[64];
  struct tm parts;

  gmtime_r (&seconds, &parts);
  strftime (text, sizeof text, format, &parts);
  return g_strdup_printf ("%s.%06d%s", text, (gint) (start_us % G_USEC_PER_SEC), end);
}

gchar *
recording_file_dup_name (gint64 start_us)
{
  return print_time (start_us, "%Y-%m-%dT%H-%M-%S", "Z.mp4");
}

gchar *
recording_file_dup_time (gint64 start_us)
{
  return print_time (start_us, "%Y-%m-%dT%H:%M:%S", "Z");
}

gboolean
recording_file_parse_name (const gchar *name, gint64 *start_us)
{
  gint year, month, day, hour, minute, second, us, used = 0;
  g_autoptr (GDateTime) time = NULL;
  g_autofree gchar *again = NULL;

  if (strlen (name) != strlen ("2026-11-23T11-15-11.123456Z.mp4")
      || sscanf (name, "%4d-%2d-%2dT%2d-%2d-%2d.%6dZ.mp4%n", &year, &month, &day, &hour, &minute,
             &second, &us, &used)
             != 7
      || name[used] || used == 0)
    return FALSE;
  time = g_date_time_new_utc (year, month, day, hour, minute, second);
  if (!time)
    return FALSE;
  *start_us = g_date_time_to_unix (time) * G_USEC_PER_SEC + us;
  if (*start_us < 0)
    return FALSE;
  again = recording_file_dup_name (*start_us);
  return g_str_equal (again, name);
}

// ---- facts ----

gint64
recording_facts_get_ns (const RecordingFacts *self, guint track, guint64 ticks)
{
  guint32 rate = self->init.timescales[track];

  return (gint64) (ticks / rate * NS_PER_S + ticks % rate * NS_PER_S / rate);
}

gint64
recording_facts_get_first_ns (const RecordingFacts *self)
{
  return recording_facts_get_ns (self, self->init.lead, self->first);
}

gint64
recording_facts_get_duration_ns (const RecordingFacts *self)
{
  return recording_facts_get_ns (self, self->init.lead, self->last - self->first);
}

gboolean
recording_facts_set_init (RecordingFacts *facts, const guint8 *init, gsize size)
{
  static const WeirMp4Times none;
  g_autoptr (GChecksum) sum = NULL;
  guint8 digest[32], *plain;
  gsize len = sizeof digest;

  if (weir_mp4_read_init (init, size, &facts->init) < 0
      || weir_mp4_get_times (init, facts->init.size, &facts->times) < 0)
    return FALSE;
  plain = g_memdup2 (init, facts->init.size);
  weir_mp4_set_times (plain, facts->init.size, &none);
  sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_checksum_update (sum, plain, (gssize) facts->init.size);
  g_checksum_get_digest (sum, digest, &len);
  g_free (plain);
  memcpy (&facts->format, digest, sizeof facts->format);
  return TRUE;
}

static guint64
get_ticks (const RecordingFacts *self, guint track, guint64 ns)
{
  guint32 rate = self->init.timescales[track];

  return ns / NS_PER_S * rate + (ns % NS_PER_S * rate + NS_PER_S / 2) / NS_PER_S;
}

static guint64
get_shown (const WeirMp4Traf *traf)
{
  return traf->start + (guint64) MAX (traf->offset, 0);
}

void
recording_facts_set_times (RecordingFacts *facts, const WeirMp4Moof *moof)
{
  const guint lead = facts->init.lead;
  gint64 lead_ns = recording_facts_get_ns (facts, lead, get_shown (&moof->trafs[lead]));
  gint64 zero_ns = lead_ns;

  facts->times = (WeirMp4Times) { 0 };
  if (!moof->trafs[lead].has)
    return;
  for (guint i = 0; i < facts->init.n_tracks; i++) {
    if (moof->trafs[i].has)
      zero_ns = MIN (zero_ns, recording_facts_get_ns (facts, i, moof->trafs[i].start));
  }
  facts->times.wall_us = (guint64) MAX (facts->start_us - (lead_ns - zero_ns) / 1000, 0);
  for (guint i = 0; i < facts->init.n_tracks; i++)
    facts->times.bases[i] = get_ticks (facts, i, (guint64) zero_ns);
}

void
recording_facts_note (
    RecordingFacts *facts, const WeirMp4Moof *moof, guint64 at, gboolean *begun, GArray *entries)
{
  const WeirMp4Traf *lead = &moof->trafs[facts->init.lead];
  const WeirMp4Entry entry = { get_shown (lead), at };

  for (guint i = 0; i < facts->init.n_tracks; i++) {
    const WeirMp4Traf *traf = &moof->trafs[i];

    if (traf->has)
      facts->over_ns =
          MAX (facts->over_ns, recording_facts_get_ns (facts, i, traf->start + traf->duration));
  }
  if (!lead->has)
    return;
  if (!*begun) {
    facts->first = lead->start;
    facts->shown = get_shown (lead);
  }
  *begun = TRUE;
  facts->last = MAX (lead->start + lead->duration, facts->first);
  if (entries && lead->key)
    g_array_append_val (entries, entry);
}

// ---- reading ----

static gboolean
read_all (int fd, guint64 at, guint8 *bytes, gsize size)
{
  gsize done = 0;
  gssize n = 1;

  for (; done < size && n > 0; done += (gsize) MAX (n, 0))
    n = pread (fd, bytes + done, size - done, (off_t) (at + done));
  return done == size;
}

gboolean
recording_file_read_box (int fd, guint64 at, guint64 end, WeirMp4Box *box)
{
  guint8 head[WEIR_MP4_BOX_HEAD];

  return at < end && end - at >= sizeof head && read_all (fd, at, head, sizeof head)
         && weir_mp4_read_box (head, sizeof head, box) == 0 && box->size <= end - at;
}

guint8 *
recording_file_read_moof (
    int fd, const RecordingFacts *facts, guint64 at, guint64 size, WeirMp4Moof *moof)
{
  guint8 *bytes = size <= MOOF_MAX ? g_malloc (size) : NULL;

  if (!bytes || !read_all (fd, at, bytes, size) || weir_mp4_read_moof (bytes, size, moof) < 0) {
    g_free (bytes);
    return NULL;
  }
  for (guint i = 0; i < facts->init.n_tracks; i++)
    moof->trafs[i].start += facts->times.bases[i];
  return bytes;
}

guint8 *
recording_file_read_init (int fd, const RecordingFacts *facts, const WeirMp4Times *times)
{
  guint8 *bytes = g_malloc (facts->init.size);

  if (!read_all (fd, 0, bytes, facts->init.size)) {
    g_free (bytes);
    return NULL;
  }
  weir_mp4_set_times (bytes, facts->init.size, times);
  return bytes;
}

static gboolean
read_beginning (int fd, RecordingFacts *facts)
{
  gsize size = MIN (facts->size, INIT_MAX);
  g_autofree guint8 *bytes = g_malloc (size + 1);

  return read_all (fd, 0, bytes, size) && recording_facts_set_init (facts, bytes, size);
}

GArray *
recording_file_read_entries (int fd, const RecordingFacts *facts)
{
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (WeirMp4Entry));
  gsize size = facts->size - facts->end;
  g_autofree guint8 *bytes = size <= INDEX_MAX ? g_malloc (size + 1) : NULL;
  gint64 n = bytes && read_all (fd, facts->end, bytes, size)
                 ? weir_mp4_read_index (bytes, size, NULL, 0)
                 : 0;

  if (n > 0) {
    g_array_set_size (entries, (guint) n);
    weir_mp4_read_index (bytes, size, (WeirMp4Entry *) (gpointer) entries->data, (gsize) n);
    for (guint i = 0; i < entries->len; i++)
      g_array_index (entries, WeirMp4Entry, i).time += facts->times.bases[facts->init.lead];
  }
  return entries;
}

guint8 *
recording_file_make_index (const RecordingFacts *facts, const GArray *entries, gsize *size)
{
  const guint lead = facts->init.lead;
  g_autofree WeirMp4Entry *own = g_new (WeirMp4Entry, entries->len);
  guint8 *bytes;

  for (guint i = 0; i < entries->len; i++) {
    own[i] = g_array_index (entries, WeirMp4Entry, i);
    own[i].time -= facts->times.bases[lead];
  }
  *size = weir_mp4_write_index (NULL, 0, lead + 1, own, entries->len);
  bytes = g_malloc (*size);
  weir_mp4_write_index (bytes, *size, lead + 1, own, entries->len);
  return bytes;
}

gboolean
recording_file_write_duration (int fd, RecordingFacts *facts)
{
  const guint lead = facts->init.lead;
  gint64 end_ns = recording_facts_get_ns (facts, lead, facts->shown + facts->last - facts->first);
  gint64 ns =
      MAX (end_ns, facts->over_ns) - recording_facts_get_ns (facts, lead, facts->times.bases[lead]);
  g_autofree guint8 *bytes = NULL;

  facts->times.duration_ms = (guint64) MAX (ns, 0) / (NS_PER_S / 1000);
  bytes = recording_file_read_init (fd, facts, &facts->times);
  return bytes && pwrite (fd, bytes, facts->init.size, 0) == (gssize) facts->init.size;
}

// Finds the end of the parts by the index, if there is one. Returns where to go on from.
static guint64
find_end (int fd, RecordingFacts *facts)
{
  guint8 tail[WEIR_MP4_INDEX_END];
  guint64 from = facts->init.size;
  GArray *entries;
  gsize size = 0;

  facts->end = facts->size;
  if (facts->size > facts->init.size + sizeof tail
      && read_all (fd, facts->size - sizeof tail, tail, sizeof tail))
    size = weir_mp4_index_size (tail);
  if (size == 0 || size > facts->size - facts->init.size)
    return from;
  facts->end = facts->size - size;
  entries = recording_file_read_entries (fd, facts);
  facts->complete = entries->len > 0;
  if (facts->complete)
    from = g_array_index (entries, WeirMp4Entry, entries->len - 1).at;
  else
    facts->end = facts->size;
  g_array_unref (entries);
  return from;
}

// Follows the parts from `at` on. Returns where the last whole one ends.
static guint64
follow (int fd, RecordingFacts *facts, guint64 at, gboolean begun, GArray *entries)
{
  guint64 whole = at;
  WeirMp4Moof moof;
  guint64 moof_at = 0;
  WeirMp4Box box;

  for (; recording_file_read_box (fd, at, facts->end, &box); at += box.size) {
    if (g_str_equal (box.type, "moof")) {
      g_autofree guint8 *bytes = recording_file_read_moof (fd, facts, at, box.size, &moof);

      if (!bytes)
        break;
      moof_at = at;
    } else if (g_str_equal (box.type, "mdat") && moof_at > 0) {
      recording_facts_note (facts, &moof, moof_at, &begun, entries);
      whole = at + box.size;
      moof_at = 0;
    } else if (!g_str_equal (box.type, "styp") || moof_at > 0) {
      break;
    }
  }
  return whole;
}

// Reads the first part of a file whose parts are not followed from there.
static gboolean
read_first (int fd, RecordingFacts *facts)
{
  guint64 at = facts->init.size;
  WeirMp4Moof moof;
  WeirMp4Box box = { 0 };
  gboolean begun = FALSE;
  g_autofree guint8 *bytes = NULL;

  while (recording_file_read_box (fd, at, facts->end, &box) && g_str_equal (box.type, "styp"))
    at += box.size;
  bytes = at < facts->end && g_str_equal (box.type, "moof")
              ? recording_file_read_moof (fd, facts, at, box.size, &moof)
              : NULL;
  if (bytes)
    recording_facts_note (facts, &moof, at, &begun, NULL);
  return begun;
}

gboolean
recording_file_read (int fd, RecordingFacts *facts, GArray *entries)
{
  struct stat st;
  guint64 from, end;

  if (fstat (fd, &st) < 0)
    return FALSE;
  facts->size = (guint64) st.st_size;
  facts->complete = FALSE;
  if (!read_beginning (fd, facts))
    return FALSE;
  from = find_end (fd, facts);
  if (facts->complete && (from < facts->init.size || from >= facts->end || !read_first (fd, facts)))
    facts->complete = FALSE;
  if (facts->complete && follow (fd, facts, from, TRUE, NULL) == facts->end)
    return TRUE;
  // The index, if there is one, is not of these parts.
  facts->complete = FALSE;
  facts->end = facts->size;
  facts->first = facts->last = 0;
  facts->over_ns = 0;
  end = follow (fd, facts, facts->init.size, FALSE, entries);
  facts->end = end;
  return end > facts->init.size && facts->last > facts->first;
}

gboolean
recording_file_is_cut_off (int fd, const RecordingFacts *facts)
{
  static const guint8 zeros[WEIR_MP4_BOX_HEAD];
  static const gchar *const types[] = { "styp", "moof", "mdat", "mfra", NULL };
  guint8 head[WEIR_MP4_BOX_HEAD];
  guint64 at = facts->end;
  struct stat st;
  WeirMp4Box box;

  if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode) || (facts->size > 0 && facts->init.size == 0))
    return FALSE;
  for (; at < facts->size && facts->size - at >= sizeof head; at += box.size) {
    if (!read_all (fd, at, head, sizeof head))
      return FALSE;
    if (memcmp (head, zeros, sizeof head) == 0)
      return TRUE;
    if (weir_mp4_read_box (head, sizeof head, &box) < 0 || !g_strv_contains (types, box.type))
      return FALSE;
    if (box.size > facts->size - at)
      return TRUE;
    if (g_str_equal (box.type, "mdat")) // a whole part that cannot be read
      return FALSE;
  }
  return TRUE;
}

void
recording_file_make_event (
    EventKind kind, const gchar *path, const gchar *mount, const RecordingFacts *facts)
{
  const gboolean done = kind == EVENT_RECORD_DONE;
  g_autofree gchar *start = recording_file_dup_time (facts->start_us);
  g_autofree gchar *bytes = done ? g_strdup_printf ("%" G_GUINT64_FORMAT, facts->size) : NULL;
  gchar duration[G_ASCII_DTOSTR_BUF_SIZE];

  g_ascii_formatd (
      duration, sizeof duration, "%.3f", (gdouble) recording_facts_get_duration_ns (facts) / 1e9);
  events_add (kind, mount, "file", path, "start", start, "duration", done ? duration : NULL,
      "bytes", bytes, NULL);
}
