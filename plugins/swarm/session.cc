// SPDX-License-Identifier: LGPL-2.1-or-later
#include "session.h"

#include <condition_variable>
#include <cstdlib>
#include <set>
#include <sstream>

#include <boost/asio/post.hpp>
#include <libtorrent/add_torrent_params.hpp>
#include <libtorrent/alert_types.hpp>
#include <libtorrent/extensions/smart_ban.hpp>
#include <libtorrent/extensions/ut_metadata.hpp>
#include <libtorrent/extensions/ut_pex.hpp>
#include <libtorrent/settings_pack.hpp>

#include "loop.h"
#include "networks.h"
#include "swarm.h"

#define CONNECTIONS_MAX 1000 // of a session
#define SLOTS 4 // peers that a title's bytes are sent to at a time: each piece comes sooner
#define WARNINGS_MAX 8
#define TICK_MS 100
#define REQUEST_QUEUE_S 1 // of a peer: what was asked of it arrives late if it is asked more

std::string
SessionSettings::key () const
{
  return networks + "|" + listen + "|" + std::to_string (dht) + std::to_string (lsd)
         + std::to_string (exchange) + std::to_string (rate_blind) + "|"
         + std::to_string (unchoke_interval_s) + "|"
         + std::to_string (reinterpret_cast<uintptr_t> (owner));
}

static lt::settings_pack
make_pack (const SessionSettings &settings)
{
  using P = lt::settings_pack;
  lt::settings_pack pack;

  pack.set_str (P::user_agent, "Weir");
  pack.set_str (P::listen_interfaces, settings.listen);
  // Where a port is taken, libtorrent asks the system for another one.
  pack.set_int (P::max_retry_port_bind, 0);
  pack.set_int (P::alert_mask, int (std::uint32_t (lt::alert_category::status)));
  pack.set_bool (P::enable_dht, settings.dht);
  pack.set_bool (P::enable_lsd, settings.lsd);
  pack.set_bool (P::enable_upnp, false);
  pack.set_bool (P::enable_natpmp, false);
  pack.set_bool (P::enable_incoming_utp, false);
  pack.set_bool (P::enable_outgoing_utp, false);
  pack.set_int (P::out_enc_policy, P::pe_disabled);
  pack.set_bool (P::allow_multiple_connections_per_ip, true);
  pack.set_int (P::connections_limit, CONNECTIONS_MAX);
  pack.set_int (P::connection_speed, 50);
  pack.set_int (P::min_reconnect_time, 5);
  pack.set_int (P::stop_tracker_timeout, 1);
  // A peer that has all pieces still sends those that have left.
  pack.set_bool (P::close_redundant_connections, false);
  // What a peer has once had it does not ask for again.
  pack.set_bool (P::send_redundant_have, false);
  pack.set_bool (P::auto_sequential, false);
  pack.set_int (P::initial_picker_threshold, 0);
  // Shares of the upload that peers do not use wait for a tick, and peers for their turn.
  pack.set_int (P::tick_interval, TICK_MS);
  pack.set_int (P::request_queue_time, REQUEST_QUEUE_S);
  // Who sends fast would be asked for runs of pieces that begin before a wanted one.
  pack.set_int (P::whole_pieces_threshold, 0);
  pack.set_int (P::unchoke_interval, int (settings.unchoke_interval_s));
  pack.set_int (P::optimistic_unchoke_interval, int (settings.unchoke_interval_s));
  pack.set_int (P::choking_algorithm, P::fixed_slots_choker);
  pack.set_int (P::unchoke_slots_limit, settings.rate_blind ? -1 : SLOTS);
  // A limit is that of a title's bytes (swarm/upload.h), not of headers.
  pack.set_bool (P::rate_limit_ip_overhead, false);
  return pack;
}

namespace {

// The sessions of the process.
struct Sessions {
  std::mutex lock;                                       // for all below
  std::map<std::string, std::weak_ptr<Session>> running; // by key
  std::multiset<std::string> ending;                     // where they listen
  std::condition_variable ended;
};

struct Ending {
  std::unique_ptr<Session> session;
  std::string listen;
};

} // namespace

static Sessions &sessions ();

