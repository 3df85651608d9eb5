#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/shape.h"
#include "common/model/fourier_kernel.h"

namespace shoal {

// How a variable gets its first values: the distributions of Keras's initializers.
struct Initializer {
  enum class Kind {
    kConstant,         // a = value (Zeros, Ones, Constant)
    kUniform,          // [a, b)
    kNormal,           // mean a, standard deviation b
    kTruncatedNormal,  // the same, redrawn beyond two standard deviations
    kVarianceScaling,  // scale a; fan mode and distribution below (Glorot, He, Lecun)
    kOrthogonal,       // gain a
    kIdentity,         // gain a
    kFourier,          // `fourier`
  };
  enum class FanMode { kFanIn, kFanOut, kFanAvg };
  enum class Distribution { kUniform, kTruncatedNormal, kUntruncatedNormal };

  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;
  FanMode fan_mode = FanMode::kFanAvg;
  Distribution distribution = Distribution::kUniform;
  std::shared_ptr<const FourierKernel> fourier = nullptr;
  int64_t seed = -1;  // from the Keras config; -1 if it gives none
};

// Writes rows [row_begin, row_end) of the variable's first values into `out`, which holds exactly
// these rows. Rows are along axis 0; a scalar has one row. Each value is a pure function of
// (job_seed, variable name, flat index). This keeps the variable the same for every split over ps.
// Thread-safe.
void InitializeRows(const Initializer& initializer, const std::string& variable_name,
                    const Shape& shape, uint64_t job_seed, int64_t row_begin, int64_t row_end,
                    std::span<float> out);

}  // namespace shoal
