#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "cli/display/console.h"
#include "worker/job/dataset_pass.h"

namespace shoal {

// Calls `each` for all batches of a pass in turn, while the next ones are read. Shows a live line
// that begins with `what` ("evaluating"). Returns the error of `each`, or kCancelled with the
// progress after a stop signal.
absl::Status ForEachBatch(DatasetPass* pass, const std::string& what, Console* console,
                          const std::function<absl::Status(uint64_t batch)>& each);

// "evaluating: 12,000 of 60,000 examples  4,830 examples/s  9 s left"
std::string FormatPassLine(const std::string& what, uint64_t done, uint64_t examples,
                           double seconds);

}  // namespace shoal
