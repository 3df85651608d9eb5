#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/files/file_system.h"
#include "proto/cluster.pb.h"

namespace shoal {

// history.csv, the curves of a run:
//
//   epoch,loss,METRIC...,val_loss,val_METRIC...,seconds,examples_per_second
//
// and a line for each finished epoch, from 1, as people count. With `val_` in front, as Keras names
// them, are results on the test set; these fields are empty for an epoch that was not evaluated.

// The text, in the order of `metric_names`. `epochs` by their number.
std::string FormatHistory(const std::vector<std::string>& metric_names,
                          const std::map<uint64_t, proto::EpochResult>& epochs);

struct History {
  std::vector<proto::EpochResult> epochs;  // in the order of the lines
  // What could not be read, with file and line, in one line; empty where there is nothing. A line
  // that does not fit is left out.
  std::string problem;
};

// A file that does not exist is an empty history. The first column is the epoch; the others are
// found by name.
History ReadHistory(const std::string& path, FileSystem* files = RealFileSystem());

}  // namespace shoal
