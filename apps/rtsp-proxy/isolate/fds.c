// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/fds.h"

#include <string.h>

gssize
fds_receive (gint socket, gpointer data, gsize size, gint fds[FDS_MAX], guint *n_fds)
{
  union {
    struct cmsghdr head;
    guint8 space[CMSG_SPACE (FDS_MAX * sizeof (gint))];
  } control;
  struct iovec bytes = { data, size };
  struct msghdr message = {
    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };
  gssize n = recvmsg (socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  struct cmsghdr *head = n < 0 ? NULL : CMSG_FIRSTHDR (&message);

  *n_fds = 0;
  if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
    return n;
  *n_fds = (guint) MIN ((head->cmsg_len - CMSG_LEN (0)) / sizeof (gint), FDS_MAX);
  memcpy (fds, CMSG_DATA (head), *n_fds * sizeof (gint));
  return n;
}
