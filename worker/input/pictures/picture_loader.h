#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/data_source.h"
#include "worker/input/dataset/feature.h"
#include "worker/input/pictures/resize.h"

namespace shoal {

// Makes examples of encoded pictures: decoded, cropped and resized as a data source says for a
// model's input. A value; thread-safe.
class PictureLoader {
 public:
  // What the source does not say is the input's: its size, and its colours by its channels. The
  // error says what the two would be where they differ.
  static absl::StatusOr<PictureLoader> Make(const DataSource& source, const Feature& input);

  // `out` holds ElementCount of the input's shape. A large picture is decoded in `memory`. Errors
  // are DecodePicture's.
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
