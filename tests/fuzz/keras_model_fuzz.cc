#include "common/model/keras_model.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)shoal::ParseKerasModel(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
