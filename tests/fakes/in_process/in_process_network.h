#pragma once

#include <cstddef>
#include <memory>

#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"

namespace shoal {

class InProcessDirectory;

// Connects tasks in one process, each with a loop on its own thread, for tests of whole clusters.
// Passes messages by reference. Clean under the thread sanitizer. Thread-safe.
class InProcessHub {
 public:
  // Same meaning as in GrpcNetwork::Options.
  struct Options {
    size_t max_message_bytes = size_t{64} << 20;
    size_t max_queued_bytes = size_t{1} << 30;
    size_t max_queued_messages = 8192;
  };
  InProcessHub() : InProcessHub(Options()) {}
  explicit InProcessHub(const Options& options);

  // The network of one task, with its loop. Any name is an address; one that ends in ":0" selects a
  // free address, "in-process:N". Destroying a node breaks its streams, like a crash; so does the
  // end of Run. A node may outlive the hub.
  class Node : public Network {
   public:
    // The loop that calls all callbacks of the node, which owns it.
    virtual EventLoop* loop() = 0;
    // Runs the loop on the calling thread until its Stop.
    virtual void Run() = 0;
  };
  std::unique_ptr<Node> CreateNode();

 private:
  const Options options_;
  const std::shared_ptr<InProcessDirectory> directory_;
};

}  // namespace shoal
