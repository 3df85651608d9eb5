#include "cli/validation/needs_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/text/format_bytes.h"
#include "common/job/job_strategy.h"
#include "common/optimizer/optimizer.h"

namespace shoal {
namespace {

using nlohmann::json;

// "pushes int8, 1.0 MiB instead of 4.1 MiB"
std::string TrafficText(const char* verb, const JobNeeds::Traffic& traffic) {
  if (traffic.codec.empty())
    return absl::StrCat(verb, " float32, ", FormatBytes(traffic.float32_bytes));
  return absl::StrCat(verb, " ", traffic.codec, ", ", FormatBytes(traffic.bytes), " instead of ",
                      FormatBytes(traffic.float32_bytes));
}

// Describes the strategy's changes to the optimizer, as numbers that no file contains.
std::string OptimizerText(const Job& job) {
  std::string text;
  const RateScale scale = RateScaleOf(job);
  if (scale.factor != 1) {
    absl::StrAppend(&text, "learning rate: the optimizer's, times ", scale.factor);
    if (scale.warmup_updates > 0)
      absl::StrAppend(&text, ", reached after ", scale.warmup_updates, " updates");
    text += "\n";
  }
  const auto ps_optimizer = MakePsOptimizer(job);
  if (job.strategy.momentum_by_workers && ps_optimizer.ok()) {
    const json asked = json::parse(job.optimizer), made = json::parse((*ps_optimizer)->config());
    if (const std::string option = MomentumOption(asked); !option.empty()) {
      absl::StrAppend(&text, "momentum: ", option, " is ", made["config"][option].get<double>(),
                      " with ", job.strategy.workers, " workers, instead of ",
                      asked["config"][option].get<double>(), "\n");
    }
  }
  return text;
}

// Warns of fields that depend on the number of workers and are far from the listed number.
std::string WorkersText(const Job::Strategy& strategy, size_t listed) {
  std::string text;
  const auto add = [&](const char* field, uint64_t given, uint64_t meant) {
    if (given <= 2 * meant + 1) return;
    absl::StrAppend(&text, "$.strategy.", field, ": ", given, "; for the ", listed, " listed ",
                    listed == 1 ? "worker" : "workers", " it would be ", meant,
                    "; training may diverge\n");
  };
  if (listed == 0) return text;
  add("look_ahead", strategy.look_ahead, listed - 1);
  if (strategy.scales_by_workers()) add("workers", strategy.workers, listed);
  return text;
}

// Advises compression for a job that is made for slow links and sends uncompressed values.
std::string CompressionAdvice(const Job& job, const JobNeeds& needs) {
  if (!job.strategy.local() || !needs.push.codec.empty() || !needs.pull.codec.empty()) return "";
  return absl::StrCat("compression: none, a step pushes and pulls ",
                      FormatBytes(needs.push.float32_bytes),
                      " each; $.compression {\"push\": \"int8\", \"pull\": \"bf16\"} makes this a "
                      "quarter and a half, and \"local\" loses almost nothing by it\n");
}

// Describes the steps, and warns of blocks that do not go with the epochs or the workers.
std::string StepsText(const ValidatedJob& validated, const JobNeeds& needs,
                      const std::string& why_no_examples) {
  const Job& job = validated.job;
  std::string text;
  const std::string batches =
      job.strategy.local() ? absl::StrCat("up to ", job.strategy.batches_per_step, " batches of ")
                           : "";
  if (needs.examples > 0) {
    const auto batch_size = static_cast<uint64_t>(job.batch_size);
    absl::StrAppend(&text, "steps: ", needs.total_steps, ", each of ", batches,
                    std::min(batch_size, needs.examples), " examples; ", needs.steps_per_epoch,
                    " an epoch of ", needs.examples, " examples",
                    batch_size > needs.examples
                        ? absl::StrCat(", which are fewer than the batch_size of ", batch_size)
                        : "",
                    "\n");
    const uint64_t batches_of_epoch = (needs.examples - 1) / batch_size + 1;
    if (job.strategy.batches_per_step > batches_of_epoch) {
      absl::StrAppend(&text, "$.strategy.batches_per_step: ", job.strategy.batches_per_step,
                      ", but an epoch has only ", batches_of_epoch,
                      " batches: one worker computes a whole epoch as one step\n");
    } else if (const size_t workers =
                   validated.cluster.has_value() ? validated.cluster->workers.size() : 0;
               job.strategy.local() && needs.steps_per_epoch < workers &&
               (job.strategy.in_rounds() || !job.callbacks.empty())) {
      absl::StrAppend(&text, "$.strategy.batches_per_step: ", job.strategy.batches_per_step,
                      " of an epoch of ", batches_of_epoch, " batches: ", needs.steps_per_epoch,
                      needs.steps_per_epoch == 1 ? " step" : " steps", " for ", workers,
                      " workers, and some have nothing to do\n");
    }
  } else if (job.steps > 0) {
    absl::StrAppend(&text, "steps: ", needs.total_steps, ", each of ", batches, job.batch_size,
                    " examples; the number of epochs is unknown here: ", why_no_examples, "\n");
  } else {
    absl::StrAppend(&text, "steps: those of ", job.epochs, job.epochs == 1 ? " epoch" : " epochs",
                    "; their number is unknown here: ", why_no_examples, "\n");
  }
  return text;
}

}  // namespace

std::string NeedsText(const ValidatedJob& validated, const JobNeeds& needs,
                      const std::string& why_no_examples) {
  const Job& job = validated.job;
  std::string text;
  for (const std::string& line : validated.overridden) absl::StrAppend(&text, line, "\n");
  if (!validated.cluster.has_value()) {
    text += "cluster: none was given (--cluster_spec, TF_CONFIG)\n";
  } else {
    const size_t workers = validated.cluster->workers.size();
    absl::StrAppend(&text, "cluster: 1 coordinator, ", needs.ps.size(), " ps, ", workers,
                    workers == 1 ? " worker\n" : " workers\n");
  }
  absl::StrAppend(&text, "job: ", job.name, ", fingerprint ",
                  absl::Hex(job.Fingerprint(), absl::kZeroPad8), "\n");
  absl::StrAppend(&text, "parameters: ", needs.trainable_parameters, " trainable, ",
                  needs.other_parameters, " other (", FormatBytes(needs.variable_bytes),
                  "), optimizer slots ", FormatBytes(needs.slot_bytes), "\n");
  text += validated.initial_weights;
  if (!needs.push.codec.empty() || !needs.pull.codec.empty()) {
    absl::StrAppend(&text, "compression: a step ", TrafficText("pushes", needs.push), ", and ",
                    TrafficText("pulls", needs.pull), "\n");
  }
  absl::StrAppend(&text, CompressionAdvice(job, needs), OptimizerText(job));
  if (validated.cluster.has_value())
    text += WorkersText(job.strategy, validated.cluster->workers.size());
  if (!needs.precision.empty()) absl::StrAppend(&text, "precision: ", needs.precision, "\n");
  for (size_t i = 0; i < needs.ps.size(); ++i) {
    const JobNeeds::Ps& ps = needs.ps[i];
    absl::StrAppend(&text, "ps ", i, " at ", ps.address, ": variables ",
                    FormatBytes(ps.variable_bytes), ", slots ", FormatBytes(ps.slot_bytes), ", ",
                    ps.chunks, ps.chunks == 1 ? " chunk\n" : " chunks\n");
  }
  text +=
      "memory of a process: permanent memory, then the max with temporary memory; "
      "\"the program\" is code, libraries and threads, rounded up:\n";
  for (const MemoryNeeds& task : needs.memory) {
    absl::StrAppend(&text, "  ", task.task, ": ", task.ToText(), "\n");
  }
  return text + StepsText(validated, needs, why_no_examples);
}

}  // namespace shoal
