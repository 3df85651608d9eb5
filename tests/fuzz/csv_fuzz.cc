#include "tests/fuzz/fuzz_target.h"
#include "worker/input/dataset/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  shoal::DataSource source;
  source.format = "csv";
  source.paths = {file.path()};
  source.labels = "0";
  // Each way of reading a header, by the first byte.
  source.header = size > 0 && data[0] % 2 == 0;
  const auto dataset = shoal::OpenDataset(source, {{.name = "x", .shape = {1}}});
  if (!dataset.ok()) return 0;
  float x, label;
  for (uint64_t i = 0; i < (*dataset)->size(); ++i) {
    const shoal::FeatureSpan feature(std::span(&x, 1));
    (void)(*dataset)->Read(i, std::span(&feature, 1), std::span(&label, 1));
  }
  return 0;
}
