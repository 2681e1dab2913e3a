// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"

#define EVENTS 64 // at once
#define WAKE 0    // epoll's data of the eventfd; watches have ids from 1 on

typedef struct {
  void (*function) (gpointer data);
  gpointer data;
} Post;

struct _Loop {
  LoopSettings settings;
  GThread *thread;
  gint epoll, wake;
  guint8 *scratch;

  GMutex lock;         // protects the fields below
  GHashTable *watches; // id -> LoopWatch
  guint64 last_id;
  WeirHeap times; // of LoopWatch
  GArray *posts;  // of Post
  gboolean stopping;
};

static _Thread_local Loop *running; // by this thread

static void
wake_thread (Loop *self)
{
  eventfd_write (self->wake, 1); // if it fails, the counter is full, so the thread is awake
}

// ---- times; the lock is held ----

static LoopWatch *
watch_of (const WeirHeapNode *node)
{
  return (LoopWatch *) ((gchar *) node - G_STRUCT_OFFSET (LoopWatch, at));
}

static bool
is_before (const WeirHeapNode *a, const WeirHeapNode *b, const void *unused)
{
  return watch_of (a)->due < watch_of (b)->due;
}

static gint64
get_first_time (Loop *self)
{
  return self->times.n > 0 ? watch_of (self->times.nodes[0])->due : LOOP_NEVER;
}

static void
forget_time (LoopWatch *watch)
{
  if (watch->at.at > 0)
    weir_heap_remove (&watch->loop->times, &watch->at, is_before, NULL);
}

// ---- the thread ----

// Calls what was posted until now. Returns FALSE if the thread is to stop.
static gboolean
run_posts (Loop *self)
{
  g_autoptr (GArray) posts = NULL;
  gboolean stopping;
  eventfd_t n;

  // The event is read before the posts are taken, so that a later one wakes the thread again.
  eventfd_read (self->wake, &n);
  g_mutex_lock (&self->lock);
  posts = self->posts;
  self->posts = g_array_new (FALSE, FALSE, sizeof (Post));
  stopping = self->stopping;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < posts->len; i++) {
    const Post *post = &g_array_index (posts, Post, i);

    post->function (post->data);
  }
  return !stopping;
}

// Finds the owners of events. An owner that leaves from now on is not freed before these events
// have been handled, because only this thread calls `left`.
static void
find_owners (Loop *self, const struct epoll_event *events, gint n, LoopWatch **owners)
{
  g_mutex_lock (&self->lock);
  for (gint i = 0; i < n; i++) {
    guint64 id = events[i].data.u64 / LOOP_NUMBERS;

    owners[i] = g_hash_table_lookup (self->watches, &id);
  }
  g_mutex_unlock (&self->lock);
}

// Returns how many owners there are.
static guint
count_owners (Loop *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = g_hash_table_size (self->watches);
  g_mutex_unlock (&self->lock);
  return n;
}

// Returns how many events were handled; sets `*woken` if one was that of the eventfd.
static gint
take_batch (Loop *self, gint timeout_ms, gboolean *woken)
{
  struct epoll_event events[EVENTS];
  LoopWatch *owners[EVENTS];
  gint n = epoll_wait (self->epoll, events, EVENTS, timeout_ms);

  *woken = FALSE;
  find_owners (self, events, n, owners);
  for (gint i = 0; i < n; i++) {
    *woken |= events[i].data.u64 == WAKE;
    if (owners[i] && !g_atomic_int_get (&owners[i]->leaving))
      owners[i]->ops->ready (
          owners[i], (guint) (events[i].data.u64 % LOOP_NUMBERS), events[i].events);
  }
  return MAX (n, 0) - *woken;
}

// Gives each descriptor that is ready one turn. Returns FALSE if the thread is to stop.
static gboolean
take_round (Loop *self, gint timeout_ms)
{
  guint seen = 0;
  gint n;

  do {
    gboolean woken;

    n = take_batch (self, seen == 0 ? timeout_ms : 0, &woken);
    seen += (guint) n;
    if (woken && !run_posts (self))
      return FALSE;
  } while (n >= EVENTS - 1 && seen < count_owners (self));
  if (seen > 0 && self->settings.gather_us > 0 && count_owners (self) > self->settings.gather_above)
    g_usleep (self->settings.gather_us);
  return TRUE;
}

// Takes the owner whose time has come first, or returns NULL.
static LoopWatch *
take_due (Loop *self, gint64 now)
{
  LoopWatch *watch = NULL;

  g_mutex_lock (&self->lock);
  if (get_first_time (self) <= now) {
    watch = watch_of (self->times.nodes[0]);
    forget_time (watch);
  }
  g_mutex_unlock (&self->lock);
  return watch;
}

// A function may set a time that has come already. It waits for the next round, after the events.
static void
run_due (Loop *self)
{
  gint64 now = clock_now ();
  LoopWatch *watch;

  for (guint left = count_owners (self); left > 0 && (watch = take_due (self, now)); left--) {
    if (!g_atomic_int_get (&watch->leaving))
      watch->ops->due (watch, now);
  }
}

static gint
get_timeout (Loop *self)
{
  gint64 first, left;

  g_mutex_lock (&self->lock);
  first = get_first_time (self);
  g_mutex_unlock (&self->lock);
  if (first == LOOP_NEVER)
    return -1;
  left = first - clock_now ();
  return left <= 0 ? 0 : (gint) MIN (left / 1000000 + 1, G_MAXINT);
}

static gpointer
run_loop (gpointer data)
{
  Loop *self = running = data;

  thread_set_name (self->settings.name);
  while (take_round (self, get_timeout (self)))
    run_due (self);
  return NULL;
}

