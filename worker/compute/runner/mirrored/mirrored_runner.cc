#include "worker/compute/runner/mirrored/mirrored_runner.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/memory/memory_limit.h"
#include "worker/compute/runner/micro_batches.h"
#include "worker/compute/runner/mirrored/variable_countdown.h"

namespace shoal {
namespace {

// The pins of several devices, released together.
class PinnedEverywhere : public PinnedBuffer {
 public:
  explicit PinnedEverywhere(std::vector<std::unique_ptr<PinnedBuffer>> pinned)
      : pinned_(std::move(pinned)) {}

 private:
  const std::vector<std::unique_ptr<PinnedBuffer>> pinned_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MirroredRunner>> MirroredRunner::Create(
    const Options& options, const std::vector<ReplicaDevice>& devices,
    const CreateSums& create_sums) {
  const auto count = static_cast<int>(devices.size());
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int i = 0; i < count; ++i) {
    Options own = options;
    own.threads = std::max(1, options.threads / count + (i < options.threads % count ? 1 : 0));
    if (i > 0) own.on_work_timed = nullptr;
    const auto create = [&]() -> absl::StatusOr<std::unique_ptr<GraphRunner>> {
      SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, devices[i].create());
      return GraphRunner::Create(std::move(own), std::move(backend));
    };
    SHOAL_ASSIGN_OR_RETURN(
        std::unique_ptr<Replica> replica,
        Replica::Start(absl::StrCat("replica ", i, " on ", devices[i].name), create));
    replicas.push_back(std::move(replica));
  }
  std::unique_ptr<MirroredRunner> runner(new MirroredRunner(std::move(replicas)));
  if (create_sums) runner->sums_ = create_sums();
  return runner;
}

absl::Status MirroredRunner::RunReplicas(size_t replicas, const Work& work,
                                         const std::function<void()>& meanwhile) {
  absl::Status status;
  {
    // Await also if `meanwhile` runs out of memory: the replicas use the caller's memory.
    const auto await = absl::MakeCleanup([&] {
      for (size_t i = 0; i < replicas; ++i) {
        const absl::Status ended = replicas_[i]->Await();
        // A replica that was cancelled because another failed must not hide the cause.
        if (status.ok() || (absl::IsCancelled(status) && !ended.ok())) status = ended;
      }
    });
    for (size_t i = 0; i < replicas; ++i)
      replicas_[i]->Begin([&work, i](GraphRunner& runner) { return work(i, runner); });
    if (meanwhile) meanwhile();
  }
  return status;
}

absl::StatusOr<ModelRunner::BatchMemory> MirroredRunner::MemoryOfBatch(int64_t examples) {
  const std::vector<int64_t> sizes = PartSizes(examples, count());
  std::vector<BatchMemory> memories(sizes.size());
  SHOAL_RETURN_IF_ERROR(
      RunReplicas(sizes.size(), [&](size_t i, GraphRunner& runner) -> absl::Status {
        SHOAL_ASSIGN_OR_RETURN(memories[i], runner.MemoryOfBatch(sizes[i]));
        return absl::OkStatus();
      }));
  BatchMemory sum;
  for (const BatchMemory& memory : memories) {
    sum.data += memory.data;
    sum.activations += memory.activations;
  }
  // Count these buffers even if the devices add up gradients, because they do not for every batch.
  const auto others = static_cast<int64_t>(sizes.size()) - 1;
  sum.activations += others * layout().size * static_cast<int64_t>(sizeof(float));
  return sum;
}

absl::StatusOr<std::unique_ptr<PinnedBuffer>> MirroredRunner::Pin(std::span<float> buffer) {
  std::vector<std::unique_ptr<PinnedBuffer>> pinned(replicas_.size());
  SHOAL_RETURN_IF_ERROR(
      RunReplicas(replicas_.size(), [&](size_t i, GraphRunner& runner) -> absl::Status {
        SHOAL_ASSIGN_OR_RETURN(pinned[i], runner.Pin(buffer));
        return absl::OkStatus();
      }));
  return std::make_unique<PinnedEverywhere>(std::move(pinned));
}

void MirroredRunner::ForgetLossScale() {
  for (const auto& replica : replicas_) replica->runner().ForgetLossScale();
}

// Plans for parts of unequal sizes may finish gradients in different orders. The devices would then
// add up different variables.
absl::StatusOr<bool> MirroredRunner::DevicesSum(const std::vector<int64_t>& sizes) {
  if (sums_ == nullptr || sizes.size() < replicas_.size()) return false;
  int64_t examples = 0;
  for (const int64_t size : sizes) examples += size;
  if (const auto known = devices_sum_.find(examples); known != devices_sum_.end())
    return known->second;
  std::vector<std::vector<Transfer::Range>> ranges(sizes.size());
  SHOAL_RETURN_IF_ERROR(
      RunReplicas(sizes.size(), [&](size_t i, GraphRunner& runner) -> absl::Status {
        SHOAL_ASSIGN_OR_RETURN(ranges[i], runner.SummedRanges(sizes[i]));
        return absl::OkStatus();
      }));
  const bool same = std::all_of(ranges.begin(), ranges.end(),
                                [&](const auto& each) { return each == ranges[0]; });
  return devices_sum_[examples] = same && !ranges[0].empty();
}

absl::Status MirroredRunner::TakePartGradients(size_t replicas) {
  const auto taken = [this](size_t i) { return i == 0 || !part_gradients_[i].values.empty(); };
  if (taken(replicas - 1)) return absl::OkStatus();
  return RunReplicas(replicas, [&](size_t i, GraphRunner& runner) -> absl::Status {
    if (taken(i)) return absl::OkStatus();
    PartGradients& own = part_gradients_[i];
    own.values.resize(layout().size);
    absl::StatusOr<std::unique_ptr<PinnedBuffer>> pinned = runner.Pin(own.values);
    // Works unpinned, too. The caller gets this error for its own buffers.
    if (pinned.ok()) own.pinned = *std::move(pinned);
    return absl::OkStatus();
  });
}

absl::StatusOr<BatchResult> MirroredRunner::Train(
    const Batch& batch, uint64_t step, std::span<const float> parameters,
    std::span<float> gradients, const std::function<void(int variable)>& on_variable_done,
    ArrivingParameters* arriving) {
  SHOAL_RETURN_IF_ERROR(first().CheckBatch(batch, parameters, /*needs_target=*/true));
  std::vector<Batch> parts = PartsOf(batch, count()), next;
  if (batch.next != nullptr && batch.next->examples > 0) next = PartsOf(*batch.next, count());
  for (size_t i = 0; i < parts.size(); ++i) {
    // A replica always gets the same part of a batch, so the batch's id identifies its part.
    parts[i].id = batch.id;
    if (i >= next.size()) continue;
    next[i].id = batch.next->id;
    parts[i].next = &next[i];
  }
  SHOAL_ASSIGN_OR_RETURN(const bool devices_sum, DevicesSum(PartSizes(batch.examples, count())));
  if (!devices_sum) SHOAL_RETURN_IF_ERROR(TakePartGradients(parts.size()));
  const auto gradients_of = [&](size_t replica) {
    return replica == 0 ? gradients : std::span<float>(part_gradients_[replica].values);
  };
  if (arriving != nullptr && devices_sum) {
    // Await all parameters first: a step cancelled midway aborts the sums, and no sums would work
    // afterwards.
    for (size_t v = 0; v < layout().variables.size(); ++v)
      SHOAL_RETURN_IF_ERROR(arriving->Await(static_cast<int>(v)));
    arriving = nullptr;
  }
  VariableCountdown countdown(parts.size(), layout().variables.size());
  std::vector<BatchResult> results(parts.size());
  std::atomic<bool> aborted = false;
  const auto on_done = [&](int variable) { countdown.Done(variable); };
  const auto train = [&](size_t i, GraphRunner& runner) {
    const SumRank sum = {.reducer = devices_sum ? sums_.get() : nullptr,
                         .rank = static_cast<int>(i),
                         .share = static_cast<float>(ShareOf(parts[i], batch))};
    const absl::Status status = CatchOutOfMemory("a part of a batch", [&]() -> absl::Status {
      SHOAL_ASSIGN_OR_RETURN(results[i], runner.TrainPart(parts[i], step, parameters,
                                                          gradients_of(i), on_done, arriving, sum));
      return absl::OkStatus();
    });
    if (!status.ok() && devices_sum) {
      aborted = true;
      sums_->Abort();
    }
    countdown.Ended();
    return status;
  };
  const auto add_up = [&] {
    while (const std::optional<int> variable = countdown.Next()) {
      const auto& [offset, size] = layout().variables[*variable];
      for (size_t i = 0; i < parts.size() && !devices_sum; ++i) {
        AddPart(gradients_of(i).subspan(offset, size), ShareOf(parts[i], batch), /*begins=*/i == 0,
                gradients.subspan(offset, size));
      }
      if (on_variable_done) on_variable_done(*variable);
    }
  };
  const absl::Status trained = RunReplicas(parts.size(), train, add_up);
  if (aborted) sums_.reset();
  SHOAL_RETURN_IF_ERROR(trained);
  BatchResult sums;
  for (const BatchResult& result : results) AddTo(result, &sums);
  sums.loss_scale = results[0].loss_scale;
  // All replicas share one loss scale, also those without a part of this batch.
  for (const auto& replica : replicas_) replica->runner().NoteGradient(sums.overflowed);
  return sums;
}

absl::StatusOr<BatchResult> MirroredRunner::Evaluate(const Batch& batch,
                                                     std::span<const float> parameters) {
  SHOAL_RETURN_IF_ERROR(first().CheckBatch(batch, parameters, /*needs_target=*/true));
  const std::vector<Batch> parts = PartsOf(batch, count());
  std::vector<BatchResult> results(parts.size());
  SHOAL_RETURN_IF_ERROR(
      RunReplicas(parts.size(), [&](size_t i, GraphRunner& runner) -> absl::Status {
        SHOAL_ASSIGN_OR_RETURN(results[i], runner.Evaluate(parts[i], parameters));
        return absl::OkStatus();
      }));
  BatchResult sums;
  for (const BatchResult& result : results) AddTo(result, &sums);
  return sums;
}

absl::StatusOr<std::vector<float>> MirroredRunner::Predict(const Batch& batch,
                                                           std::span<const float> parameters,
                                                           bool training) {
  SHOAL_RETURN_IF_ERROR(first().CheckBatch(batch, parameters, /*needs_target=*/false));
  const std::vector<Batch> parts = PartsOf(batch, count());
  std::vector<std::vector<float>> predictions(parts.size());
  SHOAL_RETURN_IF_ERROR(
      RunReplicas(parts.size(), [&](size_t i, GraphRunner& runner) -> absl::Status {
        SHOAL_ASSIGN_OR_RETURN(predictions[i], runner.Predict(parts[i], parameters, training));
        return absl::OkStatus();
      }));
  std::vector<float> prediction = std::move(predictions[0]);
  for (size_t i = 1; i < predictions.size(); ++i)
    prediction.insert(prediction.end(), predictions[i].begin(), predictions[i].end());
  return prediction;
}

}  // namespace shoal
