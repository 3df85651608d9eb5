// The job file, and its JSON.

#include "common/job/job.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto job =
      shoal::ParseResolvedJob(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!job.ok()) return 0;
  // What was read is written as a job that reads back the same.
  const std::string text = job->ResolvedText();
  const auto again = shoal::ParseResolvedJob(text, "fuzz");
  if (!again.ok() || again->ResolvedText() != text) std::abort();
  return 0;
}
