#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "common/rpc/event_loop.h"

namespace shoal {

// Calls back on an event loop when a descriptor is readable or at its end. One thread waits for all
// descriptors; a descriptor is armed again only after its callback has run, so that at most one
// call each is queued. Everything is called on the loop's thread; no callback comes after
// destruction.
class DescriptorWatch {
 public:
  explicit DescriptorWatch(EventLoop* loop);  // outlives this
  ~DescriptorWatch();
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  // `descriptor` stays the caller's, who removes it before closing it.
  void Add(int descriptor, std::function<void()> on_readable);
  // No callback for it afterwards. No effect when it is not watched.
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
  // Posted callbacks hold it weakly, so that one that is still queued at destruction does nothing.
  const std::shared_ptr<DescriptorWatch*> self_;
  // By a number that is never used again: a descriptor's number is, as soon as it is closed.
  std::map<uint64_t, Watched> watched_;
  uint64_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace shoal
