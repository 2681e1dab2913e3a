// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_connection_private.h"

#include <string.h>

#include "outlets/http/http_answer.h"

static const HttpRoute *
find (const HttpRoute *routes, const gchar *target)
{
  for (; routes->prefix; routes++) {
    gsize length = strlen (routes->prefix);
    gboolean is_whole = length == 1 || routes->prefix[length - 1] != '/';

    if (strncmp (target, routes->prefix, length) == 0
        && (!is_whole || !target[length] || target[length] == '?'))
      return routes;
  }
  return NULL;
}

gboolean
http_connection_find_route (HttpConnection *self)
{
  const HttpRoute *route = find (self->context->routes, self->request.target);
  gchar *target = route ? route->dup_target (route->outlet, self->request.target) : NULL;
  gboolean asks = !route || target;

  self->route = route;
  if (asks)
    self->demand = demand_new (target ? target : self->request.target);
  g_free (target);
  return asks;
}

gboolean
http_connection_ask_route (HttpConnection *self)
{
  self->question = (HttpAsked) { &self->request, self->demand, &self->resolved, self->visitor,
    self->address, self->peer, http_request_names_us (&self->request, self->context->hosts),
    http_connection_wake, self };
  self->reply = self->route->answer (self->route->outlet, &self->question);
  self->state = STATE_REPLYING;
  return TRUE;
}

// Writes the head, and the body if that is a text.
static void
write_head (HttpConnection *self, const HttpHead *head)
{
  self->keeps &= !head->type || head->length >= 0;
  http_connection_begin_answer (self, head->status);
  g_string_append_len (self->out, head->headers->str, (gssize) head->headers->len);
  if (!head->type) {
    http_answer_end_text (self->out, head->status, head->reason, self->request.head);
    return;
  }
  http_answer_add (self->out, "Content-Type", head->type);
  http_answer_add (self->out, "X-Content-Type-Options", "nosniff");
  if (head->length >= 0)
    http_answer_add_length (self->out, (guint64) head->length);
  g_string_append (self->out, "\r\n");
}

gboolean
http_connection_step_replying (HttpConnection *self, gint64 now)
{
  HttpHead head = { .headers = g_string_truncate (self->headers, 0) };
  gint64 wake_ns = WEIR_NEVER;
  gboolean known = !g_atomic_int_get (&self->gone)
                   && self->reply->ops->begin (self->reply, &head, now, &wake_ns);

  if (known) {
    gboolean has_body = head.type && !self->request.head && head.length != 0;

    write_head (self, &head);
    self->takes_over = has_body && self->reply->ops->take_over;
    http_passer_init (&self->passer, self->out, has_body && !self->takes_over ? self->reply : NULL);
    self->state = STATE_PASSING;
  }
  if (g_atomic_int_get (&self->gone))
    return http_connection_end (self);
  return known || http_connection_wait_until (self, wake_ns);
}

// The head is sent.
static gboolean
hand_over (HttpConnection *self)
{
  self->state = STATE_TAKEN;
  return self->reply->ops->take_over (self->reply, self->socket) || http_connection_end (self);
}

gboolean
http_connection_step_taken (HttpConnection *self, gint64 now)
{
  return g_atomic_int_get (&self->gone) ? http_connection_end (self) : FALSE;
}

gboolean
http_connection_step_passing (HttpConnection *self, gint64 now)
{
  guint64 before = self->passer.sent;
  HttpPasserState state =
      g_atomic_int_get (&self->gone) ? HTTP_PASSER_GONE : http_passer_run (&self->passer, self->fd);

  if (self->passer.sent > before)
    self->deadline_ns = now + (gint64) self->limits.write_ms * NS_PER_MS;
  switch (state) {
    case HTTP_PASSER_DONE:
      return self->takes_over ? hand_over (self) : http_connection_end_answer (self, now);
    case HTTP_PASSER_AGAIN:
      return FALSE;
    case HTTP_PASSER_TURN:
      return http_connection_wait_until (self, now);
    case HTTP_PASSER_FULL:
      if (now < self->deadline_ns)
        return http_connection_wait_until (self, self->deadline_ns);
      refusals_note (REFUSED_WRITE, self->peer,
          "the client does not read its responses (limits.write-timeout)");
      return http_connection_end (self);
    case HTTP_PASSER_GONE:
      break;
  }
  return http_connection_end (self);
}

void
http_connection_clear_reply (HttpConnection *self)
{
  http_passer_clear (&self->passer);
  self->passer = (HttpPasser) { 0 };
  if (self->reply)
    self->reply->ops->free (self->reply);
  self->reply = NULL;
  self->takes_over = FALSE;
  self->route = NULL;
}
