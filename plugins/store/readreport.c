// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/reader.h"

// A copy that is bad is reported when it was repaired, and a block that is lost when its read ends,
// so that each has one line, which says the outcome.

#define TELL_NS (10 * WEIR_READ_SECOND) // between messages about a disk's copies, or lost blocks

void
weir_block_read_clear_problems (WeirBlockRead *read)
{
  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    g_free (read->problems[i].why);
    read->problems[i] = (WeirCopyProblem) { NULL };
  }
}

// Says `text`, if the last message is old enough.
static void
say (WeirBlockReader *self, gint64 *told_ns, guint *n_untold, const gchar *text)
{
  const gint64 now = weir_block_reader_now ();

  if (*told_ns != 0 && now - *told_ns < TELL_NS) {
    ++*n_untold;
    return;
  }
  if (*n_untold > 0)
    weir_block_reader_say (self, "%s; and %u more blocks since the last message", text, *n_untold);
  else
    weir_block_reader_say (self, "%s", text);
  *told_ns = now;
  *n_untold = 0;
}

void
weir_block_reader_report_copy (WeirBlockReader *self, const gchar *title, guint32 number,
    WeirReadDisk *disk, const gchar *what)
{
  g_autofree gchar *text = g_strdup_printf (
      "block %u of title '%s' on disk %u (%s): %s", number, title, disk->number, disk->path, what);

  say (self, &disk->told_ns, &disk->n_untold, text);
}

void
weir_block_reader_report_copies (WeirBlockReader *self, WeirBlockRead *read)
{
  for (guint i = 0; i < WEIR_INDEX_COPIES_MAX; i++) {
    const WeirCopyProblem *problem = &read->problems[i];
    g_autofree gchar *what = NULL;

    if (!problem->news || weir_block_reader_repair (self, read, read->block.disks[i], problem))
      continue;
    what = g_strconcat (problem->why, "; the other copy was read", NULL);
    weir_block_reader_report_copy (self, read->title, read->name.number,
        weir_block_reader_get_disk (self, read->block.disks[i], NULL), what);
  }
}

// Adds what is wrong with the copies. Returns whether the block is gone for good.
static gboolean
describe_copies (WeirBlockReader *self, WeirBlockRead *read, GString *text)
{
  guint n_gone = 0, n = 0;

  for (guint i = 0; i < read->block.n_copies; i++) {
    const WeirCopyProblem *problem = &read->problems[i];
    WeirReadDisk *disk = weir_block_reader_get_disk (self, read->block.disks[i], NULL);

    n_gone += problem->gone;
    if (problem->why && disk)
      g_string_append_printf (
          text, "%s disk %u (%s): %s", n++ ? ";" : ":", disk->number, disk->path, problem->why);
  }
  if (n == 0)
    g_string_append (text, ": it is on no disk of the store");
  return !read->remote && n_gone == read->block.n_copies;
}

void
weir_block_reader_report_lost (WeirBlockReader *self, WeirBlockRead *read)
{
  GString *text;
  gboolean news = FALSE;

  if (read->error)
    return;
  // Its readers say so. The store has lost nothing.
  if (read->removed) {
    g_set_error (&read->error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_NOT_FOUND,
        "title '%s' was removed from the store", read->title);
    return;
  }
  self->n_lost++;
  text = g_string_new (NULL);
  g_string_printf (text, "block %u of title '%s' cannot be read", read->name.number, read->title);
  if (describe_copies (self, read, text))
    g_string_append (text, "; it is lost, so remove the title and add it again");
  for (guint i = 0; i < read->block.n_copies; i++) {
    WeirReadDisk *disk = weir_block_reader_get_disk (self, read->block.disks[i], NULL);

    news = news || read->problems[i].news;
    if (disk && read->problems[i].missing)
      disk->n_errors++;
  }
  g_set_error_literal (&read->error, WEIR_STORE_ERROR, WEIR_STORE_ERROR_CORRUPT, text->str);
  if (news)
    say (self, &self->told_ns, &self->n_untold, text->str);
  g_string_free (text, TRUE);
}
