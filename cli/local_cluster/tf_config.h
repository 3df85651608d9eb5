#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"

namespace shoal {

// Ports of 127.0.0.1 that the system gives to nobody else while this lives, neither to another
// program nor to a connection: a socket that does not listen is bound to each, beside which a task
// can listen, again and again.
class HeldPorts {
 public:
  // `count` different ones that nobody listens on.
  static absl::StatusOr<std::shared_ptr<const HeldPorts>> Take(int count);
  ~HeldPorts();
  HeldPorts(const HeldPorts&) = delete;
  HeldPorts& operator=(const HeldPorts&) = delete;

  const std::vector<int>& ports() const { return ports_; }

 private:
  HeldPorts() = default;
  std::vector<int> sockets_;
  std::vector<int> ports_;
};

// Addresses of a cluster of this machine.
struct ClusterAddresses {
  std::string chief;  // "127.0.0.1:40001"
  std::vector<std::string> ps;
  std::vector<std::string> workers;
  std::shared_ptr<const HeldPorts> held = nullptr;  // their ports; null: nobody holds them
};

// The text of TF_CONFIG for one task of the cluster.
std::string TfConfigText(const ClusterAddresses& addresses, const TaskId& task);

// Addresses on 127.0.0.1 for a cluster of this size, held as long as what is returned lives.
// Workers listen nowhere: theirs only name them.
absl::StatusOr<ClusterAddresses> ChooseAddresses(int workers, int ps);

}  // namespace shoal
