// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The declarations that the files of fanoutsink share: fanoutsink.c (data, start and stop), names.c
// (hosts, ports and tokens), readers.c (adding and removing readers), splice.c (readers that
// another sink serves), actions.c (what is done with readers), stats.c (counters), news.c (log of
// readers that fall behind), signals.c and properties.c.

#include <gst/base/gstbasesink.h>

#include "connection.h"
#include "core/fanout/fanout.h"
#include "fanoutsink.h"
#include "udpsockets.h"

#define DEFAULT_PRIORITY 4

// A reader and the name by which it was added: a host and a port, or a connection's token and a
// channel. The token of a WeirSrtp stands for a host or a connection.
typedef struct {
  gchar *key; // "host port"
  gchar *host;
  gchar *destination; // the host, or the one for which a WeirSrtp stands
  gint port;
  gchar *shown;       // in the log: the host and port, or the peer of the connection
  gboolean own_delay; // its delay is not the property `delay`
  guint count;        // times added minus times removed
  GInetAddress *inet; // NULL for a connection
  WeirAddress address;
  WeirReader *reader;
  WeirFanoutSink *guest_of;         // whose window serves it, after `splice`; NULL: its own sink's
  WeirConnection *connection;       // of `add-socket`: closed with the reader; else NULL
  gint64 connect_ns, disconnect_ns; // since the epoch; disconnect_ns is 0 while it is connected
  GList link;                       // in self->names
} Name;

typedef enum { WEIR_KERNEL_OFF, WEIR_KERNEL_AUTO, WEIR_KERNEL_ON } WeirKernelMode;

// The choices made for a reader that may be added soon, and the plan that was returned for it.
typedef struct {
  gint64 asked_ns;
  gboolean planned;
  WeirPlan plan;
  WeirLayerSet layers;
  gint64 delay_ns; // -1 for the property `delay`
  // Set if the reader was removed while it was paused; `next` is the plan for its next packet.
  gboolean kept;
  WeirPlan next;
} Coming;

struct _WeirFanoutSink {
  GstBaseSink parent;

  // Locking order: control, lock, object lock. None is held during a send, a signal, or a name
  // look-up. `control` is held while readers are added and removed and sockets are set up; the
  // streaming thread never takes it.
  GMutex control;
  GMutex lock;

  WeirFanout *fanout;

  WeirKernelMode kernel; // under `control`

  // Written under `control` and `lock`, read under either.
  WeirUdpSockets sockets;
  gboolean started;
  GHashTable *by_key; // Name.key -> Name
  GQueue names;       // of Name, in the order in which they were added
  guint64 max_pacing_rate;

  // Under `lock`.
  Name *leaving;             // for get-stats from within client-removed
  GHashTable *coming;        // key -> Coming, for readers about to be added
  GCancellable *cancellable; // replaced after it was cancelled
  WeirFanoutSettings settings;
  guint priority;
  gint64 delay_ns; // the property `delay`

