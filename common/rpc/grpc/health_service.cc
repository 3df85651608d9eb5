#include "common/rpc/grpc/health_service.h"

#include <utility>

namespace shoal {
namespace {

constexpr char kCheckMethod[] = "/grpc.health.v1.Health/Check";
constexpr char kWatchMethod[] = "/grpc.health.v1.Health/Watch";

// HealthCheckResponse{status: SERVING} and {status: SERVICE_UNKNOWN}.
constexpr char kServing[] = "\x08\x01";
constexpr char kServiceUnknown[] = "\x08\x03";

// HealthCheckRequest{service: ""}: the whole server, the only known service.
bool AsksForServer(const Message& request) {
  return request.fields.empty() || request.fields == std::string("\x0a\x00", 2);
}

void Answer(const std::string& method, const Message& request, Stream* stream) {
  const bool known = AsksForServer(request);
  if (method == kCheckMethod && !known) {
    return stream->Finish(absl::NotFoundError("unknown service; ask for \"\", the whole server"));
  }
  stream->Send(Message{known ? kServing : kServiceUnknown, {}});
  // A watch stays open. Its answer does not change until the server ends.
  if (method == kCheckMethod) stream->Finish(absl::OkStatus());
}

}  // namespace

bool IsHealthMethod(const std::string& method) {
  return method == kCheckMethod || method == kWatchMethod;
}

absl::StatusOr<StreamCallbacks> AcceptHealthCheck(const std::string& method,
                                                  std::unique_ptr<Stream> stream) {
  // The callbacks own the stream, and are freed when it is closed.
  const std::shared_ptr<Stream> shared = std::move(stream);
  return StreamCallbacks{
      .on_message = [method, shared](Message request) { Answer(method, request, shared.get()); },
      .on_closed = nullptr};
}

}  // namespace shoal
