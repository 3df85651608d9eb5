#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files/file_system.h"
#include "proto/cluster.pb.h"

namespace shoal {

// history.csv, the results of a run's epochs:
//
//   epoch,loss,METRIC...,val_loss,val_METRIC...,seconds,examples_per_second,examples
//
// followed by a line for each finished epoch, from 1. Fields with Keras's prefix `val_` are results
// on the test set, with all digits. They are empty for an epoch that was not evaluated. `examples`
// is the number of examples behind the training results. That is all of them, unless a coordinator
// was killed within the epoch. It is 0 in a line from an older version of Shoal.

inline constexpr absl::string_view kTestColumnPrefix = "val_";

// The shortest text that reads back as the same number; NaN without a sign.
std::string ExactNumber(double value);

// The header, and the line of an epoch, each with its newline. Metrics are in the order of
// `metric_names`.
std::string HistoryHeader(const std::vector<std::string>& metric_names);
struct HistoryLine {
  uint64_t epoch = 0;
  std::string text;
};
HistoryLine FormatHistoryLine(const std::vector<std::string>& metric_names,
                              const proto::EpochResult& epoch);

// Writes history.csv and similar files, whose lines have increasing numbers. It writes only the
// changed lines at the end of the file. An epoch's cost therefore does not grow with their number.
// One thread at a time.
class HistoryFile {
 public:
  // The file system must outlive this.
  HistoryFile(std::string path, std::string header, FileSystem* files = RealFileSystem())
      : path_(std::move(path)), header_(std::move(header)), files_(files) {}

  // Makes the file end with `lines`, those of all epochs from `from` on, and syncs it. Keeps the
  // lines of earlier epochs. If `from` is 0, replaces the file, completely or not at all. Requires
  // this as the first call and after every error.
  absl::Status Write(uint64_t from, const std::vector<HistoryLine>& lines);

 private:
  const std::string path_;
  const std::string header_;
  FileSystem* const files_;
  std::vector<std::pair<uint64_t, uint64_t>> ends_;  // by line: its epoch and its end in bytes
};

struct History {
  std::vector<proto::EpochResult> epochs;  // in the order of the lines
  // kDataLoss: invalid lines were skipped. The message names the first one, with file and line, in
  // one line.
  absl::Status damage;
};

// Treats a missing file as an empty history. The first column is the epoch; finds the others by
// name. Ignores a last line without a newline, whose writer died. Returns an error if the file
// cannot be read; its lines are then not known.
absl::StatusOr<History> ReadHistory(const std::string& path, FileSystem* files = RealFileSystem());

}  // namespace shoal
