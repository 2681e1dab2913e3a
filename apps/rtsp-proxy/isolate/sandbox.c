// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "isolate/connect_trap.h"
#include "isolate/sandbox_files.h"

#define FILES_MAX 4096
#define STACK_BYTES (1 << 20)
// The proxy and all readers depend on the proxy, a worker's jobs on the worker only.
#define OOM_SCORE_MORE 500
#define OOM_SCORE_MAX 1000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 // the sanitizers map terabytes, and need large stacks
#else
#define SANITIZED 0
#endif

typedef struct {
  const gchar *name;
  gboolean opens_sockets; // else it has those that it gets from the proxy
  gboolean sends;         // datagrams, to any address, from a socket that it gets from the proxy
  SandboxFiles files;
  guint data_mib; // RLIMIT_DATA; far above what a job of ordinary media takes
} Profile;

static const Profile profiles[] = {
  [SANDBOX_TITLE] = { "title", FALSE, FALSE, 0, 4096 },
  [SANDBOX_DEMUX] = { "demux", FALSE, FALSE, 0, 1024 },
  [SANDBOX_PULL] = { "pull", TRUE, TRUE, SANDBOX_FILES_NAMES, 1024 },
  [SANDBOX_STAGE] = { "stage", FALSE, FALSE, SANDBOX_FILES_DEVICES, 8192 },
  [SANDBOX_LAUNCH] = { "launch", TRUE, TRUE,
      SANDBOX_FILES_NAMES | SANDBOX_FILES_DEVICES | SANDBOX_FILES_SHARED, 8192 },
  [SANDBOX_SRT] = { "srt", FALSE, TRUE, 0, 4096 },
  [SANDBOX_SWARM] = { "swarm", TRUE, TRUE, SANDBOX_FILES_NAMES, 16384 },
  [SANDBOX_PICTURE] = { "picture", FALSE, FALSE, 0, 1024 },
};

G_STATIC_ASSERT (G_N_ELEMENTS (profiles) == SANDBOX_PROFILES);

// What a decoder never needs: other processes, the kernel's settings and its rarely used parts.
// The C library does without clone3().
static const gchar *const refused[] = { "acct", "add_key", "adjtimex", "bpf", "chroot",
  "clock_adjtime", "clock_settime", "delete_module", "execve", "execveat", "fanotify_init",
  "finit_module", "fork", "fsconfig", "fsmount", "fsopen", "fspick", "init_module",
  "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp",
  "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr",
  "move_mount", "move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at", "open_tree",
  "perf_event_open", "personality", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "pivot_root",
  "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "reboot",
  "request_key", "rt_tgsigqueueinfo", "sethostname", "setdomainname", "setns", "settimeofday",
  "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd", "vfork", "vhangup", NULL };

// Changes of files by their names, and of what is not in them. Landlock knows the first part only
// beside folders, and the second not at all.
static const gchar *const refused_changes[] = { "creat", "link", "linkat", "mkdir", "mkdirat",
  "mknod", "mknodat", "rename", "renameat", "renameat2", "rmdir", "symlink", "symlinkat",
  "truncate", "truncate64", "unlink", "unlinkat", NULL };
static const gchar *const refused_attributes[] = { "chmod", "chown", "chown32", "fchmod",
  "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat", "fremovexattr", "fsetxattr",
  "futimesat", "lchown", "lchown32", "lremovexattr", "lsetxattr", "removexattr", "setxattr",
  "utime", "utimensat", "utimensat_time64", "utimes", NULL };

// A worker that opens no sockets gets them from the proxy, connected.
static const gchar *const refused_sockets[] = { "accept", "accept4", "bind", "connect", "listen",
  "socket", NULL };
// It may not aim them at anyone else.
static const gchar *const refused_sending[] = { "sendmmsg", "sendmsg", NULL };

static gint
refuse (scmp_filter_ctx filter, const gchar *const *names)
{
  gint error = 0;

  for (guint i = 0; names[i] && !error; i++) {
    gint number = seccomp_syscall_resolve_name (names[i]);

    // A call that this system does not have needs no rule.
    if (number != __NR_SCMP_ERROR)
      error = seccomp_rule_add (filter, SCMP_ACT_ERRNO (EPERM), number, 0);
  }
  return error;
}

