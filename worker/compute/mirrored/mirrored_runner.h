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
#include "worker/compute/backend.h"
#include "worker/compute/device/gradient_sums.h"
#include "worker/compute/mirrored/replica.h"
#include "worker/compute/model_runner.h"
#include "worker/compute/page_aligned.h"

namespace shoal {

// The ModelRunner over several devices of one machine (TensorFlow's MirroredStrategy): each has a
// replica of the model and computes a part of each batch, all at once. What is pushed is the mean
// over the parts by their examples, which is what Options::micro_batch_size makes of them one after
// the other, to the last bit where the host adds up: what looks at a whole batch sees a part of it.
// Which replica computes what, and in which order the host adds up, follows from the number of
// examples alone.
//
// The replicas run on threads of their own. The calling thread adds up each variable when all have
// done it, and says so, while they compute the rest. Of a batch with fewer examples than there are
// replicas the last ones compute nothing. With GradientSums the devices add up, once in a step
// where a replica computes its part in micro batches; the host does still where a replica has no
// part.
class MirroredRunner : public ModelRunner {
 public:
  struct ReplicaDevice {
    std::string name;  // for errors
    // Called on the thread that then computes there.
    std::function<absl::StatusOr<std::unique_ptr<Backend>>()> create;
  };
  // What adds up the gradients of all devices where they lie, by their places in the list; null:
  // the host does.
  using CreateSums = std::function<std::unique_ptr<GradientSums>()>;
  // Of Options, `threads` are shared out among the replicas, each has at least one;
  // `micro_batch_size` is of each replica; and the first replica's work is timed.
  static absl::StatusOr<std::unique_ptr<MirroredRunner>> Create(
      const Options& options, const std::vector<ReplicaDevice>& devices,
      const CreateSums& create_sums = {});

  const ModelLayout& layout() const override { return first().layout(); }
  std::set<size_t> byte_inputs() const override { return first().byte_inputs(); }
  // Of all replicas together.
  absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) override;
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) override;
  std::string DescribePrecision() const override { return first().DescribePrecision(); }
  bool computes_on_caller() const override { return false; }
  bool scales_loss() const override { return first().scales_loss(); }
  void ForgetLossScale() override;
  // An error of a replica, which it names, ends the step when all others have ended.
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
  // Has the first so many replicas do the work of their number, all at once, and the calling thread
  // `meanwhile`. Returns when all have ended, with the error of the first that has one of its own.
  using Work = std::function<absl::Status(size_t replica, GraphRunner& runner)>;
  absl::Status DoAtOnce(size_t replicas, const Work& work,
                        const std::function<void()>& meanwhile = nullptr);
  // Whether the devices add up the gradients of a batch in parts of these sizes.
  absl::StatusOr<bool> DevicesAddUp(const std::vector<int64_t>& sizes);
  // The buffers that the replicas but the first leave their gradients in.
  absl::Status TakePartGradients(size_t replicas);

  struct PartGradients {
    PageAlignedFloats values;
    std::unique_ptr<PinnedBuffer> pinned;
  };
  const std::vector<std::unique_ptr<Replica>> replicas_;
  // By replica, where the host adds up; the first's is the caller's buffer.
  std::vector<PartGradients> part_gradients_;
  std::unique_ptr<GradientSums> sums_;      // null: the host adds up
  std::map<int64_t, bool> devices_add_up_;  // by the examples of a batch
};

}  // namespace shoal
