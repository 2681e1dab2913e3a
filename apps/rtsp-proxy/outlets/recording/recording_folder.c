// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/log.h"

#define WALL_STEP_US (2 * G_USEC_PER_SEC)  // of the clock: a new segment begins
#define AHEAD_MAX_US (10 * G_USEC_PER_SEC) // of a stream before the clock, when another one begins
#define SLOWNESS                                                                                   \
  1000 // a run of the stream that is dated late nears the clock so much slower than it
#define NS_PER_US 1000
#define SLACK_NS G_GINT64_CONSTANT (10000000)
#define STEP_US G_TIME_SPAN_MINUTE // of the clock: nothing is deleted by age
#define SETTLE_US G_TIME_SPAN_HOUR // until it has run for so long
#define LOCK_TRIES 40              // while another recording to the folder ends
#define LOCK_WAIT_US 50000

struct _RecordingFolder {
  gchar *mount;
  const RecordingSettings *settings;
  RecordingList *list;
  RecordingCompleteFunc complete;
  gpointer data;
  RecordingFolderCounts counts;
  LogLimit told;
  int dir;                    // of the mount; -1: not open
  gint64 seen_us, stepped_us; // the clock at the newest deleting, and at its newest step
  gint64 end_us;              // of what was written last; 0: nothing yet
  gint64 ahead_us;            // by which files of this run of the stream are dated later

  // The file that is being written; `fd` is -1 if there is none.
  int fd;
  RecordingFacts facts;
  GArray *entries; // of WeirMp4Entry
  GBytes *init;
  guint32 n_parts;
  gint64 written_ns;          // duration of its parts
  gint64 wall_us, wall_at_ns; // the time of the newest part with one, and its place in the file
};

static gboolean
fail (const RecordingFolder *self, const gchar *what, GError **error)
{
  const int reason = errno;

  g_set_error (error, G_IO_ERROR, (gint) g_io_error_from_errno (reason), "%s%s: %s: %s",
      self->settings->folder, self->mount, what, g_strerror (reason));
  return FALSE;
}

RecordingFolder *
recording_folder_new (const gchar *mount, const RecordingSettings *settings, RecordingList *list,
    RecordingCompleteFunc complete, gpointer data)
{
  RecordingFolder *self = g_new0 (RecordingFolder, 1);

  self->mount = g_strdup (mount);
  self->settings = settings;
  self->list = recording_list_ref (list);
  self->complete = complete;
  self->data = data;
  self->told = LOG_LIMIT_FAILURES;
  self->dir = self->fd = -1;
  self->entries = g_array_new (FALSE, FALSE, sizeof (WeirMp4Entry));
  return self;
}

static void
close_dir (RecordingFolder *self)
{
  if (self->dir >= 0)
    close (self->dir);
  self->dir = -1;
}

// ---- the segment that is being written ----

static void
drop_file (RecordingFolder *self)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
  g_array_set_size (self->entries, 0);
  g_clear_pointer (&self->init, g_bytes_unref);
}

static gboolean
write_all (int fd, const guint8 *bytes, gsize size)
{
  gssize n = write (fd, bytes, size);

  if (n == (gssize) size)
    return TRUE;
  if (n >= 0) // the disk is full, or a limit of the file's size is near: the next write says so
    n = write (fd, bytes + n, size - (gsize) n) < 0 ? -1 : 0;
  if (n >= 0)
    errno = EIO;
  return FALSE;
}

// A file that is open to append takes bytes at its end only, whatever place they are for.
static gboolean
write_duration (int fd, RecordingFacts *facts)
{
  const int flags = fcntl (fd, F_GETFL);
  gboolean ok = flags >= 0 && fcntl (fd, F_SETFL, flags & ~O_APPEND) == 0
                && recording_file_write_duration (fd, facts);

  return flags >= 0 && fcntl (fd, F_SETFL, flags) == 0 && ok;
}

