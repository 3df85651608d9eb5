#include "common/run/run_verdict.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/job/job.h"
#include "common/run/checkpoint_job.h"

namespace shoal {
namespace {

std::optional<double> FigureOf(const proto::EpochResult& epoch, const std::string& figure) {
  if (!epoch.has_test_loss()) return std::nullopt;
  absl::string_view name = figure;
  absl::ConsumePrefix(&name, "val_");
  if (name == "loss") return epoch.test_loss();
  for (const proto::MetricValue& metric : epoch.test_metrics()) {
    if (metric.name() == name) return metric.value();
  }
  return std::nullopt;
}

std::optional<double> FigureOf(const CheckpointResult& result, const std::string& figure) {
  absl::string_view name = figure;
  absl::ConsumePrefix(&name, "val_");
  if (name == "loss") return result.loss;
  for (const auto& [metric, value] : result.metrics) {
    if (metric == name) return value;
  }
  return std::nullopt;
}

// The figure that selects the best checkpoint. Min improvements apply only to epochs.
MetricMonitor::Options FigureOfEvaluator(const std::vector<Callback>& callbacks) {
  const Callback* followed = nullptr;
  for (const Callback& callback : callbacks) {
    if (followed == nullptr || callback.class_name == "ModelCheckpoint") followed = &callback;
  }
  if (followed == nullptr) return {};
  return {.figure = followed->monitor.figure, .maximize = followed->monitor.maximize};
}

// Chooses among the checkpoints on disk. The best is always there, unless the user removed it.
std::optional<RunVerdict::Best> BestOfEvaluator(const MetricMonitor::Options& options,
                                                const std::vector<StoredCheckpoint>& stored,
                                                const std::vector<CheckpointResult>& evaluated) {
  std::map<std::string, const CheckpointResult*> results;
  for (const CheckpointResult& result : evaluated) results[result.checkpoint] = &result;
  MetricMonitor monitor(options);
  // Oldest first, because the first of equal ones is the best.
  for (size_t i = stored.size(); i-- > 0;) {
    const auto found = results.find(NameOf(stored[i]));
    if (found == results.end()) continue;
    if (const auto value = FigureOf(*found->second, options.figure)) monitor.Take(i, *value);
  }
  if (!monitor.best().has_value()) return std::nullopt;
  const StoredCheckpoint& best = stored[monitor.best()->epoch];
  return RunVerdict::Best{.figure = options.figure,
                          .value = monitor.best()->value,
                          .epoch = best.manifest.epoch,
                          .callback = kEvaluator,
                          .step = best.manifest.cut_step,
                          .checkpoint = best};
}

// A run without its results is bad data to its users, whatever keeps them from being read.
absl::Status AsDataLoss(const absl::Status& status) {
  return status.ok() ? status : absl::DataLossError(status.message());
}

// Whether the newest checkpoint alone tells if the run has ended. Without a test set, there is no
// evaluation, and so no last verdict.
bool IsDecidedByManifest(const std::vector<Callback>& callbacks, const Manifest& newest) {
  return callbacks.empty() || (newest.finished() && newest.test_examples == 0);
}

absl::Status NoCheckpoint(const RunPaths& run) {
  return absl::NotFoundError(absl::StrCat("there is no checkpoint in ", run.checkpoints()));
}

}  // namespace

bool IsAtEpochEnd(const Manifest& manifest) {
  return manifest.epoch_done() || manifest.finished();  // $.steps may cut the last epoch short
}

RunVerdict JudgeRun(const std::vector<Callback>& callbacks,
                    const std::vector<proto::EpochResult>& epochs,
                    const std::vector<StoredCheckpoint>& stored,
                    const std::vector<CheckpointResult>& evaluated) {
  RunVerdict verdict;
  for (const proto::EpochResult& epoch : epochs) {
    if (epoch.has_test_loss()) verdict.evaluated.insert(epoch.epoch());
  }
  for (const Callback& callback : callbacks) {
    MetricMonitor monitor(callback.monitor);
    for (const proto::EpochResult& epoch : epochs) {
      const bool ended = monitor.ended_after().has_value();
      if (const auto value = FigureOf(epoch, callback.monitor.figure))
        monitor.Take(epoch.epoch(), *value);
      if (ended || !monitor.ended_after().has_value()) continue;
      verdict.ended_after = monitor.ended_after();
      verdict.ended_by = callback.monitor.figure;
      verdict.waited = monitor.waited();
    }
    if (!monitor.best().has_value()) continue;
    RunVerdict::Best best = {.figure = callback.monitor.figure,
                             .value = monitor.best()->value,
                             .epoch = monitor.best()->epoch,
                             .callback = callback.class_name};
    const auto checkpoint =
        std::find_if(stored.begin(), stored.end(), [&best](const StoredCheckpoint& each) {
          return each.manifest.epoch == best.epoch && IsAtEpochEnd(each.manifest);
        });
    if (checkpoint != stored.end()) best.checkpoint = *checkpoint;
    verdict.best.push_back(std::move(best));
  }
  auto best = BestOfEvaluator(FigureOfEvaluator(callbacks), stored, evaluated);
  if (best.has_value() && !DirectoriesOf(verdict).contains(best->checkpoint->directory))
    verdict.best.push_back(*std::move(best));
  return verdict;
}

absl::StatusOr<RunVerdict> ReadRunVerdict(const std::vector<Callback>& callbacks,
                                          const RunPaths& run, FileSystem* files) {
  const absl::StatusOr<Evaluations> read = ReadEvaluations(run.evaluations(), files);
  // Unread evaluations affect only the choice of the best among them, not that of callbacks.
  const Evaluations evaluations = read.ok() ? *read : Evaluations();
  if (callbacks.empty() && evaluations.results.empty()) {
    SHOAL_RETURN_IF_ERROR(AsDataLoss(read.ok() ? read->damage : read.status()));
    return RunVerdict();
  }
  const absl::StatusOr<History> history = ReadHistory(run.history(), files);
  SHOAL_RETURN_IF_ERROR(AsDataLoss(history.ok() ? history->damage : history.status()));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> stored,
                         CheckpointStore(run.checkpoints(), files).List(nullptr));
  RunVerdict verdict = JudgeRun(callbacks, history->epochs, stored, evaluations.results);
  verdict.unread_evaluations = AsDataLoss(read.ok() ? read->damage : read.status());
  return verdict;
}

