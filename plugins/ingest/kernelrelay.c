// SPDX-License-Identifier: LGPL-2.1-or-later
/**
 * SECTION:element-kernelrelay
 * @title: kernelrelay
 * @short_description: relays one RTP stream over UDP to many readers inside the kernel
 *
 * An experiment: a relay whose media never reaches user space. A BPF program at the network device
 * makes a clone of each RTP packet for each reader, before any socket gets the packet. RTCP goes
 * through user space: the sender's to all readers, the readers' to the sender. No packet is changed
 * but for its addresses and ports, so readers join with the next packet, whatever it is.
 *
 * The program relays only if each reader can get clones. Otherwise, and while something changes, a
 * thread of the element relays to all of them. No packet is lost or sent twice by a change. The
 * field `kernel` of #WeirKernelRelay:stats says who relays, and why.
 *
 * The element has no pads. It relays in PAUSED and PLAYING. For anything else than plain relaying
 * (late joiners, slow readers, layers, TCP) use `relaysrc` and `fanoutsink`.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! vp8enc deadline=1 ! rtpvp8pay ! udpsink host=127.0.0.1 port=5004
 * gst-launch-1.0 kernelrelay address=127.0.0.1 port=5004 clients=127.0.0.1:5006,127.0.0.1:5008 kernel=off
 * ]|
 *
 * Since: 0.1
 */
#include "config.h"

#include "elementname.h"
#include "enumtype.h"
#include "gioaddress.h"
#include "ingest/kernelrelay.h"
#include "kernel/relay.h"

GST_DEBUG_CATEGORY_STATIC (kernelrelay_debug);
#define GST_CAT_DEFAULT kernelrelay_debug

enum {
  PROP_0,
  PROP_ADDRESS,
  PROP_PORT,
  PROP_CLIENTS,
  PROP_KERNEL,
  PROP_STATS,
};

#define MAX_PORT (G_MAXUINT16 - 1) // RTCP is at the next one
#define DEFAULT_PORT 5004

typedef enum { MODE_OFF, MODE_INGRESS } Mode;

struct _WeirKernelRelay {
  GstElement parent;

  GMutex lock; // guards all fields; taken before the relay's own
  gchar *address, *clients;
  guint port;
  Mode mode;
  WeirRelay *relay;     // NULL while stopped
  WeirRelayStats stats; // the last ones of a relay that has stopped
};

#define TYPE_MODE (weir_enum_type (&mode_type, "WeirKernelRelayKernel", mode_values))

static gsize mode_type;

static const GEnumValue mode_values[] = {
  { MODE_OFF, "A thread of the element relays", "off" },
  { MODE_INGRESS, "A program at the network device relays", "ingress" },
  { 0, NULL, NULL },
};

G_DEFINE_FINAL_TYPE (WeirKernelRelay, weir_kernel_relay, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (kernelrelay, "kernelrelay", GST_RANK_NONE, WEIR_TYPE_KERNEL_RELAY)

// ---- readers ----

static gboolean
parse_client (const gchar *text, WeirAddress *address)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  guint64 port;

  return g_strv_length (parts) == 2
         && g_ascii_string_to_unsigned (parts[1], 10, 1, MAX_PORT, &port, NULL)
         && weir_address_from_text (parts[0], (gint) port, address)
         && address->any.sa_family == AF_INET && !weir_address_is_multicast (address);
}

// Call with `lock` held.
static void
give_readers (WeirKernelRelay *self)
{
  g_auto (GStrv) list = g_strsplit (self->clients ? self->clients : "", ",", 0);
  GArray *readers = g_array_new (FALSE, FALSE, sizeof (WeirAddress));
  WeirAddress address;

  for (gchar **at = list; *at; at++) {
    if (!*g_strstrip (*at))
      continue;
    if (parse_client (*at, &address))
      g_array_append_val (readers, address);
    else
      g_warning ("%s: clients: '%s' is not host:port with an IPv4 address and a port from 1 to %d, "
                 "such as 192.0.2.1:5004",
          GST_OBJECT_NAME (self), *at, MAX_PORT);
  }
  weir_relay_set_readers (
      self->relay, (const WeirAddress *) (gpointer) readers->data, readers->len);
  g_array_unref (readers);
}

