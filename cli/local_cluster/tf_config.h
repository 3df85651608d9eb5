#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"

namespace shoal {

// Reserves ports of 127.0.0.1: while this lives, the system gives them to no other program and no
// connection. A socket that does not listen is bound to each port. A task can still listen on the
// port, also repeatedly.
class HeldPorts {
 public:
  // Reserves `count` different ports on which no process listens.
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

// The addresses of a cluster on this machine.
struct ClusterAddresses {
  std::string coordinator;  // "127.0.0.1:40001"
  std::vector<std::string> ps;
  std::vector<std::string> workers;
  std::shared_ptr<const HeldPorts> held = nullptr;  // of these ports; null: not reserved
};

// Returns the text of TF_CONFIG for one task of the cluster.
std::string TfConfigText(const ClusterAddresses& addresses, const TaskId& task);

// Returns addresses on 127.0.0.1 for a cluster of this size, reserved while the result lives.
// Workers do not listen: their addresses only identify them.
absl::StatusOr<ClusterAddresses> ChooseAddresses(int workers, int ps);

}  // namespace shoal
