#include <algorithm>
#include <cstring>
#include <vector>

#include "common/archive/hdf5_file.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = shoal::Hdf5File::Open(
      {.name = "fuzz.h5", .size = size, .read = [=](uint64_t offset, void* out, uint64_t bytes) {
         if (offset > size || bytes > size - offset) std::abort();
         std::memcpy(out, data + offset, bytes);
         return absl::OkStatus();
       }});
  if (!file.ok()) return 0;
  for (const shoal::Hdf5File::Dataset& dataset : (*file)->datasets()) {
    std::vector<float> values(std::min<int64_t>(shoal::ElementCount(dataset.shape), 16));
    (void)(*file)->ReadFloats(dataset, 0, values);
  }
  return 0;
}
