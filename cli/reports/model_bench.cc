#include "cli/reports/model_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/display/number_text.h"
#include "cli/display/text_table.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "common/loss/keras_loss.h"
#include "common/memory/memory_limit.h"
#include "common/model/initializer.h"
#include "common/model/ops/gather.h"
#include "common/model/training/training_graph.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/program/page_aligned.h"
#include "worker/compute/registry/compute_device.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/micro_batches.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Returns the CPU time of all threads of this process.
double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::StatusOr<std::shared_ptr<const Loss>> LossFor(const Graph& graph) {
  const ValueId output = graph.outputs().front();
  const Shape& shape = graph.value(output).shape;
  if (shape.size() != 2 || shape.back() < 2) return MakeLoss("\"mse\"");
  const bool probabilities = LogitsOfSoftmax(graph, output) != kNoValue;
  return MakeLoss(
      absl::StrCat(R"({"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": )",
                   probabilities ? "false" : "true", "}}"));
}

void SetFirstValues(const Graph& graph, const ModelLayout& layout, std::span<float> values) {
  for (size_t i = 0; i < graph.variables().size(); ++i) {
    const Variable& variable = graph.variables()[i];
    const auto [offset, size] = layout.variables[i];
    InitializeRows(variable.initializer, variable.name, variable.shape, /*job_seed=*/0, 0,
                   variable.shape.empty() ? 1 : variable.shape[0], values.subspan(offset, size));
  }
}

// Returns the inputs that are pictures. In a job, their data are mostly bytes.
std::set<size_t> PicturesOf(const Graph& graph) {
  std::set<size_t> pictures;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    if (graph.value(graph.inputs()[i]).shape.size() == 4) pictures.insert(i);
  return pictures;
}

// Batches, each one the successor of the other, and the memory that they share.
struct MadeUpBatches {
  // `uint8_inputs` are those of the runner.
  MadeUpBatches(const Graph& graph, const Loss& loss, int64_t examples,
                const std::set<size_t>& uint8_inputs) {
    std::mt19937 random(0);
    std::uniform_real_distribution<float> uniform;
    // An Embedding has rows only for whole numbers.
    const bool ids = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
      return dynamic_cast<const GatherOp*>(node.op.get()) != nullptr;
    });
    const std::set<size_t> pictures = PicturesOf(graph);
    Batch batch;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      std::vector<float>& floats =
          inputs.emplace_back(CountOf(graph.value(graph.inputs()[i]).shape, examples));
      for (float& value : floats) {
        value = ids || pictures.contains(i) ? static_cast<float>(random() % 2) : uniform(random);
      }
      batch.inputs.emplace_back(floats);
      if (!uint8_inputs.contains(i)) continue;
      bytes[i].assign(floats.begin(), floats.end());
      batch.inputs.back() = bytes[i];
    }
    const Shape& output = graph.value(graph.outputs().front()).shape;
    const bool classes = loss.target() == Loss::Target::kClassNumber;
    target.resize(classes ? examples : CountOf(output, examples));
    for (float& value : target) {
      value = classes ? static_cast<float>(random() % output.back()) : uniform(random);
    }
    batch.examples = examples;
    batch.target = target;
    for (size_t i = 0; i < batches.size(); ++i) {
      batches[i] = batch;
      batches[i].id = i + 1;
      batches[i].next = &batches[(i + 1) % batches.size()];
    }
  }
  MadeUpBatches(const MadeUpBatches&) = delete;

  static int64_t CountOf(Shape shape, int64_t examples) {
    std::replace(shape.begin(), shape.end(), kBatch, examples);
    return ElementCount(shape);
  }

  std::vector<std::vector<float>> inputs;
  std::map<size_t, std::vector<uint8_t>> bytes;
  std::vector<float> target;
  std::array<Batch, 2> batches;
};

// The time for steps with timed pieces, as a fraction of the time for the other steps.
constexpr double kShareOfTimedOps = 0.25;

// Trains a model on made-up batches, from its first values. As in a worker, the next batch is known
// during a step, and pictures are bytes if the device accepts bytes.
class StepBench {
 public:
  using OnWorkTimed = std::function<void(const std::string& work, std::chrono::nanoseconds taken)>;

