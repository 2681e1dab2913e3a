// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include <boost/asio/post.hpp>
#include <libtorrent/disk_buffer_holder.hpp>
#include <libtorrent/disk_observer.hpp>
#include <libtorrent/error_code.hpp>
#include <libtorrent/hasher.hpp>
#include <libtorrent/peer_request.hpp>
#include <libtorrent/performance_counters.hpp>
#include <libtorrent/storage_defs.hpp>

#define BLOCK 0x4000
#define QUEUED_BYTES_MAX (4 << 20) // of writes to a file, before peers are asked to wait

static lt::storage_error
make_error (lt::operation_t operation)
{
  return lt::storage_error (
      lt::error_code (boost::system::errc::io_error, boost::system::generic_category ()),
      operation);
}

// Of a torrent whose description is only looked for, or that has been removed.
class NoStorage final : public Storage {
public:
  bool in_file () const override
  {
    return false;
  }

  bool read (int, int, char *, int) override
  {
    return false;
  }

  bool write (int, int, const char *, int) override
  {
    return true;
  }

  bool hash (int, lt::sha1_hash &) override
  {
    return false;
  }

  bool hash_block (int, int, lt::sha256_hash &) override
  {
    return false;
  }

  void clear (int) override
  {
  }
};

class Disk final : public lt::disk_interface, lt::buffer_allocator_interface {
public:
  Disk (lt::io_context &context, FindStorage find) : m_context (context), m_find (std::move (find))
  {
  }

  ~Disk () override
  {
    stop ();
  }

  lt::storage_holder new_torrent (
      const lt::storage_params &params, const std::shared_ptr<void> &) override
  {
    const lt::storage_index_t index (m_next++);

    if (auto storage = m_find (params.path))
      m_storages.emplace (index, std::move (storage));
    return lt::storage_holder (index, *this);
  }

  void remove_torrent (lt::storage_index_t index) override
  {
    m_storages.erase (index);
  }

  void async_read (lt::storage_index_t index, const lt::peer_request &request,
      std::function<void (lt::disk_buffer_holder, const lt::storage_error &)> handler,
      lt::disk_job_flags_t) override
  {
    // Whatever has been posted may be freed after the disk, so a holder is made for the handler
    // only.
    auto storage = get (index);
    run (storage, [this, storage, request, handler = std::move (handler)] {
      auto bytes =
          std::make_shared<std::unique_ptr<char[]>> (new char[std::size_t (request.length)]);
      const bool ok =
          storage->read (int (request.piece), request.start, bytes->get (), request.length);
      return [this, handler, bytes, ok, length = request.length] {
        if (ok)
          handler (lt::disk_buffer_holder (*this, bytes->release (), length), lt::storage_error ());
        else
          handler (lt::disk_buffer_holder (), make_error (lt::operation_t::file_read));
      };
    });
  }

  bool async_write (lt::storage_index_t index, const lt::peer_request &request, const char *bytes,
      std::shared_ptr<lt::disk_observer> observer,
      std::function<void (const lt::storage_error &)> handler, lt::disk_job_flags_t) override
  {
    auto storage = get (index);
    if (!storage->in_file ()) {
      const bool ok = storage->write (int (request.piece), request.start, bytes, request.length);
      boost::asio::post (m_context, [handler = std::move (handler), ok] {
        handler (ok ? lt::storage_error () : make_error (lt::operation_t::file_write));
      });
      return false;
    }
    m_queued_bytes += request.length;
    run (storage, [this, storage, request, copy = std::vector<char> (bytes, bytes + request.length),
                      handler = std::move (handler)] {
      const bool ok =
          storage->write (int (request.piece), request.start, copy.data (), request.length);
      return [this, handler, ok, length = request.length] {
        note_written (length);
        handler (ok ? lt::storage_error () : make_error (lt::operation_t::file_write));
      };
    });
    if (m_queued_bytes <= QUEUED_BYTES_MAX)
      return false;
    if (observer)
      m_observers.push_back (observer);
    return true;
  }

  void async_hash (lt::storage_index_t index, lt::piece_index_t piece,
      lt::span<lt::sha256_hash> blocks, lt::disk_job_flags_t,
      std::function<void (lt::piece_index_t, const lt::sha1_hash &, const lt::storage_error &)>
          handler) override
  {
    auto storage = get (index);
    run (storage, [storage, piece, blocks, handler = std::move (handler)] () mutable {
      lt::sha1_hash hash;
      bool ok = storage->hash (int (piece), hash);
      for (int i = 0; ok && i < int (blocks.size ()); i++)
        ok = storage->hash_block (int (piece), i * BLOCK, blocks[i]);
      return [handler, piece, hash, ok] {
        handler (piece, hash, ok ? lt::storage_error () : make_error (lt::operation_t::file_read));
      };
    });
  }

  void async_hash2 (lt::storage_index_t index, lt::piece_index_t piece, int offset,
      lt::disk_job_flags_t,
      std::function<void (lt::piece_index_t, const lt::sha256_hash &, const lt::storage_error &)>
          handler) override
  {
    auto storage = get (index);
    run (storage, [storage, piece, offset, handler = std::move (handler)] {
      lt::sha256_hash hash;
      const bool ok = storage->hash_block (int (piece), offset, hash);
      return [handler, piece, hash, ok] {
        handler (piece, hash, ok ? lt::storage_error () : make_error (lt::operation_t::file_read));
      };
    });
  }

