#include "cli/local_cluster/tf_config.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {

std::string TfConfigText(const ClusterAddresses& addresses, const TaskId& task) {
  const nlohmann::ordered_json config = {
      {"cluster",
       {{"chief", nlohmann::ordered_json::array({addresses.coordinator})},
        {"ps", addresses.ps},
        {"worker", addresses.workers}}},
      {"task", {{"type", TaskTypeName(task.type)}, {"index", task.index}}}};
  return config.dump();
}

absl::StatusOr<std::shared_ptr<const HeldPorts>> HeldPorts::Take(int count) {
  const std::shared_ptr<HeldPorts> held(new HeldPorts);
  for (int i = 0; i < count; ++i) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0) held->sockets_.push_back(descriptor);
    // The task's socket sets this, too. Otherwise the two could not be bound to one port.
    const int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(descriptor, any, size) != 0 || getsockname(descriptor, any, &size) != 0) {
      return absl::UnavailableError(
          absl::StrCat("no free port on 127.0.0.1: ", std::strerror(errno)));
    }
    held->ports_.push_back(ntohs(address.sin_port));
  }
  return held;
}

HeldPorts::~HeldPorts() {
  for (const int descriptor : sockets_) close(descriptor);
}

absl::StatusOr<ClusterAddresses> ChooseAddresses(int workers, int ps) {
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const HeldPorts> held, HeldPorts::Take(1 + ps + workers));
  std::vector<std::string> addresses;
  for (const int port : held->ports()) addresses.push_back("127.0.0.1:" + std::to_string(port));
  const auto first_worker = addresses.begin() + 1 + ps;
  return ClusterAddresses{.coordinator = addresses[0],
                          .ps = {addresses.begin() + 1, first_worker},
                          .workers = {first_worker, addresses.end()},
                          .held = std::move(held)};
}

}  // namespace shoal
