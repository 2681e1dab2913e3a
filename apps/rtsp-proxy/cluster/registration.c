// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/registration.h"

#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/timer.h"
#include "cluster/etcd_requests.h"
#include "readers/readers.h"
#include "readers/totals.h"

#include <sys/resource.h>

#define TICK_MS 1000
// Its load is written when it has changed, but not more often than this; and at least so often that
// the others know its clock.
#define LOAD_NS (G_GINT64_CONSTANT (2000000000))
#define CLOCK_NS (G_GINT64_CONSTANT (30000000000))

typedef struct {
  guint readers;
  guint64 rate; // bits a second
  gdouble cpu;  // cores
  gboolean is_full;
} Load;

struct _Registration {
  Etcd *etcd;
  ClusterMap *map;
  Proxy *proxy;
  const RegistrationOps *ops;
  gpointer owner;
  gchar *name, *address, *instance;
  guint16 rtsp, rtsps, http, https;
  EtcdLease *lease;
  gboolean asking; // an answer about the entry is awaited
  gboolean is_in;
  gboolean drains, says_so; // the entry does
  gchar *refusal;
  LogLimit refusals;
  Load load;
  guint64 bytes;      // sent, at the last look
  gint64 cpu_us;      // used, at the last look
  gint64 looked, put; // ns
  Timer *timer;
};

// ---- the load ----

static guint64
sum_bytes (Registration *self)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (proxy_get_mounts (self->proxy));
  guint64 bytes = 0;

  for (guint i = 0; i < mounts->len; i++) {
    Totals totals;

    totals_get (mount_get_path (g_ptr_array_index (mounts, i)), &totals);
    bytes += totals.bytes;
  }
  return bytes;
}

static gint64
get_cpu_us (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * G_USEC_PER_SEC + usage.ru_utime.tv_usec
         + usage.ru_stime.tv_usec;
}

static Load
measure (Registration *self, gint64 now)
{
  g_autoptr (GPtrArray) readers = readers_dup_all ();
  const guint64 bytes = sum_bytes (self);
  const gint64 cpu_us = get_cpu_us ();
  const gdouble seconds = (gdouble) (now - self->looked) / 1e9;
  Load load = { .readers = readers->len, .is_full = memory_get_level () != MEMORY_ENOUGH };

  if (self->looked && seconds > 0) {
    load.rate = bytes > self->bytes ? (guint64) ((gdouble) (bytes - self->bytes) * 8 / seconds) : 0;
    load.cpu = (gdouble) (cpu_us - self->cpu_us) / 1e6 / seconds;
  }
  self->bytes = bytes;
  self->cpu_us = cpu_us;
  self->looked = now;
  return load;
}

static gboolean
differs (gdouble a, gdouble b, gdouble least)
{
  return ABS (a - b) > MAX (least, 0.2 * MAX (a, b));
}

static gboolean
load_differs (const Load *a, const Load *b)
{
  return differs (a->readers, b->readers, 0) || differs (a->rate, b->rate, 1e6)
         || differs (a->cpu, b->cpu, 0.1) || a->is_full != b->is_full;
}

// ---- the entry ----

static void
add_text (JsonBuilder *builder, const gchar *name, const gchar *text)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_string_value (builder, text);
}

static void
add_number (JsonBuilder *builder, const gchar *name, gint64 number)
{
  json_builder_set_member_name (builder, name);
  json_builder_add_int_value (builder, number);
}

static gchar *
dup_value (Registration *self)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  g_autoptr (JsonNode) root = NULL;

  json_builder_begin_object (builder);
  add_text (builder, "address", self->address);
  add_text (builder, "instance", self->instance);
  add_text (builder, "version", PACKAGE_VERSION);
  json_builder_set_member_name (builder, "ports");
  json_builder_begin_object (builder);
  add_number (builder, "rtsp", self->rtsp);
  add_number (builder, "rtsps", self->rtsps);
  add_number (builder, "http", self->http);
  add_number (builder, "https", self->https);
  json_builder_end_object (builder);
  add_text (builder, "state", self->drains ? "draining" : "serving");
  add_number (builder, "readers", self->load.readers);
  add_number (builder, "rate", (gint64) self->load.rate);
  json_builder_set_member_name (builder, "cpu");
  json_builder_add_double_value (builder, self->load.cpu);
  json_builder_set_member_name (builder, "full");
  json_builder_add_boolean_value (builder, self->load.is_full);
  add_number (builder, "clock", g_get_real_time () / G_USEC_PER_SEC);
  json_builder_end_object (builder);
  root = json_builder_get_root (builder);
  return json_to_string (root, FALSE);
}

static void
refuse (Registration *self, gchar *refusal)
{
  g_free (self->refusal);
  self->refusal = refusal;
  log_event_limited (&self->refusals, "cluster: %s", refusal);
}

// The key is there. It may be of an earlier process of this member, whose lease has not run out.
static void
take_other (Registration *self, const gchar *value)
{
  ClusterMember *other = cluster_member_read (self->name, value);

  if (!other) {
    refuse (self, g_strdup_printf ("the key of member %s in etcd is not understood", self->name));
  } else if (g_strcmp0 (other->instance, self->instance) == 0) {
    self->is_in = TRUE;
  } else if (!g_str_equal (other->address, self->address) || other->rtsp != self->rtsp
             || other->rtsps != self->rtsps) {
    refuse (self, g_strdup_printf ("another member has the name %s: the one at %s, port %u",
                      self->name, other->address, other->rtsp ? other->rtsp : other->rtsps));
  }
  g_clear_pointer (&other, cluster_member_free);
}

