#include "cli/coordinator_calls/ask_coordinator.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/coordinator_calls/cluster_call.h"
#include "cli/coordinator_calls/status_query.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/daemon/process/process_environment.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/rpc/tls/tls_session.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

constexpr Time kPatience = std::chrono::seconds(3);
constexpr Time kWaitPrintPeriod = std::chrono::seconds(5);

}  // namespace

absl::Status AskCoordinator(const std::string& address, const std::string& method,
                            const google::protobuf::Message& request, Time timeout,
                            const std::shared_ptr<TlsSession>& tls,
                            google::protobuf::Message* reply) {
  // In a handshake, this error would look like that of a server that cannot be reached.
  if (tls != nullptr) SHOAL_RETURN_IF_ERROR(CheckMayCall(tls->own(), method));
  SHOAL_RETURN_IF_ERROR(CheckFileLimit());
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({.tls = tls});
  EventLoop* const loop = network->loop();
  absl::StatusOr<Message> answer = absl::InternalError("no answer");
  ClusterCall call({.loop = loop,
                    .network = network.get(),
                    .address = address,
                    .method = method,
                    .timeout = timeout},
                   MakeMessage(request), [&](absl::StatusOr<Message> result) {
                     answer = std::move(result);
                     loop->Stop();
                   });
  std::vector<std::string> waiting;
  std::optional<StatusPoller> poller;
  loop->CallAfter(kPatience, [&] {
    poller.emplace(loop, network.get(), address, kWaitPrintPeriod,
                   [&waiting](const absl::StatusOr<proto::StatusReply>& status) {
                     waiting.clear();
                     if (!status.ok()) return;
                     for (const std::string& line : status->waiting()) {
                       std::fprintf(stderr, "waiting for %s\n", line.c_str());
                       waiting.push_back(line);
                     }
                   });
  });
  network->Run();
  if (absl::IsDeadlineExceeded(answer.status()) && !waiting.empty()) {
    return absl::DeadlineExceededError(
        absl::StrCat(address, ": no answer in ", WholeSeconds(timeout), " s; it still waits for ",
                     absl::StrJoin(waiting, "; ")));
  }
  SHOAL_RETURN_IF_ERROR(answer.status());
  if (ParseReply(*answer, reply)) return absl::OkStatus();
  return absl::DataLossError(
      InvalidMessageError("the coordinator at " + address, reply->GetTypeName()).message());
}

}  // namespace shoal
