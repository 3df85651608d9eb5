#include "coordinator/run/csv_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"

namespace shoal {

CsvWriter::CsvWriter(Options options)
    : options_(std::move(options)),
      file_(std::make_shared<HistoryFile>(options_.path, options_.header, options_.files)) {}

void CsvWriter::Changed(uint64_t from) {
  changed_ = std::min(changed_.value_or(from), from);
  Write();
}

void CsvWriter::WriteAnewLater() {
  changed_ = 0;
  whole_ = true;
  WriteLater();
}

void CsvWriter::Hold() { held_ = true; }

void CsvWriter::Release() {
  held_ = false;
  if (changed_.has_value()) Write();
}

std::optional<uint64_t> CsvWriter::owed_from() const {
  if (!changed_.has_value()) return writing_;
  return std::min(*changed_, writing_.value_or(*changed_));
}

std::string CsvWriter::Owed() const {
  if (!owed_from().has_value()) return "";
  return WithPath(last_write_.ok() ? "the disk has not answered yet"
                                   : std::string(last_write_.message()));
}

std::string CsvWriter::WithPath(const std::string& why) const {
  return absl::StrContains(why, options_.path) ? why : absl::StrCat(options_.path, ": ", why);
}

void CsvWriter::WriteLater() {
  retry_.Set(kRetryWriteAfter, [this] {
    if (changed_.has_value()) Write();
  });
}

// One write at a time, because lines may come faster than a disk writes them.
void CsvWriter::Write() {
  if (held_ || writing_.has_value()) return;
  retry_.Cancel();
  const uint64_t first = *std::exchange(changed_, std::nullopt);
  const uint64_t from = std::exchange(whole_, false) ? 0 : first;
  writing_ = from;
  scope_.Offload(
      Lane::kFiles,
      [file = file_, from, lines = options_.lines(from),
       check = options_.lock == nullptr ? nullptr : options_.lock->WriteCheck()]() -> absl::Status {
        if (check != nullptr) SHOAL_RETURN_IF_ERROR(check());
        return file->Write(from, lines);
      },
      [this, from](const absl::Status& written) { OnWritten(from, written); });
}

void CsvWriter::OnWritten(uint64_t from, const absl::Status& status) {
  writing_.reset();
  // While the disk is full each retry fails the same way: logs it once.
  const absl::Status before = std::exchange(last_write_, status);
  if (!status.ok() && status.message() != before.message())
    LogWarning(WithPath(std::string(status.message())) + "; retrying");
  const bool again = changed_.has_value();
  if (!status.ok()) {
    changed_ = 0;
    whole_ = true;
  }
  // Another process may have changed the file. Writing the whole file may still succeed.
  if (again || (!status.ok() && from > 0)) Write();
  if (!writing_.has_value() && changed_.has_value()) WriteLater();
  if (!writing_.has_value()) options_.wakeup->Raise();
}

}  // namespace shoal
