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

namespace shoal {

// Keeps one CSV of the run directory up to date, behind its owner's back: Changed says from which
// line on the file is old, and the lines are written in Offload, one write at a time.
//
//   written ── Changed ──▶ writing ── no change meanwhile ──▶ written
//                           │  ▲ └─── failed: owed ── kRetryWriteAfter, or Changed ──▶ writing
//                           └──┘ changed meanwhile; or lines at the end failed: the whole file
//
// After a failure the whole file is written, which needs no line of the old one. Loop thread only.
class CsvWriter {
 public:
  // A failed write is tried again after this time.
  static constexpr Time kRetryWriteAfter = std::chrono::seconds(1);

  struct Options {
    EventLoop* loop = nullptr;    // these outlive this
    FileSystem* files = nullptr;  // used in Offload only
    std::string path;
    std::string header;
    // The lines from this number on, as they are now.
    std::function<std::vector<HistoryLine>(uint64_t from)> lines;
    // No write is in flight: the newest one has succeeded, or failed and is tried again later.
    std::function<void()> on_idle;
  };
  // The first write replaces the file.
  explicit CsvWriter(Options options);
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  // The lines from this number on have changed: writes them, now or after the write in flight.
  void Changed(uint64_t from);
  // The whole file is written next time, whatever has changed.
  void Distrust() { whole_ = true; }
  // The whole file is wrong: writes it after kRetryWriteAfter.
  void WriteAnewLater();
  // Writes nothing until Release: what the file holds is not known yet.
  void Hold();
  // Writes what has changed meanwhile.
  void Release();

  // From which line on the file on disk is old; none: it is up to date.
  std::optional<uint64_t> owed_from() const;
  // Why the newest write failed; empty where it did not.
  const std::string& error() const { return error_; }
  // "PATH: WHY" while lines are owed, for people; empty where none is.
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
  std::optional<uint64_t> changed_;  // from which line on, since the newest write began
  std::optional<uint64_t> writing_;  // from which line on
  std::string error_;
  Timer retry_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