// Refuses signals to other processes, new processes, and input for the terminal.
static gint
refuse_others (scmp_filter_ctx filter)
{
  const guint32 action = SCMP_ACT_ERRNO (EPERM);
  scmp_datum_t self = (scmp_datum_t) getpid ();
  gint error = 0;

  error |= seccomp_rule_add (filter, action, SCMP_SYS (kill), 1, SCMP_A0 (SCMP_CMP_NE, self));
  error |= seccomp_rule_add (filter, action, SCMP_SYS (tgkill), 1, SCMP_A0 (SCMP_CMP_NE, self));
  error |= seccomp_rule_add (filter, action, SCMP_SYS (tkill), 0);
  error |=
      seccomp_rule_add (filter, action, SCMP_SYS (rt_sigqueueinfo), 1, SCMP_A0 (SCMP_CMP_NE, self));
  error |= seccomp_rule_add (filter, action, SCMP_SYS (prlimit64), 1, SCMP_A0 (SCMP_CMP_NE, 0));
  error |= seccomp_rule_add (
      filter, action, SCMP_SYS (clone), 1, SCMP_A0 (SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  error |= seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), SCMP_SYS (clone3), 0);
  error |= seccomp_rule_add (
      filter, action, SCMP_SYS (ioctl), 1, SCMP_A1 (SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI));
  return error;
}

// Refuses a call that opens files, if the bits `mask` of its flags have this value.
static gint
refuse_flags (scmp_filter_ctx filter, guint64 mask, guint64 value)
{
  const guint32 action = SCMP_ACT_ERRNO (EPERM);
  gint error = seccomp_rule_add (
      filter, action, SCMP_SYS (open), 1, SCMP_A1 (SCMP_CMP_MASKED_EQ, mask, value));

  if (error == -EDOM || error == -EEXIST) // this system has no open()
    error = 0;
  if (!error)
    error = seccomp_rule_add (
        filter, action, SCMP_SYS (openat), 1, SCMP_A2 (SCMP_CMP_MASKED_EQ, mask, value));
  return error;
}

// Refuses to write files. A device is opened for writing, too; Landlock says which.
static gint
refuse_writes (scmp_filter_ctx filter, gboolean has_devices)
{
  gint error = refuse (filter, refused_changes);

  // The C library does without openat2(), whose flags are in memory.
  if (!error)
    error = seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), SCMP_SYS (openat2), 0);
  if (!error)
    error = refuse_flags (filter, O_CREAT, O_CREAT);
  if (!error)
    error = refuse_flags (filter, O_TRUNC, O_TRUNC);
  if (!error)
    error = refuse_flags (filter, O_TMPFILE, O_TMPFILE);
  if (!error && !has_devices)
    error = refuse_flags (filter, O_ACCMODE, O_WRONLY);
  if (!error && !has_devices)
    error = refuse_flags (filter, O_ACCMODE, O_RDWR);
  return error;
}

static const guint32 refusal = SCMP_ACT_ERRNO (EPERM);

// Leaves connections to the proxy. TCP also connects by sending with MSG_FASTOPEN.
static gint
trap_connections (scmp_filter_ctx filter)
{
  const scmp_datum_t fast = MSG_FASTOPEN;
  gint error = seccomp_rule_add (filter, SCMP_ACT_TRAP, SCMP_SYS (connect), 0);

  if (!error)
    error = seccomp_rule_add (
        filter, refusal, SCMP_SYS (sendto), 1, SCMP_A3 (SCMP_CMP_MASKED_EQ, fast, fast));
  if (!error)
    error = seccomp_rule_add (
        filter, refusal, SCMP_SYS (sendmsg), 1, SCMP_A2 (SCMP_CMP_MASKED_EQ, fast, fast));
  if (!error)
    error = seccomp_rule_add (
        filter, refusal, SCMP_SYS (sendmmsg), 1, SCMP_A3 (SCMP_CMP_MASKED_EQ, fast, fast));
  if (!error)
    connect_trap_set (WORKER_SOCKET);
  return error;
}

static gint
refuse_network (scmp_filter_ctx filter, const Profile *profile)
{
  gint error = 0;

  if (!profile->opens_sockets)
    error = refuse (filter, refused_sockets);
  else if (connect_trap_is_known ())
    error = trap_connections (filter);
  if (!error && !profile->sends)
    error = refuse (filter, refused_sending);
  if (!error && !profile->sends)
    error = seccomp_rule_add (
        filter, SCMP_ACT_ERRNO (EPERM), SCMP_SYS (sendto), 1, SCMP_A4 (SCMP_CMP_NE, 0));
  return error;
}