  static absl::StatusOr<std::unique_ptr<StepBench>> Create(const Graph& graph,
                                                           const std::shared_ptr<const Loss>& loss,
                                                           const ModelBenchOptions& options,
                                                           OnWorkTimed on_work_timed) {
    SHOAL_ASSIGN_OR_RETURN(
        std::unique_ptr<ModelRunner> runner,
        CreateModelRunner(
            {.model = graph,
             .loss = loss,
             .metrics = {},
             .backend = options.device,
             .numerics = {.tf32 = options.tf32, .nondeterministic = !options.deterministic},
             .threads = options.threads,
             .on_work_timed = std::move(on_work_timed),
             .uint8_inputs = PicturesOf(graph)}));
    SHOAL_ASSIGN_OR_RETURN(const ModelRunner::BatchMemory memory,
                           runner->MemoryOfBatch(options.batch_size));
    const uint64_t parameter_bytes = sizeof(float) * runner->layout().size;
    SHOAL_RETURN_IF_ERROR(
        CheckMemory({.task = "the bench",
                     .held = {{"activations", static_cast<uint64_t>(memory.activations)},
                              {"a batch", static_cast<uint64_t>(memory.data)},
                              {"parameters and gradients", 2 * parameter_bytes}}},
                    ReadMemoryLimit(), "A smaller --batch_size takes less."));
    std::unique_ptr<StepBench> bench(
        new StepBench(graph, *loss, options.batch_size, std::move(runner)));
    bench->activation_bytes_ = memory.activations;
    SHOAL_ASSIGN_OR_RETURN(bench->pinned_parameters_, bench->runner_->Pin(bench->parameters_));
    SHOAL_ASSIGN_OR_RETURN(bench->pinned_gradients_, bench->runner_->Pin(bench->gradients_));
    return bench;
  }

  // Starts steps for this long, at least one. Calls on_step with the seconds of each: elapsed time,
  // and CPU time of all threads. The first two steps only warm up and do not count. Calls
  // `before_step` before every step, including those two.
  absl::Status Run(double for_seconds, const std::function<void()>& before_step,
                   const std::function<void(double seconds, double cpu_seconds)>& on_step) {
    constexpr int kPreparingSteps = 2;
    Clock::time_point first;
    for (int step = 0;; ++step) {
      before_step();
      const double cpu = CpuSeconds();
      const Clock::time_point begin = Clock::now();
      if (step == kPreparingSteps) first = begin;
      const Batch& batch = data_.batches[step % data_.batches.size()];
      SHOAL_RETURN_IF_ERROR(runner_->Train(batch, step, parameters_, gradients_, nullptr).status());
      if (step < kPreparingSteps) continue;
      on_step(Seconds(Clock::now() - begin).count(), CpuSeconds() - cpu);
      if (Seconds(Clock::now() - first).count() >= for_seconds) return absl::OkStatus();
    }
  }

  int64_t activation_bytes() const { return activation_bytes_; }

 private:
  StepBench(const Graph& graph, const Loss& loss, int64_t examples,
            std::unique_ptr<ModelRunner> runner)
      : runner_(std::move(runner)),
        parameters_(runner_->layout().size),
        gradients_(runner_->layout().size),
        data_(graph, loss, examples, runner_->uint8_inputs()) {
    SetFirstValues(graph, runner_->layout(), parameters_);
  }

  const std::unique_ptr<ModelRunner> runner_;
  PageAlignedFloats parameters_, gradients_;
  std::unique_ptr<PinnedBuffer> pinned_parameters_, pinned_gradients_;
  const MadeUpBatches data_;
  int64_t activation_bytes_ = 0;
};

absl::StatusOr<std::map<std::string, OpWork>> WorkOf(const Graph& graph, const Loss& loss,
                                                     int64_t examples) {
  SHOAL_ASSIGN_OR_RETURN(const TrainingGraph training, BuildTrainingGraph(graph, loss));
  return WorkByOp(Plan(training, PlanMode::kTrain, examples));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
double Least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

std::string Milliseconds(double seconds) { return FormatNumber(1e3 * seconds); }

}  // namespace

