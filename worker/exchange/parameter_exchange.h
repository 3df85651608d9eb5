#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/compression/codec.h"
#include "common/metrics/metric_samples.h"
#include "common/model/model_layout.h"
#include "common/rpc/backoff.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/round.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/gradient_encoder.h"
#include "worker/exchange/payload_copies.h"
#include "worker/step/fragments.h"

namespace shoal {

// The worker's side of the Exchange streams, one to each ps: brings parameters, sends gradients,
// and keeps asking and sending until every ps has answered, over as many streams as that takes.
// Rules 4 and 5 seen from the worker. Holds no tensors: it reads gradients and writes parameters in
// the caller's buffers, both laid out by ModelLayout. Loop thread only.
//
// Push answers bring the chunk's fresh values, so that after a step the parameters hold it, unless
// they are pulled before a step (Options::pulls_below), or before each round. What is
// asked of a ps and not answered is bounded (kWindow), and a push is made when it can be written,
// so that a model of any size costs neither end a queue of its bytes.
class ParameterExchange {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    Network* network = nullptr;
    const ShardMap* shard_map = nullptr;
    const ModelLayout* layout = nullptr;
    uint32_t worker = 0;
    uint32_t job_fingerprint = 0;        // of the job that the worker computes
    std::vector<std::string> addresses;  // of the ps
    std::span<float> parameters;
    std::span<const float> gradients;
    std::shared_ptr<const void> gradients_owner;  // as in StepComputer::Prepared
    uint64_t pulls_below = 0;                     // the same
    std::shared_ptr<const Codec> push_codec;      // null: float32
    std::shared_ptr<const Codec> pull_codec;
    // Values of a push's answer of so many bytes are copied beside the loop.
    size_t least_copied_aside_bytes = size_t{256} << 10;
    // The values of this chunk are in `parameters`, pulled or as the answer to its push.
    std::function<void(int ps, int chunk)> on_arrived;
    // A ps is in another timeline: nothing of this one counts any more. What was going on is
    // dropped.
    std::function<void(const std::string& why)> on_timeline_lost;
    // This worker can't talk to a ps at all (another version). kAborted: the ps has another job.
    std::function<void(const absl::Status&)> on_failed;
  };
  explicit ParameterExchange(Options options);

  // The worker goes by another index from now on: says so to every ps, whose figures are by it.
  void SetWorker(uint32_t worker);
  // Messages carry `timeline` from now on. Drops what is going on.
  void SetTimeline(uint64_t timeline);

  // Fills `parameters` with the live values of every chunk, but for frozen ones that are here,
  // about in the order in which forward reads them, then calls `done`; not before the transport has
  // done with what was sent of a step that SetTimeline has dropped, so that the gradients may be
  // overwritten: a ps that lives on in the old timeline must not get a mixture.
  void PullAll(std::function<void()> done);
  // The same with the values of one version. kOutOfRange, and a mixture in `parameters`, where a ps
  // keeps them no more: the round that begins with them is complete everywhere.
  void PullVersion(uint64_t version, std::function<void(absl::Status)> done);
  // One of the two is under way: its `done` is to be called yet.
  bool pulling() const { return pull_done_ != nullptr; }
  // The chunks that it waits for.
  std::vector<ChunkId> Missing() const;
  // The transport has done with what was sent of a step that SetTimeline has dropped.
  bool gradients_are_free() const { return dropped_slices_.expired(); }
  // Fills `out` with the values of the held cut at `cut_step`, then calls `done`;
  // kFailedPrecondition when a ps does not hold it any more.
  void PullCut(uint64_t cut_step, std::span<float> out, std::function<void(absl::Status)> done);

  // Begins the pushes of a step; `done` is called when every chunk of it is applied on every ps: or
  // in, where it is of a round, to whose first step the parameters were pulled.
  void BeginStep(uint64_t step, std::function<void()> done,
                 const std::optional<Round>& round = std::nullopt);
  // The step comes to nothing: that is pushed for each of its chunks. Before the first of them.
  void DropGradient() { drops_gradient_ = true; }
  // The chunk's part of `gradients` is complete, and its part of `parameters` may be overwritten.
  void PushChunk(int ps, int chunk);

  // Which ps are waited for, and whether there is a connection.
  struct Wait {
    int ps;
    bool connected;
  };
  std::vector<Wait> Waits() const;
  // What is waited for, for logs: "ps 1 at 10.0.0.3:2222 (no connection: connection refused)".
  std::string Waiting() const;
  // Payload so far, by ps.
  void Collect(MetricSamples* out) const;