static void
on_put (JsonObject *answer, const GError *error, gpointer data)
{
  Registration *self = data;

  self->asking = FALSE;
  if (error)
    self->put = 0; // the next tick writes it again
}

static void
write_entry (Registration *self, EtcdDone done, gboolean replace)
{
  const gint64 lease = etcd_lease_get_id (self->lease);
  g_autofree gchar *key = cluster_map_dup_member_key (self->map, self->name);
  g_autofree gchar *value = dup_value (self);

  self->asking = TRUE;
  self->put = clock_now ();
  if (replace)
    etcd_call (self->etcd, "/v3/kv/put", etcd_put_body (key, value, lease), done, self);
  else
    etcd_call (self->etcd, "/v3/kv/txn", etcd_create_body (key, value, lease), done, self);
}

static void
on_created (JsonObject *answer, const GError *error, gpointer data)
{
  Registration *self = data;
  const gint64 lease = etcd_lease_get_id (self->lease);
  g_autofree gchar *existing = NULL;

  self->asking = FALSE;
  if (error && error->domain == ETCD_ERROR)
    refuse (self, g_strdup_printf ("etcd refuses to write the key of member %s: %s", self->name,
                      error->message));
  if (!answer || !lease)
    return;
  if (etcd_create_succeeded (answer, lease, &existing))
    self->is_in = TRUE;
  else if (existing)
    take_other (self, existing);
  if (!self->is_in)
    return;
  if (existing)
    write_entry (self, on_put, TRUE); // its own, under a lease that it has no more
  g_clear_pointer (&self->refusal, g_free);
  self->ops->joined (self->owner, lease);
}

static gboolean
on_tick (gpointer data)
{
  Registration *self = data;
  const gint64 now = clock_now ();
  Load load;

  if (self->asking || !etcd_lease_get_id (self->lease))
    return G_SOURCE_CONTINUE;
  if (self->is_in && now - self->put < LOAD_NS && self->drains == self->says_so)
    return G_SOURCE_CONTINUE;
  load = measure (self, now);
  if (self->is_in && now - self->put < CLOCK_NS && !load_differs (&load, &self->load)
      && self->drains == self->says_so)
    return G_SOURCE_CONTINUE;
  self->load = load;
  self->says_so = self->drains;
  write_entry (self, self->is_in ? on_put : on_created, self->is_in);
  return G_SOURCE_CONTINUE;
}

void
registration_drain (Registration *self)
{
  self->drains = TRUE;
  on_tick (self);
}

// ---- the lease ----

static void
on_granted (gpointer data, gint64 id)
{
  Registration *self = data;

  if (!self->asking)
    write_entry (self, on_created, FALSE);
}

static void
on_lost (gpointer data)
{
  Registration *self = data;

  if (!self->is_in)
    return;
  self->is_in = FALSE;
  self->ops->left (self->owner);
}

static void
on_refused (gpointer data, const GError *error)
{
  refuse (data, g_strdup_printf ("etcd refuses a lease: %s", error->message));
}

// ---- construction ----

static void
read_ports (Registration *self, const ProxyConfig *config)
{
  g_auto (GStrv) urls = proxy_dup_base_urls (self->proxy);

  for (gchar **url = urls; *url; url++) {
    g_autoptr (GUri) uri = g_uri_parse (*url, G_URI_FLAGS_NONE, NULL);

    if (uri && g_str_has_prefix (*url, "rtsps:"))
      self->rtsps = (guint16) g_uri_get_port (uri);
    else if (uri)
      self->rtsp = (guint16) g_uri_get_port (uri);
  }
  self->http = config->http.listen.address ? config->http.listen.port : 0;
  self->https = config->http.tls_listen.address ? config->http.tls_listen.port : 0;
}

Registration *
registration_new (Etcd *etcd, ClusterMap *map, Proxy *proxy, const ProxyConfig *config,
    const RegistrationOps *ops, gpointer owner)
{
  static const EtcdLeaseOps lease_ops = { on_granted, on_lost, on_refused };
  Registration *self = g_new0 (Registration, 1);

  *self = (Registration) { .etcd = etcd, .map = map, .proxy = proxy, .ops = ops, .owner = owner };
  self->name = cluster_config_dup_name (&config->cluster);
  self->address = g_strdup (config->cluster.address);
  self->instance = g_uuid_string_random ();
  self->refusals = LOG_LIMIT_FAILURES;
  read_ports (self, config);
  self->lease = etcd_lease_new (etcd, CLUSTER_LEASE_S, &lease_ops, self);
  self->timer = timer_add (TICK_MS, on_tick, self);
  return self;
}

void
registration_stop (Registration *self)
{
  g_clear_pointer (&self->timer, timer_remove);
}

void
registration_revoke (Registration *self, EtcdDone done, gpointer data)
{
  self->is_in = FALSE;
  etcd_lease_revoke (self->lease, done, data);
}

void
registration_free (Registration *self)
{
  registration_stop (self);
  etcd_lease_free (self->lease);
  g_free (self->name);
  g_free (self->address);
  g_free (self->instance);
  g_free (self->refusal);
  g_free (self);
}

const gchar *
registration_get_name (Registration *self)
{
  return self->name;
}

gint64
registration_get_lease (Registration *self)
{
  return self->is_in ? etcd_lease_get_id (self->lease) : 0;
}

const gchar *
registration_get_refusal (Registration *self)
{
  return self->refusal;
}
