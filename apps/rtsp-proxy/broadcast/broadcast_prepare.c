// SPDX-License-Identifier: LGPL-2.1-or-later
// Packetizes the titles of a broadcast, in the order in which clients ask for them.

#include <gio/gio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "broadcast/broadcast_private.h"
#include "broadcast/packetizer.h"

#define WAITING_MAX 16
#define FILE_BYTES_MAX (UINT64_C (1) << 36) // of a packetized title
#define TELL_NS (10 * (gint64) 1000000000)  // between two lines about the progress

BroadcastTitle *
broadcast_find_title (Broadcast *self, const gchar *name)
{
  return g_hash_table_lookup (self->titles, name);
}

guint
broadcast_count_titles (Broadcast *self, BroadcastTitleState from, BroadcastTitleState to)
{
  guint n = 0;
  GHashTableIter iter;
  gpointer title;

  g_hash_table_iter_init (&iter, self->titles);
  while (g_hash_table_iter_next (&iter, NULL, &title)) {
    const BroadcastTitleState state = ((BroadcastTitle *) title)->state;

    n += state >= from && state <= to;
  }
  return n;
}

typedef struct {
  Broadcast *owner;
  const gchar *name;
  gint64 tell_ns; // when the log tells the progress next
} Telling;

static gboolean
note_progress (gpointer data, gdouble done)
{
  Telling *telling = data;
  Broadcast *self = telling->owner;

  g_mutex_lock (&self->lock);
  broadcast_find_title (self, telling->name)->done = done;
  g_mutex_unlock (&self->lock);
  if (clock_now () >= telling->tell_ns) {
    telling->tell_ns += TELL_NS;
    log_event ("%s/%s: packetizing, %.0f %% done", self->mount_path, telling->name, done * 100);
  }
  return !g_atomic_int_get (&self->stopped);
}

// Clients choose the titles, so their packet files must not fill the disk. The packets of a title
// need about its size.
static gboolean
has_room (const gchar *dir, guint64 size, GError **error)
{
  struct statvfs disk;
  guint64 left;

  if (statvfs (dir, &disk) < 0) // making the file tells why
    return TRUE;
  left = (guint64) disk.f_bavail * disk.f_frsize;
  if (size <= left / 2)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "its packets need %" G_GUINT64_FORMAT
      " MiB in %s, which is more than half of the %" G_GUINT64_FORMAT " MiB that are free",
      size >> 20, dir, left >> 20);
  return FALSE;
}

static PacketFile *
make_file (Broadcast *self, const gchar *name, GError **error)
{
  const gchar *dir = g_getenv ("TMPDIR") ? g_getenv ("TMPDIR") : "/var/tmp";
  Telling telling = { self, name, clock_now () + TELL_NS };
  PacketFile *file = NULL;
  guint64 size;
  int fd;

  if (g_atomic_int_get (&self->stopped)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "it is not needed any more");
    return NULL;
  }
  fd = store_open (self->store, name, &size, error);
  if (fd < 0)
    return NULL;
  if (has_room (dir, size, error))
    file = packetize (fd, dir, FILE_BYTES_MAX, note_progress, &telling, error);
  close (fd);
  return file;
}

static void
log_made (Broadcast *self, const gchar *name, const PacketFile *file, gint64 took_ns)
{
  log_event ("%s/%s: packetized in %.1f s: %u frames of %.4g ms, %.3g Mb/s, %" G_GUINT64_FORMAT
             " MiB",
      self->mount_path, name, (gdouble) took_ns / 1e9, file->n_frames,
      (gdouble) file->frame_ns / 1e6, (gdouble) file->rate / 1e6,
      file->offset[file->n_frames] >> 20);
}

// A title that waits or is being packetized stays in the table.
static void
prepare (Broadcast *self, gpointer data)
{
  gchar *name = data;
  const gint64 begun = clock_now ();
  GError *error = NULL;
  PacketFile *file;

  g_mutex_lock (&self->lock);
  broadcast_find_title (self, name)->state = TITLE_PACKETIZES;
  broadcast_find_title (self, name)->since_ns = begun;
  g_mutex_unlock (&self->lock);
  file = make_file (self, name, &error);
  if (file)
    log_made (self, name, file, clock_now () - begun);
  else
    log_event ("%s/%s: cannot be broadcast: %s", self->mount_path, name, error->message);
  g_mutex_lock (&self->lock);
  if (file)
    broadcast_title_set_file (broadcast_find_title (self, name), file, clock_now ());
  else
    broadcast_title_set_error (broadcast_find_title (self, name), error, clock_now ());
  g_mutex_unlock (&self->lock);
  g_free (name);
}

BroadcastTitle *
broadcast_add_title (Broadcast *self, const gchar *name, GError **error)
{
  BroadcastTitle *title;

  if (broadcast_count_titles (self, TITLE_WAITS, TITLE_PACKETIZES)
          + broadcast_count_titles (self, TITLE_FAILED, TITLE_FAILED)
      >= WAITING_MAX) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "%u titles wait to be packetized; try again later", WAITING_MAX);
    self->stats.refused_other++;
    return NULL;
  }
  self->wakes = TRUE; // for broadcast_title_tidy()
  title = broadcast_title_new (name, clock_now ());
  g_hash_table_insert (self->titles, title->name, title);
  broadcast_push_job (self, self->packetizers, prepare, g_strdup (name));
  return title;
}
