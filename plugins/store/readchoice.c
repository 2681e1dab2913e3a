// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reader.h"

#include <string.h>

#define NO_DEADLINE G_MAXINT64             // of a read that tries a disk
#define LATE 4                             // times the expected time of a read
#define NEAR 2                             // deadline: times the time that the other disk needs
#define BETTER 2                           // times shorter, so that a waiting read moves
#define GIVE_UP_NS (30 * WEIR_READ_SECOND) // after the deadline
#define FAILED_NS (60 * WEIR_READ_SECOND)  // after which a failing disk's blocks are copied anew
#define BAD_NS (60 * WEIR_READ_SECOND)     // for which a bad copy is not read again
#define BAD_MAX 65536                      // copies

// ---- disks ----

WeirReadDisk *
weir_block_reader_get_disk (WeirBlockReader *self, guint16 number, const gchar *path)
{
  WeirReadDisk *disk;

  for (guint i = 0; i < self->disks->len; i++) {
    disk = self->disks->pdata[i];
    if (disk->number != number)
      continue;
    if (path && strcmp (disk->path, path) != 0) {
      g_free (disk->path);
      disk->path = g_strdup (path);
    }
    return disk;
  }
  if (!path)
    return NULL;
  disk = g_new0 (WeirReadDisk, 1);
  disk->number = number;
  disk->path = g_strdup (path);
  disk->at_work = g_ptr_array_new ();
  g_cond_init (&disk->job_given);
  weir_disk_load_init (&disk->load);
  g_ptr_array_add (self->disks, disk);
  return disk;
}

// Follows the disk's state with a message when it changes.
static void
follow_state (WeirBlockReader *self, WeirReadDisk *disk, const gchar *why)
{
  if (disk->load.failing == (disk->failing_since_ns != 0))
    return;
  disk->failing_since_ns = disk->load.failing ? weir_block_reader_now () : 0;
  if (disk->load.failing)
    weir_block_reader_say (self, "disk %u (%s) is avoided: %s", disk->number, disk->path, why);
  else
    weir_block_reader_say (self, "disk %u (%s) is used again", disk->number, disk->path);
}

// ---- bad copies ----

static gint64
bad_key (const WeirBlockName *name, guint16 disk)
{
  return (gint64) (name->key + G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) * (disk + 1u));
}

static gboolean
is_bad (WeirBlockReader *self, const WeirBlockRead *read, guint copy, gint64 now_ns)
{
  const gint64 key = bad_key (&read->name, read->block.disks[copy]);
  const gint64 *until = g_hash_table_lookup (self->bad, &key);

  return until && now_ns < *until;
}

static void
set_bad (WeirBlockReader *self, const WeirBlockRead *read, guint copy, gint64 now_ns)
{
  const gint64 key = bad_key (&read->name, read->block.disks[copy]), until = now_ns + BAD_NS;

  if (g_hash_table_size (self->bad) >= BAD_MAX)
    g_hash_table_remove_all (self->bad);
  g_hash_table_replace (self->bad, g_memdup2 (&key, sizeof key), g_memdup2 (&until, sizeof until));
}

void
weir_block_reader_trust (WeirBlockReader *self, const WeirBlockName *name, guint16 disk)
{
  const gint64 key = bad_key (name, disk);

  g_hash_table_remove (self->bad, &key);
}

// ---- the choice ----

// Returns the disk of a copy that can be read, or NULL.
static WeirReadDisk *
disk_of (WeirBlockReader *self, const WeirBlockRead *read, guint copy)
{
  if (copy >= read->block.n_copies || read->copies[copy] || read->failed[copy])
    return NULL;
  return weir_block_reader_get_disk (self, read->block.disks[copy], NULL);
}

