#pragma once

#include <string>

namespace shoal {

// "KLDivergence" -> "kl_divergence", "TopKAccuracy" -> "top_k_accuracy": how Keras names the
// function of a class.
std::string SnakeCase(const std::string& name);

}  // namespace shoal
