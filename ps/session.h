#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "ps/server_figures.h"

namespace shoal {

// A stream that a client has opened to this ps. Loop thread only.
struct Session {
  std::unique_ptr<Stream> stream;
  bool control = false;                // else Exchange
  bool greeted = false;                // our ServerHello is out
  bool introduced = false;             // its ExchangeHello has come
  bool ended = false;                  // by us; what still comes is dropped
  uint32_t shard_map_fingerprint = 0;  // 0: it did not know the job
  // Of the worker, once introduced; owned by the ps.
  ServerFigures::Traffic* traffic = nullptr;

  void Send(const google::protobuf::MessageLite& message, std::vector<Slice> payload = {}) {
    if (ended) return;
    if (traffic != nullptr) {
      for (const Slice& slice : payload) traffic->sent_bytes += slice.size;
    }
    stream->Send(MakeMessage(message, std::move(payload)));
  }
};
using SessionPtr = std::shared_ptr<Session>;

}  // namespace shoal
