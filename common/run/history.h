#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "proto/cluster.pb.h"

namespace shoal {

// history.csv, the curves of a run:
//
//   epoch,loss,METRIC...,val_loss,val_METRIC...,seconds,examples_per_second,examples
//
// and a line for each finished epoch, from 1, as people count. With `val_` in front, as Keras names
// them, are results on the test set, to the last digit; these fields are empty for an epoch that
// was not evaluated. `examples` is how many the figures of the training set are of: all of them,
// but where a coordinator was killed within the epoch; 0 in a line of an earlier Shoal.

// As few digits as read back as the same number; NaN without a sign.
std::string ExactNumber(double value);

// The header, and the line of an epoch, each with its newline, in the order of `metric_names`.
std::string HistoryHeader(const std::vector<std::string>& metric_names);
struct HistoryLine {
  uint64_t epoch = 0;
  std::string text;
};
HistoryLine FormatHistoryLine(const std::vector<std::string>& metric_names,
                              const proto::EpochResult& epoch);

// The file as a run writes it, and others of its kind, which have another number for each line that
// rises from one to the next: what has changed is written in its place at the end, so that an
// epoch costs the same after many others. One thread at a time.
class HistoryFile {
 public:
  // The file system outlives this.
  HistoryFile(std::string path, std::string header, FileSystem* files = RealFileSystem())
      : path_(std::move(path)), header_(std::move(header)), files_(files) {}

  // Makes the file end with `lines`, those of all epochs from `from` on, and lasts; what is above
  // them stays. With `from` 0 the file is replaced, whole or not at all, which is to be done first,
  // and after every error.
  absl::Status Write(uint64_t from, const std::vector<HistoryLine>& lines);

 private:
  const std::string path_;
  const std::string header_;
  FileSystem* const files_;
  std::vector<std::pair<uint64_t, uint64_t>> ends_;  // of each line: its epoch, its end in bytes
};

struct History {
  std::vector<proto::EpochResult> epochs;  // in the order of the lines
  // What could not be read, with file and line, in one line; empty where there is nothing. A line
  // that does not fit is left out.
  std::string problem;
};

// A file that does not exist is an empty history. The first column is the epoch; the others are
// found by name. A last line without its newline is one whose writer died.
History ReadHistory(const std::string& path, FileSystem* files = RealFileSystem());

}  // namespace shoal
