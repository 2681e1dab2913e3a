// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "outlets/rtsp/admission.h"

#include "base/log.h"
#include "outlets/rtsp/allowance.h"
#include "outlets/rtsp/cast.h"
#include "outlets/rtsp/resume.h"
#include "outlets/rtsp/setup_guard.h"
#include "outlets/rtsp/tls_answer.h"
#include "weir-rtsp.h"

static LogLimit undeferred = { .burst = 10, .interval_ms = 1000 };

static gchar *
get_header (GstRTSPContext *ctx, GstRTSPHeaderField field)
{
  gchar *value = NULL;

  gst_rtsp_message_get_header (ctx->request, field, &value, 0);
  return value;
}

// Reports whether the request is a PLAY that seeks in a live stream by clock time. A position of
// the reader's own time is not before the one at which it was admitted.
static gboolean
seeks_into_the_past (Asker *self, GstRTSPContext *ctx)
{
  const gchar *range = ctx->method == GST_RTSP_PLAY ? get_header (ctx, GST_RTSP_HDR_RANGE) : NULL;
  Content *content = range ? asker_dup_content (self) : NULL;
  gboolean live = content && content->presentation;
  gint64 at;

  g_clear_pointer (&content, content_unref);
  return live && demand_read_range (range, &at) == DEMAND_CLOCK;
}

// The SETUPs that follow a DESCRIBE with a delay have the delay too.
static AccessAction
find_action (Asker *self, GstRTSPContext *ctx, const Demand *demand, const Resolved *resolved)
{
  gint64 delay_ns = demand->delay_ns;

  if (ctx->method == GST_RTSP_ANNOUNCE)
    return ACCESS_PUBLISH;
  if (ctx->method == GST_RTSP_PLAY || (resolved->mount && (resolved->title || !resolved->path)))
    return ACCESS_PLAYBACK;
  if (delay_ns < 0 && ctx->method == GST_RTSP_SETUP)
    delay_ns = self->delay_ns;
  return delay_ns > 0 ? ACCESS_PLAYBACK : ACCESS_READ;
}

// ---- asking ----

typedef struct {
  GMainContext *context; // of the client's thread
  gpointer resume;
} Later;

static void
later_free (gpointer data)
{
  Later *later = data;

  if (later->resume)
    resume_free (later->resume);
  g_clear_pointer (&later->context, g_main_context_unref);
  g_free (later);
}

static gboolean
resume (gpointer data)
{
  resume_run (g_steal_pointer (&((Later *) data)->resume));
  return G_SOURCE_REMOVE;
}

// Resumes in the client's thread, because the door may decide before the request is put aside.
static void
on_decided (AccessCase *decided, gpointer data)
{
  Later *later = data;
  GMainContext *context = g_steal_pointer (&later->context);
  GSource *source = g_idle_source_new ();

  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, resume, later, later_free);
  g_source_attach (source, context);
  g_source_unref (source);
  g_main_context_unref (context);
}

// Returns the token of a request. The URLs of a SETUP and a PLAY are made from the Content-Base of
// an answer, which has no query, so the token of the DESCRIBE counts for them.
static const gchar *
find_token (Asker *self, GstRTSPContext *ctx, const Demand *demand)
{
  if (demand->token) {
    g_free (self->token);
    self->token = g_strdup (demand->token);
  }
  return demand->token || !get_header (ctx, GST_RTSP_HDR_AUTHORIZATION) ? self->token : NULL;
}

