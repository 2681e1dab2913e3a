// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the files of fanoutsink share: fanoutsink.c (data, start and stop), names.c (how a reader is
// named), readers.c (who comes and goes), stats.c, news.c, signals.c and properties.c.

#include <gst/base/gstbasesink.h>

#include "connection.h"
#include "core/fanout/fanout.h"
#include "fanoutsink.h"
#include "udpsockets.h"

#define DEFAULT_PRIORITY 4

// A reader under the name by which it was added: a host and a port, or the token of a connection
// and a channel.
typedef struct {
  gchar *key; // "host port"
  gchar *host;
  gint port;
  gchar *shown;       // for people to read: a connection by its peer
  gboolean own_delay; // other than the element's
  guint count;        // how often it was added, less how often it was removed
  GInetAddress *inet; // NULL: a connection
  WeirAddress address;
  WeirReader *reader;
  WeirConnection *connection; // made here for a socket that was given, and closed with the reader
  gint64 connect_ns, disconnect_ns; // since the epoch; 0: it is connected
  GList link;                       // in self->names
} Name;

// What was asked for a reader that is about to be added, and what it was told.
typedef struct {
  gint64 asked_ns;
  gboolean planned;
  WeirPlan plan;
  WeirLayerSet layers;
  gint64 delay_ns; // -1: none was asked for
  // It was there, and paused: what it was to get next.
  gboolean kept;
  WeirPlan next;
} Coming;

struct _WeirFanoutSink {
  GstBaseSink parent;

  // Order: control, lock, object lock. None is held across a send, a signal, or a look-up of a
  // name. Nobody who streams takes `control`, under which readers come and go and sockets are set
  // up.
  GMutex control;
  GMutex lock;

  WeirFanout *fanout;

  // Under `control`; read under `lock` too.
  WeirUdpSockets sockets;
  gboolean started;
  GHashTable *by_key; // Name.key -> Name
  GQueue names;       // of Name, as added
  guint64 max_pacing_rate;

  // Under `lock`.
  Name *leaving;             // for get-stats from within client-removed
  GHashTable *coming;        // key -> Coming, for readers about to be added
  GCancellable *cancellable; // made new under `lock`
  WeirFanoutSettings settings;
  guint priority;
  gint64 delay_ns; // of readers for whom nothing else is said

  // The streaming thread's.
  gboolean warned_too_big;
  gboolean has_file;
  gboolean told_full;
  guint n_keys_asked;

  // Under the object lock.
  GSocket *socket;
  GSocket *socket_v6;
  gboolean close_socket;
  gboolean auto_multicast;
  gchar *multicast_iface;
  gint ttl;
  gint ttl_mc;
  gboolean loop;
  gboolean force_ipv4;
  gint qos_dscp;
  gint buffer_size;
  gchar *bind_address;
  gint bind_port;
  gchar *spill_dir;
};

// ---- names.c ----

void fanout_name_free (Name *name);
gchar *fanout_name_make_key (const gchar *host, gint port);

// An IPv6 address may stand in brackets.
gchar *fanout_name_strip_brackets (const gchar *host);

// "host:port", "[2001:db8::1]:port". FALSE: it is neither.
gboolean fanout_name_parse (const gchar *text, gchar **host, gint *port);

// A reader over a connection, by its token.
Name *fanout_name_new_conn (const gchar *token, gint channel, WeirFraming framing, GError **error);

// Resolves a name. Takes no lock, and may take its time.
Name *fanout_name_new (const gchar *host, gint port, GCancellable *cancellable, GError **error);

// ---- readers.c ----

void fanout_readers_init (WeirFanoutSink *self);
void fanout_readers_finalize (WeirFanoutSink *self);

// Handlers of the action signals.
void fanout_readers_add (WeirFanoutSink *self, const gchar *host, gint port);
void fanout_readers_remove (WeirFanoutSink *self, const gchar *host, gint port);
gchar *fanout_readers_add_socket (
    WeirFanoutSink *self, GSocket *socket, WeirFraming framing, guint channel);

// A reader that is there: to be asked under `control`, as it may be just served.
Name *fanout_readers_find (WeirFanoutSink *self, const gchar *host, gint port);

// What is known of a reader that may come; NULL if too many may. With `lock` held.
Coming *fanout_readers_get_coming (
    WeirFanoutSink *self, const gchar *host, gint port, gint64 now_ns);

// What a reader that is about to be added will begin with. With `lock` held.
gboolean fanout_readers_make_plan (
    WeirFanoutSink *self, Coming *coming, gint64 now_ns, WeirPlan *plan);

// Tells each reader the socket that reaches it, and joins groups. With `control` held.
gboolean fanout_readers_start (WeirFanoutSink *self, const WeirUdpConfig *config, GError **error);

void fanout_readers_clear (WeirFanoutSink *self);
gchar *fanout_readers_get_clients (WeirFanoutSink *self);
void fanout_readers_set_clients (WeirFanoutSink *self, const gchar *clients);
void fanout_readers_set_delay (WeirFanoutSink *self, gint64 delay_ns);
void fanout_readers_set_max_pacing_rate (WeirFanoutSink *self, guint64 bits_per_s);

// ---- stats.c ----

// The handler of `get-stats`.
GstStructure *fanout_readers_get_stats (WeirFanoutSink *self, const gchar *host, gint port);

GstStructure *fanout_readers_get_sums (WeirFanoutSink *self);

// A reader to whom sends have failed since the last call, by name, and with which errno; NULL:
// none. The others whose sends have are only counted.
gchar *fanout_readers_take_failed (WeirFanoutSink *self, gint *error, guint *n_others);

// ---- news.c ----

// Logs whose segmented sends are refused, who is thinned and who was closed, and why: of several
// readers the first by name.
void fanout_news_tell (WeirFanoutSink *self);

// The same of one that goes.
void fanout_news_tell_of (WeirFanoutSink *self, const Name *name);

// ---- signals.c ----

void fanout_signals_install (GType type);
void fanout_signals_client_added (WeirFanoutSink *self, const gchar *host, gint port);
void fanout_signals_client_removed (WeirFanoutSink *self, const gchar *host, gint port);

// ---- properties.c ----

void fanout_properties_init (WeirFanoutSink *self);
void fanout_properties_finalize (WeirFanoutSink *self);
void fanout_properties_install (GObjectClass *klass);

// The sockets' configuration as it is now, with references and copies of its own.
WeirUdpConfig fanout_properties_get_udp (WeirFanoutSink *self);
void fanout_properties_clear_udp (WeirUdpConfig *config);
