// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Sessions of libtorrent, one thread each. Whoever has the same settings shares one. Call from any
// thread except for a session's own.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <libtorrent/io_context.hpp>
#include <libtorrent/ip_filter.hpp>
#include <libtorrent/session.hpp>
#include <libtorrent/torrent_info.hpp>

#include "disk.h"

struct SessionSettings {
  std::string networks; // networks.h
  std::string listen;   // as libtorrent's listen_interfaces
  bool dht, lsd, exchange, rate_blind;
  unsigned unchoke_interval_s;
  const void *owner; // whoever has a session of its own; or null

  std::string key () const;
};

class Swarm;

// Calls functions of a torrent's handle. They throw if another thread has just removed the torrent:
// then the rest of `call` is left out.
template <typename Call>
void
while_there (Call call)
{
  try {
    call ();
  } catch (const lt::system_error &) {
  }
}

class Session : public std::enable_shared_from_this<Session> {
public:
  // Returns null and a reason in `why` if the settings are wrong. Waits for a session that listens
  // at the same addresses and is about to end, a second at most.
  static std::shared_ptr<Session> get (const SessionSettings &settings, std::string &why);

  // Whoever drops the last reference does not wait: a thread of its own ends the session.
  ~Session ();

  // Returns the swarm of that name, or null.
  std::shared_ptr<Swarm> find (const std::string &name);
  std::shared_ptr<Swarm> find_torrent (const lt::torrent_info &info);

  // Adds a torrent, whose storage is `swarm`, or null as long as the torrent has no metadata. Its
  // `save_path` is the swarm's name. Returns false and a reason in `why`.
  bool add (lt::add_torrent_params params, const std::shared_ptr<Swarm> &swarm,
      lt::torrent_handle &handle, std::string &why);

  // Runs `work` on the session's thread, unless the session ends before.
  void post (std::function<void ()> work);
  void remove (const lt::torrent_handle &handle);
  unsigned port () const;
  bool permits (const lt::address &address) const;

  // What was wrong with the addresses where it listens. Its swarms are told, too.
  std::set<std::string> warnings ();

private:
  Session (const SessionSettings &settings, const lt::ip_filter &filter);
  void set_slots ();
  void read_alerts ();
  void warn (const std::string &text);

  const lt::ip_filter m_filter;
  const std::string m_listen;
  const bool m_rate_blind;
  std::mutex m_lock;                  // for the next three
  std::set<std::uint32_t> m_torrents; // their ids
  std::map<std::string, std::weak_ptr<Swarm>> m_swarms;
  std::set<std::string> m_warnings;
  lt::io_context *m_context = nullptr;
  std::unique_ptr<lt::session> m_session;
};