// ---- owners ----

void
loop_post (Loop *self, void (*function) (gpointer data), gpointer data)
{
  const Post post = { function, data };

  g_mutex_lock (&self->lock);
  g_array_append_val (self->posts, post);
  // With the lock held, because the post may be the last thing that the loop is used for.
  if (self->posts->len == 1)
    wake_thread (self);
  g_mutex_unlock (&self->lock);
}

void
loop_join (Loop *loop, LoopWatch *watch, const LoopOps *ops)
{
  *watch = (LoopWatch) { .ops = ops, .loop = loop, .due = LOOP_NEVER };
  if (!loop)
    return;
  g_mutex_lock (&loop->lock);
  watch->id = ++loop->last_id;
  g_hash_table_insert (loop->watches, &watch->id, watch);
  // Room for every owner, so that setting a time never fails.
  if (weir_heap_reserve (&loop->times, g_hash_table_size (loop->watches)) < 0)
    g_error ("out of memory");
  g_mutex_unlock (&loop->lock);
}

static void
forget (LoopWatch *watch)
{
  Loop *loop = watch->loop;

  g_mutex_lock (&loop->lock);
  forget_time (watch);
  g_hash_table_remove (loop->watches, &watch->id);
  g_mutex_unlock (&loop->lock);
}

static void
call_left (gpointer data)
{
  LoopWatch *watch = data;

  forget (watch);
  if (watch->ops->left)
    watch->ops->left (watch);
}

void
loop_leave (LoopWatch *watch)
{
  if (!g_atomic_int_compare_and_exchange (&watch->leaving, FALSE, TRUE))
    return;
  if (watch->loop)
    loop_post (watch->loop, call_left, watch);
  else if (watch->ops->left)
    watch->ops->left (watch);
}

gboolean
loop_watch (LoopWatch *watch, guint number, gint fd, guint32 events)
{
  struct epoll_event event = { .events = events, .data.u64 = watch->id * LOOP_NUMBERS + number };

  if (!watch->loop) {
    errno = EMFILE;
    return FALSE;
  }
  if (events == 0)
    return epoll_ctl (watch->loop->epoll, EPOLL_CTL_DEL, fd, NULL) == 0;
  return epoll_ctl (watch->loop->epoll, EPOLL_CTL_MOD, fd, &event) == 0
         || (errno == ENOENT && epoll_ctl (watch->loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

gboolean
loop_join_fd (Loop *loop, LoopWatch *watch, const LoopOps *ops, gint fd, guint32 events)
{
  gint problem;

  loop_join (loop, watch, ops);
  if (loop_watch (watch, 0, fd, events))
    return TRUE;
  problem = errno;
  if (loop)
    forget (watch); // no event of it can be on its way
  errno = problem;
  return FALSE;
}

void
loop_set_due (LoopWatch *watch, gint64 due)
{
  Loop *loop = watch->loop;
  gboolean is_earlier;

  if (!loop)
    return;
  g_mutex_lock (&loop->lock);
  is_earlier = due < get_first_time (loop);
  forget_time (watch);
  watch->due = due;
  if (due != LOOP_NEVER && !g_atomic_int_get (&watch->leaving))
    weir_heap_push (&loop->times, &watch->at, is_before, NULL);
  g_mutex_unlock (&loop->lock);
  if (is_earlier && running != loop)
    wake_thread (loop);
}

gint64
loop_next_tick (gint64 now, guint interval_ms)
{
  const gint64 interval = interval_ms * G_GINT64_CONSTANT (1000000);

  return now - now % interval + interval;
}

guint8 *
loop_get_scratch (LoopWatch *watch)
{
  return watch->loop->scratch;
}

// ---- construction ----

Loop *
loop_new (const LoopSettings *settings, GError **error)
{
  Loop *self = g_new0 (Loop, 1);
  struct epoll_event event = { .events = EPOLLIN, .data.u64 = WAKE };

  self->settings = *settings;
  g_mutex_init (&self->lock);
  self->watches = g_hash_table_new (g_int64_hash, g_int64_equal);
  self->posts = g_array_new (FALSE, FALSE, sizeof (Post));
  self->scratch = g_malloc (settings->scratch);
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  self->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->epoll < 0 || self->wake < 0
      || epoll_ctl (self->epoll, EPOLL_CTL_ADD, self->wake, &event) < 0)
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot open an epoll: %s",
        g_strerror (errno));
  else
    self->thread = g_thread_try_new (settings->name, run_loop, self, error);
  if (!self->thread)
    g_clear_pointer (&self, loop_free);
  return self;
}

static void
let_all_leave (Loop *self)
{
  GList *all = g_hash_table_get_values (self->watches);

  for (GList *l = all; l; l = l->next)
    loop_leave (l->data);
  g_list_free (all);
}

static void
stop_thread (Loop *self)
{
  g_mutex_lock (&self->lock);
  self->stopping = TRUE;
  g_mutex_unlock (&self->lock);
  wake_thread (self);
  g_thread_join (self->thread);
  run_posts (self);
  let_all_leave (self);
  run_posts (self);
}

void
loop_free (Loop *self)
{
  if (self->thread)
    stop_thread (self);
  if (self->epoll >= 0)
    close (self->epoll);
  if (self->wake >= 0)
    close (self->wake);
  g_array_unref (self->posts);
  g_hash_table_unref (self->watches);
  weir_heap_free (&self->times);
  g_mutex_clear (&self->lock);
  g_free (self->scratch);
  g_free (self);
}
