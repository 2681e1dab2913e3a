// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define FILES_MAX 4096

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

// A worker that is offline gets its sockets from the proxy. It may not aim them at anyone else.
static const gchar *const refused_offline[] = { "accept", "accept4", "bind", "connect", "listen",
  "sendmmsg", "sendmsg", "socket", NULL };

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

// A system without seccomp, such as some sandboxes for containers, keeps the other limits.
static void
filter_calls (gboolean online)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);
  gint error = filter ? refuse (filter, refused) : -ENOMEM;

  if (!error)
    error = refuse_others (filter);
  if (!error && !online)
    error = refuse (filter, refused_offline);
  if (!error && !online)
    error = seccomp_rule_add (
        filter, SCMP_ACT_ERRNO (EPERM), SCMP_SYS (sendto), 1, SCMP_A4 (SCMP_CMP_NE, 0));
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
limit_resources (void)
{
  struct rlimit files, none = { 0, 0 };

  setrlimit (RLIMIT_CORE, &none);
  if (getrlimit (RLIMIT_NOFILE, &files) < 0)
    return;
  files.rlim_max = MIN (files.rlim_max, FILES_MAX);
  files.rlim_cur = files.rlim_max;
  setrlimit (RLIMIT_NOFILE, &files);
}

gboolean
sandbox_enter (gboolean online)
{
  limit_resources ();
  drop_capabilities ();
  prctl (PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl (PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
    log_event ("worker: cannot give up new privileges: %s", g_strerror (errno));
    return FALSE;
  }
  filter_calls (online);
  return TRUE;
}
