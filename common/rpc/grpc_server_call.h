#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <string>

#include "common/rpc/grpc_call.h"

namespace shoal {

// The server's end of a stream, from waiting for a client on. Operations: the request; reads and
// writes; the finish; and the notice that the call is over, which says whether it was cancelled and
// without which nothing is known of a client that is gone.
class GrpcServerCall : public GrpcCall {
 public:
  // A client has opened this call: Accept or Refuse it.
  using OnRequested = std::function<void(GrpcServerCall*)>;

  GrpcServerCall(const Limits& limits, Remove remove, OnRequested on_requested);

  void Request(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue);
  const std::string& method() const { return context_.method(); }
  void Accept(const Network::Acceptor& acceptor);
  void Refuse(const absl::Status& reason);

 private:
  void StartRead(grpc::ByteBuffer* buffer, void* tag) override;
  void StartWrite(const grpc::ByteBuffer& buffer, void* tag) override;
  void Cancel() override;
  void StartEnd(const absl::Status& status) override;
  void OnReadsEnded() override;
  void Finish(absl::Status status) override;
  void OnDropped() override;
  void Fail(absl::Status error) override;
  void OnRequest(bool ok);
  void CloseIfOver();
  // Callbacks that get no message of more bytes than the method takes; one ends the call.
  StreamCallbacks Checked(StreamCallbacks callbacks);

  const OnRequested on_requested_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  std::string peer_;
  bool deciding_ = false;  // The acceptor is running.
  Operation request_;
  Operation finish_;
  Operation over_;
};

}  // namespace shoal