std::optional<RunEnd> EndOfRun(const std::vector<Callback>& callbacks, const RunVerdict& verdict,
                               const StoredCheckpoint& newest) {
  const Manifest& manifest = newest.manifest;
  if (IsDecidedByManifest(callbacks, manifest)) {
    return manifest.finished() ? std::optional(RunEnd{newest, newest}) : std::nullopt;
  }
  if (!IsAtEpochEnd(manifest) || !verdict.evaluated.contains(manifest.epoch)) return std::nullopt;
  const bool early = verdict.ended_after.has_value() && manifest.epoch >= *verdict.ended_after;
  if (!manifest.finished() && !early) return std::nullopt;
  RunEnd end = {newest, newest};
  if (!manifest.finished()) end.ended_after = verdict.ended_after;
  for (const Callback& callback : callbacks) {
    if (!callback.restores_best) continue;
    for (const RunVerdict::Best& best : verdict.best) {
      if (best.callback == callback.class_name && best.checkpoint.has_value())
        end.result = *best.checkpoint;
    }
  }
  return end;
}

absl::StatusOr<std::optional<RunEnd>> ReadEndOfRun(const std::vector<Callback>& callbacks,
                                                   const RunPaths& run,
                                                   const StoredCheckpoint& newest,
                                                   FileSystem* files) {
  const absl::StatusOr<RunVerdict> verdict = ReadRunVerdict(callbacks, run, files);
  const Manifest& manifest = newest.manifest;
  if (!verdict.ok() && IsAtEpochEnd(manifest) && !IsDecidedByManifest(callbacks, manifest))
    return verdict.status();
  return EndOfRun(callbacks, verdict.value_or(RunVerdict()), newest);
}

std::set<std::string> DirectoriesOf(const RunVerdict& verdict) {
  std::set<std::string> directories;
  for (const RunVerdict::Best& best : verdict.best) {
    if (best.checkpoint.has_value()) directories.insert(best.checkpoint->directory);
  }
  return directories;
}

absl::StatusOr<std::set<std::string>> ReadBestDirectories(const std::vector<Callback>& callbacks,
                                                          const RunPaths& run, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const RunVerdict verdict, ReadRunVerdict(callbacks, run, files));
  SHOAL_RETURN_IF_ERROR(verdict.unread_evaluations);
  return DirectoriesOf(verdict);
}