// ---- life ----

// Call with `lock` held.
static gboolean
start (WeirKernelRelay *self, GError **error)
{
  WeirAddress address;

  if (!weir_address_from_text (self->address, (gint) self->port, &address)
      || address.any.sa_family != AF_INET || weir_address_is_multicast (&address)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "address: '%s' is no IPv4 address of a host", self->address ? self->address : "");
    return FALSE;
  }
  self->relay = weir_relay_new (&address, error);
  if (!self->relay)
    return FALSE;
  if (self->mode == MODE_INGRESS && !weir_relay_set_kernel (self->relay, TRUE, error)) {
    g_prefix_error (error, "kernel=ingress: ");
    g_clear_pointer (&self->relay, weir_relay_free);
    return FALSE;
  }
  give_readers (self);
  return TRUE;
}

static void
stop (WeirKernelRelay *self)
{
  WeirRelay *relay;

  g_mutex_lock (&self->lock);
  relay = g_steal_pointer (&self->relay);
  if (relay)
    weir_relay_get_stats (relay, &self->stats);
  g_mutex_unlock (&self->lock);
  if (relay)
    weir_relay_free (relay);
}

static GstStateChangeReturn
weir_kernel_relay_change_state (GstElement *element, GstStateChange transition)
{
  WeirKernelRelay *self = WEIR_KERNEL_RELAY (element);
  GstStateChangeReturn result;
  GError *error = NULL;
  gboolean ok = TRUE;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    g_mutex_lock (&self->lock);
    ok = start (self, &error);
    g_mutex_unlock (&self->lock);
  }
  if (!ok) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS, ("kernelrelay: %s", error->message), (NULL));
    g_error_free (error);
    return GST_STATE_CHANGE_FAILURE;
  }
  result = GST_ELEMENT_CLASS (weir_kernel_relay_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    stop (self);
  return result;
}

// ---- properties ----

// The caller owns the result.
static GstStructure *
make_stats (WeirKernelRelay *self)
{
  WeirRelayStats stats;

  g_mutex_lock (&self->lock);
  if (self->relay)
    weir_relay_get_stats (self->relay, &self->stats);
  stats = self->stats;
  g_mutex_unlock (&self->lock);
  return gst_structure_new ("application/x-weir-kernelrelay-stats", "kernel", G_TYPE_STRING,
      stats.kernel ? stats.kernel : "off", "readers", G_TYPE_UINT, stats.readers, "packets",
      G_TYPE_UINT64, stats.packets, "kernel-packets", G_TYPE_UINT64, stats.kernel_packets,
      "packets-due", G_TYPE_UINT64, stats.due, "packets-sent", G_TYPE_UINT64, stats.sent,
      "dropped-no-buffers", G_TYPE_UINT64, stats.no_buffers, "dropped-error", G_TYPE_UINT64,
      stats.failed, "dropped-backlog", G_TYPE_UINT64, stats.backlog, "rtcp", G_TYPE_UINT64,
      stats.rtcp, "dropped-foreign", G_TYPE_UINT64, stats.foreign, "dropped-malformed",
      G_TYPE_UINT64, stats.malformed, "longest", G_TYPE_UINT64, stats.longest_ns, NULL);
}

static void
set_mode (WeirKernelRelay *self, Mode mode)
{
  GError *error = NULL;

  g_mutex_lock (&self->lock);
  self->mode = mode;
  if (self->relay && !weir_relay_set_kernel (self->relay, mode == MODE_INGRESS, &error))
    self->mode = MODE_OFF;
  g_mutex_unlock (&self->lock);
  if (error)
    GST_ELEMENT_WARNING (
        self, RESOURCE, SETTINGS, ("kernelrelay: kernel=ingress: %s", error->message), (NULL));
  g_clear_error (&error);
}

static void
set_clients (WeirKernelRelay *self, const GValue *value)
{
  g_mutex_lock (&self->lock);
  g_free (self->clients);
  self->clients = g_value_dup_string (value);
  if (self->relay)
    give_readers (self);
  g_mutex_unlock (&self->lock);
}

