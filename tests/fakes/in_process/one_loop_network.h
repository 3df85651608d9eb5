#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/rpc/network.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/in_process/in_process_network.h"

namespace shoal {

// Connects tasks that all run on one FakeLoop: a whole cluster on one thread, whose clock the test
// moves. The streams are those of InProcessHub. Not thread-safe.
class OneLoopHub {
 public:
  // `loop` outlives the hub, and the hub its nodes.
  explicit OneLoopHub(FakeLoop* loop) : loop_(loop) {}

  // The network of one task. Any name is an address. Destroying a node breaks its streams, like a
  // crash. Destroy the logic that uses the node first.
  class Node : public Network {
   public:
    // While held, nothing arrives at this node: what others send it waits in their queues.
    virtual void Hold(bool hold) = 0;
  };
  // `name` is what servers read as the address of this client.
  std::unique_ptr<Node> CreateNode(std::string name);

  // From now on, new streams of `method` to `address` go to the node that listens at `instead`.
  // Empty: to `address` again.
  void Redirect(const std::string& method, const std::string& address, const std::string& instead);

 private:
  class NodeImpl;

  // Returns the node that serves a stream of `method` to `address`; null: nobody does.
  NodeImpl* Find(const std::string& method, const std::string& address) const;

  FakeLoop* const loop_;
  std::map<std::string, NodeImpl*> listeners_;  // by address
  std::map<std::pair<std::string, std::string>, std::string> redirected_;
};

}  // namespace shoal
