#include "tests/fuzz/fuzz_target.h"
#include "worker/input/dataset/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  for (const char* format : {"cifar10", "cifar100"}) {
    shoal::DataSource source;
    source.format = format;
    source.paths = {file.path()};
    const auto dataset = shoal::OpenDataset(source, {{.name = "x", .shape = {32, 32, 3}}});
    if (!dataset.ok()) continue;
    std::vector<float> x(32 * 32 * 3);
    float label;
    std::vector<uint8_t> bytes(x.size());
    for (const shoal::FeatureSpan& feature : {shoal::FeatureSpan(x), shoal::FeatureSpan(bytes)})
      (void)(*dataset)->Read((*dataset)->size() - 1, std::span(&feature, 1), std::span(&label, 1));
  }
  return 0;
}