// Waits for libtorrent's threads, which use what the process frees as it exits.
static void
wait_for_ends ()
{
  Sessions &all = sessions ();
  std::unique_lock<std::mutex> lock (all.lock);

  all.ended.wait (lock, [&all] { return all.ending.empty (); });
}

// The sessions are never freed: a thread that drops one may outlast main().
static Sessions &
sessions ()
{
  static Sessions *const all = [] {
    std::atexit (wait_for_ends);
    return new Sessions;
  }();

  return *all;
}

static gpointer
end (gpointer data)
{
  const std::unique_ptr<Ending> ending (static_cast<Ending *> (data));
  Sessions &all = sessions ();

  ending->session.reset ();
  std::lock_guard<std::mutex> lock (all.lock);
  all.ending.erase (all.ending.find (ending->listen));
  all.ended.notify_all ();
  return nullptr;
}

// Ends a session on a thread of its own: libtorrent waits for trackers.
static void
end_later (Session *session, const std::string &listen)
{
  Sessions &all = sessions ();

  {
    std::lock_guard<std::mutex> lock (all.lock);

    all.ending.insert (listen);
  }
  g_thread_unref (g_thread_new (
      "weir-swarm-end", end, new Ending{ std::unique_ptr<Session> (session), listen }));
}

std::shared_ptr<Session>
Session::get (const SessionSettings &settings, std::string &why)
{
  Sessions &all = sessions ();
  const std::string key = settings.key ();
  std::shared_ptr<Session> session;
  lt::ip_filter filter;

  if (!networks_read (settings.networks, filter, why))
    return nullptr;
  // libtorrent does not filter the nodes of its hash table.
  if (settings.dht && !networks_are_all (filter)) {
    why = "the distributed hash table (\"dht\") has nodes anywhere; set \"networks\" to "
          "0.0.0.0/0,::/0 or leave it off";
    return nullptr;
  }
  std::unique_lock<std::mutex> lock (all.lock);
  // A session that ends may still have the ports.
  all.ended.wait (lock, [&] {
    session = all.running[key].lock ();
    return session || all.ending.count (settings.listen) == 0;
  });
  if (!session) {
    session.reset (new Session (settings, filter),
        [listen = settings.listen] (Session *ended) { end_later (ended, listen); });
    session->m_session->set_alert_notify ([weak = std::weak_ptr<Session> (session)] {
      loop_invoke ([weak] {
        if (const auto notified = weak.lock ())
          notified->read_alerts ();
      });
    });
    all.running[key] = session;
  }
  for (auto i = all.running.begin (); i != all.running.end ();)
    i = i->second.expired () ? all.running.erase (i) : std::next (i);
  return session;
}

