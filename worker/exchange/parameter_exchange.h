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
#include "common/rpc/network.h"
#include "common/rpc/reconnecting_stream.h"
#include "common/rpc/scope.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/round.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/gradient_encoder.h"
#include "worker/exchange/payload_copies.h"
#include "worker/step/fragments.h"

namespace shoal {

// The worker's side of the Exchange streams, one to each ps. It pulls parameters and pushes
// gradients. It retries over new streams until every ps has answered. It implements rules 4 and 5
// for the worker. It owns no tensors: it reads gradients from and writes parameters to the caller's
// buffers, both in the layout of ModelLayout. Loop thread only.
//
// The answer to a push brings the chunk's fresh values, so after a step the parameters include it.
// There are no values in the answer if the worker pulls before the step (Options::pulls_below) or
// before each round. The number of unanswered requests to a ps is bounded (kWindow), and a push
// message is made when the stream can write it. Therefore neither end queues the bytes of a model.
class ParameterExchange {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // all pointers must outlive this
    Network* network = nullptr;
    const ShardMap* shard_map = nullptr;
    const ModelLayout* layout = nullptr;
    uint32_t worker = 0;
    uint32_t job_fingerprint = 0;        // of the worker's job
    std::vector<std::string> addresses;  // of the ps
    std::span<float> parameters;
    std::span<const float> gradients;
    std::shared_ptr<const void> gradients_owner;  // as in StepComputer::Prepared
    uint64_t pulls_below = 0;                     // as in StepComputer::Prepared
    std::shared_ptr<const Codec> push_codec;      // null: float32
    std::shared_ptr<const Codec> pull_codec;
    // If a push's answer has at least this many bytes, its values are copied off the loop's thread.
    size_t min_copied_aside_bytes = size_t{256} << 10;
    // Called when the values of this chunk are in `parameters`, from a pull or a push's answer.
    std::function<void(int ps, int chunk)> on_arrived;
    // Called when a ps is in another timeline. This timeline is then over, and all pulls and pushes
    // are cancelled.
    std::function<void(const std::string& why)> on_timeline_lost;
    // Called when this worker cannot talk to a ps at all, such as one of another version. kAborted:
    // the ps has another job.
    std::function<void(const absl::Status&)> on_failed;
  };
  explicit ParameterExchange(Options options);

  // Sets the worker's index and tells every ps, because a ps keeps its stats by index.
  void SetWorker(uint32_t worker);
  // Cancels all pulls and pushes. From now on messages carry `timeline`. A running PullCut() ends
  // with kCancelled; other `done` callbacks are dropped.
  void SetTimeline(uint64_t timeline);

  // Fills `parameters` with the live values of every chunk, then calls `done`. Omits frozen chunks
  // that are already here. Requests the chunks about in the order in which forward reads them.
  //
  // After SetTimeline() the transport may still send gradients of the cancelled step. `done` waits
  // for the end of this, because the caller may then overwrite the gradients. Otherwise a ps that
  // is still in the old timeline could get a mixture.
  void PullAll(std::function<void()> done);
  // The same for the values of one version. kOutOfRange: a ps no longer keeps this version, because
  // the round that begins with it is complete everywhere; `parameters` then hold a mixture.
  void PullVersion(uint64_t version, std::function<void(absl::Status)> done);
  // Whether PullAll() or PullVersion() is running: its `done` is not called yet.
  bool pulling() const { return pull_done_ != nullptr; }
  // Returns the chunks that the running pull still waits for.
  std::vector<ChunkId> Missing() const;
  // Whether the transport no longer uses the gradients of a step that SetTimeline() cancelled.
  bool gradients_are_free() const { return dropped_slices_.expired(); }
  // Fills `out` with the values of the cut at `cut_step`, which every ps holds, then calls `done`.
  // kFailedPrecondition: a ps no longer holds the cut. kCancelled: SetTimeline() was called.
  void PullCut(uint64_t cut_step, std::span<float> out, std::function<void(absl::Status)> done);

  // Begins the pushes of a step. Calls `done` when every ps has applied every chunk. With `round`:
  // when every ps has every chunk in the round; requires parameters of the round's version.
  void BeginStep(uint64_t step, std::function<void()> done,
                 const std::optional<Round>& round = std::nullopt);
  // Skips the step: each PushChunk() sends a skip in place of the gradient. Requires that no chunk
  // of the step was pushed.
  void SkipGradient() { skips_gradient_ = true; }
  // Pushes a chunk. Requires that its part of `gradients` is complete and that its part of
  // `parameters` may be overwritten.
  void PushChunk(int ps, int chunk);

