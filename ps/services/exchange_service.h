#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"
#include "ps/services/ps_state.h"
#include "ps/store/variable_store.h"
#include "ps/streams/stream_service.h"

namespace shoal {

namespace proto {
class Applied;
class ExchangeHello;
class Pull;
class Push;
}  // namespace proto

// Serves the streams of workers: pushes and pulls, rules 4 and 5 of the protocol. A message can at
// worst end the stream that it came by. Loop thread only.
class ExchangeService : public StreamService {
 public:
  explicit ExchangeService(PsState* state)  // outlives this
      : StreamService(state->loop), state_(state) {}

 private:
  void SendHello(const SessionPtr& session) override;
  void OnMessage(const SessionPtr& session, const Message& message) override;

  void OnHello(const SessionPtr& session, const proto::ExchangeHello& hello);
  void OnPush(const SessionPtr& session, const proto::Push& push, const Message& message);
  void OnPull(const SessionPtr& session, const proto::Pull& pull);
  absl::Status CheckTimeline(uint64_t timeline) const;
  // The key of a push or pull. Rejection repeats it, so the worker knows which request it answers.
  struct RequestKey {
    uint64_t timeline = 0;
    uint64_t cut_step = 0;
    std::optional<uint64_t> version = std::nullopt;
  };
  static RequestKey KeyOf(const proto::Pull& pull);
  bool AcceptTimeline(const SessionPtr& session, const RequestKey& key);
  // Answers are made when they can be written, from the state at that moment.
  Message MakeApplied(Session* session, proto::Applied applied, bool want_values);
  absl::StatusOr<Message> MakeValues(Session* session, const proto::Pull& pull, int chunk);
  // `reason` kOutOfRange: the version is dropped, as its round is complete.
  Message MakeRejection(Session* session, const absl::Status& reason, const RequestKey& key);
  // Returns an error for a worker that computes another job, or has another shard map or codec.
  absl::Status CheckJob(const ExchangeClient& worker) const;
  bool AcceptJob(const SessionPtr& session);
  // Returns the chunk of the store with this number; null: there is none.
  const Chunk* FindChunk(int chunk) const;
  // kUnavailable: the plan is not known yet; kInvalidArgument: the push does not agree with it.
  absl::Status CheckPlan(const proto::Push& push) const;
  absl::StatusOr<PushResult> Apply(const proto::Push& push, const Message& message);
  // Returns the chunk's live values, encoded.
  ChunkSnapshot ReadLive(int chunk);
  // Returns the values in the job's encoding for the network.
  ChunkSnapshot Encode(int chunk, ChunkSnapshot values) const;
  absl::Status CheckPulledVersion(const proto::Pull& pull, uint64_t end) const;

  PsState* const state_;
};

}  // namespace shoal
