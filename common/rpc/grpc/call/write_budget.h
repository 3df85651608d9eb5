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

// Bounds the bytes that the sources of all streams of a network have given to the transport and
// that are not sent. This is the max cost of any number of peers that do not read.
//
// A stream asks before it makes a message, and waits for its turn while the budget is spent. The
// budget breaks streams that hold a part of it for longer than `patience`: at most as many as wait.
// One client cannot take all of it, because a stream has one message at a time and a connection has
// few streams (GrpcNetwork::Options::max_streams_per_client).
//
// All calls are on the loop's thread; a charge may be released on any thread. The budget may
// outlive the loop's Run(), but not the loop.
class WriteBudget {
 public:
  // One message may exceed `max_bytes`, so that a message of any size can be sent.
  WriteBudget(size_t max_bytes, Time patience, EventLoop* loop);
  ~WriteBudget();

  // Returns whether the call may make a message now. If not, the budget calls its Continue() later.
  bool Admit(GrpcCall* call);
  // Counts a message until the returned object is destroyed. Null: the message is too small to
  // count.
  std::shared_ptr<const void> Charge(GrpcCall* call, const Message& message);
  // Removes a call that ends. It no longer waits, and is not broken for its remaining charges.
  void Forget(GrpcCall* call);

 private:
  struct Charged {
    GrpcCall* call;  // null once the call has ended
    size_t bytes;
    Time since;
  };
  // The state that transport threads use, perhaps after the budget's end.
  struct Account {
    Mutex mutex;
    std::list<Charged> charges ABSL_GUARDED_BY(mutex);  // oldest first
    size_t used ABSL_GUARDED_BY(mutex) = 0;
    EventLoop* to_wake ABSL_GUARDED_BY(mutex) = nullptr;  // not null while a call waits
  };

  void Release();
  void WatchHolders();

  const size_t max_bytes_;
  const Time patience_;
  EventLoop* const loop_;
  const std::shared_ptr<Account> account_ = std::make_shared<Account>();
  std::deque<GrpcCall*> waiting_;
  GrpcCall* in_turn_ = nullptr;  // the call whose Continue() is running
  EventLoop::TimerId watch_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace shoal
