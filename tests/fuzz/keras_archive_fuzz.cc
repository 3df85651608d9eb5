#include "common/archive/keras_archive.h"
#include "common/saved_model/initial_weights.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  (void)shoal::ReadArchivedModel(file.path());
  const absl::StatusOr<shoal::InitialWeights> weights =
      shoal::FindInitialWeights(file.path(), "{}",
                                {{.name = "dense/kernel", .shape = {2, 3}},
                                 {.name = "dense/bias", .shape = {3}},
                                 {.name = "tower/dense/kernel", .shape = {}}});
  if (weights.ok()) (void)weights->ToText();
  return 0;
}
