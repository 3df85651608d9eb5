#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <optional>
#include <string>

#include "common/rpc/grpc/call/grpc_call.h"
#include "common/rpc/grpc/call/grpc_channels.h"

namespace shoal {

// The client's end of a stream. Operations: start, then reads and writes; WritesDone when this end
// finishes; the status when a read has failed.
class GrpcClientCall : public GrpcCall {
 public:
  // `channels` and `queue` must outlive the call.
  GrpcClientCall(const Limits& limits, Remove remove, GrpcChannels* channels, ServerAddress server);

  // Opens the stream. `lent` is as for Network::Lend(), or null.
  std::unique_ptr<Stream> Open(const std::string& method, StreamCallbacks callbacks,
                               grpc::CompletionQueue* queue,
                               std::shared_ptr<const SharedMemory> lent);
  // Breaks the call if the server's certificate is not valid any more. Tells the owner if it should
  // open another stream (StreamCallbacks::on_outdated). If both are so, the call breaks only the
  // next time. Call it each second.
  void CheckServer(const TlsSession& tls);

 private:
  void StartRead(grpc::ByteBuffer* buffer, void* tag) override;
  void StartWrite(const grpc::ByteBuffer& buffer, void* tag) override;
  void Cancel() override;
  void StartEnd(const absl::Status& status) override;
  void OnReadsEnded() override;
  void Finish(absl::Status status) override;
  void OnDropped() override;
  void Fail(absl::Status error) override;
  void OnFirstMessage() override;
  void OnStarted(bool ok);
  void OnStatus();
  // Returns why the server may close the connection right after the handshake. Nothing before the
  // handshake, and without TLS.
  std::optional<std::string> ClosedReason() const;

  GrpcChannels* const channels_;
  const ServerAddress server_;
  GrpcChannels::Channel channel_;  // from Open() on
  bool told_outdated_ = false;     // the owner knows that it should open another stream
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
  Operation start_;
  Operation writes_done_;
  Operation status_read_;
};

}  // namespace shoal
