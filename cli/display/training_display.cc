#include "cli/display/training_display.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/display/live_line.h"

namespace shoal {
namespace {

std::string DescribeDevices(const std::map<uint32_t, std::string>& of_workers) {
  std::map<std::string, std::vector<uint32_t>> by_device;
  for (const auto& [worker, device] : of_workers) by_device[device].push_back(worker);
  if (by_device.size() == 1) {
    return absl::StrCat(
        of_workers.size() == 1 ? "the worker computes on " : "all workers compute on ",
        by_device.begin()->first);
  }
  return absl::StrCat("computing ",
                      absl::StrJoin(by_device, "; ", [](std::string* out, const auto& device) {
                        absl::StrAppend(out, "on ", device.first,
                                        device.second.size() == 1 ? ": worker " : ": workers ",
                                        absl::StrJoin(device.second, ", "));
                      }));
}

}  // namespace

TrainingDisplay::TrainingDisplay(Console* console, const Options& options)
    : console_(console),
      has_test_set_(options.has_test_set),
      workers_(options.workers),
      next_epoch_(options.first_epoch),
      epochs_shown_(options.first_epoch),
      epochs_(options.epochs) {}

void TrainingDisplay::Update(const proto::StatusReply& status, Time now) {
  if (status.epochs() > 0) epochs_ = status.epochs();
  PrintDevices(status);
  PrintEpochs(status);
  PrintCheckpointsAgain(status);
  if (console_->style().terminal) {
    console_->ShowLive(FormatLiveLine(status, console_->style()));
    return;
  }
  const bool hindered = status.phase() != "training" || status.waiting_size() > 0;
  PrintPlain(hindered ? status.phase() + " hindered" : status.phase(), FormatProgressLine(status),
             hindered ? kWaitingPatience : Time(0), now);
}

void TrainingDisplay::ShowActivity(const std::string& text, Time now) {
  if (console_->style().terminal) {
    console_->ShowLive(text.substr(0, console_->style().live_columns()));
  } else {
    PrintPlain(text, text, kWaitingPatience, now);
  }
}

void TrainingDisplay::PrintPlain(const std::string& key, const std::string& text, Time patience,
                                 Time now) {
  if (key != plain_key_) {
    plain_key_ = key;
    plain_key_since_ = now;
    last_plain_.reset();
  }
  const bool due = last_plain_.has_value() ? now - *last_plain_ >= kPlainInterval
                                           : now - plain_key_since_ >= patience;
  if (!due) return;
  last_plain_ = now;
  console_->Print(text);
}

// Prints once all workers report a device, and again if one returns with another device.
void TrainingDisplay::PrintDevices(const proto::StatusReply& status) {
  std::map<uint32_t, std::string> devices;
  for (const proto::TaskStatus& task : status.tasks()) {
    if (task.type() == "worker" && !task.device().empty()) devices[task.index()] = task.device();
  }
  if (devices.empty() || devices.size() < workers_ || devices == devices_) return;
  console_->Print(DescribeDevices(devices));
  devices_ = std::move(devices);
}

void TrainingDisplay::PrintEpochs(const proto::StatusReply& status) {
  // Finished epochs may be repeated.
  if (status.phase() == "training" && status.steps_per_epoch() > 0 &&
      status.base_step() < status.total_steps()) {
    uint64_t closed = status.base_step() / status.steps_per_epoch();
    if (!status.history().empty())
      closed = std::max(closed, status.history().rbegin()->epoch() + 1);
    next_epoch_ = std::min(next_epoch_, closed);
  }
  for (const proto::EpochResult& epoch : status.history()) {
    if (epoch.epoch() < next_epoch_) continue;
    if (has_test_set_ && !epoch.has_test_loss()) return;
    PrintEpoch(epoch, epochs_);
  }
}

void TrainingDisplay::PrintRemainingEpochs(const std::vector<proto::EpochResult>& history) {
  for (const proto::EpochResult& epoch : history) {
    if (epoch.epoch() < next_epoch_) continue;
    PrintEpoch(epoch, std::max(epochs_, epoch.epoch() + 1));
  }
}

void TrainingDisplay::PrintEpoch(const proto::EpochResult& epoch, uint64_t epochs) {
  const bool again = epoch.epoch() < epochs_shown_;
  console_->Print(FormatEpochLine(epoch, epochs) + (again ? ", done again" : ""));
  next_epoch_ = epoch.epoch() + 1;
  epochs_shown_ = std::max(epochs_shown_, next_epoch_);
}

void TrainingDisplay::PrintCheckpointsAgain(const proto::StatusReply& status) {
  const proto::CheckpointStatus& checkpoint = status.last_checkpoint();
  const bool failed = std::exchange(checkpoints_fail_, !checkpoint.last_error().empty());
  if (failed && !checkpoints_fail_ && !checkpoint.directory().empty())
    console_->Print("checkpoints are written again: " + checkpoint.directory());
}

}  // namespace shoal
