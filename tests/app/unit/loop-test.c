// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#define OWNERS 200 // more than events of one epoll_wait()
#define THREADS 4
#define LIVES 500 // of owners, in each thread
#define MS G_GINT64_CONSTANT (1000000)

static const LoopSettings plain = { .name = "loop-test" };

// An owner with an eventfd. What happens to it is checked and counted.
typedef struct {
  LoopWatch watch;
  gint fd;
  gint n_ready, n_due, n_left; // atomic
  gpointer other;              // an owner that `ready` lets leave; or NULL
} Owner;

static GAsyncQueue *said; // what the thread tells the tests

static Loop *
make_loop (const LoopSettings *settings)
{
  GError *error = NULL;
  Loop *loop = loop_new (settings, &error);

  g_assert_no_error (error);
  return loop;
}

static gpointer
hear (void)
{
  gpointer word = g_async_queue_timeout_pop (said, 60 * G_USEC_PER_SEC);

  g_assert_nonnull (word);
  return word;
}

static void
say (gpointer word)
{
  g_async_queue_push (said, word);
}

static void
on_ready (LoopWatch *watch, guint number, guint32 events)
{
  Owner *self = (Owner *) watch;
  eventfd_t n;

  g_assert_cmpint (g_atomic_int_get (&self->n_left), ==, 0);
  g_assert_cmpint (eventfd_read (self->fd, &n), ==, 0);
  g_atomic_int_inc (&self->n_ready);
  if (!self->other)
    return;
  loop_leave (&((Owner *) self->other)->watch);
  // Only this thread calls `left`, after this function.
  g_assert_cmpint (g_atomic_int_get (&((Owner *) self->other)->n_left), ==, 0);
}

static void
on_due (LoopWatch *watch, gint64 now)
{
  Owner *self = (Owner *) watch;

  g_assert_cmpint (now, <=, clock_now ());
  g_atomic_int_inc (&self->n_due);
  say (self);
}

static void
on_left (LoopWatch *watch)
{
  Owner *self = (Owner *) watch;

  g_assert_cmpint (g_atomic_int_add (&self->n_left, 1), ==, 0);
  close (self->fd);
  say (self);
}

static const LoopOps ops = { on_ready, on_due, on_left };

static Owner *
join (Loop *loop)
{
  Owner *self = g_new0 (Owner, 1);

  self->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  g_assert_cmpint (self->fd, >=, 0);
  loop_join (loop, &self->watch, &ops);
  return self;
}

static void
watch (Owner *self)
{
  g_assert_true (loop_watch (&self->watch, 3, self->fd, EPOLLIN));
}

// Waits until the thread has called what was posted before.
static void
settle (Loop *loop)
{
  loop_post (loop, say, loop);
  while (hear () != loop)
    ;
}

// ---- descriptors ----

typedef struct {
  LoopWatch watch;
  gint fds[2];
} Pipes;

static void
on_pipe (LoopWatch *watch, guint number, guint32 events)
{
  g_assert_cmpuint (events, ==, number == 2 ? EPOLLIN : EPOLLOUT);
  say (GUINT_TO_POINTER (number));
}

static void
on_pipe_left (LoopWatch *watch)
{
  say (watch);
}

static void
an_owner_tells_its_descriptors_apart (void)
{
  static const LoopOps pipe_ops = { .ready = on_pipe, .left = on_pipe_left };
  Loop *loop = make_loop (&plain);
  Pipes self;

  g_assert_cmpint (pipe (self.fds), ==, 0);
  loop_join (loop, &self.watch, &pipe_ops);
  g_assert_true (loop_watch (&self.watch, 2, self.fds[0], EPOLLIN));
  g_assert_true (loop_watch (&self.watch, LOOP_NUMBERS - 1, self.fds[1], EPOLLOUT | EPOLLONESHOT));
  g_assert_cmpuint (GPOINTER_TO_UINT (hear ()), ==, LOOP_NUMBERS - 1);
  settle (loop);
  g_assert_cmpint (write (self.fds[1], "x", 1), ==, 1);
  g_assert_cmpuint (GPOINTER_TO_UINT (hear ()), ==, 2);
  g_assert_true (loop_watch (&self.watch, 2, self.fds[0], 0));
  // The same descriptor, with other events.
  g_assert_true (loop_watch (&self.watch, 5, self.fds[1], EPOLLOUT | EPOLLONESHOT));
  while (GPOINTER_TO_UINT (hear ()) != 5)
    ;
  loop_leave (&self.watch);
  while (hear () != &self.watch)
    ;
  loop_free (loop);
  close (self.fds[0]);
  close (self.fds[1]);
}

