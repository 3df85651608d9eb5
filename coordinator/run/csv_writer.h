#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/history.h"
#include "coordinator/takeover/run_lock.h"
#include "coordinator/turns/wakeup.h"

namespace shoal {

// Keeps one CSV file of the run directory up to date in the background. Changed marks the lines
// that are old on disk. The writer writes them in Offload, one write at a time.
//
//   written ── Changed ──▶ writing ── no change meanwhile ──▶ written
//                           │  ▲ └─── failed: owed ── kRetryWriteAfter, or Changed ──▶ writing
//                           └──┘ changed meanwhile; or lines at the end failed: the whole file
//
// After a failure it writes the whole file, which does not depend on the old one. Loop thread only.
class CsvWriter {
 public:
  // Pause before a failed write is retried.
  static constexpr Time kRetryWriteAfter = std::chrono::seconds(1);
  // Pause before its owner retries a failed read of the file. Until then the owner holds the
  // writer.
  static constexpr Time kRetryReadAfter = std::chrono::seconds(1);

  struct Options {
    EventLoop* loop = nullptr;    // these and `wakeup` outlive this
    FileSystem* files = nullptr;  // used in Offload only
    std::string path;
    std::string header;
    // Returns the current lines from number `from` on.
    std::function<std::vector<HistoryLine>(uint64_t from)> lines;
    // Raised when no write is in flight any more: the newest one has succeeded, or failed and is
    // retried later.
    Wakeup* wakeup = nullptr;
    // Each write fails if another coordinator has taken it; null: no other process writes.
    const RunLock* lock = nullptr;
  };
  // The first write replaces the file.
  explicit CsvWriter(Options options);
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  // The lines from number `from` on have changed: writes them now, or after the write in flight.
  void Changed(uint64_t from);
  // Makes the next write replace the whole file.
  void Distrust() { whole_ = true; }
  // The file is wrong: replaces it after kRetryWriteAfter.
  void WriteAnewLater();
  // Stops writing until Release: the content of the file is not known yet.
  void Hold();
  // Writes the changes since Hold.
  void Release();

  // The first line that is old on disk; none if the file is up to date.
  std::optional<uint64_t> owed_from() const;
  // The result of the newest write; OK before the first one.
  const absl::Status& last_write() const { return last_write_; }
  // "PATH: WHY" while lines are owed, for people; otherwise empty.
  std::string Owed() const;

 private:
  void Write();
  void OnWritten(uint64_t from, const absl::Status& status);
  void WriteLater();
  std::string WithPath(const std::string& why) const;

  const Options options_;
  const std::shared_ptr<HistoryFile> file_;  // used in Offload only
  bool held_ = false;
  bool whole_ = true;                // the next write replaces the file
  std::optional<uint64_t> changed_;  // first line changed since the newest write began
  std::optional<uint64_t> writing_;  // first line of the write in flight
  absl::Status last_write_;
  Timer retry_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
