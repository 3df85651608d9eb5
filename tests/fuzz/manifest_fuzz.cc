#include "common/checkpoint/manifest.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)shoal::Manifest::Parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  return 0;
}