std::string DescribeBest(const RunVerdict::Best& best) {
  return absl::StrFormat("best %s: %.6g, %s%s", best.figure, best.value,
                         best.step.has_value() ? absl::StrCat("at step ", *best.step)
                                               : absl::StrCat("of epoch ", best.epoch + 1),
                         best.checkpoint.has_value()
                             ? ", in " + best.checkpoint->directory
                             : "; it has no checkpoint, so no model can be exported");
}

std::vector<std::string> DescribeVerdict(const RunVerdict& verdict) {
  std::vector<std::string> lines;
  if (verdict.ended_after.has_value()) {
    lines.push_back(absl::StrFormat(
        "early stopping: the training ends after epoch %d, as %s has not improved for %d %s",
        *verdict.ended_after + 1, verdict.ended_by, verdict.waited,
        verdict.waited == 1 ? "epoch" : "epochs"));
    if (verdict.best.empty()) lines.push_back("no epoch has a valid figure");
  }
  for (const RunVerdict::Best& best : verdict.best) {
    std::string line = DescribeBest(best);
    // Two callbacks may follow the same figure.
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  if (!verdict.unread_evaluations.ok()) {
    lines.push_back(absl::StrCat("the evaluator's best checkpoint is unknown: ",
                                 std::string(verdict.unread_evaluations.message())));
  }
  return lines;
}

void FillVerdict(const RunVerdict& verdict, proto::StatusReply* status) {
  for (const RunVerdict::Best& best : verdict.best) {
    proto::BestEpoch* out = status->add_best();
    out->set_figure(best.figure);
    out->set_value(best.value);
    out->set_epoch(best.epoch);
    if (best.checkpoint.has_value()) out->set_directory(best.checkpoint->directory);
  }
  if (verdict.ended_after.has_value()) status->set_ended_after_epoch(*verdict.ended_after);
}

absl::StatusOr<StoredCheckpoint> ResultOf(const RunPaths& run, const StoredCheckpoint& newest,
                                          FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const Job job, JobOf(newest, files));
  SHOAL_ASSIGN_OR_RETURN(const std::optional<RunEnd> end,
                         ReadEndOfRun(job.callbacks, run, newest, files));
  return end.has_value() ? end->result : newest;
}

absl::StatusOr<RunVerdict> VerdictOf(const RunPaths& run, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> stored,
                         CheckpointStore(run.checkpoints(), files).List(nullptr));
  if (stored.empty()) return RunVerdict();
  SHOAL_ASSIGN_OR_RETURN(const Job job, JobOf(stored.front(), files));
  return ReadRunVerdict(job.callbacks, run, files);
}

absl::StatusOr<RunVerdict::Best> BestOf(const RunPaths& run, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> stored,
                         CheckpointStore(run.checkpoints(), files).List(nullptr));
  if (stored.empty()) return NoCheckpoint(run);
  SHOAL_ASSIGN_OR_RETURN(const Job job, JobOf(stored.front(), files));
  SHOAL_ASSIGN_OR_RETURN(const RunVerdict verdict, ReadRunVerdict(job.callbacks, run, files));
  SHOAL_RETURN_IF_ERROR(verdict.unread_evaluations);
  if (job.callbacks.empty() && verdict.best.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the job of ", run.directory,
        " keeps no best checkpoint: that takes an EarlyStopping or a ModelCheckpoint in its "
        "\"callbacks\", or an evaluator in the cluster; take the last one"));
  }
  const RunVerdict::Best* chosen = nullptr;
  // Later ones override: first any, then ModelCheckpoint's, then the evaluator's, which is last.
  for (const RunVerdict::Best& best : verdict.best) {
    if (chosen == nullptr || best.callback == "ModelCheckpoint" || best.callback == kEvaluator)
      chosen = &best;
  }
  if (chosen == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no epoch of ", run.directory, " has a valid figure yet"));
  }
  if (chosen->checkpoint.has_value()) return *chosen;
  return absl::NotFoundError(
      absl::StrCat("the best ", chosen->figure, " is that of epoch ", chosen->epoch + 1,
                   ", but there is no checkpoint of it in ", run.checkpoints()));
}

}  // namespace shoal
