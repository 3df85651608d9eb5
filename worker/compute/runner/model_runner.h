#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"
#include "common/model/loss.h"
#include "common/model/model_layout.h"
#include "common/training_metric/metric.h"
#include "worker/compute/backend/numerics_options.h"
#include "worker/compute/program/arriving_parameters.h"
#include "worker/compute/program/batch.h"
#include "worker/compute/program/pinned_buffer.h"

namespace shoal {

// Runs a model: gradients of a batch, evaluation, prediction. Prepares (plans memory, creates
// primitives) once per batch size. Not thread-safe: one caller at a time; it may use several
// threads inside.
class ModelRunner {
 public:
  struct Options {
    Graph model;
    std::shared_ptr<const Loss> loss;
    std::vector<std::shared_ptr<const Metric>> metrics;  // from MetricFor()
    bool weighted = false;                               // whether batches may have weights
    // The weight of examples in training by their class, times their own weights; 1 for other
    // classes.
    std::map<int64_t, double> class_weights = {};
    // "cpu" (oneDNN and OpenBLAS), another of BackendNames(), or a GPU's name. Or several of them,
    // separated by commas: each computes a part of each batch (MirroredRunner).
    std::string backend = "cpu";
    NumericsOptions numerics = {};  // of the backend
    int threads = 1;
    // At most this many examples of a batch are computed at once, to use less memory; 0: all.
    int64_t micro_batch_size = 0;
    uint64_t seed = 0;  // of the job, for dropout
    // Called for each piece of a batch's work, with the op's type (or "Reorder" for a change of
    // layout) and its duration. The caller waits for the batch meanwhile. Empty: the runner reads
    // no clock.
    std::function<void(const std::string& work, std::chrono::nanoseconds)> on_work_timed = {};
    // The indices of the model's inputs that hold whole numbers from 0 to 255 in every batch.
    std::set<size_t> uint8_inputs = {};
  };

  virtual ~ModelRunner() = default;

  // The offset of each variable in the `parameters` and `gradients` buffers below.
  virtual const ModelLayout& layout() const = 0;

  // The inputs of Options::uint8_inputs that batches must pass as bytes. A device takes bytes,
  // which is a quarter of the data. If the machine itself computes, batches pass floats.
  virtual std::set<size_t> uint8_inputs() const { return {}; }

  // Memory that a training batch takes in addition to those buffers, in bytes. Prepares for batches
  // of that size and for the last of its parts, and takes the device memory for them.
  // kFailedPrecondition if the device lacks it, with the size that would fit.
  struct BatchMemory {
    int64_t data = 0;         // its inputs and target
    int64_t activations = 0;  // held from the first batch on
  };
  virtual absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) = 0;

  // Backend::Pin, for buffers that are passed to the methods below again and again.
  virtual absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) = 0;

  // Returns a line about layers that are computed in another precision than the model says; empty
  // if there are none.
  virtual std::string DescribePrecision() const = 0;

  // Whether the calling thread computes the steps, and so spends its CPU time.
  virtual bool computes_on_caller() const { return true; }

  // Whether it computes layers in float16, and so trains with a loss scale (LossScale). The scale
  // depends on the batches trained so far.
  virtual bool scales_loss() const { return false; }
  // Resets the loss scale to its initial value.
  virtual void ForgetLossScale() {}

  // Computes the loss of `batch` and writes the values that a step pushes into `gradients`, laid
  // out like `parameters`. A trainable variable gets the gradient of the mean loss; a moving
  // average gets its sample. Gaps and frozen variables stay unwritten. For a batch in parts the
  // result is the mean over the parts, weighted by their examples. It is the same within rounding,
  // except that computations over a whole batch see only a part (the statistics of normalizations,
  // losses that sum over the batch).
  //
  // `on_variable_done(v)`, if given, is called on the calling thread once for each pushed variable.
  // The call comes as soon as the gradient is complete and this step will not read or write the
  // value or the gradient again: the caller may overwrite the value while the rest is still
  // computing. With a loss scale it comes once all gradients are known to be finite. If they are
  // not (BatchResult::overflowed), it is never called, and the contents of `gradients` are
  // undefined.
  //
  // If `arriving` is given, the run awaits each variable before the first step that reads it. If
  // one fails to arrive, Train returns the error of Await.
  virtual absl::StatusOr<BatchResult> Train(
      const Batch& batch, uint64_t step, std::span<const float> parameters,
      std::span<float> gradients, const std::function<void(int variable)>& on_variable_done,
      ArrivingParameters* arriving) = 0;
  // The same for parameters that have all arrived.
  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t step,
                                    std::span<const float> parameters, std::span<float> gradients,
                                    const std::function<void(int variable)>& on_variable_done) {
    return Train(batch, step, parameters, gradients, on_variable_done, nullptr);
  }

  // Returns loss and metrics in inference mode. If the device lacks the memory, the error is
  // MemoryOfBatch's; this holds for Predict, too.
  virtual absl::StatusOr<BatchResult> Evaluate(const Batch& batch,
                                               std::span<const float> parameters) = 0;

  // Returns the model's output, [examples, ...], in inference mode (training = false) or training
  // mode.
  virtual absl::StatusOr<std::vector<float>> Predict(const Batch& batch,
                                                     std::span<const float> parameters,
                                                     bool training) = 0;
};

}  // namespace shoal
