#include "cli/local_cluster/tf_config.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/base/status_macros.h"

namespace shoal {

std::string TfConfigText(const ClusterAddresses& addresses, const TaskId& task) {
  const nlohmann::ordered_json config = {
      {"cluster",
       {{"chief", nlohmann::ordered_json::array({addresses.chief})},
        {"ps", addresses.ps},
        {"worker", addresses.workers}}},
      {"task", {{"type", TaskTypeName(task.type)}, {"index", task.index}}}};
  return config.dump();
}

absl::StatusOr<std::vector<int>> FindFreePorts(int count) {
  std::vector<int> sockets, ports;
  std::string error;
  // All sockets stay open until the last has its port, so that no port comes twice.
  for (int i = 0; i < count && error.empty(); ++i) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(sockets.back(), any, size) != 0 || getsockname(sockets.back(), any, &size) != 0) {
      error = std::strerror(errno);
    }
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int descriptor : sockets) {
    if (descriptor >= 0) close(descriptor);
  }
  if (!error.empty()) return absl::UnavailableError("no free port on 127.0.0.1: " + error);
  return ports;
}

absl::StatusOr<ClusterAddresses> ChooseAddresses(int workers, int ps) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<int> ports, FindFreePorts(1 + ps + workers));
  std::vector<std::string> addresses;
  for (const int port : ports) addresses.push_back("127.0.0.1:" + std::to_string(port));
  const auto first_worker = addresses.begin() + 1 + ps;
  return ClusterAddresses{.chief = addresses[0],
                          .ps = {addresses.begin() + 1, first_worker},
                          .workers = {first_worker, addresses.end()}};
}

}  // namespace shoal