 private:
  // The most chunks that a stream has been asked for and has not answered.
  static constexpr int kWindow = 256;

  enum class RequestKind { kPush, kPull, kCutPull };
  struct Request {
    RequestKind kind;
    int chunk;
  };
  struct Peer {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Backoff> backoff;
    std::unique_ptr<Timer> retry;
    bool hello_seen = false;
    std::string last_error;          // why the last stream ended
    std::vector<uint64_t> versions;  // by chunk: of the values in `parameters`
    std::vector<uint64_t> pulled;    // by chunk: the version the gradient was computed from
    std::vector<bool> here;          // by chunk: `parameters` hold values of this timeline
    std::vector<int> pull_order;     // all chunks
    std::set<int> pulls;             // chunks wanted and not here yet
    std::set<int> cut_pulls;
    std::set<int> pushes;         // chunks complete and not acknowledged
    std::deque<Request> waiting;  // those of the three that are not asked of this stream yet
    uint64_t sent_bytes = 0;      // of payload
    uint64_t received_bytes = 0;
  };
  void Open(int ps);
  void SendHello(int ps);
  void OnMessage(int ps, Message message);
  void OnClosed(int ps, const absl::Status& status);
  void OnHello(int ps, const proto::ServerHello& hello);
  void OnApplied(int ps, const proto::Applied& applied, Message message);
  void OnValues(int ps, const proto::ChunkValues& values, const Message& message);
  // The push's answer brings no more.
  void OnPushAnswered(int ps, int chunk);
  void OnAnswered(int ps);
  void OnRefused(int ps, const proto::Refused& refused);
  void OnVersionRefused(const proto::Refused& refused);
  void Pull(std::optional<uint64_t> version, std::function<void(absl::Status)> done);
  void MaybeFinishPull();
  void MaybeFinishCut();
  // Asks for what waits, as far as the window goes.
  void AskForMore(int ps);
  void SendPush(int ps, int chunk);
  void SendPull(int ps, const Request& first, int count);
  std::optional<Message> MakePush(int ps, int chunk, uint64_t timeline, uint64_t step);
  static int Unanswered(const Peer& peer);
  // The answers to the step's pushes bring values.
  bool WantsValues() const { return step_ >= options_.pulls_below && !round_.has_value(); }
  void Lose(const std::string& why);
  // The chunk's part of the gradients, where they lie.
  std::vector<Slice> GradientSlices(const Chunk& chunk) const;
  // Whether the payload can be the chunk's values in float32; one that cannot ends this worker.
  bool CheckSize(int ps, int index, const Message& message) const;
  // Where the pieces of its values belong in `out`.
  std::vector<PayloadCopies::Piece> Places(const Chunk& chunk, std::span<float> out) const;
  // Copies the payload, which `codec` has written (null: float32), to where its chunk belongs; one
  // that is none ends this worker.
  bool Scatter(int ps, int index, const Message& message, std::span<float> out,
               const Codec* codec) const;
  const Chunk& chunk(int ps, int index) const { return options_.shard_map->ps(ps).chunks[index]; }

  const Options options_;
  uint32_t worker_ = 0;  // its index
  GradientEncoder encoder_;
  PayloadCopies copies_;
  std::vector<Peer> peers_;
  uint64_t timeline_ = 0;

  std::function<void(absl::Status)> pull_done_;
  std::optional<uint64_t> pull_version_;  // none: whichever it is
  int pulls_missing_ = 0;

  std::function<void(absl::Status)> cut_done_;
  uint64_t cut_step_ = 0;
  std::span<float> cut_out_;
  int cut_pulls_missing_ = 0;
  std::optional<std::string> cut_refusal_;  // why a ps does not serve it

  std::function<void()> step_done_;
  uint64_t step_ = 0;
  std::optional<Round> round_;   // of step_
  bool drops_gradient_ = false;  // likewise
  // Of the slices of the step, and of those of the step that was dropped: owns the gradients.
  std::shared_ptr<const void> step_slices_;
  std::weak_ptr<const void> dropped_slices_;
  Timer look_{options_.loop};  // again whether these are gone
  int chunks_missing_ = 0;     // of the step, whose answers are not all here
};

}  // namespace shoal