// A path that no mount serves is asked about too, so that only those who may read find out which
// paths exist.
static AccessCase *
ask (Asker *self, GstRTSPContext *ctx, const GstRTSPUrl *url)
{
  const Demand *demand = asker_get_demand (self, url);
  Later *later = g_new0 (Later, 1);
  AccessRequest request = { .path = demand->path,
    .query = demand->query,
    .user_agent = get_header (ctx, GST_RTSP_HDR_USER_AGENT),
    .method = gst_rtsp_method_as_text (ctx->method),
    .authorization = get_header (ctx, GST_RTSP_HDR_AUTHORIZATION),
    .token = find_token (self, ctx, demand) };
  Resolved resolved = { 0 };
  AccessCase *asked;

  if (mounts_resolve (self->mounts, demand, &resolved, NULL))
    request.mount = mount_get_path (resolved.mount);
  else
    resolved = (Resolved) { 0 };
  request.action = find_action (self, ctx, demand, &resolved);
  later->context = g_main_context_ref (g_source_get_context (g_main_current_source ()));
  later->resume = resume_new (self->client);
  asked = access_ask (self->access, self->visitor, &request, on_decided, later);
  if (!access_case_is_later (asked))
    later_free (later);
  if (resolved.mount)
    resolved_clear (&resolved);
  return asked;
}

static GstRTSPStatusCode
answer (AccessCase *asked, const gchar *const **challenges)
{
  switch (access_case_get_verdict (asked)) {
    case ACCESS_ADMITTED:
      return GST_RTSP_STS_OK;
    case ACCESS_ASKED:
      *challenges = access_case_get_challenges (asked);
      return GST_RTSP_STS_UNAUTHORIZED;
    case ACCESS_REFUSED:
      return GST_RTSP_STS_FORBIDDEN;
    case ACCESS_PENDING:
    case ACCESS_BUSY:
      break;
  }
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

GstRTSPStatusCode
admission_check (
    Asker *self, GstRTSPContext *ctx, const GstRTSPUrl *url, const gchar *const **challenges)
{
  gboolean asks = ctx->method == GST_RTSP_DESCRIBE || ctx->method == GST_RTSP_SETUP
                  || ctx->method == GST_RTSP_ANNOUNCE
                  || (WITH_BROADCAST && cast_asks_for_packets (ctx))
                  || seeks_into_the_past (self, ctx);

  if (!asks)
    return GST_RTSP_STS_OK;
  if (weir_client_was_deferred (self->client, ctx)) {
    // The request was admitted before, if it was put aside until its content is ready.
    return self->waits_for_content ? GST_RTSP_STS_OK : answer (self->asked, challenges);
  }
  g_clear_pointer (&self->asked, access_case_unref);
  self->waits_for_content = FALSE;
  self->asked = ask (self, ctx, url);
  if (access_case_is_later (self->asked) && !weir_client_defer (self->client, ctx))
    log_event_limited (&undeferred,
        "reader %s: a request over TLS cannot wait for its password to "
        "be checked",
        self->peer);
  return answer (self->asked, challenges);
}

// ---- content ----

static GstRTSPStatusCode
on_pre_request (GstRTSPClient *client, GstRTSPContext *ctx, gpointer asker)
{
  GstRTSPStatusCode status = allowance_check (asker, ctx);

  return status == GST_RTSP_STS_OK ? asker_check (asker, ctx, ctx->uri) : status;
}

static GstRTSPStatusCode
on_pre_setup (GstRTSPClient *client, GstRTSPContext *ctx, gpointer asker)
{
  return ctx->session ? GST_RTSP_STS_OK : on_pre_request (client, ctx, asker);
}

GstRTSPStatusCode
admission_check_setup (Asker *asker, GstRTSPContext *ctx)
{
  GstRTSPStatusCode status = setup_guard_check (ctx, tls_answer_is_needed (ctx->client));

  // gst-rtsp-server would leak the session if on_pre_setup() refused.
  return status == GST_RTSP_STS_OK && ctx->session ? on_pre_request (ctx->client, ctx, asker)
                                                   : status;
}

void
admission_watch (GstRTSPClient *client, Asker *asker)
{
  g_signal_connect (client, "pre-describe-request", G_CALLBACK (on_pre_request), asker);
  g_signal_connect (client, "pre-setup-request", G_CALLBACK (on_pre_setup), asker);
}
