// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A client of etcd's JSON gateway (API v3): calls, in which keys and values are base64 and 64-bit
// numbers are texts. A call that an endpoint does not answer goes to the next one. Call from the
// main thread only.

#include <json-glib/json-glib.h>
#include <libsoup/soup.h>

typedef struct _Etcd Etcd;

typedef struct {
  const gchar *const *endpoints; // http://HOST:PORT, https://
  // PEM files, or NULL: the certificates that sign those of etcd, and those that this client shows
  const gchar *ca, *certificate, *key;
  const gchar *user, *password; // or NULL
} EtcdSettings;

// What etcd has refused; other failures are G_IO_ERROR.
#define ETCD_ERROR etcd_error_quark ()
GQuark etcd_error_quark (void);

typedef enum {
  ETCD_ERROR_REFUSED, // such as for a user who has not the rights
} EtcdError;

// Returns NULL and sets `error` if a file cannot be read.
Etcd *etcd_new (const EtcdSettings *settings, GError **error);

// Ends all calls, whose `done` is called with an error.
void etcd_free (Etcd *self);

// Called once. One of `answer` and `error` is NULL; both belong to the caller.
typedef void (*EtcdDone) (JsonObject *answer, const GError *error, gpointer data);

// Calls a method such as "/v3/kv/range". Takes ownership of `body`.
void etcd_call (Etcd *self, const gchar *method, JsonBuilder *body, EtcdDone done, gpointer data);

// Returns a message for a method, to the endpoint in use, (transfer full), and the session for it:
// for an answer that does not end.
SoupMessage *etcd_message_new (Etcd *self, const gchar *method, GBytes *body);
SoupSession *etcd_get_session (Etcd *self);

// Returns a number that grows whenever an endpoint has failed.
guint64 etcd_get_generation (Etcd *self);

// Returns the endpoint in use, and why the last call failed, or NULL if it did not. Valid until the
// next call.
const gchar *etcd_get_endpoint (Etcd *self);
const gchar *etcd_get_problem (Etcd *self);

// ---- JSON ----

// Adds a member that is a key or a value.
void etcd_add_bytes (JsonBuilder *body, const gchar *name, const gchar *text);
// Adds a member that is a 64-bit number.
void etcd_add_number (JsonBuilder *body, const gchar *name, gint64 number);

// Returns the text of a body, which it frees. (transfer full)
GBytes *etcd_body_to_bytes (JsonBuilder *body);

// Return members of an answer: NULL, 0 or FALSE if there is none.
JsonObject *etcd_get_object (JsonObject *answer, const gchar *name);
gboolean etcd_get_boolean (JsonObject *answer, const gchar *name);
gint64 etcd_get_number (JsonObject *answer, const gchar *name);
gchar *etcd_dup_text (JsonObject *answer, const gchar *name); // UTF-8 without NUL; (transfer full)

// Returns an element that is an object, or NULL. `array` may be NULL.
JsonObject *etcd_get_element (JsonArray *array, guint i);

// Returns the end of the range of all keys that begin with `prefix`, which is not empty. (transfer
// full)
gchar *etcd_dup_range_end (const gchar *prefix);