// A system without seccomp, such as some sandboxes for containers, keeps the other limits.
static void
filter_calls (const Profile *profile)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);
  gint error = filter ? refuse (filter, refused) : -ENOMEM;

  if (!error)
    error = refuse_others (filter);
  if (!error)
    error = refuse (filter, refused_attributes);
  if (!error)
    error = refuse_writes (filter, (profile->files & SANDBOX_FILES_DEVICES) != 0);
  if (!error)
    error = refuse_network (filter, profile);
  if (!error)
    error = seccomp_load (filter);
  if (filter)
    seccomp_release (filter);
  if (error)
    log_event ("worker: cannot filter system calls: %s", g_strerror (-error));
}

static void
drop_capabilities (void)
{
  struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

  prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (gulong i = 0; prctl (PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
    prctl (PR_CAPBSET_DROP, i, 0, 0, 0); // needs a capability; without one there is none to drop
  syscall (SYS_capset, &head, none);
}

static void
limit_memory (guint mib)
{
  const rlim_t bytes = (rlim_t) mib << 20;
  struct rlimit data;
  pthread_attr_t attributes;

  if (SANITIZED || getrlimit (RLIMIT_DATA, &data) < 0)
    return;
  data.rlim_max = MIN (data.rlim_max, bytes);
  data.rlim_cur = MIN (data.rlim_cur, data.rlim_max);
  setrlimit (RLIMIT_DATA, &data);
  // Stacks count, whether they are used or not.
  pthread_attr_init (&attributes);
  pthread_attr_setstacksize (&attributes, STACK_BYTES);
  pthread_setattr_default_np (&attributes);
  pthread_attr_destroy (&attributes);
}

static void
limit_resources (const Profile *profile)
{
  struct rlimit files, none = { 0, 0 };

  setrlimit (RLIMIT_CORE, &none);
  limit_memory (profile->data_mib);
  if (getrlimit (RLIMIT_NOFILE, &files) < 0)
    return;
  files.rlim_max = MIN (files.rlim_max, FILES_MAX);
  files.rlim_cur = files.rlim_max;
  setrlimit (RLIMIT_NOFILE, &files);
}

// Where memory runs out, the kernel ends the worker before the proxy.
static void
offer_to_die (void)
{
  FILE *file = fopen ("/proc/self/oom_score_adj", "r+");
  gint score;

  if (!file)
    return;
  if (fscanf (file, "%d", &score) == 1) {
    rewind (file);
    fprintf (file, "%d", MIN (score + OOM_SCORE_MORE, OOM_SCORE_MAX));
  }
  fclose (file);
}

const gchar *
sandbox_get_name (SandboxProfile profile)
{
  return profiles[profile].name;
}

SandboxProfile
sandbox_find (const gchar *name)
{
  SandboxProfile found = 0;

  while (found < SANDBOX_PROFILES && !g_str_equal (profiles[found].name, name))
    found++;
  return found;
}

gboolean
sandbox_asks_for_connections (SandboxProfile which)
{
  return profiles[which].opens_sockets && connect_trap_is_known ();
}

guint64
sandbox_get_version (SandboxProfile which)
{
  struct stat st;

  if (!(profiles[which].files & SANDBOX_FILES_NAMES) || stat ("/etc/resolv.conf", &st) < 0)
    return 0;
  return st.st_ino;
}

gboolean
sandbox_enter (SandboxProfile which, const gchar *const *reads)
{
  const Profile *profile = &profiles[which];
  gint error;

  offer_to_die ();
  limit_resources (profile);
  drop_capabilities ();
  prctl (PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl (PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
    log_event ("worker: cannot give up new privileges: %s", g_strerror (errno));
    return FALSE;
  }
  error = sandbox_files_limit (profile->files, reads);
  if (error)
    log_event ("worker: cannot limit which files it opens: %s", g_strerror (error));
  filter_calls (profile);
  return TRUE;
}

void
sandbox_get_guards (SandboxGuards *out)
{
  out->landlock = sandbox_files_version ();
  // A filter that is no address is refused, if the kernel knows filters.
  out->seccomp = prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}
