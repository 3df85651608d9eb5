#pragma once

#include <functional>

#include "common/json/keras_options.h"

namespace shoal {

// Returns the learning rate after a number of updates: 0 before the first. Thread-safe. Each class
// of Keras is one file here, made by the table in schedule_table.cc;
// docs/contributing/adding-a-kind.md shows how to add one.
using Schedule = std::function<double(double updates)>;

// The valid range of a learning rate in a schedule. It includes 0, with which a warm-up begins.
inline constexpr NumberRange kScheduledRate = {.min = 0, .max = 1000};
// The valid range of a number of updates.
inline constexpr NumberRange kUpdates = {.min = 0, .max = 1e12};
inline constexpr NumberRange kSomeUpdates = {.min = 0, .max = 1e12, .above_min = true};

// Reads an optimizer's option "learning_rate": a number (`otherwise` if not given) or a schedule.
Schedule ReadLearningRate(KerasOptions& options, double otherwise);

}  // namespace shoal
