// SPDX-License-Identifier: LGPL-2.1-or-later
//
// With this library in LD_PRELOAD, a worker process tries what its sandbox forbids, as code of a
// stranger would that has taken it over, and writes lines "probe NAME: RESULT" to its standard
// error; RESULT is "done" or the name of the error. Then it works as usual. The environment names
// the targets:
//   WEIR_PROBE_READ    files to read, separated by ':'
//   WEIR_PROBE_FOLDER  a folder to write in, with a file "old"
//   WEIR_PROBE_PORTS   TCP ports of 127.0.0.1 to connect to, separated by ':'
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

__attribute__ ((visibility ("default"))) void gst_init (int *argc, char ***argv);

static void
tell (const char *name, const char *what, long result)
{
  fprintf (stderr, "probe %s%s%s: %s\n", name, *what ? " " : "", what,
      result >= 0 ? "done" : strerrorname_np (errno));
}

static void
try_reads (char *paths)
{
  for (char *rest, *path = strtok_r (paths, ":", &rest); path; path = strtok_r (NULL, ":", &rest))
    tell ("read", path, syscall (SYS_openat, AT_FDCWD, path, O_RDONLY));
}

static void
try_writes (const char *folder)
{
  char old[4096], made[4096];

  snprintf (old, sizeof old, "%s/old", folder);
  snprintf (made, sizeof made, "%s/new", folder);
  tell ("create", "", syscall (SYS_openat, AT_FDCWD, made, O_WRONLY | O_CREAT, 0600));
  tell ("write", "", syscall (SYS_openat, AT_FDCWD, old, O_WRONLY));
  tell ("read-write", "", syscall (SYS_openat, AT_FDCWD, old, O_RDWR));
  tell ("unnamed", "", syscall (SYS_openat, AT_FDCWD, folder, O_RDWR | O_TMPFILE, 0600));
  tell ("truncate", "", truncate (old, 0));
  tell ("chmod", "", fchmodat (AT_FDCWD, old, 04755, 0));
  tell ("chown", "", fchownat (AT_FDCWD, old, getuid (), getgid (), 0));
  tell ("setxattr", "", setxattr (old, "user.probe", "1", 1, 0));
  tell ("symlink", "", symlinkat ("/etc/passwd", AT_FDCWD, made));
  tell ("link", "", linkat (AT_FDCWD, old, AT_FDCWD, made, 0));
  tell ("mkdir", "", mkdirat (AT_FDCWD, made, 0700));
  tell ("mkfifo", "", mknodat (AT_FDCWD, made, S_IFIFO | 0600, 0));
  tell ("rename", "", renameat (AT_FDCWD, old, AT_FDCWD, made));
  tell ("unlink", "", unlinkat (AT_FDCWD, old, 0));
}

// A socket that does not wait connects later. Says what came of it.
static int
finish (int fd)
{
  struct pollfd wait = { fd, POLLOUT, 0 };
  int error = 0;
  socklen_t size = sizeof error;

  poll (&wait, 1, 5000);
  getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error ? -1 : 0;
}

static long
try_connect (struct sockaddr *address, socklen_t size, int type)
{
  int fd = socket (address->sa_family, type, 0);
  long result = fd < 0 ? -1 : syscall (SYS_connect, fd, address, size);

  if (fd >= 0 && result < 0 && errno == EINPROGRESS)
    result = finish (fd);
  return result;
}

static void
try_connects (char *ports)
{
  for (char *rest, *port = strtok_r (ports, ":", &rest); port; port = strtok_r (NULL, ":", &rest)) {
    struct sockaddr_in in = { AF_INET, htons ((uint16_t) atoi (port)), { htonl (INADDR_LOOPBACK) },
      { 0 } };
    struct sockaddr_in6 mapped = { AF_INET6, in.sin_port, 0, IN6ADDR_ANY_INIT, 0 };
    char fast[1] = { 0 };

    inet_pton (AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    tell ("connect", port, try_connect ((struct sockaddr *) &in, sizeof in, SOCK_STREAM));
    tell ("connect-later", port,
        try_connect ((struct sockaddr *) &in, sizeof in, SOCK_STREAM | SOCK_NONBLOCK));
    tell ("connect-mapped", port,
        try_connect ((struct sockaddr *) &mapped, sizeof mapped, SOCK_STREAM));
    in.sin_addr.s_addr = 0; // this host
    tell ("connect-any", port, try_connect ((struct sockaddr *) &in, sizeof in, SOCK_STREAM));
    tell ("connect-fast", port,
        sendto (socket (AF_INET, SOCK_STREAM, 0), fast, sizeof fast, MSG_FASTOPEN | MSG_NOSIGNAL,
            (struct sockaddr *) &in, sizeof in));
  }
}

static void
try_others (void)
{
  char path[64];

  snprintf (path, sizeof path, "/proc/%d/mem", getppid ());
  tell ("memory", "", syscall (SYS_openat, AT_FDCWD, path, O_RDONLY));
  snprintf (path, sizeof path, "/proc/%d/environ", getppid ());
  tell ("environment", "", syscall (SYS_openat, AT_FDCWD, path, O_RDONLY));
  tell ("survive", "", syscall (SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY));
  tell ("execute", "", syscall (SYS_execveat, AT_FDCWD, "/bin/true", NULL, NULL, 0));
  tell ("signal", "", syscall (SYS_kill, getppid (), 0));
}

// The worker calls this right after it has entered its sandbox.
void
gst_init (int *argc, char ***argv)
{
  void (*real) (int *, char ***) = (void (*) (int *, char ***)) dlsym (RTLD_NEXT, "gst_init");
  const char *reads = getenv ("WEIR_PROBE_READ"), *folder = getenv ("WEIR_PROBE_FOLDER"),
             *ports = getenv ("WEIR_PROBE_PORTS");

  if (argv && *argv && !strcmp ((*argv)[0], "rtsp-proxy-worker")) {
    if (reads)
      try_reads (strdup (reads));
    if (folder)
      try_writes (folder);
    if (ports)
      try_connects (strdup (ports));
    try_others ();
    fprintf (stderr, "probe ended\n");
  }
  real (argc, argv);
}
