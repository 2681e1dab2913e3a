// SPDX-License-Identifier: LGPL-2.1-or-later
#include "program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clone_object.h"
#include "core/net/burst.h"

// In enum bpf_attach_type since Linux 6.6; the headers of Debian 12 are older.
#define ATTACH_TCX_EGRESS 47

// Filters of clsact, for kernels without tcx: their priority, and the most processes that have
// some.
#define FILTER_PRIORITY 0x7765
#define OWNERS 64

#define PORT_DISCARD 9
#define RTP_NUMBERS 8 // bytes of an RTP packet up to the end of its timestamp

G_STATIC_ASSERT (CLONE_READERS >= WEIR_CLONES_MAX);
G_STATIC_ASSERT (CLONE_PACKETS >= WEIR_STAGE_PACKETS);
G_STATIC_ASSERT (CLONE_WIDE_ID == WEIR_CLONES_WIDE_ID);

// What this process keeps of a slot; its shared part is slots[number].
typedef struct {
  atomic_flag taken;
  int fd;
  gboolean
      waits; // a message may still wait for a neighbour: the slot is not used before it is gone
} Slot;

static struct bpf_object *object;
static int program_fd = -1;
static struct clone_slot *slots;
static Slot own[CLONE_SLOTS];
static atomic_uint next_slot;
static guint owner; // number of this process in the handles of its filters; 0: none yet

// ---- loading ----

static int
be_silent (enum libbpf_print_level level, const char *format, va_list args)
{
  return 0;
}

gboolean
weir_program_fail (GError **error, int code, const char *what)
{
  const char *help = "";

  if (code == EPERM || code == EACCES)
    help = ": the process needs the capabilities CAP_BPF and CAP_NET_ADMIN of the host, not of a "
           "user namespace";
  else if (code == EINVAL || code == ENOSYS)
    help = ": the kernel may be too old; Linux 6.1 or later is needed";
  g_set_error (
      error, G_IO_ERROR, g_io_error_from_errno (code), "%s: %s%s", what, g_strerror (code), help);
  return FALSE;
}

static gboolean
load_object (GError **error)
{
  struct bpf_map *map;
  int r;

  libbpf_set_print (be_silent);
  object = bpf_object__open_mem (clone_object, sizeof clone_object, NULL);
  if (!object)
    return weir_program_fail (error, errno, "cannot read the clone program");
  if ((r = bpf_object__load (object)) < 0)
    return weir_program_fail (error, -r, "cannot load the clone program");
  program_fd = bpf_program__fd (bpf_object__find_program_by_name (object, "clone_burst"));
  map = bpf_object__find_map_by_name (object, "slots");
  slots = mmap (
      NULL, sizeof *slots * CLONE_SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd (map), 0);
  if (slots == MAP_FAILED) {
    slots = NULL;
    return weir_program_fail (error, errno, "cannot map the memory of the clone program");
  }
  return TRUE;
}

static gboolean
open_slot (guint number, GError **error)
{
  guint32 mark = CLONE_MARK + number;
  // Some readers' packets may have to be split on their way, by routers that this host does not
  // know.
  int split = IP_PMTUDISC_OMIT;
  socklen_t len = sizeof slots[number].cookie;
  Slot *slot = &own[number];

  slot->fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (slot->fd < 0 || setsockopt (slot->fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0
      || setsockopt (slot->fd, IPPROTO_IP, IP_MTU_DISCOVER, &split, sizeof split) < 0
      || getsockopt (slot->fd, SOL_SOCKET, SO_COOKIE, &slots[number].cookie, &len) < 0)
    return weir_program_fail (error, errno, "cannot open a socket of the clone program");
  return TRUE;
}

static void
unload (void)
{
  for (guint i = 0; i < CLONE_SLOTS; i++) {
    if (own[i].fd >= 0)
      close (own[i].fd);
    own[i].fd = -1;
  }
  if (slots)
    munmap (slots, sizeof *slots * CLONE_SLOTS);
  slots = NULL;
  bpf_object__close (object);
  object = NULL;
}

gboolean
weir_program_load (GError **error)
{
  gboolean ok;

  for (guint i = 0; i < CLONE_SLOTS; i++)
    own[i].fd = -1;
  ok = load_object (error);
  for (guint i = 0; i < CLONE_SLOTS && ok; i++)
    ok = open_slot (i, error);
  if (!ok)
    unload ();
  return ok;
}

// ---- attaching ----

// Takes the name of an owner, which is the process's until it ends: an abstract address of a
// socket, which counts in this network namespace. Returns a descriptor, or -1 if it is taken.
static int
take_name (guint number)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int len = snprintf (address.sun_path + 1, sizeof address.sun_path - 1, "weir-clones-%u", number);
  socklen_t size = (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1) + (socklen_t) len;
  int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  if (fd >= 0 && bind (fd, (struct sockaddr *) &address, size) < 0) {
    close (fd);
    fd = -1;
  }
  return fd;
}