  // Used by the streaming thread only.
  gboolean warned_too_big;
  gint64 arrival_ns; // of the last buffer
  gboolean has_file;
  gboolean has_joins; // the caps say that buffers without DELTA_UNIT are join points
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

// Returns `host` without the brackets around an IPv6 address. The caller owns the result.
gchar *fanout_name_strip_brackets (const gchar *host);

// Parses "host:port" or "[2001:db8::1]:port". Returns FALSE for anything else. The caller owns
// `*host`, which keeps its brackets.
gboolean fanout_name_parse (const gchar *text, gchar **host, gint *port);

// Returns a name for the connection of a token, or NULL and an error. The caller owns the result.
Name *fanout_name_new_conn (const gchar *token, gint channel, WeirFraming framing, GError **error);

// Makes a name for a host, or the token of a connection or of a WeirSrtp. Resolves a host name.
// Takes no lock, and may block. Returns NULL and an error if it fails; the
// caller owns the result.
Name *fanout_name_new (const gchar *host, gint port, GCancellable *cancellable, GError **error);

// Returns the engine that serves the reader. Call with `control` or `lock` held.
WeirFanout *fanout_name_get_fanout (const WeirFanoutSink *self, const Name *name);

// ---- readers.c ----

void fanout_readers_init (WeirFanoutSink *self);
void fanout_readers_finalize (WeirFanoutSink *self);

// Handlers of the action signals.
void fanout_readers_add (WeirFanoutSink *self, const gchar *host, gint port);
void fanout_readers_remove (WeirFanoutSink *self, const gchar *host, gint port);
gchar *fanout_readers_add_socket (
    WeirFanoutSink *self, GSocket *socket, WeirFraming framing, guint channel);

// Returns a reader that was added, or NULL. Call with `control` held, and use the result only until
// it is released.
Name *fanout_readers_find (WeirFanoutSink *self, const gchar *host, gint port);

// Returns the entry for a reader that may be added soon; creates it if needed. Returns NULL if
// there are too many entries. Call with `lock` held.
Coming *fanout_readers_get_coming (
    WeirFanoutSink *self, const gchar *host, gint port, gint64 now_ns);

// Plans where a reader that is about to be added begins; `coming` may be NULL. Returns FALSE if the
// window has no RTP packet yet. Call with `lock` held.
gboolean fanout_readers_make_plan (
    WeirFanoutSink *self, Coming *coming, gint64 now_ns, WeirPlan *plan);

// Gives each reader the socket that reaches it, and joins multicast groups. Call with `control`
// held.
gboolean fanout_readers_start (WeirFanoutSink *self, const WeirUdpConfig *config, GError **error);

// Sets the socket of a UDP reader, and its address in that socket's family. Call with `control`
// held.
void fanout_readers_set_route (WeirFanoutSink *self, Name *name);

void fanout_readers_clear (WeirFanoutSink *self);
gchar *fanout_readers_get_clients (WeirFanoutSink *self);
void fanout_readers_set_clients (WeirFanoutSink *self, const gchar *clients);
void fanout_readers_set_delay (WeirFanoutSink *self, gint64 delay_ns);
void fanout_readers_set_max_pacing_rate (WeirFanoutSink *self, guint64 bits_per_s);

// Ends the guests: readers that another sink serves, and that lose their sockets now.
void fanout_readers_end_guests (WeirFanoutSink *self);

// ---- splice.c ----

// The handler of the action signal; signals.c says what it does.
gboolean fanout_readers_splice (
    WeirFanoutSink *self, const gchar *host, gint port, GstElement *sink, guint time_ahead);

// ---- clones.c ----

// Loads the kernel path if the property `kernel` asks for it. Returns FALSE and an error if it is
// `on` and the kernel path cannot be used; posts a message with the reason if it is `auto`.
gboolean fanout_clones_load (WeirFanoutSink *self, GError **error);

// Call with `control` held. Give a reader, or every reader if the element is started, a route for
// clones if it can have one.
void fanout_clones_set_route (WeirFanoutSink *self, Name *name);
void fanout_clones_update (WeirFanoutSink *self);

// Get and set the property `kernel`.
WeirKernelMode fanout_clones_get_mode (WeirFanoutSink *self);
void fanout_clones_set_mode (WeirFanoutSink *self, WeirKernelMode mode);

// ---- stats.c ----

// The handler of `get-stats`.
GstStructure *fanout_readers_get_stats (WeirFanoutSink *self, const gchar *host, gint port);

GstStructure *fanout_readers_get_sums (WeirFanoutSink *self);

// Returns the host and port of a reader to which sends have failed since the last call, with the
// errno in `error` and the number of other such readers in `n_others`; NULL if there is none. The
// caller owns the result.
gchar *fanout_readers_take_failed (WeirFanoutSink *self, gint *error, guint *n_others);

// ---- news.c ----

// Logs readers whose path refuses segmented sends, that are thinned, or that were closed, each with
// the reason. If several readers have the same news, names the first and counts the others.
void fanout_news_tell (WeirFanoutSink *self);

// Logs the same for one reader that was removed.
void fanout_news_tell_of (WeirFanoutSink *self, const Name *name);

// ---- actions.c ----

// Handlers of the action signals; signals.c says what they do.
GstStructure *fanout_actions_plan (WeirFanoutSink *self, const gchar *host, gint port);
gboolean fanout_actions_set_priority (
    WeirFanoutSink *self, const gchar *host, gint port, guint priority);
gboolean fanout_actions_set_layers (
    WeirFanoutSink *self, const gchar *host, gint port, gint spatial, gint quality, gint temporal);
gboolean fanout_actions_restrict (
    WeirFanoutSink *self, const gchar *host, gint port, guint restriction);
gboolean fanout_actions_set_delay (
    WeirFanoutSink *self, const gchar *host, gint port, guint64 delay);
gboolean fanout_actions_pause (WeirFanoutSink *self, const gchar *host, gint port);
gboolean fanout_actions_resume (WeirFanoutSink *self, const gchar *host, gint port);
gboolean fanout_actions_rejoin (WeirFanoutSink *self, const gchar *host, gint port);
guint fanout_actions_resend (
    WeirFanoutSink *self, const gchar *host, gint port, GBytes *seqs, guint64 round_trip);
gboolean fanout_actions_probe (
    WeirFanoutSink *self, const gchar *host, gint port, guint64 bits, guint duration);
GstBufferList *fanout_actions_get_packets (WeirFanoutSink *self, gint from, guint n_max);

// Logs that `action` refuses: there is no such reader, or `host` is NULL.
void fanout_actions_warn_no_reader (
    WeirFanoutSink *self, const gchar *action, const gchar *host, gint port);

// ---- signals.c ----

void fanout_signals_install (GType type);
void fanout_signals_client_added (WeirFanoutSink *self, const gchar *host, gint port);
void fanout_signals_client_removed (WeirFanoutSink *self, const gchar *host, gint port);

// ---- properties.c ----

void fanout_properties_init (WeirFanoutSink *self);
void fanout_properties_finalize (WeirFanoutSink *self);
void fanout_properties_install (GObjectClass *klass);

// Keeps packets that no reader needs now, up to the window's bounds, from now on.
void fanout_properties_keep_window (WeirFanoutSink *self);

// Returns the current configuration of the sockets. Release it with fanout_properties_clear_udp().
WeirUdpConfig fanout_properties_get_udp (WeirFanoutSink *self);
void fanout_properties_clear_udp (WeirUdpConfig *config);