static void
weir_kernel_relay_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirKernelRelay *self = WEIR_KERNEL_RELAY (object);

  switch (id) {
    case PROP_ADDRESS:
      g_mutex_lock (&self->lock);
      g_free (self->address);
      self->address = g_value_dup_string (value);
      g_mutex_unlock (&self->lock);
      break;
    case PROP_PORT:
      g_mutex_lock (&self->lock);
      self->port = g_value_get_uint (value);
      g_mutex_unlock (&self->lock);
      break;
    case PROP_CLIENTS:
      set_clients (self, value);
      break;
    case PROP_KERNEL:
      set_mode (self, (Mode) g_value_get_enum (value));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
}

static void
weir_kernel_relay_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirKernelRelay *self = WEIR_KERNEL_RELAY (object);

  if (id == PROP_STATS) {
    g_value_take_boxed (value, make_stats (self));
    return;
  }
  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_ADDRESS:
      g_value_set_string (value, self->address);
      break;
    case PROP_PORT:
      g_value_set_uint (value, self->port);
      break;
    case PROP_CLIENTS:
      g_value_set_string (value, self->clients);
      break;
    case PROP_KERNEL:
      g_value_set_enum (value, (gint) self->mode);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  g_mutex_unlock (&self->lock);
}

// ---- class ----

static void
weir_kernel_relay_init (WeirKernelRelay *self)
{
  g_mutex_init (&self->lock);
  self->port = DEFAULT_PORT;
  self->mode = MODE_INGRESS;
}

static void
weir_kernel_relay_finalize (GObject *object)
{
  WeirKernelRelay *self = WEIR_KERNEL_RELAY (object);

  g_mutex_clear (&self->lock);
  g_free (self->address);
  g_free (self->clients);
  G_OBJECT_CLASS (weir_kernel_relay_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
  const GParamFlags ready = rw | GST_PARAM_MUTABLE_READY;

  g_object_class_install_property (klass, PROP_ADDRESS,
      g_param_spec_string ("address", "Address",
          "IPv4 address of this host to which the stream is sent", NULL, ready));
  g_object_class_install_property (klass, PROP_PORT,
      g_param_spec_uint ("port", "Port",
          "UDP port to which the stream is sent, and from which readers get it; RTCP is on the "
          "next "
          "one",
          1, MAX_PORT, DEFAULT_PORT, ready));
  /**
   * WeirKernelRelay:clients:
   *
   * The readers, such as `192.0.2.1:5004,192.0.2.2:5004`: IPv4 addresses and the ports for RTP;
   * RTCP goes to the next port. It can change while the element runs; readers that stay lose
   * nothing. Entries that are not valid are left out with a warning.
   */
  g_object_class_install_property (klass, PROP_CLIENTS,
      g_param_spec_string ("clients", "Clients",
          "Comma-separated readers, each host:port, with IPv4 addresses", NULL,
          rw | GST_PARAM_MUTABLE_PLAYING));
  /**
   * WeirKernelRelay:kernel:
   *
   * Who relays. With `ingress`, the element does not start if the program cannot be loaded, or if
   * #WeirKernelRelay:address is not that of an Ethernet device; the error says why. A change while
   * the element runs loses no packet.
   */
  g_object_class_install_property (klass, PROP_KERNEL,
      g_param_spec_enum ("kernel", "Kernel", "Where packets are relayed", TYPE_MODE, MODE_INGRESS,
          rw | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics", "Who relays, and numbers of packets",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void
weir_kernel_relay_class_init (WeirKernelRelayClass *klass)
{
  GObjectClass *gobject_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (kernelrelay_debug, "kernelrelay", 0, "RTP relay in the kernel");

  gobject_class->set_property = weir_kernel_relay_set_property;
  gobject_class->get_property = weir_kernel_relay_get_property;
  gobject_class->finalize = weir_kernel_relay_finalize;
  element_class->change_state = weir_kernel_relay_change_state;

  install_properties (gobject_class);
  gst_type_mark_as_plugin_api (TYPE_MODE, 0);
  weir_element_class_set_default_name (gobject_class);
  gst_element_class_set_static_metadata (element_class, "RTP relay in the kernel", "Network/RTP",
      "Relays one RTP stream over UDP to many readers inside the kernel", "Weir");
}