// Removes the filters at a device of owners that have ended.
static void
remove_leftovers (const struct bpf_tc_hook *hook)
{
  for (guint number = 1; number <= OWNERS; number++) {
    int fd = number == owner ? -1 : take_name (number);

    if (fd < 0)
      continue;
    DECLARE_LIBBPF_OPTS (bpf_tc_opts, filter, .handle = number, .priority = FILTER_PRIORITY);
    bpf_tc_detach (hook, &filter);
    close (fd);
  }
}

// A filter of clsact outlives the process, as nothing holds it. Afterwards it lets all packets
// pass: there are no sockets with the cookies of its slots any more.
static int
attach_filter (guint device)
{
  DECLARE_LIBBPF_OPTS (bpf_tc_hook, hook, .ifindex = (int) device, .attach_point = BPF_TC_EGRESS);
  int r = bpf_tc_hook_create (&hook);

  if (r < 0 && r != -EEXIST)
    return r;
  for (guint number = 1; owner == 0 && number <= OWNERS; number++) {
    if (take_name (number) >= 0) // open until the process ends
      owner = number;
  }
  if (owner == 0)
    return -EBUSY;
  remove_leftovers (&hook);
  DECLARE_LIBBPF_OPTS (bpf_tc_opts, filter, .prog_fd = program_fd, .handle = owner,
      .priority = FILTER_PRIORITY, .flags = BPF_TC_F_REPLACE);
  return bpf_tc_attach (&hook, &filter);
}

int
weir_program_attach (guint device)
{
  int fd =
      bpf_link_create (program_fd, (int) device, (enum bpf_attach_type) ATTACH_TCX_EGRESS, NULL);

  if (fd >= 0)
    return fd;
  return errno == EINVAL ? attach_filter (device) : -errno;
}

// ---- sending ----

static gboolean
is_usable (Slot *slot)
{
  int waiting = 0;

  if (slot->waits)
    slot->waits = ioctl (slot->fd, SIOCOUTQ, &waiting) < 0 || waiting > 0;
  return !slot->waits;
}

// Returns the number of a free slot, which the caller gives back; CLONE_SLOTS: none is free.
static guint
take_slot (void)
{
  guint first = atomic_fetch_add_explicit (&next_slot, 1, memory_order_relaxed);

  for (guint i = 0; i < CLONE_SLOTS; i++) {
    guint number = (first + i) % CLONE_SLOTS;

    if (atomic_flag_test_and_set_explicit (&own[number].taken, memory_order_acquire))
      continue;
    if (is_usable (&own[number]))
      return number;
    atomic_flag_clear_explicit (&own[number].taken, memory_order_release);
  }
  return CLONE_SLOTS;
}

static void
give_slot (guint number)
{
  atomic_flag_clear_explicit (&own[number].taken, memory_order_release);
}

static int
get_option (int fd, int level, int name, int otherwise)
{
  socklen_t len = sizeof otherwise;

  getsockopt (fd, level, name, &otherwise, &len);
  return otherwise;
}

// Tells the program where the message has numbers, for readers with other ones.
static void
fill_numbers (
    struct clone_slot *slot, const WeirCloneMessage *message, const WeirProgramReaders *readers)
{
  gsize size = message->header->msg_iov->iov_len, end = 0;
  guint16 segment;