Session::Session (const SessionSettings &settings, const lt::ip_filter &filter)
    : m_filter (filter), m_listen (settings.listen), m_rate_blind (settings.rate_blind)
{
  lt::session_params params (make_pack (settings), std::vector<std::shared_ptr<lt::plugin>> ());
  lt::ip_filter classes;

  params.disk_io_constructor =
      disk_constructor ([this] (const std::string &name) { return find (name); }, &m_context);
  m_session = std::make_unique<lt::session> (std::move (params));
  m_session->set_ip_filter (filter);
  m_session->add_extension (&lt::create_ut_metadata_plugin);
  m_session->add_extension (&lt::create_smart_ban_plugin);
  if (settings.exchange)
    m_session->add_extension (&lt::create_ut_pex_plugin);
  // By default, peers in private networks are never choked.
  for (const char *range :
      { "0.0.0.0-255.255.255.255", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" }) {
    const std::string text = range;
    const auto dash = text.find ('-');
    classes.add_rule (lt::make_address (text.substr (0, dash)),
        lt::make_address (text.substr (dash + 1)),
        1 << int (std::uint32_t (lt::session::global_peer_class_id)));
  }
  m_session->set_peer_class_filter (classes);
}

Session::~Session () = default;

// ---- where it listens ----

// Tells whether a port was asked for, or any.
static bool
has_port (const std::string &listen, int port)
{
  std::stringstream list (listen);
  std::string item;

  while (std::getline (list, item, ',')) {
    const int asked = std::atoi (item.c_str () + item.rfind (':') + 1);
    if (asked == 0 || asked == port)
      return true;
  }
  return false;
}

static std::string
write_endpoint (const lt::address &address, int port)
{
  const std::string host = address.to_string ();

  return (address.is_v6 () ? "[" + host + "]" : host) + ":" + std::to_string (port);
}

// On the thread of loop.h.
void
Session::read_alerts ()
{
  std::vector<lt::alert *> alerts;

  m_session->pop_alerts (&alerts);
  for (const lt::alert *alert : alerts) {
    const auto *failed = lt::alert_cast<lt::listen_failed_alert> (alert);
    const auto *listens = lt::alert_cast<lt::listen_succeeded_alert> (alert);

    if (failed)
      warn ("peers cannot connect at " + write_endpoint (failed->address, failed->port) + ": "
            + failed->error.message ());
    else if (listens && listens->socket_type == lt::socket_type_t::tcp
             && !has_port (m_listen, listens->port))
      warn ("peers connect at " + write_endpoint (listens->address, listens->port)
            + ", as the port in \"" + m_listen + "\" is taken");
  }
}

void
Session::warn (const std::string &text)
{
  std::vector<std::shared_ptr<Swarm>> swarms;

  {
    std::lock_guard<std::mutex> guard (m_lock);

    if (m_warnings.size () >= WARNINGS_MAX || !m_warnings.insert (text).second)
      return;
    for (const auto &[name, weak] : m_swarms)
      swarms.push_back (weak.lock ());
  }
  for (const auto &swarm : swarms) {
    if (swarm)
      swarm->warn (text);
  }
}

std::set<std::string>
Session::warnings ()
{
  std::lock_guard<std::mutex> guard (m_lock);

  return m_warnings;
}

// ---- torrents ----

std::shared_ptr<Swarm>
Session::find (const std::string &name)
{
  std::lock_guard<std::mutex> guard (m_lock);
  const auto i = m_swarms.find (name);

  return i == m_swarms.end () ? nullptr : i->second.lock ();
}

// The newest one, as others may have left.
std::shared_ptr<Swarm>
Session::find_torrent (const lt::torrent_info &info)
{
  std::lock_guard<std::mutex> guard (m_lock);
  std::shared_ptr<Swarm> found;

  for (const auto &[name, weak] : m_swarms) {
    const auto swarm = weak.lock ();
    if (swarm && swarm->info ().info_hashes () == info.info_hashes ()
        && (!found || found->has_ended ()))
      found = swarm;
  }
  return found;
}

bool
Session::add (lt::add_torrent_params params, const std::shared_ptr<Swarm> &swarm,
    lt::torrent_handle &handle, std::string &why)
{
  lt::error_code error;

  if (swarm) {
    std::lock_guard<std::mutex> guard (m_lock);

    for (auto i = m_swarms.begin (); i != m_swarms.end ();)
      i = i->second.expired () ? m_swarms.erase (i) : std::next (i);
    m_swarms[params.save_path] = swarm;
  }
  params.flags &= ~(lt::torrent_flags::auto_managed | lt::torrent_flags::paused);
  params.flags |= lt::torrent_flags::duplicate_is_error;
  handle = m_session->add_torrent (std::move (params), error);
  if (error) {
    why = "libtorrent refuses the torrent: " + error.message ();
    return false;
  }
  std::lock_guard<std::mutex> guard (m_lock);
  m_torrents.insert (handle.id ());
  set_slots ();
  return true;
}

void
Session::post (std::function<void ()> work)
{
  boost::asio::post (*m_context, std::move (work));
}

void
Session::remove (const lt::torrent_handle &handle)
{
  while_there ([&] {
    const std::uint32_t id = handle.id ();

    m_session->remove_torrent (handle);
    std::lock_guard<std::mutex> guard (m_lock);
    m_torrents.erase (id);
    set_slots ();
  });
}

// Peers of all titles share the slots of a session. With the lock.
void
Session::set_slots ()
{
  lt::settings_pack pack;

  if (m_rate_blind || m_torrents.empty ())
    return;
  pack.set_int (lt::settings_pack::unchoke_slots_limit, SLOTS * int (m_torrents.size ()));
  m_session->apply_settings (pack);
}

unsigned
Session::port () const
{
  return m_session->listen_port ();
}

bool
Session::permits (const lt::address &address) const
{
  return m_filter.access (address) == 0;
}
