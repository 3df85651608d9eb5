#pragma once

#include <string>

#include "common/model/keras_model.h"

namespace shoal {

// Returns the table that Keras's model.summary() prints.
std::string SummarizeModel(const KerasModel& model);

}  // namespace shoal