  if (message->n_packets > 1) {
    memcpy (&segment, CMSG_DATA (CMSG_FIRSTHDR (message->header)), sizeof segment);
    size = segment;
  }
  for (gsize i = 0; i < message->n_packets; i++) {
    guint16 at = message->picture_at ? message->picture_at[i] : 0;
    gsize last = MAX (RTP_NUMBERS, (at & ~(gsize) CLONE_WIDE_ID) + (at & CLONE_WIDE_ID ? 2 : 1));

    slot->picture_at[i] = at;
    if (message->rtp >> i & 1)
      end = i * size + last;
  }
  slot->rtp = message->rtp;
  slot->n_packets = (guint32) message->n_packets;
  slot->numbers_end = (guint32) end;
  memcpy (slot->numbers + readers->n_plain, readers->numbers + readers->n_plain,
      (readers->n - readers->n_plain) * sizeof *readers->numbers);
}

static void
fill_slot (struct clone_slot *slot, int fd, guint device, const WeirCloneMessage *message,
    const WeirProgramReaders *readers)
{
  slot->device = device;
  slot->n = (guint32) readers->n;
  slot->n_plain = (guint32) readers->n_plain;
  if (readers->n_plain < readers->n)
    fill_numbers (slot, message, readers);
  slot->tos = (guint8) get_option (fd, IPPROTO_IP, IP_TOS, 0);
  slot->ttl = (guint8) get_option (fd, IPPROTO_IP, IP_TTL, 64);
  slot->priority = (guint32) get_option (fd, SOL_SOCKET, SO_PRIORITY, 0);
  memcpy (slot->readers, readers->headers, readers->n * sizeof *readers->headers);
  __atomic_store_n (&slot->state, CLONE_ARMED, __ATOMIC_SEQ_CST);
}

// Sends the message to the first reader's host, so that the kernel keeps that neighbour fresh. If
// the message ever left the machine, the host would discard it.
static int
trigger (Slot *slot, const struct msghdr *message, guint device, guint32 to)
{
  struct sockaddr_in address = {
    .sin_family = AF_INET,
    .sin_port = htons (PORT_DISCARD),
    .sin_addr.s_addr = to,
  };
  struct in_pktinfo info = { .ipi_ifindex = (int) device };
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE (sizeof (guint16)) + CMSG_SPACE (sizeof info)];
  } control = { 0 };
  struct msghdr own_message = {
    .msg_name = &address,
    .msg_namelen = sizeof address,
    .msg_iov = message->msg_iov,
    .msg_iovlen = message->msg_iovlen,
    .msg_control = control.bytes,
    .msg_controllen = message->msg_controllen + CMSG_SPACE (sizeof info),
  };
  struct cmsghdr *cmsg;

  if (own_message.msg_controllen > sizeof control.bytes)
    return -EINVAL;
  if (message->msg_controllen > 0)
    memcpy (control.bytes, message->msg_control, message->msg_controllen);
  cmsg = (struct cmsghdr *) (control.bytes + message->msg_controllen);
  cmsg->cmsg_level = IPPROTO_IP;
  cmsg->cmsg_type = IP_PKTINFO;
  cmsg->cmsg_len = CMSG_LEN (sizeof info);
  memcpy (CMSG_DATA (cmsg), &info, sizeof info);
  return sendmsg (slot->fd, &own_message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

// Disarms the slot. Returns the state that the program has left. The program ran before the send
// returned, unless the message was held up; then it may be running on another processor now.
static guint64
disarm (struct clone_slot *slot)
{
  guint64 state = CLONE_ARMED;

  if (__atomic_compare_exchange_n (
          &slot->state, &state, CLONE_IDLE, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    return CLONE_ARMED;
  while (state == CLONE_RUNNING)
    state = __atomic_load_n (&slot->state, __ATOMIC_SEQ_CST);
  return state;
}

gsize
weir_program_send (
    const WeirCloneMessage *message, int fd, guint device, WeirProgramReaders *readers)
{
  guint number = take_slot ();
  gsize n_done = 0;
  guint64 state;

  if (number == CLONE_SLOTS)
    return 0;
  fill_slot (&slots[number], fd, device, message, readers);
  trigger (&own[number], message->header, device, readers->headers[0].target);
  state = disarm (&slots[number]);
  own[number].waits = state == CLONE_ARMED;
  if (state == CLONE_DONE)
    n_done = MIN (slots[number].n_done, readers->n);
  memcpy (readers->results, slots[number].results, n_done * sizeof *readers->results);
  give_slot (number);
  return n_done;
}
