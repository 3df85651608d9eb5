#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "common/rpc/event_loop.h"

namespace shoal {

// Calls back on an event loop when a descriptor is readable or at its end. One thread waits for all
// descriptors. It arms a descriptor again only after its callback has run, so at most one call per
// descriptor is queued. Use it on the loop's thread only. No callback runs after destruction.
class DescriptorWatch {
 public:
  explicit DescriptorWatch(EventLoop* loop);  // outlives this
  ~DescriptorWatch();
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  // The caller keeps ownership of `descriptor` and removes it before closing it.
  void Add(int descriptor, std::function<void()> on_readable);
  // Stops the callbacks of the descriptor. No effect if it is not watched.
  void Remove(int descriptor);

 private:
  void WaitLoop();
  void OnReadable(uint64_t id);

  struct Watched {
    int descriptor;
    std::function<void()> on_readable;
  };

  EventLoop* const loop_;
  const int epoll_;
  const int wake_;  // an eventfd that ends the thread
  // Posted callbacks hold it weakly: a callback that is still queued at destruction does nothing.
  const std::shared_ptr<DescriptorWatch*> self_;
  // The key is an id that is never reused, unlike the number of a descriptor after close.
  std::map<uint64_t, Watched> watched_;
  uint64_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace shoal