static void
a_descriptor_that_cannot_be_watched_is_an_error (void)
{
  Loop *loop = make_loop (&plain);
  Owner *self = join (loop), *without = join (NULL);
  LoopWatch refused;

  g_assert_false (loop_watch (&self->watch, 0, -1, EPOLLIN));
  g_assert_cmpint (errno, ==, EBADF);
  g_assert_false (loop_watch (&without->watch, 0, without->fd, EPOLLIN));
  g_assert_cmpint (errno, ==, EMFILE);
  g_assert_false (loop_join_fd (loop, &refused, &ops, -1, EPOLLIN));
  g_assert_cmpint (errno, ==, EBADF);
  g_assert_false (loop_join_fd (NULL, &refused, &ops, self->fd, EPOLLIN));
  g_assert_cmpint (errno, ==, EMFILE);
  loop_set_due (&without->watch, 1);
  loop_leave (&without->watch);
  g_assert_cmpint (without->n_left, ==, 1);
  loop_free (loop);
  g_assert_cmpint (self->n_left, ==, 1);
  g_free (self);
  g_free (without);
  while (g_async_queue_try_pop (said))
    ;
}

// ---- leaving ----

static void
block (gpointer lock)
{
  say (lock);
  g_mutex_lock (lock);
  g_mutex_unlock (lock);
}

// Events of both are fetched together, because the thread waits meanwhile.
static void
an_owner_that_has_left_gets_no_event_that_was_on_its_way (void)
{
  Loop *loop = make_loop (&plain);
  GMutex lock;

  g_mutex_init (&lock);
  for (guint i = 0; i < 20; i++) {
    Owner *one = join (loop), *other = join (loop);

    one->other = other;
    other->other = one;
    g_mutex_lock (&lock);
    loop_post (loop, block, &lock);
    g_assert_true (hear () == &lock);
    watch (one);
    watch (other);
    eventfd_write (one->fd, 1);
    eventfd_write (other->fd, 1);
    g_mutex_unlock (&lock);
    hear ();
    g_assert_cmpint (one->n_ready + other->n_ready, ==, 1);
    loop_leave (&one->watch);
    loop_leave (&other->watch);
    hear ();
    g_assert_cmpint (one->n_left + other->n_left, ==, 2);
    g_free (one);
    g_free (other);
  }
  loop_free (loop);
  g_mutex_clear (&lock);
}

static void
an_owner_may_leave_in_its_own_function (void)
{
  Loop *loop = make_loop (&plain);
  Owner *self = join (loop);

  self->other = self;
  watch (self);
  eventfd_write (self->fd, 1);
  g_assert_true (hear () == self);
  g_assert_cmpint (self->n_ready, ==, 1);
  g_free (self);
  loop_free (loop);
}

static void
free_owner (LoopWatch *watch)
{
  Owner *self = (Owner *) watch;

  g_assert_cmpint (g_atomic_int_get (&self->n_ready), <=, 1);
  close (self->fd);
  g_free (self);
}

