// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the proxy knows of an RTSP connection: who it is, what its requests demand, and the content
// that it uses. Call from the client's thread only, unless the function says otherwise.

#include <gst/rtsp-server/rtsp-server.h>

#include "access/access.h"
#include "mounts/mounts.h"
#include "outlets/rtsp/live_media.h"

// ---- content ----

// What a client plays: a live presentation with its RTSP media, or a stored title. It is in use as
// long as a reference exists. Reference counted; call from any thread.
typedef struct {
  Presentation *presentation; // shared by the clients that request the same path; or NULL
  LiveMedia *live;            // of the presentation; NULL if it is being withdrawn
  Title *title;               // the client's own, or NULL
} Content;

Content *content_ref (Content *self);
void content_unref (Content *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Content, content_unref)

// Returns the state. Sets `error` if it is DOWN.
PresentationState content_ask (Content *self, GError **error);

// Calls `done` once: at once if the content is not starting, else when its start has succeeded or
// failed. Only one caller may wait for a title at a time. Call with no lock held.
void content_wait (Content *self, PresentationDoneFunc done, gpointer data);

const gchar *content_get_path (const Content *self); // the mount's path, or a path below it
const gchar *content_get_mount_path (const Content *self);
const gchar *content_get_label (const Content *self); // for the log; "?" if `self` is NULL

// ---- the connection ----

typedef struct {
  GstRTSPClient *client; // the owner of this structure
  Mounts *mounts;
  Access *access;
  gchar *peer;                // "127.0.0.1:5004"
  AccessPeer *visitor;        // the connection, for access_ask()
  gboolean tls;               // the client has connected over TLS
  gint64 answered;            // time of the last answer, in us, monotonic; atomic
  gchar *url;                 // the last URL; it may contain a token
  Demand *demand;             // of `url`
  AccessDecision *asked;      // of the last request that access_ask() was asked about, or NULL
  gboolean waits_for_content; // the request that is put aside waits for this, not for `asked`
  gchar *token;               // of the last URL that had one, or NULL
  gchar *used;                // the URL of the content in use, without the track
  WeirLayerSet layers;        // chosen by the URL
  gboolean feedback;          // on each packet, announced by the URL
  gint64 delay_ns;            // requested by the URL, or -1
  gchar *full;                // why the answer to come is 453, or NULL

  GMutex lock;           // protects the fields below
  Content *content;      // in use, or NULL
  GMainContext *context; // of the client's thread; NULL before the first request
} RtspConnection;

void rtsp_connection_init (
    RtspConnection *self, GstRTSPClient *client, Mounts *mounts, Access *access);
void rtsp_connection_clear (RtspConnection *self);

// Returns the demand of a URL; valid until the next call.
const Demand *rtsp_connection_get_demand (RtspConnection *self, const GstRTSPUrl *url);

// Returns the path by which gst-rtsp-server knows the content of a URL, with the track. (transfer
// full)
gchar *rtsp_connection_make_path (RtspConnection *self, const GstRTSPUrl *url);

// Replaces the content in use. Takes ownership of a reference to `content`, which may be NULL.
void rtsp_connection_use (RtspConnection *self, Content *content);

// Returns the content in use (transfer full), or NULL. Call from any thread.
Content *rtsp_connection_dup_content (RtspConnection *self);

// Reports whether the client is another member of the cluster. Call in the client's thread.
gboolean rtsp_connection_is_of_member (RtspConnection *self);

// Hands the media of the content in use over: from now on gst-rtsp-server holds it, for the client
// or for a session.
void rtsp_connection_hand_over (RtspConnection *self);

// Note the thread in which requests are handled, and return its context (transfer full), or NULL
// before the first request. Call rtsp_connection_dup_context() from any thread.
void rtsp_connection_note_context (RtspConnection *self);
GMainContext *rtsp_connection_dup_context (RtspConnection *self);

// ---- a request, while it is checked ----

typedef struct {
  RtspConnection *connection;
  GstRTSPContext *ctx;
  const Demand *demand; // of its URL
  gboolean is_resolved; // the fields below are set
  Resolved target;      // `mount` is NULL: there is none
  GError *problem;      // why there is none
} RequestTarget;

// The request must have a URL.
void request_target_init (RequestTarget *self, RtspConnection *connection, GstRTSPContext *ctx);
void request_target_clear (RequestTarget *self);

// Returns the target of the request's demand, which is looked up once. Returns NULL and sets
// `error`, which may be NULL, if there is none.
const Resolved *request_target_get (RequestTarget *self, GError **error);

// The same for an admitted request: makes the mount, if that is not done yet.
const Resolved *request_target_make (RequestTarget *self, GError **error);

// Starts or joins the target, and uses it. Returns NULL and sets `error` on failure, see
// mounts_use() and mounts_open_title(). (transfer full)
Content *request_target_use (RequestTarget *self, GError **error);

// Returns the mount whose renditions the client may get by the feedback that it gives, because it
// asks for the mount in no certain form; else NULL. Call in the client's thread. (transfer full)
Mount *rtsp_connection_dup_varying (const RtspConnection *self, Presentation *presentation);

// If `content` is a session of a stored title that can be sought, uses a presentation of this
// reader in its place and returns its content (transfer full). Else returns NULL, with `error` on
// failure.
Content *request_target_use_own (RequestTarget *self, const Content *content, GError **error);

// Returns the value of the header with this number, from 0, of those of the request with the same
// name, or NULL. (transfer none)
const gchar *request_get_header (GstRTSPContext *ctx, GstRTSPHeaderField field, gint number);

// ---- requests that are put aside (weir_client_defer()) ----

// Returns data for resume_run() that does not keep the client. Free it with resume_free() if it is
// not run.
gpointer resume_new (GstRTSPClient *client);
void resume_free (gpointer data);

// Lets gst-rtsp-server handle the request again, if the client still exists. Takes ownership of
// `data`. Call from any thread.
void resume_run (gpointer data);

// Does so after a time, in the client's thread.
void resume_after (GstRTSPClient *client, guint ms);