  // A ps that this waits for.
  struct Wait {
    int ps;
    bool connected;
  };
  std::vector<Wait> Waits() const;
  // Returns the waits for logs: "ps 1 at 10.0.0.3:2222 (no connection: connection refused)".
  std::string Waiting() const;
  // Adds the total payload bytes, by ps.
  void Collect(MetricSamples* out) const;

 private:
  // The max number of chunks requested over a stream and not answered.
  static constexpr int kWindow = 256;

  enum class RequestKind { kPush, kPull, kCutPull };
  struct Request {
    RequestKind kind;
    int chunk;
  };
  struct Peer {
    std::unique_ptr<ReconnectingStream> stream;
    bool hello_seen = false;
    std::string last_error;          // why the last stream ended
    std::vector<uint64_t> versions;  // by chunk: version of the values in `parameters`
    std::vector<uint64_t> pulled;    // by chunk: version that the gradient is computed from
    std::vector<bool> here;          // by chunk: `parameters` hold values of this timeline
    std::vector<int> pull_order;     // all chunks
    std::set<int> pulls;             // chunks of the running pull that are not here
    std::set<int> cut_pulls;         // the same for a cut
    std::set<int> pushes;            // chunks that are computed and not acknowledged
    std::deque<Request> waiting;     // of these three: requests not yet made on this stream
    uint64_t sent_bytes = 0;         // of payload
    uint64_t received_bytes = 0;
  };
  void SendHello(int ps);
  void OnMessage(int ps, Message message);
  void OnClosed(int ps, const absl::Status& status);
  void OnReopen(int ps);
  // Whether nothing is under way on the stream: each request is answered, and no ps may still read
  // the gradients of a cancelled step.
  bool IsQuiet(int ps) const;
  void OnHello(int ps, const proto::ServerHello& hello);
  void OnApplied(int ps, const proto::Applied& applied, Message message);
  void OnValues(int ps, const proto::ChunkValues& values, const Message& message);
  // Handles the end of a push: its answer is here, and its values are copied.
  void OnPushAnswered(int ps, int chunk);
  void OnAnswered(int ps);
  void OnRejected(int ps, const proto::Rejection& rejected);
  void OnVersionRejected(const proto::Rejection& rejected);
  void Pull(std::optional<uint64_t> version, std::function<void(absl::Status)> done);
  void MaybeFinishPull();
  void MaybeFinishCut();
  // Makes the waiting requests that fit in the window.
  void RequestMore(int ps);
  void SendPush(int ps, int chunk);
  void SendPull(int ps, const Request& first, int count);
  // Returns the push message, or nothing if the push is cancelled or acknowledged.
  std::optional<Message> MakePush(int ps, int chunk, uint64_t timeline, uint64_t step);
  static int Unanswered(const Peer& peer);
  // Whether the answers to the step's pushes bring values.
  bool WantsValues() const { return step_ >= options_.pulls_below && !round_.has_value(); }
  // Cancels the work of this timeline, because it is over.
  void EndTimeline(const std::string& why);
  // Returns the chunk's part of the gradients, without a copy.
  std::vector<Slice> GradientSlices(const Chunk& chunk) const;
  // Whether the payload has the size of the chunk's values in float32. Calls on_failed if not.
  bool CheckSize(int ps, int index, const Message& message) const;
  // Returns the destination in `out` of each piece of the chunk.
  std::vector<PayloadCopies::Piece> Places(const Chunk& chunk, std::span<float> out) const;
  // Decodes the payload with `codec` (null: float32) into the chunk's part of `out`. Returns false
  // and calls on_failed if the payload is not valid.
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
  std::optional<uint64_t> pull_version_;  // empty: the live values
  int pulls_missing_ = 0;

  std::function<void(absl::Status)> cut_done_;
  uint64_t cut_step_ = 0;
  std::span<float> cut_out_;
  int cut_pulls_missing_ = 0;
  std::optional<std::string> cut_rejection_;  // why a ps rejected the cut

  std::function<void()> step_done_;
  uint64_t step_ = 0;
  std::optional<Round> round_;   // of step_
  bool skips_gradient_ = false;  // step_ is skipped
  // The owner of the step's slices, which keeps the gradients alive.
  std::shared_ptr<const void> step_slices_;
  // The same for a cancelled step; expired once the transport has released all its slices.
  std::weak_ptr<const void> dropped_slices_;
  Timer release_check_{options_.loop};  // checks dropped_slices_ again
  int chunks_missing_ = 0;              // chunks of the step without a complete answer
};

}  // namespace shoal
