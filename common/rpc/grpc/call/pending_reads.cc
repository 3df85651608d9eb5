#include "common/rpc/grpc/call/pending_reads.h"

#include "common/rpc/grpc/call/grpc_call.h"

namespace shoal {

void PendingReads::Forget(GrpcCall* call) { std::erase(calls_, call); }

void PendingReads::Start() {
  for (GrpcCall* const call : calls_) call->ResumeReading();
  calls_.clear();
}

}  // namespace shoal
