#include "cli/display/status_report.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/display/history_table.h"
#include "cli/display/live_line.h"
#include "cli/display/number_text.h"
#include "cli/display/text_table.h"
#include "common/base/crc32c.h"
#include "common/base/text/format_bytes.h"
#include "common/run/run_paths.h"

namespace shoal {
namespace {

constexpr int kEpochsShown = 10;  // the newest

// The number of updates to the chunks of a ps.
std::string Updates(const proto::TaskStatus& ps) {
  const std::string lowest = FormatCount(static_cast<double>(ps.lowest_updates()));
  if (ps.lowest_updates() == ps.highest_updates()) return lowest;
  return absl::StrCat(lowest, " to ", FormatCount(static_cast<double>(ps.highest_updates())));
}

std::string TaskTable(const proto::StatusReply& status) {
  if (status.tasks_size() == 0) return "";
  TextTable table(
      {"<task", "<state", "<address", "done", "held", "steps/s", "updates", "<device", "<detail"});
  for (const proto::TaskStatus& task : status.tasks()) {
    const bool worker = task.type() == "worker";
    const bool ps = task.type() == "ps";
    table.AddRow({absl::StrCat(task.type(), " ", task.index()), task.state(), task.address(),
                  FormatCount(static_cast<double>(task.done())),
                  worker ? std::to_string(task.held()) : "",
                  worker ? FormatNumber(task.steps_per_second()) : "", ps ? Updates(task) : "",
                  task.device(), task.detail()});
  }
  return absl::StrCat("\n", table.ToString());
}

std::string LastCheckpoint(const proto::CheckpointStatus& checkpoint) {
  std::string text;
  if (!checkpoint.directory().empty()) {
    absl::StrAppend(&text, "checkpoint  step ", checkpoint.step(), ", ",
                    checkpoint.has_age_seconds() ? FormatDuration(checkpoint.age_seconds()) + " ago"
                                                 : "by an earlier coordinator",
                    ", ", FormatBytes(checkpoint.size_bytes()), ", ", checkpoint.directory(), "\n");
  }
  if (!checkpoint.not_finite().empty()) {
    absl::StrAppend(&text, "            NOT FINITE: values in \"", checkpoint.not_finite(),
                    "\" are not finite numbers\n");
  }
  if (!checkpoint.last_error().empty()) {
    absl::StrAppend(&text, "            ", FormatCheckpointError(checkpoint), "\n");
  }
  return text.empty() ? "checkpoint  none yet\n" : text;
}

std::string Updates(const proto::StatusReply& status) {
  return absl::StrCat("updates     staleness ", FormatNumber(status.staleness_mean()),
                      " in the mean, at most ", status.staleness_max(), "; ",
                      status.steps_leased_again(), " steps leased again, ",
                      status.repeated_chunks(), " repeated chunks dropped\n");
}

using Json = nlohmann::ordered_json;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

void MakeNumbersOfTexts(const Descriptor& type, Json* message);

// Converts strings of 64-bit integers to numbers. `value` is one value of the field or an array of
// them.
void MakeNumbersOfTexts(const FieldDescriptor& field, Json* value) {
  if (value->is_array()) {
    for (Json& each : *value) MakeNumbersOfTexts(field, &each);
    return;
  }
  uint64_t number = 0;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    MakeNumbersOfTexts(*field.message_type(), value);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 && value->is_string() &&
             absl::SimpleAtoi(value->get_ref<const std::string&>(), &number)) {
    *value = number;
  }
}

void MakeNumbersOfTexts(const Descriptor& type, Json* message) {
  for (int i = 0; i < type.field_count(); ++i) {
    const auto value = message->find(type.field(i)->name());
    if (value != message->end()) MakeNumbersOfTexts(*type.field(i), &*value);
  }
}

}  // namespace

std::string FormatStatusReport(const proto::StatusReply& status) {
  const bool of_files = status.uptime_seconds() == 0;
  std::string text = absl::StrCat(
      status.job_name(), ", ", status.phase(), " (shoal ", status.version(),
      of_files ? "" : absl::StrCat(", up ", FormatDuration(status.uptime_seconds())), ")\n");
  // A reason for a wait has its own lines.
  if (const std::string progress = FormatProgress(status); !progress.empty())
    absl::StrAppend(&text, "progress    ", progress, "\n");
  for (const std::string& waiting : status.waiting()) {
    absl::StrAppend(&text, "waiting     ", waiting, "\n");
  }
  if (!status.error().empty()) absl::StrAppend(&text, "error       ", status.error(), "\n");
  if (status.has_exit_code())
    absl::StrAppend(&text, "ended       with exit code ", status.exit_code(), "\n");
  absl::StrAppend(&text, LastCheckpoint(status.last_checkpoint()));
  for (const proto::BestEpoch& best : status.best()) {
    absl::StrAppend(&text, "best        ", best.figure(), " ", FormatNumber(best.value()),
                    ", epoch ", best.epoch() + 1, ", ",
                    best.directory().empty() ? "checkpoint removed" : best.directory(), "\n");
  }
  if (status.has_ended_after_epoch()) {
    absl::StrAppend(&text, "early stop  after epoch ", status.ended_after_epoch() + 1, "\n");
  }
  absl::StrAppend(&text, of_files ? "" : Updates(status), "run         ", status.run_dir(), "\n");
  if (of_files && status.phase() == "finished")
    absl::StrAppend(&text, "model       ", RunPaths{status.run_dir()}.model(), "\n");
  absl::StrAppend(&text, TaskTable(status));
  const int hidden = std::max(0, status.history_size() - kEpochsShown);
  const std::vector<proto::EpochResult> history(status.history().begin() + hidden,
                                                status.history().end());
  if (history.empty()) return text;
  absl::StrAppend(&text, "\n", FormatHistoryTable(history));
  if (const uint64_t earlier = history.front().epoch(); earlier > 0)
    absl::StrAppend(&text, earlier, earlier == 1 ? " epoch before: " : " epochs before: ",
                    RunPaths{status.run_dir()}.history(), "\n");
  return text;
}

std::string StatusToJson(const proto::StatusReply& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for messages with unknown types inside; a status has none.
  const auto converted = google::protobuf::util::MessageToJsonString(status, &json, options);
  Json object = converted.ok() ? Json::parse(json, nullptr, /*allow_exceptions=*/false) : Json();
  if (!object.is_object()) return "{}\n";
  MakeNumbersOfTexts(*status.GetDescriptor(), &object);
  object["job_fingerprint"] = ChecksumText(status.job_fingerprint());
  return object.dump(1) + "\n";
}

}  // namespace shoal