// Ends a file that is open to append: writes its duration and its index, and makes it durable.
static gboolean
complete (RecordingFolder *self, int fd, RecordingFacts *facts, GArray *entries, GError **error)
{
  gsize size;
  g_autofree guint8 *bytes = recording_file_make_index (facts, entries, &size);
  gboolean ok = write_duration (fd, facts) && write_all (fd, bytes, size) && fdatasync (fd) == 0;

  if (!ok)
    return fail (self, "cannot end a segment", error);
  facts->size = facts->end + size;
  facts->complete = TRUE;
  self->counts.segments++;
  return TRUE;
}

static void
tell_complete (RecordingFolder *self, const RecordingFacts *facts)
{
  g_autofree gchar *name = recording_file_dup_name (facts->start_us);
  g_autofree gchar *path = g_strconcat (self->settings->folder, self->mount, "/", name, NULL);

  recording_list_put (self->list, facts);
  recording_file_make_event (EVENT_RECORD_DONE, path, self->mount, facts);
  self->complete (path, facts, self->data);
}

gboolean
recording_folder_end (RecordingFolder *self, GError **error)
{
  gboolean ok = TRUE;

  if (self->fd < 0)
    return TRUE;
  ok = complete (self, self->fd, &self->facts, self->entries, error);
  if (ok)
    tell_complete (self, &self->facts);
  else
    close_dir (self);
  drop_file (self);
  return ok;
}

// Finds the moof of a part. Returns its place, and in `box_size` its size, or 0 if there is none.
static gsize
find_moof (const RecordingPart *part, gsize *box_size, WeirMp4Moof *moof)
{
  gsize size, at = 0;
  const guint8 *bytes = g_bytes_get_data (part->data, &size);
  WeirMp4Box box = { 0 };

  while (weir_mp4_read_box (bytes + at, size - at, &box) == 0 && g_str_equal (box.type, "styp")
         && box.size < size - at)
    at += box.size;
  *box_size =
      box.size <= size - at && weir_mp4_read_moof (bytes + at, box.size, moof) == 0 ? box.size : 0;
  return at;
}

static gboolean
write_init (RecordingFolder *self, const RecordingPart *part, GError **error)
{
  gsize size, moof_size;
  guint8 *init = g_memdup2 (g_bytes_get_data (part->init, &size), g_bytes_get_size (part->init));
  gboolean ok = recording_facts_set_init (&self->facts, init, size);
  WeirMp4Moof moof;

  if (ok) {
    find_moof (part, &moof_size, &moof);
    if (moof_size > 0)
      recording_facts_set_times (&self->facts, &moof);
    weir_mp4_set_times (init, size, &self->facts.times);
    weir_mp4_get_times (init, size, &self->facts.times); // zeros if it has no room for them
    ok = write_all (self->fd, init, size) || fail (self, "cannot write", error);
  } else {
    errno = EINVAL;
    fail (self, "the stream's beginning", error);
  }
  g_free (init);
  if (!ok)
    return FALSE;
  self->facts.size = self->facts.end = size;
  self->init = g_bytes_ref (part->init);
  self->written_ns = self->wall_at_ns = self->n_parts = 0;
  self->wall_us = part->wall_us;
  return TRUE;
}

static gint64
get_end_us (const RecordingFacts *facts)
{
  return facts->start_us + recording_facts_get_duration_ns (facts) / 1000;
}

static gboolean
begin_file (RecordingFolder *self, const RecordingPart *part, GError **error)
{
  gboolean ok;
  g_autofree gchar *name = NULL, *path = NULL;

  self->facts = (RecordingFacts) { .start_us = MAX (part->wall_us + self->ahead_us, 0) };
  while (recording_list_find (self->list, self->facts.start_us, NULL)) // the clock stepped back
    self->facts.start_us++;
  name = recording_file_dup_name (self->facts.start_us);
  self->fd =
      openat (self->dir, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0640);
  ok = self->fd >= 0 ? write_init (self, part, error) : fail (self, "cannot make a file", error);
  if (!ok && self->fd >= 0)
    unlinkat (self->dir, name, 0);
  if (ok) {
    path = g_strconcat (self->settings->folder, self->mount, "/", name, NULL);
    recording_file_make_event (EVENT_RECORD, path, self->mount, &self->facts);
  }
  return ok;
}

