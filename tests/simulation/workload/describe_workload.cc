#include "tests/simulation/workload/describe_workload.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace shoal {
namespace {

double Seconds(Time time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

std::string Describe(const Workload& workload) {
  const Job& job = workload.job;
  std::string text = absl::StrFormat(
      "seed %d: %d ps (%d without the disk), %d workers (%d not listed), %d examples, %d tests, "
      "batch %d, epochs %d, "
      "steps %d, sums in \"%s\", window %d, lease %g s, chunk %d bytes, shard %d bytes, checkpoint "
      "every %d steps or %g s, keep %d%s\n",
      workload.seed, workload.ps, workload.blind_ps, workload.workers, workload.unlisted_workers,
      workload.training_examples, workload.test_examples, job.batch_size, job.epochs, job.steps,
      absl::StrJoin(workload.sums_slots(), " and "), job.strategy.window_steps,
      job.strategy.lease_timeout_seconds, job.strategy.chunk_bytes, job.strategy.min_shard_bytes,
      job.checkpoint.every_steps, job.checkpoint.every_seconds, job.checkpoint.keep,
      workload.orderly ? ", orderly" : "");
  if (const auto bound = job.strategy.max_staleness; bound.has_value())
    absl::StrAppendFormat(&text, "staleness at most %d\n", *bound);
  if (job.strategy.learning_rate_by_staleness)
    absl::StrAppend(&text, "learning rate by staleness\n");
  if (!job.strategy.scale_learning_rate.empty() || job.strategy.warmup_steps > 0) {
    absl::StrAppendFormat(&text, "learning rate scaled: \"%s\"; %d steps of warm-up, %d workers\n",
                          job.strategy.scale_learning_rate, job.strategy.warmup_steps,
                          job.strategy.workers);
  }
  if (job.strategy.in_rounds())
    absl::StrAppendFormat(&text, "%d steps an update\n", job.strategy.gradients_per_update);
  if (job.strategy.local()) {
    absl::StrAppendFormat(&text, "local, %d batches a step in %d fragments, outer optimizer %s\n",
                          job.strategy.batches_per_step, job.strategy.fragments,
                          job.strategy.outer_optimizer);
  }
  if (job.strategy.speculate_after > 0)
    absl::StrAppendFormat(&text, "speculates after %g median steps\n",
                          job.strategy.speculate_after);
  if (!job.compression.push.empty() || !job.compression.pull.empty())
    absl::StrAppendFormat(&text, "pushes \"%s\", pulls \"%s\"\n", job.compression.push,
                          job.compression.pull);
  if (workload.overflows_one_in > 0)
    absl::StrAppendFormat(&text, "one step in %d overflows\n", workload.overflows_one_in);
  if (workload.next != nullptr) {
    absl::StrAppendFormat(&text, "the next job: epochs %d, seed %d, in %s\n",
                          workload.next->job.epochs, workload.next->job.seed,
                          workload.next->run_dir);
  }
  for (const Callback& callback : job.callbacks) absl::StrAppend(&text, callback.config, "\n");
  if (!job.callbacks.empty()) {
    absl::StrAppendFormat(&text, "ends at step %d with the values of step %d\n",
                          workload.ending.last_step, workload.ending.result_step);
  }
  absl::StrAppendFormat(&text, "step %g s, message %g s, file operation %g s\n",
                        Seconds(workload.step_time), Seconds(workload.base_latency),
                        Seconds(workload.file_latency));
  for (const Fault& fault : workload.faults) {
    absl::StrAppendFormat(&text, "%11.6f FAULT %s: %s %s, for %g s, latency %g s, count %d\n",
                          Seconds(fault.at), NameOf(fault.kind), fault.task, fault.other,
                          Seconds(fault.duration), Seconds(fault.latency), fault.count);
  }
  return text;
}

}  // namespace shoal