  void async_clear_piece (lt::storage_index_t index, lt::piece_index_t piece,
      std::function<void (lt::piece_index_t)> handler) override
  {
    auto storage = get (index);
    run (storage, [storage, piece, handler = std::move (handler)] {
      storage->clear (int (piece));
      return [handler, piece] { handler (piece); };
    });
  }

  // ---- files, of which there are none ----

  void async_move_storage (lt::storage_index_t, std::string path, lt::move_flags_t,
      std::function<void (lt::status_t, const std::string &, const lt::storage_error &)> handler)
      override
  {
    boost::asio::post (m_context, [handler = std::move (handler), path] {
      handler (lt::status_t::no_error, path, lt::storage_error ());
    });
  }

  void async_release_files (lt::storage_index_t, std::function<void ()> handler) override
  {
    if (handler)
      boost::asio::post (m_context, std::move (handler));
  }

  void async_check_files (lt::storage_index_t, const lt::add_torrent_params *,
      lt::aux::vector<std::string, lt::file_index_t>,
      std::function<void (lt::status_t, const lt::storage_error &)> handler) override
  {
    boost::asio::post (m_context, [handler = std::move (handler)] {
      handler (lt::status_t::no_error, lt::storage_error ());
    });
  }

  void async_stop_torrent (lt::storage_index_t, std::function<void ()> handler) override
  {
    if (handler)
      boost::asio::post (m_context, std::move (handler));
  }

  void async_rename_file (lt::storage_index_t, lt::file_index_t file, std::string name,
      std::function<void (const std::string &, lt::file_index_t, const lt::storage_error &)>
          handler) override
  {
    boost::asio::post (m_context, [handler = std::move (handler), file, name] {
      handler (name, file, lt::storage_error ());
    });
  }

  void async_delete_files (lt::storage_index_t, lt::remove_flags_t,
      std::function<void (const lt::storage_error &)> handler) override
  {
    boost::asio::post (
        m_context, [handler = std::move (handler)] { handler (lt::storage_error ()); });
  }

  void async_set_file_priority (lt::storage_index_t,
      lt::aux::vector<lt::download_priority_t, lt::file_index_t> priorities,
      std::function<void (
          const lt::storage_error &, lt::aux::vector<lt::download_priority_t, lt::file_index_t>)>
          handler) override
  {
    boost::asio::post (m_context, [handler = std::move (handler), priorities] {
      handler (lt::storage_error (), priorities);
    });
  }

  void update_stats_counters (lt::counters &) const override
  {
  }

  std::vector<lt::open_file_state> get_status (lt::storage_index_t) const override
  {
    return {};
  }

  void abort (bool) override
  {
    stop ();
  }

  void submit_jobs () override
  {
  }
  void settings_updated () override
  {
  }

private:
  using Answer = std::function<void ()>;
  using Job = std::function<Answer ()>;

  void free_disk_buffer (char *buffer) override
  {
    delete[] buffer;
  }

  // libtorrent 2.0 still writes pieces that were added to a torrent just before its removal.
  const std::shared_ptr<Storage> &get (lt::storage_index_t index) const
  {
    const auto found = m_storages.find (index);

    return found == m_storages.end () ? m_none : found->second;
  }

  // Runs a job, and what it returns on the session's thread.
  void run (const std::shared_ptr<Storage> &storage, Job job)
  {
    if (!storage->in_file ()) {
      boost::asio::post (m_context, job ());
      return;
    }
    std::lock_guard<std::mutex> lock (m_lock);
    m_jobs.push_back (std::move (job));
    if (!m_thread.joinable ())
      m_thread = std::thread (&Disk::work, this);
    m_changed.notify_one ();
  }

  void work ()
  {
    std::unique_lock<std::mutex> lock (m_lock);

    while (!m_jobs.empty () || !m_stopped) {
      if (m_jobs.empty ()) {
        m_changed.wait (lock);
        continue;
      }
      Job job = std::move (m_jobs.front ());
      m_jobs.pop_front ();
      lock.unlock ();
      boost::asio::post (m_context, job ());
      job = nullptr;
      lock.lock ();
    }
  }

  void stop ()
  {
    {
      std::lock_guard<std::mutex> lock (m_lock);

      m_stopped = true;
      m_changed.notify_one ();
    }
    if (m_thread.joinable ())
      m_thread.join ();
  }

  void note_written (int length)
  {
    m_queued_bytes -= length;
    if (m_queued_bytes > QUEUED_BYTES_MAX / 2)
      return;
    for (const auto &weak : std::exchange (m_observers, {})) {
      if (auto observer = weak.lock ())
        observer->on_disk ();
    }
  }

  lt::io_context &m_context;
  const FindStorage m_find;

  const std::shared_ptr<Storage> m_none = std::make_shared<NoStorage> ();

  // On the session's thread. No index is used twice.
  std::map<lt::storage_index_t, std::shared_ptr<Storage>> m_storages;
  std::uint32_t m_next = 0;
  std::vector<std::weak_ptr<lt::disk_observer>> m_observers;
  int64_t m_queued_bytes = 0;

  std::thread m_thread;
  std::mutex m_lock;
  std::condition_variable m_changed;
  std::deque<Job> m_jobs;
  bool m_stopped = false;
};

lt::disk_io_constructor_type
disk_constructor (FindStorage find, lt::io_context **context)
{
  return [find = std::move (find), context] (lt::io_context &its, const lt::settings_interface &,
             lt::counters &) -> std::unique_ptr<lt::disk_interface> {
    *context = &its;
    return std::make_unique<Disk> (its, find);
  };
}
