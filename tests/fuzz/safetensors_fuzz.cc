#include "common/checkpoint/safetensors_header.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)shoal::ParseSafetensorsHeader(std::string(reinterpret_cast<const char*>(data), size),
                                      8 + size, 1 << 20);
  return 0;
}
