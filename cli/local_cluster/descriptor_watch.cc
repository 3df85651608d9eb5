#include "cli/local_cluster/descriptor_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace shoal {
namespace {

constexpr uint64_t kWakeId = 0;

int CheckDescriptor(int descriptor, const char* what) {
  if (descriptor < 0) {
    std::perror(what);
    std::abort();
  }
  return descriptor;
}

void Arm(int epoll, int operation, int descriptor, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  CheckDescriptor(epoll_ctl(epoll, operation, descriptor, &event), "epoll_ctl");
}

}  // namespace

DescriptorWatch::DescriptorWatch(EventLoop* loop)
    : loop_(loop),
      epoll_(CheckDescriptor(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(CheckDescriptor(eventfd(0, EFD_CLOEXEC), "eventfd")),
      self_(std::make_shared<DescriptorWatch*>(this)) {
  Arm(epoll_, EPOLL_CTL_ADD, wake_, kWakeId);
  thread_ = std::thread([this] { WaitLoop(); });
}

DescriptorWatch::~DescriptorWatch() {
  const uint64_t one = 1;
  if (write(wake_, &one, sizeof(one)) != sizeof(one)) std::abort();
  thread_.join();
  close(epoll_);
  close(wake_);
}

void DescriptorWatch::Add(int descriptor, std::function<void()> on_readable) {
  const uint64_t id = next_id_++;
  watched_[id] = {descriptor, std::move(on_readable)};
  Arm(epoll_, EPOLL_CTL_ADD, descriptor, id);
}

void DescriptorWatch::Remove(int descriptor) {
  for (auto it = watched_.begin(); it != watched_.end(); ++it) {
    if (it->second.descriptor != descriptor) continue;
    CheckDescriptor(epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr), "epoll_ctl");
    watched_.erase(it);
    return;
  }
}

void DescriptorWatch::OnReadable(uint64_t id) {
  auto it = watched_.find(id);
  if (it == watched_.end()) return;
  const auto on_readable = it->second.on_readable;  // a copy: the callback may remove itself
  on_readable();
  it = watched_.find(id);
  if (it != watched_.end()) Arm(epoll_, EPOLL_CTL_MOD, it->second.descriptor, id);
}

void DescriptorWatch::WaitLoop() {
  epoll_event events[16];
  while (true) {
    const int count = epoll_wait(epoll_, events, std::size(events), -1);
    if (count < 0 && errno != EINTR) CheckDescriptor(count, "epoll_wait");
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kWakeId) return;
      loop_->Post([weak = std::weak_ptr<DescriptorWatch*>(self_), id] {
        if (const auto self = weak.lock()) (*self)->OnReadable(id);
      });
    }
  }
}

}  // namespace shoal
