#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "ps/server_stats.h"

namespace shoal {

// A stream that a client has opened to this ps. Loop thread only.
struct Session {
  std::unique_ptr<Stream> stream;
  bool control = false;                // else Exchange
  bool greeted = false;                // our ServerHello is out
  bool introduced = false;             // its ExchangeHello has come
  bool ended = false;                  // by us; later messages are dropped
  uint32_t shard_map_fingerprint = 0;  // 0: it did not know the job
  uint32_t job_fingerprint = 0;        // of the job that it computes
  // Its codecs for gradients and for values (ExchangeHello).
  std::string push_codec;
  std::string pull_codec;
  // The worker's figures, once it is introduced; owned by the ps.
  ServerStats::Traffic* traffic = nullptr;

  // Sends a small message, which is kept until it is written.
  void Send(const google::protobuf::MessageLite& message) {
    if (!ended) stream->Send(shoal::MakeMessage(message));
  }
  // Sends values. The source makes the message when it can be written, and may use this session.
  void SendFrom(MessageSource source) {
    if (!ended) stream->SendFrom(std::move(source));
  }
  // Makes a message with values for a source, and counts its bytes.
  Message MakeMessage(const google::protobuf::MessageLite& message,
                      std::vector<Slice> payload = {}) {
    Message made = shoal::MakeMessage(message, std::move(payload));
    if (traffic != nullptr) traffic->sent_bytes += made.payload_bytes();
    return made;
  }
};
using SessionPtr = std::shared_ptr<Session>;

}  // namespace shoal