absl::StatusOr<ModelBenchResult> BenchModel(const KerasModel& model,
                                            const ModelBenchOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<const Loss> loss, LossFor(model.graph));
  ModelBenchResult result = {.model = model.name, .options = options};
  // With several devices, only the first one's ops are timed.
  const auto devices = static_cast<int64_t>(DevicesIn(options.device).size());
  SHOAL_ASSIGN_OR_RETURN(
      result.op_work, WorkOf(model.graph, *loss, PartSizes(options.batch_size, devices).front()));
  {
    SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<StepBench> bench,
                           StepBench::Create(model.graph, loss, options, nullptr));
    result.activation_bytes = bench->activation_bytes();
    SHOAL_RETURN_IF_ERROR(bench->Run(
        options.seconds, [] {},
        [&](double seconds, double cpu_seconds) {
          result.step_seconds.push_back(seconds);
          result.step_cpu_seconds.push_back(cpu_seconds);
        }));
  }
  std::map<std::string, double> op_seconds;  // of the current step
  std::map<std::string, int64_t> op_pieces;  // likewise
  SHOAL_ASSIGN_OR_RETURN(
      const std::unique_ptr<StepBench> bench,
      StepBench::Create(model.graph, loss, options,
                        [&](const std::string& work, std::chrono::nanoseconds taken) {
                          op_seconds[work] += Seconds(taken).count();
                          ++op_pieces[work];
                        }));
  double least = std::numeric_limits<double>::infinity();
  SHOAL_RETURN_IF_ERROR(bench->Run(
      options.seconds * kShareOfTimedOps,
      [&] {
        op_seconds.clear();
        op_pieces.clear();
      },
      [&](double seconds, double /*cpu_seconds*/) {
        if (seconds >= least) return;
        least = seconds;
        result.op_seconds = op_seconds;
        result.op_pieces = op_pieces;
      }));
  return result;
}

std::string ModelBenchText(const ModelBenchResult& result) {
  const double least = Least(result.step_seconds), median = Median(result.step_seconds);
  const double examples = static_cast<double>(result.options.batch_size);
  std::string text = absl::StrCat(
      result.model, ": batches of ", result.options.batch_size, ", ", result.options.threads,
      result.options.threads == 1 ? " thread" : " threads", ", ", result.step_seconds.size(),
      result.step_seconds.size() == 1 ? " step\n" : " steps\n", Milliseconds(median),
      " ms a step, the fastest ", Milliseconds(least), "; ",
      Milliseconds(Median(result.step_cpu_seconds)), " ms of CPU time, the least ",
      Milliseconds(Least(result.step_cpu_seconds)), "\n", FormatNumber(examples / median),
      " examples/s, in the fastest step ", FormatNumber(examples / least), "\n",
      FormatBytes(result.activation_bytes), " of activations\n\n");
  std::vector<std::pair<std::string, double>> ops(result.op_seconds.begin(),
                                                  result.op_seconds.end());
  std::stable_sort(ops.begin(), ops.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  double all = 0;
  for (const auto& [op, seconds] : ops) all += seconds;
  TextTable table({"<in a step, one after the other", "ms", "%", "GFLOP/s"});
  for (const auto& [op, seconds] : ops) {
    char share[16];
    std::snprintf(share, sizeof(share), "%.1f", 100 * seconds / all);
    const auto work = result.op_work.find(op);
    const int64_t multiply_adds = work == result.op_work.end() ? 0 : work->second.multiply_adds;
    table.AddRow({op, Milliseconds(seconds), share,
                  multiply_adds == 0
                      ? ""
                      : FormatNumber(2e-9 * static_cast<double>(multiply_adds) / seconds)});
  }
  return text + table.ToString();
}

namespace {

// Returns the computing time of the GPU in a step; null for a CPU.
nlohmann::json DeviceSeconds(const ModelBenchResult& result) {
  if (!DevicesIn(result.options.device).front().starts_with("cuda")) return nullptr;
  double seconds = 0;
  for (const auto& [op, of_op] : result.op_seconds) seconds += of_op;
  return seconds;
}

}  // namespace

std::string ModelBenchJson(const ModelBenchResult& result) {
  const double examples = static_cast<double>(result.options.batch_size);
  nlohmann::json multiply_adds, values;
  for (const auto& [op, work] : result.op_work) {
    multiply_adds[op] = work.multiply_adds;
    values[op] = work.values;
  }
  const nlohmann::json json = {{"model", result.model},
                               {"device", result.options.device},
                               {"tf32", result.options.tf32},
                               {"deterministic", result.options.deterministic},
                               {"batch_size", result.options.batch_size},
                               {"threads", result.options.threads},
                               {"step_seconds", result.step_seconds},
                               {"step_cpu_seconds", result.step_cpu_seconds},
                               {"examples_per_second", examples / Median(result.step_seconds)},
                               {"activation_bytes", result.activation_bytes},
                               {"op_seconds", result.op_seconds},
                               {"op_pieces", result.op_pieces},
                               {"device_seconds", DeviceSeconds(result)},
                               {"op_multiply_adds", multiply_adds},
                               {"op_values", values}};
  return json.dump() + "\n";
}

}  // namespace shoal
