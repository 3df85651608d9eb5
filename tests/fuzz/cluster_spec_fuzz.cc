#include "common/cluster/cluster_spec.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)shoal::ParseClusterSpec(std::string(reinterpret_cast<const char*>(data), size), "fuzz",
                                /*need_task=*/true);
  return 0;
}