static void
queue_copy (
    WeirBlockReader *self, WeirBlockRead *read, guint n, WeirReadDisk *disk, gint64 deadline_ns)
{
  WeirCopyRead *copy = g_new0 (WeirCopyRead, 1);
  gchar id[2 * sizeof read->name.id + 1];

  for (guint i = 0; i < sizeof read->name.id; i++)
    g_snprintf (id + 2 * i, 3, "%02x", read->name.id[i]);
  copy->read = read;
  copy->disk = disk;
  copy->copy = n;
  copy->fd = -1;
  copy->length = (guint64) read->block.length + read->block.table_length;
  copy->hash = read->block.hash;
  copy->remote = weir_remote_ref (read->remote);
  copy->offset = read->block.offset;
  copy->number = read->name.number;
  if (!copy->remote) {
    copy->path = g_strdup_printf ("%s/blocks/%s/%08x", disk->path, id, read->name.number);
    copy->disk_path = g_strdup_printf ("%s/weir-disk", disk->path);
  }
  read->copies[n] = copy;
  if (weir_read_queue_push (&disk->queue, &copy->item, deadline_ns) < 0)
    g_error ("out of memory"); // as GLib does
  weir_disk_load_add (&disk->load, copy->length);
  disk->n_second += n > 0;
  weir_block_reader_wake (self);
}

void
weir_copy_read_free (WeirCopyRead *copy)
{
  g_free (copy->path);
  g_free (copy->disk_path);
  g_free (copy->why);
  weir_remote_unref (copy->remote);
  g_free (copy);
}

// Frees a copy that is in no queue any more.
static void
drop_copy (WeirCopyRead *copy)
{
  weir_disk_load_remove (&copy->disk->load, copy->length);
  copy->disk->n_second -= copy->copy > 0;
  copy->read->copies[copy->copy] = NULL;
  weir_copy_read_free (copy);
}

// Takes a waiting copy out of its queue and frees it.
static void
unqueue_copy (WeirCopyRead *copy)
{
  weir_read_queue_remove (&copy->disk->queue, &copy->item);
  drop_copy (copy);
}

void
weir_block_reader_unqueue (WeirBlockReader *self, WeirBlockRead *read)
{
  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    if (read->copies[i] && weir_read_item_waits (&read->copies[i]->item))
      unqueue_copy (read->copies[i]);
  }
}

static void
hasten_copy (WeirCopyRead *copy, gint64 deadline_ns)
{
  if (weir_read_item_waits (&copy->item))
    weir_read_queue_move (&copy->disk->queue, &copy->item, deadline_ns);
}

// Reports whether a read has to wait for others at the disk.
static gboolean
has_queue (const WeirReadDisk *disk)
{
  return disk->queue.heap.n > 0 && !disk->load.failing;
}

// Of two copies, takes the one that is expected first. If its disk is slower than the other because
// of old news, the other is read, too, without a deadline. If reads wait at both disks, this one
// waits at both as well, and the disk that gets to it first reads it: estimates that are wrong by a
// few percent would make one of two long queues too long.
gboolean
weir_block_reader_start_copy (WeirBlockReader *self, WeirBlockRead *read, gint64 now_ns)
{
  const guint64 bytes = (guint64) read->block.length + read->block.table_length;
  WeirReadDisk *disks[WEIR_INDEX_COPIES_MAX] = { disk_of (self, read, 0), disk_of (self, read, 1) };
  gint chosen;

  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    if (read->copies[i])
      hasten_copy (read->copies[i], read->deadline_ns);
  }
  if (read->copies[0] || read->copies[1])
    return TRUE;
  if (!disks[0] && !disks[1])
    return FALSE;
  if (read->remote && !read->uncached
      && read->remote->kind->is_cached (read->remote->data, read->name.number)) {
    queue_copy (self, read, 0, weir_block_reader_get_disk (self, WEIR_REMOTE_CACHE, NULL),
        read->deadline_ns);
    return TRUE;
  }
  if (disks[0] && disks[1]) {
    const gboolean bad[] = { is_bad (self, read, 0, now_ns), is_bad (self, read, 1, now_ns) };
    WeirReadDisk *other;

    chosen = bad[0] != bad[1]
                 ? bad[0]
                 : weir_disk_load_choose (&disks[0]->load, &disks[1]->load, bytes, now_ns);
    other = disks[!chosen];
    if (!bad[!chosen] && weir_disk_load_retry (&other->load, &disks[chosen]->load, bytes, now_ns))
      queue_copy (self, read, !chosen, other, NO_DEADLINE);
    else if (!bad[0] && !bad[1] && has_queue (disks[0]) && has_queue (disks[1]))
      queue_copy (self, read, !chosen, other, read->deadline_ns);
    if (other->failing_since_ns != 0 && now_ns - other->failing_since_ns > FAILED_NS)
      weir_block_reader_repair (self, read, other->number, NULL);
  } else {
    chosen = disks[0] ? 0 : 1;
  }
  queue_copy (self, read, chosen, disks[chosen], read->deadline_ns);
  return TRUE;
}

