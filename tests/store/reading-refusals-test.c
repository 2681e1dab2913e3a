// SPDX-License-Identifier: LGPL-2.1-or-later
// Systems that refuse io_uring, as containers often do, and file systems that refuse O_DIRECT. Each
// case runs in a process of its own, whose system calls a filter refuses.

#include "reading.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define BLOCK 50000
#define N_BLOCKS 20

// The arguments of openat() are in the lower halves of the filter's 64-bit fields.
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define FLAGS offsetof (struct seccomp_data, args[2])
#else
#define FLAGS offsetof (struct seccomp_data, args[2]) + 4
#endif

static void
install (struct sock_filter *code, gsize n)
{
  struct sock_fprog program = { (unsigned short) n, code };

  g_assert_cmpint (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
  g_assert_cmpint (prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), ==, 0);
}

static void
refuse_io_uring (void)
{
  struct sock_filter code[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };

  install (code, G_N_ELEMENTS (code));
}

static void
refuse_direct (void)
{
  struct sock_filter code[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, FLAGS),
    BPF_JUMP (BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };

  install (code, G_N_ELEMENTS (code));
}

static guint
count_threads (const gchar *name)
{
  GDir *tasks = g_dir_open ("/proc/self/task", 0, NULL);
  const gchar *id;
  guint n = 0;

  while ((id = g_dir_read_name (tasks))) {
    g_autofree gchar *path = g_build_filename ("/proc/self/task", id, "comm", NULL), *text = NULL;

    if (g_file_get_contents (path, &text, NULL, NULL))
      n += g_str_equal (g_strchomp (text), name);
  }
  g_dir_close (tasks);
  return n;
}

typedef struct {
  guint buffered; // disks that are read without O_DIRECT
  guint threads;  // of disks
} Seen;

// Reads a title with two copies of each block.
static Seen
read_title (void)
{
  TestStore t;
  WeirBlockStore *store = test_store (&t, 2, WEIR_PLACEMENT_RDA);
  WeirStoredTitle *title = test_title (store, "a", N_BLOCKS, BLOCK, 1);
  WeirBlockReader *reader;
  Seen seen = { 0 };

  weir_block_store_set_memory (store, 0);
  for (guint i = 0; i < N_BLOCKS; i++)
    check_block (title, i, 1);
  reader = weir_block_reader_get (store);
  g_mutex_lock (&reader->lock);
  for (guint i = 0; i < reader->disks->len; i++)
    seen.buffered += ((WeirReadDisk *) reader->disks->pdata[i])->buffered;
  g_mutex_unlock (&reader->lock);
  g_assert_cmpuint (read_stats (store).repaired + read_stats (store).lost, ==, 0);
  for (guint16 i = 0; i < 2; i++)
    g_assert_cmpuint (disk_stats (store, i).errors, ==, 0);
  seen.threads = count_threads ("weir-store-disk");
  weir_stored_title_unref (title);
  test_store_free (&t, store);
  return seen;
}

static void
run (void)
{
  g_test_trap_subprocess (NULL, 60 * G_USEC_PER_SEC, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
}

static void
without_io_uring_threads_read (void)
{
  if (!g_test_subprocess ()) {
    run ();
    return;
  }
  refuse_io_uring ();
  g_assert_cmpuint (read_title ().threads, ==, 2);
}

static void
without_o_direct_threads_read_through_the_page_cache (void)
{
  if (!g_test_subprocess ()) {
    run ();
    return;
  }
  weir_block_reader_threads_only = TRUE;
  refuse_direct ();
  g_assert_cmpint (open ("/proc/self/exe", O_RDONLY | O_DIRECT), ==, -1);
  g_assert_cmpint (errno, ==, EINVAL);
  // Not tried again for each block.
  g_assert_cmpuint (read_title ().buffered, ==, 2);
}

#define ADD(test) g_test_add_func ("/reading-refusals/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (without_io_uring_threads_read);
  ADD (without_o_direct_threads_read_through_the_page_cache);
  return g_test_run ();
}
