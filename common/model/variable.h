#pragma once

#include <string>

#include "common/base/shape.h"
#include "common/model/initializer.h"

namespace shoal {

// A named float32 tensor of the model. Its name is Keras's path with the outer model's name left
// out: "conv2d/kernel".
struct Variable {
  std::string name;
  Shape shape = {};  // all extents known
  bool trainable = true;
  Initializer initializer = {};
};

}  // namespace shoal
