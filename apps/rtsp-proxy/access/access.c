// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/access.h"

#include "access/case_private.h"
#include "access/judge.h"

typedef struct {
  const JudgeOps *ops;
  gpointer judge;
} Seat;

struct _Access {
  GArray *seats; // of Seat; not changed after access_new()
};

// ---- verdicts ----

// Sets the verdict, and calls the client's function if the case was pending for it.
static void
decide (AccessCase *self, AccessVerdict verdict)
{
  gboolean is_later;

  g_mutex_lock (&self->lock);
  self->verdict = verdict;
  is_later = self->is_later;
  g_mutex_unlock (&self->lock);
  if (!is_later)
    return;
  self->done (self, self->data);
  access_case_unref (self);
}

static void
challenge (AccessCase *self)
{
  GArray *seats = self->access->seats;

  for (guint i = 0; i < seats->len; i++) {
    const Seat *seat = &g_array_index (seats, Seat, i);

    if (seat->ops->challenge)
      seat->ops->challenge (seat->judge, self, self->challenges);
  }
  g_ptr_array_add (self->challenges, NULL);
  decide (self, self->challenges->len > 1 ? ACCESS_ASKED : ACCESS_REFUSED);
}

static void
ask_next (AccessCase *self)
{
  GArray *seats = self->access->seats;

  if (self->judge < seats->len) {
    const Seat *seat = &g_array_index (seats, Seat, self->judge);

    seat->ops->ask (seat->judge, self);
  } else if (seats->len > 0) {
    challenge (self);
  } else {
    decide (self, ACCESS_ADMITTED);
  }
}

void
access_case_judge (AccessCase *self, Judgement judgement, const gchar *user, const gchar *reason)
{
  if (judgement == JUDGE_PASSES) {
    self->judge++;
    ask_next (self);
    return;
  }
  self->user = g_strdup (user);
  if (judgement == JUDGE_ADMITS)
    decide (self, ACCESS_ADMITTED);
  else if (judgement == JUDGE_FORBIDS)
    decide (self, ACCESS_REFUSED);
  else if (judgement == JUDGE_FAILS)
    decide (self, ACCESS_BUSY);
  else
    challenge (self);
}

AccessCase *
access_ask (
    Access *self, AccessPeer *peer, const AccessRequest *request, AccessDone done, gpointer data)
{
  AccessCase *asked = access_case_new (self, peer, request, done, data);
  gboolean is_later;

  access_case_ref (asked); // for the judge
  ask_next (asked);
  g_mutex_lock (&asked->lock);
  asked->is_later = asked->verdict == ACCESS_PENDING;
  is_later = asked->is_later;
  g_mutex_unlock (&asked->lock);
  if (!is_later)
    access_case_unref (asked);
  return asked;
}

// ---- construction ----

void
access_add_judge (Access *self, const JudgeOps *ops, gpointer judge)
{
  Seat seat = { ops, judge };

  g_array_append_val (self->seats, seat);
}

Access *
access_new (const ProxyConfig *config)
{
  Access *self = g_new0 (Access, 1);

  self->seats = g_array_new (FALSE, FALSE, sizeof (Seat));
  return self;
}

void
access_configure (Access *self, const ProxyConfig *config)
{
  for (guint i = 0; i < self->seats->len; i++) {
    const Seat *seat = &g_array_index (self->seats, Seat, i);

    if (seat->ops->configure)
      seat->ops->configure (seat->judge, config);
  }
}

void
access_free (Access *self)
{
  for (guint i = 0; i < self->seats->len; i++) {
    const Seat *seat = &g_array_index (self->seats, Seat, i);

    if (seat->ops->free)
      seat->ops->free (seat->judge);
  }
  g_array_unref (self->seats);
  g_free (self);
}

gboolean
access_admit (const Demand *demand, const gchar *peer, const gchar *credentials, GError **error)
{
  return TRUE;
}
