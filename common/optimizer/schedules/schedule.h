#pragma once

#include <functional>

#include "common/json/keras_options.h"

namespace shoal {

// The learning rate after so many updates: 0 before the first. Thread-safe. Each class of Keras is
// one file here, made by the table in schedule_table.cc; docs/contributing.md shows how one is
// added.
using Schedule = std::function<double(double updates)>;

// What a learning rate may be inside a schedule: 0 too, which a warm-up begins with.
inline constexpr NumberRange kScheduledRate = {.min = 0, .max = 1000};
// What counts updates.
inline constexpr NumberRange kUpdates = {.min = 0, .max = 1e12};
inline constexpr NumberRange kSomeUpdates = {.min = 0, .max = 1e12, .above_min = true};

// Reads the option "learning_rate" of an optimizer: a number (`otherwise` where it is not given) or
// a schedule.
Schedule ReadLearningRate(KerasOptions& options, double otherwise);

}  // namespace shoal