// If the copy is done here after its deadline and by the other disk earlier, it is left to that.
gboolean
weir_block_reader_take (WeirBlockReader *self, WeirCopyRead *copy, gint64 now_ns)
{
  WeirBlockRead *read = copy->read;
  WeirCopyRead *other = read->copies[!copy->copy];
  const WeirDiskLoad *here = &copy->disk->load, *there;
  gint64 done;

  if (!other || !weir_read_item_waits (&other->item) || copy->item.deadline_ns == NO_DEADLINE
      || other->item.deadline_ns == NO_DEADLINE)
    return TRUE;
  there = &other->disk->load;
  done = weir_disk_load_soonest (here, copy->length, now_ns);
  if (!there->failing
      && (here->failing
          || (now_ns + done > copy->item.deadline_ns
              && done > weir_disk_load_soonest (there, copy->length, now_ns)))) {
    drop_copy (copy);
    return FALSE;
  }
  unqueue_copy (other);
  return TRUE;
}

void
weir_block_reader_hasten (WeirBlockReader *self, WeirBlockRead *read, gint64 deadline_ns)
{
  if (deadline_ns >= read->deadline_ns)
    return;
  read->deadline_ns = deadline_ns;
  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    if (read->copies[i] && read->copies[i]->item.deadline_ns != NO_DEADLINE)
      hasten_copy (read->copies[i], deadline_ns);
  }
}

// ---- results ----

static const gchar *
describe (const WeirCopyRead *copy)
{
  if (copy->why)
    return copy->why;
  switch (copy->result) {
    case WEIR_COPY_LOST:
      return "its file is missing";
    case WEIR_COPY_WRONG:
      return "its bytes are wrong";
    case WEIR_COPY_NO_DISK:
      return "the disk is not there";
    default:
      return g_strerror (copy->error);
  }
}

static void
judge_failure (WeirBlockReader *self, WeirCopyRead *copy)
{
  WeirBlockRead *read = copy->read;
  WeirReadDisk *disk = copy->disk;
  const gint64 now = weir_block_reader_now ();
  WeirCopyProblem *problem;

  // A file that is missing may have been moved: whether it was is found out later (readreport.c).
  if (copy->result != WEIR_COPY_HINDERED && (copy->result != WEIR_COPY_LOST || copy->remote))
    disk->n_errors++;
  if (!read)
    return;
  if (copy->remote && disk->number == WEIR_REMOTE_CACHE) {
    read->uncached = TRUE; // it can be fetched again
    return;
  }
  read->failed[copy->copy] = TRUE;
  problem = &read->problems[copy->copy];
  g_free (problem->why);
  problem->why = g_strdup (describe (copy));
  problem->missing = copy->result == WEIR_COPY_LOST && !copy->remote;
  problem->gone = problem->missing || copy->result == WEIR_COPY_WRONG;
  if (copy->result == WEIR_COPY_NO_DISK || copy->result == WEIR_COPY_HINDERED
      || is_bad (self, read, copy->copy, now))
    return;
  set_bad (self, read, copy->copy, now);
  problem->news = TRUE;
}

// Reports whether the copy's disk is being removed, or was: its blocks were moved, and that it is
// not there is no failure.
static gboolean
is_leaving (const WeirCopyRead *copy)
{
  const WeirBlockRequest *request = copy->read ? g_queue_peek_head (&copy->read->requests) : NULL;

  return request && !copy->remote
         && store_is_leaving (weir_stored_title_get_store (request->title), copy->disk->number);
}

