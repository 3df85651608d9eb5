#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/rpc/grpc/grpc_call.h"

namespace shoal {

// The server's end of a stream, from waiting for a client on. Operations: the request; reads and
// writes; the finish; and the notice that the call is over, which says whether it was cancelled and
// without which nothing is known of a client that is gone.
class GrpcServerCall : public GrpcCall {
 public:
  // A client has opened this call: Accept or Refuse it.
  using OnRequested = std::function<void(GrpcServerCall*)>;
  // It begins to talk, or talks no more.
  using OnTalk = std::function<void(GrpcServerCall*)>;

  // `number`: of those of a network, in the order in which clients open them.
  GrpcServerCall(uint64_t number, const Limits& limits, Remove remove, OnRequested on_requested,
                 OnTalk on_talk);

  void Request(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue);
  uint64_t number() const { return number_; }
  const std::string& method() const { return context_.method(); }
  const std::string& peer() const { return peer_; }
  // The client's connection, as the network numbers them; 0: not known.
  uint64_t connection() const { return connection_; }
  void set_connection(uint64_t connection) { connection_ = connection; }
  // The client has said something, and neither its owner nor itself has ended the stream.
  bool talks() const { return talks_; }
  // Of one message that the method takes.
  size_t max_request_bytes() const;
  // A message of so many bytes has begun on the connection. Ends the call if it takes none so long.
  void RefuseTooLong(uint64_t bytes);
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
  void SetTalks(bool talks);
  // Takes the memory that the client offers, if it is on this machine.
  void TakeShared();
  // Another client may have it.
  void LeaveShared();
  absl::Status TooLong(uint64_t bytes) const;
  // Callbacks that get no message of more bytes than the method takes; one ends the call.
  StreamCallbacks Checked(StreamCallbacks callbacks);

  const uint64_t number_;
  const OnRequested on_requested_;
  const OnTalk on_talk_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  std::string peer_;
  uint64_t connection_ = 0;
  bool deciding_ = false;  // The acceptor is running.
  bool talks_ = false;
  Operation request_;
  Operation finish_;
  Operation over_;
};

}  // namespace shoal
