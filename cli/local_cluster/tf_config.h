#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"

namespace shoal {

// Addresses of a cluster of this machine.
struct ClusterAddresses {
  std::string chief;  // "127.0.0.1:40001"
  std::vector<std::string> ps;
  std::vector<std::string> workers;
};

// The text of TF_CONFIG for one task of the cluster.
std::string TfConfigText(const ClusterAddresses& addresses, const TaskId& task);

// `count` different ports of 127.0.0.1 that nobody listens on now. Another process may take one
// before its task does; that task then says so and exits.
absl::StatusOr<std::vector<int>> FindFreePorts(int count);

// Addresses on 127.0.0.1 for a cluster of this size. Workers listen nowhere: theirs only name them.
absl::StatusOr<ClusterAddresses> ChooseAddresses(int workers, int ps);

}  // namespace shoal
