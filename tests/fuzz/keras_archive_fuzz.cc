#include "common/archive/hdf5_file.h"
#include "common/archive/keras_archive.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  (void)shoal::ReadArchivedModel(file.path());
  const absl::StatusOr<shoal::ByteSource> weights = shoal::OpenArchivedWeights(file.path());
  if (weights.ok()) (void)shoal::Hdf5File::Open(*weights);
  return 0;
}
