// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/connect_trap.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// Where the kernel leaves the arguments of a call, and takes its result.
#if defined(__x86_64__)
#define KNOWN TRUE
#define ARGUMENT_1(c) ((c)->uc_mcontext.gregs[REG_RDI])
#define ARGUMENT_2(c) ((c)->uc_mcontext.gregs[REG_RSI])
#define ARGUMENT_3(c) ((c)->uc_mcontext.gregs[REG_RDX])
#define RESULT(c) ((c)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define KNOWN TRUE
#define ARGUMENT_1(c) ((c)->uc_mcontext.regs[0])
#define ARGUMENT_2(c) ((c)->uc_mcontext.regs[1])
#define ARGUMENT_3(c) ((c)->uc_mcontext.regs[2])
#define RESULT(c) ((c)->uc_mcontext.regs[0])
#else
#define KNOWN FALSE
#endif

gboolean
connect_trap_is_known (void)
{
  return KNOWN;
}

#if KNOWN

static gint to_proxy;

// Sends the address with the socket and the end of a pair on which the result comes.
static gboolean
send_request (gint fd, gint answer, const struct sockaddr *address, socklen_t size)
{
  const gint fds[] = { fd, answer };
  union {
    struct cmsghdr head;
    guint8 space[CMSG_SPACE (sizeof fds)];
  } control;
  struct iovec bytes = { (gpointer) address, size };
  struct msghdr message = {
    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };

  memset (&control, 0, sizeof control);
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN (sizeof fds);
  memcpy (CMSG_DATA (&control.head), fds, sizeof fds);
  return sendmsg (to_proxy, &message, MSG_NOSIGNAL) >= 0;
}

// Returns what connect() returns to the C library: 0 or a negative errno. Only calls what a signal
// handler may.
static gint
ask (gint fd, const struct sockaddr *address, socklen_t size)
{
  gint pair[2], result = -EACCES;
  gssize n;

  if (!address || size < sizeof address->sa_family || size > sizeof (struct sockaddr_storage))
    return -EINVAL;
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    return -errno;
  if (!send_request (fd, pair[1], address, size))
    result = errno == EBADF ? -EBADF : -EACCES;
  close (pair[1]);
  do
    n = recv (pair[0], &result, sizeof result, 0);
  while (n < 0 && errno == EINTR);
  close (pair[0]);
  return result;
}

static void
on_trap (int number, siginfo_t *info, void *data)
{
  ucontext_t *context = data;
  gint saved = errno;

  if (info->si_syscall == SYS_connect)
    RESULT (context) = ask ((gint) ARGUMENT_1 (context),
        (const struct sockaddr *) ARGUMENT_2 (context), (socklen_t) ARGUMENT_3 (context));
  else
    RESULT (context) = -ENOSYS;
  errno = saved;
}

void
connect_trap_set (gint proxy)
{
  struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART };

  to_proxy = proxy;
  sigemptyset (&action.sa_mask);
  sigaction (SIGSYS, &action, NULL);
}

#else

void
connect_trap_set (gint proxy)
{
}

#endif
