// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A request of an HTTP client (RFC 9110), parsed by libsoup. Its form has passed request_check().

#include <libsoup/soup.h>

typedef enum {
  HTTP_GET = 1 << 0,
  HTTP_HEAD = 1 << 1,
  HTTP_POST = 1 << 2,
  HTTP_PATCH = 1 << 3,
  HTTP_DELETE = 1 << 4,
  HTTP_OPTIONS = 1 << 5,
} HttpMethod;

typedef struct {
  gchar *method, *target;      // "GET", "/films/a.mp4?token=x"
  HttpMethod kind;             // of the method; 0: another one
  SoupMessageHeaders *headers; // of the request
  GBytes *body;                // NULL: none; the caller sets it
  gboolean head;               // HEAD: the answer has no body
  gboolean keeps;              // the connection stays open after the answer
} HttpRequest;

// Parses the head of a request. Returns 0, or the status to answer: 400, or 411 for a body in
// chunks. The caller frees the contents with http_request_clear() in all cases.
guint http_request_read (HttpRequest *self, const guint8 *head, gsize length);
void http_request_clear (HttpRequest *self);

// Returns the names of the methods in `set`, of HttpMethod, as in the header Allow. (transfer full)
gchar *http_request_dup_methods (guint set);

// Returns a header, or NULL. (transfer none)
const gchar *http_request_get (const HttpRequest *self, const gchar *header);

// Reports whether the Host header names this machine (host_names_take()). A request of HTTP/1.0 may
// lack the header: browsers do not send such requests.
gboolean http_request_names_us (const HttpRequest *self, gchar *const *hosts);

// Reports whether the request comes from a page of another site (RFC 6454): from none of ours,
// whose scheme is `scheme`, and from none of `allowed`, which may be NULL, or have "*" for all.
gboolean http_request_is_foreign (
    const HttpRequest *self, const gchar *scheme, const gchar *const *allowed);

// Returns the origin of the request's page if it is one of `allowed`, which may be NULL; "*" if
// they have that, or NULL. (transfer none)
const gchar *http_request_find_origin (const HttpRequest *self, const gchar *const *allowed);

// What of a file a request is for. Both numbers are within the file, also with 416.
typedef struct {
  guint status; // 200, 206, 304 or 416
  guint64 start, length;
} HttpBody;

// Chooses the bytes to send: of one range (Range, If-Range), or all. Several ranges count as no
// range. A client that has the file already gets 304 (If-None-Match, If-Modified-Since).
// `modified` is in seconds since the epoch; 0: unknown.
void http_request_choose (
    const HttpRequest *self, guint64 size, const gchar *etag, gint64 modified, HttpBody *body);

// The same without the conditions of If-None-Match and If-Modified-Since: the status is 200, 206 or
// 416. Only the headers of the request are used.
void http_request_choose_range (
    const HttpRequest *self, guint64 size, const gchar *etag, gint64 modified, HttpBody *body);