void
weir_block_reader_judge (WeirBlockReader *self, WeirCopyRead *copy)
{
  WeirReadDisk *disk = copy->disk;
  const gint64 now = copy->done_ns ? copy->done_ns : weir_block_reader_now ();

  if (copy->result == WEIR_COPY_NO_DISK && is_leaving (copy))
    copy->result = WEIR_COPY_LOST;
  g_ptr_array_remove_fast (disk->at_work, copy);
  if (copy->got >= copy->length)
    weir_disk_load_done (&disk->load, copy->length, now, true);
  else if (copy->result == WEIR_COPY_UNREAD || copy->result == WEIR_COPY_NO_DISK)
    weir_disk_load_done (&disk->load, copy->length, now, false);
  else
    weir_disk_load_cancel (&disk->load, copy->length, now);
  disk->n_reads++;
  disk->n_bytes += copy->got;
  // The next reads need not try O_DIRECT.
  if (copy->result == WEIR_COPY_GOOD && !copy->direct)
    disk->buffered = TRUE;
  if (copy->result == WEIR_COPY_NO_DISK)
    disk->load.failing = TRUE;
  if (copy->result != WEIR_COPY_GOOD)
    judge_failure (self, copy);
  follow_state (self, disk, describe (copy));
}

// ---- disks that are late ----

// Has the other copy read, too, if the disk at work is late, and either long so or the deadline is
// near. So a load that is too high for all disks does not grow by this.
static void
check_at_work (WeirBlockReader *self, WeirCopyRead *copy, gint64 now_ns)
{
  WeirBlockRead *read = copy->read;
  const gint64 start = MAX (copy->started_ns, copy->disk->load.busy_since_ns);
  const gint64 taken = now_ns - start;
  const guint other = !copy->copy;
  WeirReadDisk *disk;
  WeirCopyRead *waiting;

  if (!read || read->requests.length == 0
      || taken < LATE * weir_disk_load_service (&copy->disk->load, copy->length))
    return;
  waiting = read->copies[other];
  disk = waiting ? waiting->disk : disk_of (self, read, other);
  if (!disk || disk->load.failing
      || (taken < self->slice_ns / 2
          && now_ns + NEAR * weir_disk_load_expect (&disk->load, copy->length, now_ns)
                 < read->deadline_ns))
    return;
  if (!waiting)
    queue_copy (self, read, other, disk, read->deadline_ns);
  else
    hasten_copy (waiting, read->deadline_ns);
}

// Moves a waiting read to the disk of the other copy if it is done far earlier there.
static void
check_waiting (WeirBlockReader *self, WeirCopyRead *copy, gint64 now_ns)
{
  WeirBlockRead *read = copy->read;
  const guint other = !copy->copy;
  WeirReadDisk *from = copy->disk, *to = disk_of (self, read, other);

  if (!to || to->load.failing || is_bad (self, read, other, now_ns)
      || (!from->load.failing
          && weir_disk_load_expect (&from->load, 0, now_ns)
                 <= BETTER * weir_disk_load_expect (&to->load, copy->length, now_ns)))
    return;
  unqueue_copy (copy);
  queue_copy (self, read, other, to, read->deadline_ns);
}

static void
check_disk (WeirBlockReader *self, WeirReadDisk *disk, gint64 now_ns)
{
  if (weir_disk_load_check (&disk->load, self->slice_ns / 2, now_ns))
    follow_state (self, disk, "it does not answer");
  for (guint i = 0; i < disk->at_work->len; i++)
    check_at_work (self, disk->at_work->pdata[i], now_ns);
  // Each step takes out this item at most; another may take its place.
  for (size_t i = disk->queue.heap.n; i-- > 0;) {
    WeirReadItem *item = weir_read_queue_get (&disk->queue, i);

    if (item)
      check_waiting (self, (WeirCopyRead *) item, now_ns);
  }
}

GList *
weir_block_reader_check (WeirBlockReader *self, gint64 now_ns)
{
  GList *old = NULL;
  GHashTableIter iter;
  gpointer value;

  for (guint i = 0; i < self->disks->len; i++)
    check_disk (self, self->disks->pdata[i], now_ns);
  g_hash_table_iter_init (&iter, self->reads);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    WeirBlockRead *read = value;

    if (read->users > 0 || read->requests.length == 0 || read->deadline_ns > now_ns - GIVE_UP_NS)
      continue;
    if (!read->error)
      g_set_error (&read->error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_FAILED,
          "block %u of title '%s' was not read within %d s of its deadline: its disks do not "
          "answer or have too much to do",
          read->name.number, read->title, (int) (GIVE_UP_NS / WEIR_READ_SECOND));
    read->users++;
    old = g_list_prepend (old, read);
  }
  return old;
}
