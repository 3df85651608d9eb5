#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/program/gradient_reducer.h"
#include "worker/compute/program/page_aligned.h"
#include "worker/compute/runner/mirrored/replica.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// The ModelRunner for several devices of one machine (TensorFlow's MirroredStrategy). Each device
// has a replica of the model, and all replicas compute their parts of a batch at once. The pushed
// values are the mean over the parts, weighted by their examples. Options::micro_batch_size
// computes the same, one part after the other; the results are equal to the last bit if the host
// adds up. Computations over a whole batch see only a part of it. The number of examples alone
// determines the part of each replica and the order in which the host adds up.
//
// Each replica runs on its own thread. The calling thread adds up each variable when all replicas
// have finished it, and reports it done, while the replicas compute the rest. For a batch with
// fewer examples than replicas the last replicas compute nothing. With GradientReducer the devices
// add up, once per step even if a replica computes its part in micro batches. The host still adds
// up if a replica has no part.
class MirroredRunner : public ModelRunner {
 public:
  struct ReplicaDevice {
    std::string name;  // for errors
    // Called on the thread that will compute there.
    std::function<absl::StatusOr<std::unique_ptr<Backend>>()> create;
  };
  // Creates the object that adds up the gradients on the devices; ranks are indices in the list.
  // Null: the host adds up.
  using CreateSums = std::function<std::unique_ptr<GradientReducer>()>;
  // The replicas share Options::threads, at least one each. `micro_batch_size` applies to each
  // replica. Only the first replica's work is timed.
  static absl::StatusOr<std::unique_ptr<MirroredRunner>> Create(
      const Options& options, const std::vector<ReplicaDevice>& devices,
      const CreateSums& create_sums = {});

  const ModelLayout& layout() const override { return first().layout(); }
  std::set<size_t> uint8_inputs() const override { return first().uint8_inputs(); }
  // The total of all replicas.
  absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) override;
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) override;
  std::string DescribePrecision() const override { return first().DescribePrecision(); }
  bool computes_on_caller() const override { return false; }
  bool scales_loss() const override { return first().scales_loss(); }
  void ForgetLossScale() override;
  // An error of a replica ends the step after all others have ended; the message names the replica.
  using ModelRunner::Train;
  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t step,
                                    std::span<const float> parameters, std::span<float> gradients,
                                    const std::function<void(int variable)>& on_variable_done,
                                    ArrivingParameters* arriving) override;
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch,
                                       std::span<const float> parameters) override;
  absl::StatusOr<std::vector<float>> Predict(const Batch& batch, std::span<const float> parameters,
                                             bool training) override;

 private:
  explicit MirroredRunner(std::vector<std::unique_ptr<Replica>> replicas)
      : replicas_(std::move(replicas)), part_gradients_(replicas_.size()) {}

  const GraphRunner& first() const { return replicas_.front()->runner(); }
  int64_t count() const { return static_cast<int64_t>(replicas_.size()); }
  // Runs `work` on the first `replicas` replicas at once, each with its index, and `meanwhile` on
  // the calling thread. Returns when all have ended. Returns the first error that is not a mere
  // consequence of another (kCancelled).
  using Work = std::function<absl::Status(size_t replica, GraphRunner& runner)>;
  absl::Status RunReplicas(size_t replicas, const Work& work,
                           const std::function<void()>& meanwhile = nullptr);
  // Whether the devices add up the gradients of a batch with parts of these sizes.
  absl::StatusOr<bool> DevicesSum(const std::vector<int64_t>& sizes);
  // Allocates the gradient buffers of the replicas except the first.
  absl::Status TakePartGradients(size_t replicas);

  struct PartGradients {
    PageAlignedFloats values;
    std::unique_ptr<PinnedBuffer> pinned;
  };
  const std::vector<std::unique_ptr<Replica>> replicas_;
  // By replica, if the host adds up; the first replica uses the caller's buffer.
  std::vector<PartGradients> part_gradients_;
  std::unique_ptr<GradientReducer> sums_;  // null: the host adds up
  std::map<int64_t, bool> devices_sum_;    // by the number of examples in a batch
};

}  // namespace shoal
