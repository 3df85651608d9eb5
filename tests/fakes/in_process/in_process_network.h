#pragma once

#include <cstddef>
#include <memory>

#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"

namespace shoal {

class InProcessDirectory;

// Connects tasks that live in one process, each with a loop on a thread of its own; for tests of
// whole clusters, clean under thread sanitizer. Messages are handed over by reference. Thread-safe.
class InProcessHub {
 public:
  // As GrpcNetwork::Options.
  struct Options {
    size_t max_message_bytes = size_t{64} << 20;
    size_t max_queued_bytes = size_t{1} << 30;
    size_t max_queued_messages = 8192;
  };
  InProcessHub() : InProcessHub(Options()) {}
  explicit InProcessHub(const Options& options);

  // A task's loop and network in one. Any name is an address; one that ends in ":0" stands for a
  // free one, "in-process:N". Destroying a node breaks its streams, as a crash would; so does the
  // end of Run. A node may outlive the hub.
  class Node : public EventLoop, public Network {
   public:
    // Runs callbacks on the calling thread until Stop.
    virtual void Run() = 0;
  };
  std::unique_ptr<Node> CreateNode();

 private:
  const Options options_;
  const std::shared_ptr<InProcessDirectory> directory_;
};

}  // namespace shoal
