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
#include "worker/compute/arriving_parameters.h"
#include "worker/compute/compute_freedoms.h"
#include "worker/compute/input_values.h"
#include "worker/compute/pinned_buffer.h"

namespace shoal {

// One batch in memory: the model's inputs, in the order of Graph::inputs(), and the target;
// float32, but for ModelRunner::byte_inputs(), row-major, first axis = examples.
struct Batch {
  int64_t examples = 0;
  std::vector<InputValues> inputs;
  std::span<const float> target;
  // Where the target was read, for errors; empty where nobody says: the file, and the index in it
  // of each example.
  std::string target_file = {};
  std::span<const uint64_t> indices = {};
  // What each example counts in the loss and in weighted metrics; empty: 1.
  std::span<const float> weights = {};
  // Of a part of a step's batch: the place of its first example there, by which what is random is
  // drawn.
  int64_t first_example = 0;
  // Names inputs and target: no other that a runner trains on has the same; 0: nobody says.
  uint64_t id = 0;
  // The batch that is trained on after this one, where it is in memory already and has an id, until
  // this one is done: a device is given it while it computes this one. If in the end it is another
  // that is trained on, nothing is wrong.
  const Batch* next = nullptr;
};

// Sums over the examples of a batch.
struct BatchResult {
  int64_t examples = 0;
  double loss_sum = 0;
  std::vector<double> metric_sums;  // those of Options::metrics, one after the other
  double loss_scale = 0;            // of training that has one; else 0
  bool overflowed = false;          // the gradient under it is not finite, and nothing is to push
};

// Runs a model: gradients of a batch, evaluation, prediction. Prepares (plans memory, creates
// primitives) once per batch size. Not thread-safe: one caller at a time; it may use several
// threads inside.
class ModelRunner {
 public:
  struct Options {
    Graph model;
    std::shared_ptr<const Loss> loss;
    std::vector<std::shared_ptr<const Metric>> metrics;  // as MetricFor() gives them
    bool weighted = false;                               // whether batches may have weights
    // What examples count in training by their class, times their weights; others 1.
    std::map<int64_t, double> class_weights = {};
    // "cpu" (oneDNN and OpenBLAS) or another of BackendNames(), or a GPU's; or several, separated
    // by commas, each of which computes a part of each batch (MirroredRunner).
    std::string backend = "cpu";
    ComputeFreedoms freedoms = {};  // of the backend
    int threads = 1;
    // At most so many examples of a batch are computed at once, to take less memory; 0: all.
    int64_t micro_batch_size = 0;
    uint64_t seed = 0;  // of the job, for dropout
    // Called for each piece of a batch's work, with an op's type, or "Reorder" where a tensor is
    // laid out otherwise, and how long it took, while the caller waits for the batch. Empty: no
    // clock is read.
    std::function<void(const std::string& work, std::chrono::nanoseconds)> on_work_timed = {};
    // Of the model's inputs those that have whole numbers from 0 to 255 in each batch, by index.
    std::set<size_t> byte_inputs = {};
  };

  // kUnimplemented, by name, when the backend lacks a kernel that the model's training needs.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(Options options);
  virtual ~ModelRunner() = default;

  // Where each variable lies in the `parameters` and `gradients` buffers below.
  virtual const ModelLayout& layout() const = 0;

  // Of Options::byte_inputs those that batches have as bytes: a device takes them so, a quarter as
  // long; where the machine computes itself, as floats.
  virtual std::set<size_t> byte_inputs() const { return {}; }

  // Memory that a training batch takes beside those buffers, in bytes. Prepares for that size, and
  // the last of its parts, and takes what it needs of a device's own memory: kFailedPrecondition
  // where there is not so much, with the size that would fit.
  struct BatchMemory {
    int64_t data = 0;         // its inputs and target
    int64_t activations = 0;  // held from the first batch on
  };
  virtual absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) = 0;

  // Backend::Pin, for the buffers that the methods below are given again and again.
  virtual absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) = 0;

  // A line about layers that are computed in another precision than the model says; empty where
  // there are none.
  virtual std::string DescribePrecision() const = 0;

  // Whether steps are computed by the thread that calls for them, and take its CPU time.
  virtual bool computes_on_caller() const { return true; }

  // Whether it computes layers in float16, and so trains with a loss scale (LossScale), which
  // follows from the batches that it has trained on.
  virtual bool scales_loss() const { return false; }
  // The loss scale is as at the beginning again.
  virtual void ForgetLossScale() {}

  // Computes the loss of `batch` and writes what a step pushes into `gradients`, laid out like
  // `parameters`: the gradient of the loss's mean, of moving averages the sample (gaps and frozen
  // variables are left alone). Of a batch in parts it is the mean over the parts, by their
  // examples: the same within rounding, but that what looks at a whole batch sees a part of it
  // (the statistics of normalizations, losses that sum over the batch). `on_variable_done(v)`, when
  // given, is called on the calling thread once for each variable that is pushed, as soon as its
  // gradient is complete and neither its value nor its gradient will be read or written again in
  // this step: its value may be overwritten from then on, while the rest is still computing. With a
  // loss scale that is when all gradients are known to be finite; where they are not, which the
  // result says, it is called for none, and `gradients` hold anything. Where `arriving` is given,
  // each variable is awaited before what is the first to read it, and what it says when one does
  // not come is the result.
  virtual absl::StatusOr<BatchResult> Train(
      const Batch& batch, uint64_t step, std::span<const float> parameters,
      std::span<float> gradients, const std::function<void(int variable)>& on_variable_done,
      ArrivingParameters* arriving) = 0;
  // The same of parameters that are all there.
  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t step,
                                    std::span<const float> parameters, std::span<float> gradients,
                                    const std::function<void(int variable)>& on_variable_done) {
    return Train(batch, step, parameters, gradients, on_variable_done, nullptr);
  }

  // Loss and metrics in inference mode. Where a device has not the memory, the error is
  // MemoryOfBatch's, of this as of Predict.
  virtual absl::StatusOr<BatchResult> Evaluate(const Batch& batch,
                                               std::span<const float> parameters) = 0;

  // The model's output, [examples, ...], in inference mode (training = false) or in training mode.
  virtual absl::StatusOr<std::vector<float>> Predict(const Batch& batch,
                                                     std::span<const float> parameters,
                                                     bool training) = 0;
};

}  // namespace shoal