// Returns whether the clock and the stream's time have parted since the newest part with a time.
static gboolean
has_stepped (const RecordingFolder *self, const RecordingPart *part)
{
  gint64 media_us = (self->written_ns - self->wall_at_ns) / 1000;

  return ABS (part->wall_us - self->wall_us - media_us) > WALL_STEP_US;
}

// Returns whether the part belongs to the same run of the stream as the file that is being written.
static gboolean
is_of_run (const RecordingFolder *self, const RecordingPart *part)
{
  return self->fd >= 0 && !part->breaks
         && (!part->begins || g_bytes_equal (part->init, self->init));
}

// Returns by how much the file is dated later than its first part. A publisher may send its first
// half second at once, as FFmpeg does, and so be ahead of the clock when it leaves. What follows
// begins no earlier than what was before ends, and then nears the clock slowly.
static gint64
find_ahead (const RecordingFolder *self, const RecordingPart *part)
{
  gint64 ahead_us = self->end_us - part->wall_us;

  if (is_of_run (self, part))
    return MAX (self->ahead_us - self->written_ns / NS_PER_US / SLOWNESS, 0);
  return ahead_us > 0 && ahead_us <= AHEAD_MAX_US ? ahead_us : 0;
}

// Writes a part with one write, in the file's times, and notes it.
static gboolean
write_part (RecordingFolder *self, const RecordingPart *part)
{
  RecordingFacts *facts = &self->facts;
  gint64 earlier[WEIR_MP4_TRACKS_MAX];
  gboolean begun = facts->end > facts->init.size, ok;
  gsize size = g_bytes_get_size (part->data), at, moof_size;
  guint8 *bytes = g_memdup2 (g_bytes_get_data (part->data, NULL), size);
  WeirMp4Moof moof;

  at = find_moof (part, &moof_size, &moof);
  for (guint i = 0; i < WEIR_MP4_TRACKS_MAX; i++)
    earlier[i] = (gint64) facts->times.bases[i];
  if (moof_size > 0)
    weir_mp4_move (bytes + at, &moof, ++self->n_parts, earlier);
  ok = write_all (self->fd, bytes, size);
  g_free (bytes);
  if (!ok)
    return FALSE;
  if (moof_size > 0)
    recording_facts_note (facts, &moof, facts->end + at, &begun, self->entries);
  facts->end = facts->size = facts->end + size;
  return TRUE;
}

static gboolean
append (RecordingFolder *self, const RecordingPart *part, GError **error)
{
  const guint64 from = self->facts.end, size = g_bytes_get_size (part->data);

  if (part->begins) {
    self->wall_us = part->wall_us;
    self->wall_at_ns = self->written_ns;
  }
  if (!write_part (self, part)) {
    fail (self, "cannot write", error);
    if (ftruncate (self->fd, (off_t) self->facts.end) < 0) // the next start will do so
      log_event ("record %s: a part that was cut off stays for now", self->mount);
    return FALSE;
  }
  // Lets the disk begin at once, so that the end of a segment does not wait for all of it.
  sync_file_range (self->fd, (off_t) from, (off_t) size, SYNC_FILE_RANGE_WRITE);
  self->written_ns += part->duration_ns;
  self->end_us = get_end_us (&self->facts);
  self->counts.parts++;
  self->counts.bytes += size;
  recording_list_put (self->list, &self->facts);
  return TRUE;
}

RecordingWritten
recording_folder_add (RecordingFolder *self, const RecordingPart *part, GError **error)
{
  gboolean stepped = part->begins && is_of_run (self, part) && has_stepped (self, part);
  gboolean full = part->begins && self->written_ns + SLACK_NS >= self->settings->segment_ns;
  gboolean ends = self->fd >= 0 && (!is_of_run (self, part) || stepped || full), ok;

  if (ends || self->fd < 0)
    self->ahead_us = stepped ? 0 : find_ahead (self, part);
  ok = !ends || recording_folder_end (self, error);
  if (ok && self->fd < 0 && !part->begins)
    return RECORDING_SKIPPED;
  ok = ok && (self->fd >= 0 || begin_file (self, part, error)) && append (self, part, error);
  if (ok)
    return RECORDING_WRITTEN;
  drop_file (self);
  close_dir (self);
  return RECORDING_FAILED;
}

