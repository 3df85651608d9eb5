#pragma once

#include <string>

namespace shoal {

// Properties that all layers of a model share.
struct ModelTraits {
  bool keras2 = false;  // written by Keras 1 or 2, where some options have another meaning
  // If false, the optimizer updates no variable of these layers, because the outer model is not
  // trainable. They compute as if it were.
  bool optimized = true;
  std::string path = {};  // prefix of its layers' names: "inner/"; empty for the outer model

  bool nested() const { return !path.empty(); }
};

}  // namespace shoal
