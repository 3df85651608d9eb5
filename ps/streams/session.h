#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "ps/streams/server_stats.h"

namespace shoal {

// The worker at the other end of a stream, as its ExchangeHello describes it.
struct ExchangeClient {
  uint32_t shard_map_fingerprint = 0;       // 0: it did not know the job
  uint32_t job_fingerprint = 0;             // of the job that it computes
  std::string push_codec;                   // for gradients
  std::string pull_codec;                   // for values
  ServerStats::Traffic* traffic = nullptr;  // owned by the ps, which outlives the stream
};

// A stream that a client has opened to this ps. Loop thread only.
struct Session {
  std::unique_ptr<Stream> stream;
  bool greeted = false;                  // our ServerHello is out
  bool ended = false;                    // by us; later messages are dropped
  uint64_t claimed_term = 0;             // of the newest Claim that was accepted here; 0: none
  std::optional<ExchangeClient> worker;  // none: no ExchangeHello has come

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
    if (worker) worker->traffic->sent_bytes += made.payload_bytes();
    return made;
  }
  // Ends the stream with an error, and logs it. Only the first call has an effect.
  void End(const absl::Status& status);
  // The same, for an error that the network has logged.
  void EndQuietly(const absl::Status& status);
};
using SessionPtr = std::shared_ptr<Session>;

}  // namespace shoal