// ---- opening ----

// Opens the folder of the mount, and makes what is missing of its path. Follows no link.
static int
open_mount (RecordingFolder *self)
{
  int at = open (self->settings->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_auto (GStrv) parts = g_strsplit (self->mount + 1, "/", -1);

  for (gchar **part = parts; *part && at >= 0; part++) {
    int next = -1;

    if ((*part)[0] == '.' || (*part)[0] == '\0')
      errno = EXDEV;
    else if (mkdirat (at, *part, 0750) == 0 || errno == EEXIST)
      next = openat (at, *part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close (at);
    at = next;
  }
  return at;
}

static gboolean
lock (RecordingFolder *self, GError **error)
{
  int locked = -1;

  for (guint i = 0; i < LOCK_TRIES && locked < 0; i++) {
    locked = flock (self->dir, LOCK_EX | LOCK_NB);
    if (locked < 0 && errno == EWOULDBLOCK)
      g_usleep (LOCK_WAIT_US);
    else if (locked < 0)
      break;
  }
  if (locked == 0)
    return TRUE;
  if (errno != EWOULDBLOCK)
    return fail (self, "cannot lock the folder", error);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "%s%s: another process records to this folder",
      self->settings->folder, self->mount);
  return FALSE;
}

// Ends a segment that was cut off: at its last whole part.
static gboolean
repair (RecordingFolder *self, const gchar *name, RecordingFacts *facts, GArray *entries,
    GError **error)
{
  int fd = openat (self->dir, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  gboolean ok = fd >= 0 && ftruncate (fd, (off_t) facts->end) == 0;

  if (!ok)
    fail (self, "cannot trim a segment", error);
  self->counts.trimmed += facts->size - facts->end;
  ok = ok && complete (self, fd, facts, entries, error);
  if (fd >= 0)
    close (fd);
  if (ok)
    log_event ("record %s: %s was cut off; it ends at its last whole part", self->mount, name);
  return ok;
}

// Looks at one file. Returns FALSE only if it could not be repaired.
static gboolean
look_at (RecordingFolder *self, const gchar *name, GError **error)
{
  RecordingFacts facts = { 0 };
  gboolean ok = TRUE, has_parts;
  g_autoptr (GArray) entries = NULL;
  int fd;

  if (!recording_file_parse_name (name, &facts.start_us)
      || (recording_list_find (self->list, facts.start_us, &facts) && facts.complete))
    return TRUE;
  fd = openat (self->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return TRUE;
  entries = g_array_new (FALSE, FALSE, sizeof (WeirMp4Entry));
  has_parts = recording_file_read (fd, &facts, entries);
  if (facts.complete) {
    recording_list_put (self->list, &facts);
  } else if (!recording_file_is_cut_off (fd, &facts)) {
    recording_list_remove (self->list, facts.start_us);
    log_event ("record %s: %s is damaged or no recording; it stays", self->mount, name);
  } else if (has_parts) {
    ok = repair (self, name, &facts, entries, error);
    if (ok)
      tell_complete (self, &facts);
  } else if (facts.end == facts.init.size) {
    recording_list_remove (self->list, facts.start_us);
    // A disk without room leaves such files, one at each try.
    log_event_limited (
        &self->told, "record %s: %s has no whole part and is deleted", self->mount, name);
    unlinkat (self->dir, name, 0);
  } else {
    log_event ("record %s: %s has no frame of its leading track; it stays", self->mount, name);
  }
  close (fd);
  return ok;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

// Returns what is in the folder, by name and so the oldest segment first: the list of segments then
// grows at its end only. Returns NULL with errno on failure. (transfer full)
static GPtrArray *
list_names (RecordingFolder *self)
{
  int fd = fcntl (self->dir, F_DUPFD_CLOEXEC, 0);
  DIR *folder = fd >= 0 ? fdopendir (fd) : NULL;
  GPtrArray *names;
  struct dirent *entry;

  if (!folder) {
    if (fd >= 0)
      close (fd);
    return NULL;
  }
  names = g_ptr_array_new_with_free_func (g_free);
  rewinddir (folder);
  while ((entry = readdir (folder)))
    g_ptr_array_add (names, g_strdup (entry->d_name));
  closedir (folder);
  g_ptr_array_sort (names, compare_names);
  return names;
}

static gboolean
look_at_all (RecordingFolder *self, GError **error)
{
  g_autoptr (GPtrArray) names = list_names (self);
  gboolean ok = TRUE;

  if (!names)
    return fail (self, "cannot read the folder", error);
  for (guint i = 0; i < names->len && ok; i++)
    ok = look_at (self, g_ptr_array_index (names, i), error);
  return ok;
}

gboolean
recording_folder_open (RecordingFolder *self, GError **error)
{
  gboolean ok;

  if (self->dir >= 0)
    return TRUE;
  self->dir = open_mount (self);
  if (self->dir < 0)
    return fail (self, "cannot open the folder", error);
  ok = lock (self, error) && look_at_all (self, error);
  if (!ok)
    close_dir (self);
  return ok;
}

void
recording_folder_free (RecordingFolder *self)
{
  GError *error = NULL;

  if (!recording_folder_end (self, &error)) {
    log_event ("record %s: %s", self->mount, error->message);
    g_error_free (error);
  }
  close_dir (self);
  recording_list_unref (self->list);
  g_array_unref (self->entries);
  g_free (self->mount);
  g_free (self);
}

// ---- deleting ----

static void delete (RecordingFolder *self, const RecordingFacts *facts)
{
  g_autofree gchar *name = recording_file_dup_name (facts->start_us);

  if (unlinkat (self->dir, name, 0) == 0 || errno == ENOENT) {
    recording_list_remove (self->list, facts->start_us);
    self->counts.deleted++;
  } else {
    log_event_limited (
        &self->told, "record %s: cannot delete %s: %s", self->mount, name, g_strerror (errno));
  }
}

// Notes the clock. Returns FALSE for some time after a step of it: a clock that is wrong for a
// while makes no segment old. When a recording starts, the step is from its newest segment.
static gboolean
is_steady (RecordingFolder *self, const GArray *all, gint64 now_us)
{
  gint64 seen_us = self->seen_us;

  if (seen_us == 0)
    seen_us =
        all->len > 0 ? get_end_us (&g_array_index (all, RecordingFacts, all->len - 1)) : now_us;
  if (ABS (now_us - seen_us) > STEP_US)
    self->stepped_us = now_us;
  self->seen_us = now_us;
  return now_us - self->stepped_us >= SETTLE_US;
}

void
recording_folder_prune (RecordingFolder *self, gint64 now_us)
{
  const RecordingSettings *settings = self->settings;
  guint n_past = 0;
  gboolean steady;
  g_autoptr (GArray) all = NULL;
  guint64 bytes;

  recording_list_count (self->list, &bytes);
  if (self->dir < 0
      || (settings->keep_us == 0 && (settings->limit == 0 || bytes <= settings->limit)))
    return;
  all = recording_list_dup (self->list, G_MININT64, G_MAXINT64, G_MAXUINT);
  steady = is_steady (self, all, now_us);
  while (n_past < all->len && g_array_index (all, RecordingFacts, n_past).start_us <= now_us)
    n_past++;
  // The oldest ones are first those from the future: the clock was set back after them.
  for (guint i = 0; i < all->len; i++) {
    const RecordingFacts *facts = &g_array_index (all, RecordingFacts, (n_past + i) % all->len);
    gboolean old =
        steady && settings->keep_us > 0 && get_end_us (facts) < now_us - settings->keep_us;

    if (!facts->complete || (!old && (settings->limit == 0 || bytes <= settings->limit)))
      continue;
    delete (self, facts);
    bytes -= MIN (facts->size, bytes);
  }
}

const RecordingFolderCounts *
recording_folder_get_counts (RecordingFolder *self)
{
  return &self->counts;
}

// ---- reading ----

int
recording_folder_open_file (const gchar *folder, const gchar *mount, gint64 start_us)
{
  g_autofree gchar *name = recording_file_dup_name (start_us);
  g_autofree gchar *path = g_strconcat (mount + 1, "/", name, NULL);

  return beneath_open (folder, path);
}