static gpointer
live (gpointer loop)
{
  static const LoopOps freeing = { on_ready, on_due, free_owner };

  for (guint i = 0; i < LIVES; i++) {
    Owner *self = join (loop);

    self->watch.ops = &freeing;
    loop_set_due (&self->watch, clock_now () + 1000 * 1000 * MS);
    watch (self);
    eventfd_write (self->fd, 1);
    if (i % 2)
      g_thread_yield ();
    loop_leave (&self->watch);
  }
  return NULL;
}

// Each of them frees its structure in `left`, while events of it come and others join.
static void
owners_come_and_go_from_many_threads (void)
{
  Loop *loop = make_loop (&plain);
  GThread *threads[THREADS];

  for (guint i = 0; i < THREADS; i++)
    threads[i] = g_thread_new ("lives", live, loop);
  for (guint i = 0; i < THREADS; i++)
    g_thread_join (threads[i]);
  settle (loop);
  loop_free (loop);
}

static void
owners_that_have_not_left_do_so_at_the_end (void)
{
  Loop *loop = make_loop (&plain);
  Owner *left = join (loop), *stays = join (loop);

  loop_leave (&left->watch);
  loop_free (loop);
  g_assert_cmpint (left->n_left, ==, 1);
  g_assert_cmpint (stays->n_left, ==, 1);
  g_assert_true (hear () == left);
  g_assert_true (hear () == stays);
  g_free (left);
  g_free (stays);
}

// ---- many at once ----

static void
check_many (const LoopSettings *settings)
{
  Loop *loop = make_loop (settings);
  Owner *owners[OWNERS];

  for (guint i = 0; i < OWNERS; i++) {
    owners[i] = join (loop);
    owners[i]->other = owners[i];
    watch (owners[i]);
  }
  for (guint i = 0; i < OWNERS; i++)
    eventfd_write (owners[i]->fd, 1);
  for (guint i = 0; i < OWNERS; i++)
    hear ();
  for (guint i = 0; i < OWNERS; i++) {
    g_assert_cmpint (owners[i]->n_ready, ==, 1);
    g_assert_cmpint (owners[i]->n_left, ==, 1);
    g_free (owners[i]);
  }
  loop_free (loop);
}

static void
every_event_of_many_is_handled (void)
{
  const LoopSettings gathering = { .name = "loop-test", .gather_us = 500, .gather_above = 4 };

  check_many (&plain);
  check_many (&gathering);
}

// ---- times ----

static void
times_come_in_their_order (void)
{
  Loop *loop = make_loop (&plain);
  Owner *first = join (loop), *second = join (loop), *never = join (loop), *moved = join (loop);
  const gint64 now = clock_now ();

  loop_set_due (&never->watch, now + 5 * MS);
  loop_set_due (&never->watch, LOOP_NEVER);
  loop_set_due (&moved->watch, now + 1000 * 1000 * MS);
  loop_set_due (&second->watch, now + 20 * MS);
  loop_set_due (&first->watch, now + 10 * MS);
  loop_set_due (&moved->watch, now + 30 * MS);
  g_assert_true (hear () == first);
  g_assert_true (hear () == second);
  g_assert_true (hear () == moved);
  g_assert_cmpint (clock_now (), >=, now + 30 * MS);
  g_assert_cmpint (never->n_due, ==, 0);
  loop_free (loop);
  g_free (first);
  g_free (second);
  g_free (never);
  g_free (moved);
  while (g_async_queue_try_pop (said))
    ;
}

static void
a_time_that_is_set_from_another_thread_wakes_the_loop (void)
{
  Loop *loop = make_loop (&plain);
  Owner *self = join (loop);

  for (guint i = 0; i < 100; i++) {
    settle (loop); // then it waits
    loop_set_due (&self->watch, 1);
    g_assert_true (hear () == self);
  }
  loop_free (loop);
  g_free (self);
  hear ();
}

// As if another thread set it.
static void
a_time_that_is_set_after_leaving_never_comes (void)
{
  Loop *loop = make_loop (&plain);
  Owner *self = join (loop);

  loop_leave (&self->watch);
  loop_set_due (&self->watch, 1);
  g_assert_true (hear () == self);
  loop_set_due (&self->watch, 1);
  settle (loop);
  loop_free (loop);
  g_assert_cmpint (self->n_due, ==, 0);
  g_free (self);
}

