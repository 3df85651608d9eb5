#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/data_source.h"
#include "worker/input/dataset/feature.h"
#include "worker/input/pictures/resize.h"

namespace shoal {

// Turns encoded pictures into examples for a model's input. Decodes, crops and resizes them by a
// data source's options. A value; thread-safe.
class PictureLoader {
 public:
  // Takes the size and colours from the source, or, if absent, from the input's shape. If both
  // differ, the error names both.
  static absl::StatusOr<PictureLoader> Make(const DataSource& source, const Feature& input);

  // Writes an example. Requires that `out` has ElementCount of the input's shape. Takes memory for
  // a large picture from `memory`. Errors are DecodePicture's.
  absl::Status Load(std::span<const uint8_t> encoded, MemoryBudget* memory,
                    std::span<float> out) const;

 private:
  PictureLoader() = default;

  int64_t height_ = 0;
  int64_t width_ = 0;
  DecodeOptions decoding_;
  Interpolation interpolation_ = Interpolation::kBilinear;
  bool crop_ = false;
};

}  // namespace shoal
