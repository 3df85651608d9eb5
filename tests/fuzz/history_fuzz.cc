// history.csv, as a run directory has it.

#include "common/run/history.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  (void)shoal::ReadHistory(file.path());
  return 0;
}
