#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/sequences/sequence_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shoal::FuzzEvaluateClient(shoal::InputBytes(data, size));
  return 0;
}
