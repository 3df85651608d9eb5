#include "tests/fuzz/fuzz_target.h"
#include "worker/input/dataset/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  shoal::DataSource source;
  source.format = "npz";
  source.paths = {file.path()};
  source.features = {{"", {"x"}}};
  source.labels = "y";
  (void)shoal::OpenDataset(source, {{.name = "x", .shape = {2}}});
  return 0;
}
