// IDX and NPY, plain and gzipped.

#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "worker/input/formats/arrays/array_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  const auto array = shoal::ArrayFile::Open(file.path(), {});
  if (!array.ok()) return 0;
  std::vector<float> row(static_cast<size_t>(shoal::ElementCount((*array)->row_shape())));
  std::vector<uint8_t> bytes((*array)->bytes() ? row.size() : 0);
  for (uint64_t i = 0; i < (*array)->rows() && i < 10; ++i) {
    (void)(*array)->ReadRow(i, row);
    if (!bytes.empty()) (void)(*array)->ReadRow(i, bytes);
  }
  return 0;
}
