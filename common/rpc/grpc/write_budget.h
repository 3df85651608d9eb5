#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <memory>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"

namespace shoal {

class GrpcCall;

// Bounds what all streams of a network have handed to the transport from their sources and that is
// not sent yet, so that peers that do not read cost no more than that, however many
// they are. A stream asks before it makes a message; while the budget is spent it waits for its
// turn. Of those that hold a part of it for longer than `patience` as many are broken as wait. One
// client cannot take all of it: a stream has one message at a time, and a connection few streams
// (GrpcNetwork::Options::max_streams_per_client). All calls on the loop's thread; what is charged
// may be released on any. It may outlive the loop's end, not the loop.
class WriteBudget {
 public:
  // One message goes above `most_bytes`, so that any goes.
  WriteBudget(size_t most_bytes, Time patience, EventLoop* loop);
  ~WriteBudget();

  // The call may make a message now; otherwise it is told to Continue when it may.
  bool Admit(GrpcCall* call);
  // Counts a message until what is returned is destroyed; null: it is too small to count.
  std::shared_ptr<const void> Charge(GrpcCall* call, const Message& message);
  // The call ends: it neither waits nor is broken for what it still holds.
  void Forget(GrpcCall* call);

 private:
  struct Charged {
    GrpcCall* call;  // null once the call has ended
    size_t bytes;
    Time since;
  };
  // What transport threads touch; they may come late.
  struct Account {
    Mutex mutex;
    std::list<Charged> charges ABSL_GUARDED_BY(mutex);  // oldest first
    size_t used ABSL_GUARDED_BY(mutex) = 0;
    EventLoop* to_wake ABSL_GUARDED_BY(mutex) = nullptr;  // somebody waits
  };

  void Release();
  void WatchHolders();

  const size_t most_bytes_;
  const Time patience_;
  EventLoop* const loop_;
  const std::shared_ptr<Account> account_ = std::make_shared<Account>();
  std::deque<GrpcCall*> waiting_;
  GrpcCall* in_turn_ = nullptr;  // while it is asked to continue
  EventLoop::TimerId watch_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace shoal
