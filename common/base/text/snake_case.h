#pragma once

#include <string>

namespace shoal {

// Keras's name for the function of a class: "KLDivergence" -> "kl_divergence", "TopKAccuracy" ->
// "top_k_accuracy".
std::string SnakeCase(const std::string& name);

}  // namespace shoal