static void
on_always_due (LoopWatch *watch, gint64 now)
{
  loop_set_due (watch, now);
}

// Events and posts have their turn, although there is always a time that has come.
static void
a_time_that_comes_at_once_holds_nobody (void)
{
  static const LoopOps greedy = { NULL, on_always_due, on_left };
  Loop *loop = make_loop (&plain);
  Owner *self = join (loop), *busy = join (loop);

  busy->watch.ops = &greedy;
  loop_set_due (&busy->watch, 1);
  self->other = self;
  watch (self);
  eventfd_write (self->fd, 1);
  g_assert_true (hear () == self);
  settle (loop);
  loop_leave (&busy->watch);
  g_assert_true (hear () == busy);
  loop_free (loop);
  g_free (self);
  g_free (busy);
}

static void
ticks_are_whole_multiples (void)
{
  g_assert_cmpint (loop_next_tick (0, 100), ==, 100 * MS);
  g_assert_cmpint (loop_next_tick (100 * MS - 1, 100), ==, 100 * MS);
  g_assert_cmpint (loop_next_tick (100 * MS, 100), ==, 200 * MS);
  g_assert_cmpint (loop_next_tick (1234567891234, 250), ==, 1234750 * MS);
}

// ---- posts ----

static void
post_next (gpointer loop)
{
  loop_post (loop, say, GUINT_TO_POINTER (2));
  loop_post (loop, say, GUINT_TO_POINTER (3));
  say (GUINT_TO_POINTER (1));
}

static void
posts_are_called_in_order_and_all (void)
{
  Loop *loop = make_loop (&plain);

  loop_post (loop, post_next, loop);
  for (guint i = 1; i <= 3; i++)
    g_assert_cmpuint (GPOINTER_TO_UINT (hear ()), ==, i);
  for (guint i = 1; i <= OWNERS; i++)
    loop_post (loop, say, GUINT_TO_POINTER (i));
  loop_free (loop);
  for (guint i = 1; i <= OWNERS; i++)
    g_assert_cmpuint (GPOINTER_TO_UINT (g_async_queue_try_pop (said)), ==, i);
  g_assert_null (g_async_queue_try_pop (said));
}

static void
on_scratch (LoopWatch *watch, gint64 now)
{
  memset (loop_get_scratch (watch), 1, 1000);
  say (watch);
}

static void
owners_share_memory (void)
{
  static const LoopOps writing = { NULL, on_scratch, on_left };
  Loop *loop = make_loop (&(LoopSettings) { .name = "loop-test", .scratch = 1000 });
  Owner *self = join (loop);

  self->watch.ops = &writing;
  loop_set_due (&self->watch, 1);
  g_assert_true (hear () == self);
  loop_free (loop);
  g_free (self);
  hear ();
}

#define ADD(test) g_test_add_func ("/loop/" #test, test)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  said = g_async_queue_new ();
  ADD (an_owner_tells_its_descriptors_apart);
  ADD (a_descriptor_that_cannot_be_watched_is_an_error);
  ADD (an_owner_that_has_left_gets_no_event_that_was_on_its_way);
  ADD (an_owner_may_leave_in_its_own_function);
  ADD (owners_come_and_go_from_many_threads);
  ADD (owners_that_have_not_left_do_so_at_the_end);
  ADD (every_event_of_many_is_handled);
  ADD (times_come_in_their_order);
  ADD (a_time_that_is_set_from_another_thread_wakes_the_loop);
  ADD (a_time_that_is_set_after_leaving_never_comes);
  ADD (a_time_that_comes_at_once_holds_nobody);
  ADD (ticks_are_whole_multiples);
  ADD (posts_are_called_in_order_and_all);
  ADD (owners_share_memory);
  return g_test_run ();
}
